//! Members ask about their orders: what a gateway tells is what the record says at the position it names, and a list lacks no order that was
//! there from the question to the end.

use std::collections::{BTreeMap, BTreeSet};

use pares_exercise::accounts::ShareAccounts;
use pares_types::{
    ClientOrderId, List, ListEnd, ListRequest, OrderId, OrderKey, OrderState, OrderStatus, Position, Reason,
    Reply, ShardId,
};
use pares_wire::frame;

use super::streams::place;
use super::{World, shard_id};
use crate::client::EXCHANGE;
use crate::ledger::Ledger;
use crate::{Broken, Verdict, must};

const ORDERS: &str = "members' orders";
/// Of thousand times that a client wakes it asks so often about its orders.
const ASKS_PERMILLE: u64 = 40;

/// A shard's orders as the record has them below a position.
#[derive(Default)]
pub(super) struct Orders {
    next: Position,
    accounts: ShareAccounts,
}

impl Orders {
    /// What is left of orders below that position.
    fn at(&mut self, ledger: &Ledger, shard: ShardId, next: Position) -> Result<&ShareAccounts, Broken> {
        if next < self.next {
            *self = Self::default();
        }
        while self.next < next {
            let Some(record) = ledger.record(shard, self.next) else {
                return broken(format!("shard {shard}: {next} is told, nothing is known of {}", self.next));
            };
            record.follow(&mut self.accounts).or_else(broken)?;
            self.next = self.next.next();
        }
        Ok(&self.accounts)
    }
}

/// What a session has asked, and what it may expect to be told.
#[derive(Default)]
pub(super) struct Asked {
    /// A session that has not signed on receives that answer, and not for which question.
    pub(super) is_signed_on: bool,
    /// By shard: the gateway has followed so far, at least.
    followed: BTreeMap<ShardId, Position>,
    /// Questions for one order that are not answered.
    singles: u32,
    list: Option<Listing>,
    lists: u64,
}

struct Listing {
    /// What the gateway had followed, at least, when it was asked.
    since: BTreeMap<ShardId, Position>,
    told: BTreeSet<OrderId>,
}

impl Asked {
    /// The gateway sent that.
    pub(super) fn note(&mut self, reply: &Reply) {
        if let Some((shard, position, _)) = place(reply) {
            let followed = self.followed.entry(shard).or_default();
            *followed = position.next().max(*followed);
        }
    }
}

fn broken<T>(what: String) -> Result<T, Broken> {
    Err(Broken { invariant: ORDERS, what })
}

impl World<'_> {
    /// Now and then, at its home: how one order is, or which there are.
    pub(super) fn ask_about_orders(&mut self, client: usize) {
        let Self { clients, random, sessions, .. } = self;
        let known = &clients[client];
        let Some(connection) = known.connections[known.home] else { return };
        if known.member == EXCHANGE || known.entered.is_empty() || !random.chance(ASKS_PERMILLE) {
            return;
        }
        let asked = &mut sessions[connection].asked;
        if !asked.is_signed_on || asked.list.is_some() {
            return;
        }
        let mut bytes = Vec::new();
        if random.chance(500) {
            let name = ClientOrderId(known.entered[random.index(known.entered.len())]);
            frame::write_order_status_request(&mut bytes, OrderKey::Name(name));
            asked.singles += 1;
        } else {
            asked.lists += 1;
            let request = ListRequest { token: asked.lists, list: List::Orders, instrument: None };
            frame::write_list_request(&mut bytes, &request);
            asked.list = Some(Listing { since: asked.followed.clone(), told: BTreeSet::new() });
        }
        self.send_to_gateway(connection, &bytes);
    }

    pub(super) fn on_order_status(
        &mut self,
        connection: usize,
        key: OrderKey,
        status: Option<OrderStatus>,
    ) -> Verdict {
        let asked = &mut self.sessions[connection].asked;
        // A list is asked for later than those, and only one at a time.
        let is_single = asked.singles > 0;
        asked.singles -= u32::from(is_single);
        let Some(status) = status.filter(|_| !self.ledger.looks_away) else { return Ok(()) };
        self.summary.orders_told += 1;
        if let Some(listing) = asked.list.as_mut().filter(|_| !is_single) {
            let is_first = listing.told.insert(status.order);
            must(is_first, ORDERS, || format!("{key:?} is told twice in one list"))?;
        }
        self.check_status(connection, &status)
    }

    fn check_status(&mut self, connection: usize, status: &OrderStatus) -> Verdict {
        let OrderStatus { client_order_id: name, shard, next, remaining, .. } = *status;
        let member = self.clients[self.sessions[connection].client].member;
        if status.state == OrderState::InFlight {
            let at = self.ledger.executed_at((shard, member, name)).filter(|at| *at < next);
            return must(at.is_none(), ORDERS, || format!("{status:?} was executed at {at:?}"));
        }
        let accounts = self.orders[usize::from(shard.0)].at(&self.ledger, shard, next)?;
        let order = accounts.orders.get(&status.order);
        let left = order.map_or(0, |order| order.remaining());
        let is_own =
            order.is_none_or(|order| order.owner == (member, name) && order.instrument == status.instrument);
        let works = status.state == OrderState::Working;
        must(is_own && left == remaining.0 && works == (left > 0), ORDERS, || {
            format!("{status:?} is told to member {member}; {left} shares of it are left")
        })
    }

    /// A gateway says that it told all orders: those that it had followed when it was asked, and that are still there, are among them.
    pub(super) fn on_list_end(&mut self, connection: usize, end: &ListEnd) -> Verdict {
        let session = &mut self.sessions[connection];
        let member = self.clients[session.client].member;
        must((end.request.token, end.reason) == (session.asked.lists, Reason::None), ORDERS, || {
            format!("{end:?} ends no list that was asked for")
        })?;
        let Some(Listing { since, told }) = session.asked.list.take() else {
            return broken(format!("{end:?} ends a list for the second time"));
        };
        if self.ledger.looks_away {
            return Ok(());
        }
        for shard in (0..self.scenario.shards).map(shard_id) {
            let since = since.get(&shard).copied().unwrap_or_default();
            let living = self.ledger.accounts(usize::from(shard.0))?.resting();
            let before = self.orders[usize::from(shard.0)].at(&self.ledger, shard, since)?;
            let own = before.orders.iter().filter(|(_, order)| order.owner.0 == member);
            let mut own = own.map(|(id, _)| id);
            let missing = own.find(|id| living.contains_key(id) && !told.contains(id));
            must(missing.is_none(), ORDERS, || {
                format!("{missing:?} of {member} was there all the time and is not told")
            })?;
        }
        Ok(())
    }
}
