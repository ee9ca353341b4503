//! Orders that die with their session: none is left behind, and none is taken from a session that lives (decision 22).
//!
//! Seen from outside: an order came into a gateway on one of the connections on which its name was sent there. If all of them are open,
//! nothing but a timer may cancel it as left by its session; if the session has no connection there any more, it does not stay.

use std::collections::BTreeMap;

use pares_types::{CancelCause, ClientOrderId, Command, Event, MemberId, OrderId, Position};
use pares_wire::frame::{self, CancelAfter};

use crate::record::Record;
use crate::{Broken, Verdict, must};

use super::{World, shard_id};

const TIMER_MS_MAX: u64 = 4;

impl World<'_> {
    /// A request is about to be sent on a connection; what goes before it.
    pub(super) fn before_request(&mut self, connection: usize, name: ClientOrderId) -> Vec<u8> {
        let mut bytes = Vec::new();
        if !self.scenario.guards {
            return bytes;
        }
        if name.guard().is_some() {
            self.sessions[connection].guarded.insert(name);
        }
        if self.random.chance(20) {
            self.sessions[connection].is_timed = true;
            let after_ms = (self.random.below(TIMER_MS_MAX + 1) as u32).into();
            frame::write(&mut bytes, &CancelAfter { after_ms, reserved: 0.into() });
        }
        bytes
    }

    /// Whether its session has a connection there, which it ends with the last of; and whether the order may have come in on one that is
    /// not there any more, or one of them has had a timer.
    fn connections(&self, order: OrderId, member: MemberId, name: ClientOrderId) -> (bool, bool) {
        let state = self.machine.lock();
        let (mut is_open, mut is_over) = (false, false);
        for (number, session) in self.sessions.iter().enumerate() {
            let is_of_session = usize::from(order.0.gateway().0) == session.gateway
                && self.clients[session.client].member == member;
            let lives = session.is_alive && !session.is_closing && !state.net.connection(number).is_closed;
            is_open |= is_of_session && lives;
            is_over |= is_of_session && (session.is_timed || !lives && session.guarded.contains(&name));
        }
        (is_open, is_over)
    }

    /// G2: what a record cancels as left behind was.
    pub(super) fn check_guards(&self, record: &Record) -> Verdict {
        for event in &record.events {
            let Event::Cancelled { order, member, client_order_id, cause: CancelCause::SessionEnded, .. } =
                *event
            else {
                continue;
            };
            must(
                self.connections(order, member, client_order_id) != (true, false),
                "G2 none that lives is cancelled",
                || format!("{client_order_id} of {member} is cancelled, its session lives: {record:?}"),
            )?;
        }
        Ok(())
    }

    /// G1: the first order that its session left behind, if there is one.
    pub(super) fn left_behind(&self) -> Result<Option<(OrderId, ClientOrderId)>, Broken> {
        if !self.scenario.guards {
            return Ok(None);
        }
        for shard in 0..self.scenario.shards {
            let names = self.guarded_orders(shard)?;
            for order in self.ledger.accounts(shard)?.resting().into_keys() {
                let Some(&(member, name)) = names.get(&order) else { continue };
                if self.connections(order, member, name) == (false, true) {
                    return Ok(Some((order, name)));
                }
            }
        }
        Ok(None)
    }

    fn guarded_orders(&self, shard: usize) -> Result<BTreeMap<OrderId, (MemberId, ClientOrderId)>, Broken> {
        let positions = (0..self.ledger.len(shard)?.0).map(Position);
        let records = positions.filter_map(|position| self.ledger.record(shard_id(shard), position));
        let requests = records.map(|record| &record.request);
        let guarded = requests.filter(|request| {
            matches!(request.command, Command::Enter(_)) && request.client_order_id.guard().is_some()
        });
        Ok(guarded.map(|one| (OrderId(one.id), (one.member, one.client_order_id))).collect())
    }
}
