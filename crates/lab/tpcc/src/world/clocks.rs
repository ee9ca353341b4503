//! Total order by logical clocks (Lamport, 1978), made uniform: 2·t_max wherever the initiator is.
//!
//! A transaction is sent with the sender's clock, each server acknowledges to all others with a later clock, and a server delivers
//! the transaction with the lowest clock when all others have acknowledged that they have it and that their clock is past it. That
//! needs no sequencer, and takes a message to the farthest server and one back, as the paper says of any such protocol.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::World;
use super::dbsm::{self, Order};
use crate::network::Site;
use crate::server::Executed;
use crate::setting::SITES;

/// Clock, and how many transactions of each server have come in.
const ACKNOWLEDGEMENT_BYTES: u64 = 32;

#[derive(Clone, Debug)]
pub(crate) enum Message {
    /// A transaction, the `count`-th of its sender.
    Executed { clock: u64, count: u64, executed: Rc<Executed> },
    /// The sender's clock, and how many of each server's it has.
    Acknowledgement { clock: u64, received: [u64; SITES] },
}

#[derive(Debug, Default)]
struct Member {
    clock: u64,
    /// How many of each server's transactions are here.
    received: [u64; SITES],
    /// The last clock heard of each other server.
    heard: [u64; SITES],
    /// How many of each (second) server's transactions each (first) has.
    acknowledged: [[u64; SITES]; SITES],
    /// By clock and sender, with the sender's count.
    pending: BTreeMap<(u64, Site), (u64, Rc<Executed>)>,
}

/// All members' clocks.
#[derive(Debug, Default)]
pub(super) struct Clocks([Member; SITES]);

impl Member {
    /// The next transaction this member, at `site`, can deliver.
    fn next(&mut self, site: Site) -> Option<Rc<Executed>> {
        let (&(clock, from), &(count, _)) = self.pending.first_key_value()?;
        let past = |other: Site| {
            other == site || (self.heard[other] >= clock && self.acknowledged[other][from] >= count)
        };
        match (0..SITES).all(past) {
            true => self.pending.pop_first().map(|(_, (_, executed))| executed),
            false => None,
        }
    }
}

impl World {
    fn member(&mut self, site: Site) -> &mut Member {
        match &mut self.dbsm().order {
            Order::Clocks(clocks) => &mut clocks.0[site],
            Order::Sequencer(_) => unreachable!("only clocks send these messages"),
        }
    }

    pub(super) fn send_by_clock(&mut self, executed: Rc<Executed>) {
        let site = executed.site;
        let member = self.member(site);
        member.clock += 1;
        member.received[site] += 1;
        let (clock, count) = (member.clock, member.received[site]);
        member.pending.insert((clock, site), (count, Rc::clone(&executed)));
        let bytes = self.setting.write_set_bytes.into();
        let message = Message::Executed { clock, count, executed };
        self.send_all(site, bytes, &dbsm::Message::Clocks(message));
    }

    pub(super) fn on_clock_message(&mut self, from: Site, to: Site, message: Message) {
        match message {
            Message::Executed { clock, count, executed } => {
                self.checker.holds(to, executed.number);
                let member = self.member(to);
                member.clock = member.clock.max(clock) + 1;
                member.received[from] = count;
                member.heard[from] = clock;
                // A sender has what it sends.
                member.acknowledged[from][from] = count;
                member.pending.insert((clock, from), (count, executed));
                let message = Message::Acknowledgement { clock: member.clock, received: member.received };
                self.send_all(to, ACKNOWLEDGEMENT_BYTES, &dbsm::Message::Clocks(message));
            }
            Message::Acknowledgement { clock, received } => {
                let member = self.member(to);
                member.clock = member.clock.max(clock);
                member.heard[from] = clock;
                member.acknowledged[from] = received;
            }
        }
        while let Some(executed) = self.member(to).next(to) {
            self.on_ordered(to, &executed);
        }
    }
}
