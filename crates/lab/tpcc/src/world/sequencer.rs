//! Total order by a fixed sequencer in C_A that also finds out who has what: 2·t_max from C_A, 4·t_max from C_B.
//!
//! The usual way of toolkits: the transaction goes to all servers, the sequencer numbers it, all servers acknowledge number
//! and transaction to the sequencer, and the sequencer says up to which number all have all. From C_B that is to the
//! sequencer, back with the number, there again with the acknowledgement, and back once more.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::World;
use super::dbsm::{self, Order};
use crate::check::Number;
use crate::network::Site;
use crate::server::Executed;
use crate::setting::SITES;

/// Who numbers.
const SEQUENCER: Site = 0;
const NUMBER_BYTES: u64 = 24;

#[derive(Clone, Debug)]
pub(crate) enum Message {
    /// A transaction.
    Executed(Rc<Executed>),
    /// Its place in the order, from 1.
    Place { place: u64, number: Number, attempt: u32 },
    /// The sender has all up to this place.
    Has(u64),
    /// All have all up to this place.
    Safe(u64),
}

#[derive(Debug, Default)]
struct Member {
    /// Transactions that have come in, by name.
    executed: BTreeMap<(Number, u32), Rc<Executed>>,
    /// Names by place.
    places: BTreeMap<u64, (Number, u32)>,
    /// It has transaction and place of all up to here.
    has: u64,
    delivered: u64,
}

/// The sequencer's state and all members'.
#[derive(Debug, Default)]
pub(super) struct Sequencer {
    members: [Member; SITES],
    placed: u64,
    have: [u64; SITES],
    safe: u64,
}

impl Member {
    /// Takes account of what has come in; says whether it has more than before.
    fn count(&mut self) -> bool {
        let before = self.has;
        while self.places.get(&(self.has + 1)).is_some_and(|name| self.executed.contains_key(name)) {
            self.has += 1;
        }
        self.has > before
    }

    fn next(&mut self, safe: u64) -> Option<Rc<Executed>> {
        if self.delivered >= safe {
            return None;
        }
        self.delivered += 1;
        let name = self.places.remove(&self.delivered).expect("what is safe is everywhere");
        self.executed.remove(&name)
    }
}

impl World {
    fn sequencer(&mut self) -> &mut Sequencer {
        match &mut self.dbsm().order {
            Order::Sequencer(sequencer) => sequencer,
            Order::Clocks(_) => unreachable!("only a sequencer sends these messages"),
        }
    }

    fn tell_all(&mut self, from: Site, bytes: u64, message: Message) {
        self.send_all(from, bytes, &dbsm::Message::Sequencer(message));
    }

    pub(super) fn send_to_be_ordered(&mut self, executed: Rc<Executed>) {
        let (site, bytes) = (executed.site, self.setting.write_set_bytes.into());
        self.tell_all(site, bytes, Message::Executed(Rc::clone(&executed)));
        self.on_executed_elsewhere(site, executed);
    }

    pub(super) fn on_sequencer_message(&mut self, from: Site, to: Site, message: Message) {
        match message {
            Message::Executed(executed) => {
                self.checker.holds(to, executed.number);
                self.on_executed_elsewhere(to, executed);
            }
            Message::Place { place, number, attempt } => self.on_place(to, place, (number, attempt)),
            Message::Has(has) => self.on_has(from, has),
            Message::Safe(safe) => self.on_safe(to, safe),
        }
    }

    fn on_executed_elsewhere(&mut self, site: Site, executed: Rc<Executed>) {
        let (number, attempt) = (executed.number, executed.attempt);
        self.sequencer().members[site].executed.insert((number, attempt), executed);
        if site == SEQUENCER {
            let sequencer = self.sequencer();
            sequencer.placed += 1;
            let place = sequencer.placed;
            self.tell_all(SEQUENCER, NUMBER_BYTES, Message::Place { place, number, attempt });
            self.on_place(SEQUENCER, place, (number, attempt));
        } else {
            self.say_what_it_has(site);
        }
    }

    fn on_place(&mut self, site: Site, place: u64, name: (Number, u32)) {
        self.sequencer().members[site].places.insert(place, name);
        self.say_what_it_has(site);
    }

    fn say_what_it_has(&mut self, site: Site) {
        let member = &mut self.sequencer().members[site];
        if !member.count() {
            return;
        }
        let has = member.has;
        match site {
            SEQUENCER => self.on_has(SEQUENCER, has),
            _ => self.send(
                site,
                SEQUENCER,
                NUMBER_BYTES,
                super::Message::Dbsm(dbsm::Message::Sequencer(Message::Has(has))),
            ),
        }
    }

    fn on_has(&mut self, from: Site, has: u64) {
        let sequencer = self.sequencer();
        sequencer.have[from] = has;
        let safe = sequencer.have.into_iter().min().expect("six members");
        if safe > sequencer.safe {
            sequencer.safe = safe;
            self.tell_all(SEQUENCER, NUMBER_BYTES, Message::Safe(safe));
            self.on_safe(SEQUENCER, safe);
        }
    }

    fn on_safe(&mut self, site: Site, safe: u64) {
        while let Some(executed) = self.sequencer().members[site].next(safe) {
            self.on_ordered(site, &executed);
        }
    }
}
