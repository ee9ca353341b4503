//! The sequential oracle: one book, one request after the other, nothing distributed.
//!
//! Replicas that agree may all be wrong in the same way, and accounts that add up may be of trades at the wrong price. So in the
//! end the recorded requests are replayed in the order of their positions on the naive book, by code that shares nothing with
//! venues but that book, and every recorded outcome and event must be what comes out of it. The claimed order must also be one
//! that people could have seen: if a client had the answer to A before B was sent, A comes before B.
//!
//! ```text
//!  time       ---- A sent ---- A's answer received ---- B sent ----
//!  positions  A's, in this shard, below B's             (then the history is linearizable: position order is a witness)
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pares_book::{Instrument, Market, NaiveBook};
use pares_register::Register;
use pares_types::{
    ClientOrderId, Command, Event, InstrumentId, MemberId, Outcome, Position, Reason, Request, Status,
    Timestamp,
};

use crate::client::{EVERYWHERE, EXCHANGE};
use crate::record::Record;

/// Names that a shard remembers here: few, so that it forgets.
pub(crate) const NAMES_MAX: usize = 48;

/// Which names a shard has executed, as decision 15 says it.
#[derive(Default)]
struct Names {
    /// The last ones, the oldest first.
    kept: VecDeque<(MemberId, ClientOrderId)>,
    /// By series: one above the highest number that was forgotten.
    floors: BTreeMap<(MemberId, u16), u64>,
}

impl Names {
    /// Notes a name; why the request under it is refused, if it is.
    fn note(&mut self, member: MemberId, name: ClientOrderId) -> Option<Reason> {
        if self.kept.contains(&(member, name)) {
            return Some(Reason::DuplicateRequest);
        }
        let floor = self.floors.get(&(member, name.series()));
        if floor.is_some_and(|floor| name.number() < *floor) {
            return Some(Reason::TooOld);
        }
        self.kept.push_back((member, name));
        if self.kept.len() > NAMES_MAX {
            let (member, name) = self.kept.pop_front().expect("one was added");
            let floor = self.floors.entry((member, name.series())).or_default();
            *floor = (*floor).max(name.number() + 1);
        }
        None
    }
}

/// One shard as it must have gone.
pub(crate) struct Replay {
    market: Market<NaiveBook>,
    register: Register,
    names: Names,
    /// When the latest of operators' requests was taken in that were not late themselves.
    operator_stamp_max: Timestamp,
    /// Instruments that take nothing since something was void there; 0 is all of them.
    quarantined: BTreeSet<InstrumentId>,
    events: Vec<Event>,
}

impl Replay {
    pub(crate) fn new(instruments: &[Instrument], register: Register) -> Self {
        Self {
            market: Market::new(instruments),
            register,
            names: Names::default(),
            operator_stamp_max: Timestamp(0),
            quarantined: BTreeSet::new(),
            events: Vec::new(),
        }
    }

    /// Carries out the request of the next position.
    ///
    /// # Errors
    /// What came out of it, if that is not what was recorded.
    pub(crate) fn follow(&mut self, record: &Record) -> Result<(), String> {
        let request = &record.request;
        self.events.clear();
        let used = match request.command {
            command if command.is_repeatable() => None,
            _ => self.names.note(request.member, request.client_order_id),
        };
        let refusal = used.or_else(|| {
            if record.outcome.reason == Reason::Void {
                self.quarantined.insert(request.instrument);
                return Some(Reason::Void);
            }
            self.late(request).or_else(|| self.quarantine(request))
        });
        let outcome = match refusal {
            None => self.carry_out(request),
            Some(reason) => self.market.refuse(request, reason),
        };
        if outcome == record.outcome && self.events == record.events {
            return Ok(());
        }
        Err(format!("replayed in order: {outcome:?} {:?}\nrecorded: {record:?}", self.events))
    }

    fn carry_out(&mut self, request: &Request) -> Outcome {
        match &request.command {
            Command::Register(_) if request.member != EXCHANGE => {
                self.market.refuse(request, Reason::NotPermitted)
            }
            Command::Register(change) => match self.register.apply(request.stamp, change) {
                Ok(()) => Outcome { status: Status::Accepted, ..self.market.refuse(request, Reason::None) },
                Err(reason) => self.market.refuse(request, reason),
            },
            _ => self.market.apply(request, &mut self.events),
        }
    }

    /// An operator's request that lay for more than a second while another went past it is not carried out (R7 of decision 19). Gateways'
    /// own have names of which the highest bit is set.
    fn late(&mut self, request: &Request) -> Option<Reason> {
        if request.member != EXCHANGE || request.client_order_id.0 >> 63 == 1 {
            return None;
        }
        let latest = self.operator_stamp_max.max(request.stamp);
        if latest.0 - request.stamp.0 > 1_000_000_000 {
            return Some(Reason::Overtaken);
        }
        self.operator_stamp_max = latest;
        None
    }

    /// Why what was void before keeps the request from being carried out. The exchange is kept from nothing but sending the time to
    /// all instruments; what it asks of an instrument ends that instrument's quarantine, and the shard's. Sending one instrument
    /// the time releases it.
    fn quarantine(&mut self, request: &Request) -> Option<Reason> {
        let [by_exchange, everywhere] = [request.member == EXCHANGE, request.instrument == EVERYWHERE];
        let is_time = matches!(request.command, Command::Time { .. });
        let shard_stood = self.quarantined.contains(&EVERYWHERE);
        let stood = shard_stood || self.quarantined.contains(&request.instrument);
        if by_exchange && !everywhere {
            self.quarantined.remove(&EVERYWHERE);
            self.quarantined.remove(&request.instrument);
        }
        match (by_exchange, is_time) {
            (true, true) if everywhere => shard_stood.then_some(Reason::Quarantined),
            (true, true) => (!stood).then_some(Reason::NotQuarantined),
            (true, false) => None,
            (false, _) => stood.then_some(Reason::Quarantined),
        }
    }

    /// What must be the hash of every venue's books.
    pub(crate) fn state_hash(&self) -> u64 {
        self.market.state_hash()
    }
}

/// When requests were sent and answered, as a bystander with one clock saw it.
#[derive(Default)]
pub(crate) struct Witness {
    /// First sent by its client, ns.
    sent: BTreeMap<(MemberId, ClientOrderId), u64>,
    /// By shard: when an answer came, ns, and the highest position answered by then. Both only grow.
    answered: Vec<Vec<(u64, Position)>>,
}

impl Witness {
    pub(crate) fn new(shards: usize) -> Self {
        Self { sent: BTreeMap::new(), answered: vec![Vec::new(); shards] }
    }

    pub(crate) fn on_sent(&mut self, member: MemberId, name: ClientOrderId, now_ns: u64) {
        self.sent.entry((member, name)).or_insert(now_ns);
    }

    /// A client has the answer of a position.
    pub(crate) fn on_answered(&mut self, shard: usize, position: Position, now_ns: u64) {
        let answered = &mut self.answered[shard];
        if answered.last().is_none_or(|(_, highest)| position > *highest) {
            answered.push((now_ns, position));
        }
    }

    /// Whether a request may be where it is.
    ///
    /// # Errors
    /// The position above it that was answered before it was sent. Of what no client sent nothing is known.
    pub(crate) fn check(&self, record: &Record) -> Result<(), Position> {
        let request = &record.request;
        let Some(&sent_ns) = self.sent.get(&(request.member, request.client_order_id)) else { return Ok(()) };
        let answered = &self.answered[usize::from(request.shard.0)];
        let before = answered.partition_point(|(at_ns, _)| *at_ns < sent_ns);
        match before.checked_sub(1).map(|last| answered[last].1) {
            Some(highest) if highest > record.position => Err(highest),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_types::{
        Epoch, GatewayId, NewOrder, Price, Quantity, RequestId, ShardId, Side, Symbol, Timestamp,
    };

    const MEMBER: MemberId = MemberId(1);

    fn instruments() -> Vec<Instrument> {
        vec![Instrument::listed(InstrumentId(1), Symbol::new("SIM").unwrap())]
    }

    fn record(position: u64, name: u64) -> Record {
        let order = NewOrder::limit(Side::Buy, Price(10_000), Quantity(5));
        let request = Request {
            id: RequestId::new(GatewayId(0), position + 1),
            stamp: Timestamp(position + 1),
            shard: ShardId(0),
            member: MEMBER,
            client_order_id: ClientOrderId(name),
            instrument: InstrumentId(1),
            command: Command::Enter(order),
        };
        let mut events = Vec::new();
        let outcome = Market::<NaiveBook>::new(&instruments()).apply(&request, &mut events);
        Record { epoch: Epoch(1), position: Position(position), state_hash: None, request, outcome, events }
    }

    #[test]
    fn what_was_recorded_must_come_out_again() {
        let mut replay = Replay::new(&instruments(), Register::new(None));
        assert_eq!(replay.follow(&record(0, 1)), Ok(()));
        let mut wrong = record(1, 2);
        wrong.outcome.remaining = Quantity(4);
        assert!(replay.follow(&wrong).unwrap_err().contains("recorded"));
        assert!(replay.follow(&record(2, 1)).is_err(), "a name is carried out once");
    }

    #[test]
    fn only_what_is_sent_after_an_answer_comes_after_it() {
        let mut witness = Witness::new(1);
        witness.on_sent(MEMBER, ClientOrderId(2), 99);
        witness.on_answered(0, Position(7), 100);
        witness.on_sent(MEMBER, ClientOrderId(1), 101);
        witness.on_sent(MEMBER, ClientOrderId(2), 101);
        assert_eq!(witness.check(&record(6, 1)), Err(Position(7)));
        assert_eq!(witness.check(&record(8, 1)), Ok(()));
        assert_eq!(witness.check(&record(6, 2)), Ok(()), "what overlaps may come in any order");
    }
}
