//! What the record has, as far as messages are held against it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pares_log::Offset;
use pares_node::{Layout, SystemConfig};
use pares_register::Register;
use pares_tap::SETTLED_NS;
use pares_types::{
    ClientOrderId, Command, Entry, GatewayId, MemberId, Position, Registration, Request, ShardId,
};
use pares_wire::record::{self, RequestRecord, ResultRecord};

use super::taped::each_record;
use crate::error::CommandError;
use crate::standing::Standing;

/// A member's session.
pub type Who = (MemberId, u16);

/// A request of the record, in sixteen bytes: a record has many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Known {
    pub name: ClientOrderId,
    pub member: MemberId,
    /// Whether the tap of its gateway has what came in then.
    pub covered: Covered,
    /// It is in a tap.
    pub is_asked: bool,
}
const _: () = assert!(size_of::<Known>() == 16);

/// Where a request is recorded.
type Place = (ShardId, Position, MemberId, ClientOrderId);
const _: () = assert!(size_of::<Place>() == 24);

/// Whether a tap has what came in at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Covered {
    /// It was not there.
    Not,
    /// It lost something just then, or cannot be read.
    Perhaps,
    /// All of it.
    Surely,
}

/// When a tap was there, and when it lost something: from and until, nanoseconds since 1970. A gateway that took something in at another time had none.
#[derive(Default)]
pub struct Cover {
    pub lives: Vec<(u64, u64)>,
    pub holes: Vec<(u64, u64)>,
}

impl Cover {
    fn of(&self, ns: u64) -> Covered {
        let is_in = |spans: &[(u64, u64)], margin_ns: u64| {
            let has = |&(from_ns, to_ns): &(u64, u64)| {
                (from_ns.saturating_sub(margin_ns)..=to_ns.saturating_add(margin_ns)).contains(&ns)
            };
            spans.iter().any(has)
        };
        match () {
            // A request has its time from before or behind the read that gave it.
            () if is_in(&self.holes, SETTLED_NS) => Covered::Perhaps,
            () if is_in(&self.lives, 0) => Covered::Surely,
            () => Covered::Not,
        }
    }
}

/// What the record has. Each log adds only what the ones before it did not have: so there is never more than that in memory.
#[derive(Default)]
pub struct ReadRecord {
    /// In ascending order, each once.
    requests: Vec<Known>,
    /// In ascending order, each once.
    places: Vec<Place>,
    /// Sessions, and members whose streams they receive or received.
    copies: BTreeSet<(Who, MemberId)>,
    /// So many of each were there before the log that is being read, and are in order.
    sorted: (usize, usize),
    pub covers: BTreeMap<GatewayId, Cover>,
}

impl ReadRecord {
    /// Reads the logs of gateways and recorders. A damaged one keeps nobody from what a recorder has whole.
    pub fn read(
        config: &SystemConfig,
        layout: &Layout,
        covers: BTreeMap<GatewayId, Cover>,
    ) -> Result<Self, CommandError> {
        let mut recorded = Self { covers, ..Self::default() };
        // What was entered before all that is kept is still so.
        if let Ok(standing) = Standing::read(config, layout) {
            recorded.copies = copies(standing.register()).collect();
        }
        let of_gateways = config.gateway_ids().map(|id| layout.gateway_log(id));
        let of_recorders = config.recorder_ids().map(|id| layout.recorder_log(id));
        of_gateways.for_each(|log| _ = recorded.read_log(&log));
        match of_recorders.filter(|log| recorded.read_log(log)).count() {
            0 => Err(CommandError::Failed("no recorder's log can be read to the end".into())),
            _ => Ok(recorded),
        }
    }

    /// Whether it could be read to its end.
    fn read_log(&mut self, log: &Path) -> bool {
        let read = each_record(log, Offset(u64::MAX), |one| {
            let wrong = |error| CommandError::Failed(format!("{}: {error}", log.display()));
            self.read_record(one.payload).map_err(wrong)
        });
        self.sort();
        read.inspect_err(|error| pares_text::aside!("pares: {error}")).is_ok()
    }

    fn read_record(&mut self, payload: &[u8]) -> Result<(), pares_wire::WireError> {
        match record::schema(payload) {
            Some(record::REQUEST) => self.take(&RequestRecord::read(payload)?),
            Some(record::RESULT) => {
                let result = ResultRecord::read(payload)?;
                let request = result.request()?;
                self.take(&request);
                let place = (result.shard(), result.position(), request.member, request.client_order_id);
                if self.places[..self.sorted.1].binary_search(&place).is_err() {
                    self.places.push(place);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self, request: &Request) {
        if let Command::Register(Registration { member, session, entry: Entry::SetCopied(copied) }) =
            request.command
        {
            self.copies.insert(((member, session), copied));
        }
        let (name, member) = (request.client_order_id, request.member);
        if self.find(member, name).is_none() {
            let cover = self.covers.get(&request.id.gateway());
            let covered = cover.map_or(Covered::Not, |cover| cover.of(request.stamp.0));
            self.requests.push(Known { name, member, covered, is_asked: false });
        }
    }

    fn sort(&mut self) {
        self.requests.sort_unstable();
        self.requests.dedup_by_key(|one| (one.name, one.member));
        self.places.sort_unstable();
        self.places.dedup();
        self.sorted = (self.requests.len(), self.places.len());
    }

    fn find(&self, member: MemberId, name: ClientOrderId) -> Option<usize> {
        let sorted = &self.requests[..self.sorted.0];
        sorted.binary_search_by_key(&(name, member), |one| (one.name, one.member)).ok()
    }

    /// The request of that name, if it is recorded.
    pub fn request(&mut self, member: MemberId, name: ClientOrderId) -> Option<&mut Known> {
        self.find(member, name).map(|index| &mut self.requests[index])
    }

    /// Requests of members that are in no tap. The exchange's are left out: its gateways make some, and name others.
    pub fn unasked(&self) -> impl Iterator<Item = &Known> {
        self.requests.iter().filter(|one| one.member != MemberId(0) && !one.is_asked)
    }

    /// What is wrong with a report of what is recorded there, to a session and perhaps of its request, or of one whose stream it receives.
    pub fn check(&self, shard: ShardId, position: Position, to: Who, of: Option<ClientOrderId>) -> Checked {
        let at = self.places.partition_point(|one| (one.0, one.1) < (shard, position));
        match self.places.get(at) {
            Some(&(found, there, member, name)) if (found, there) == (shard, position) => match of {
                Some(of) if of != name || to.0 != member && !self.copies.contains(&(to, member)) => {
                    let what =
                        format!("the record has request {name} of member {member} at {shard}:{position}");
                    Checked::Differs(what)
                }
                _ => Checked::Right,
            },
            // The first of its shard lies behind it.
            Some(next) if next.0 == shard && (at == 0 || self.places[at - 1].0 != shard) => Checked::Dropped,
            _ => Checked::Differs(format!("nothing is recorded at {shard}:{position}")),
        }
    }
}

pub enum Checked {
    Right,
    /// The record is not kept so far back.
    Dropped,
    Differs(String),
}

fn copies(register: &Register) -> impl Iterator<Item = (Who, MemberId)> {
    register.members().flat_map(move |(member, _)| {
        let sessions = register.sessions(member).map(move |(session, ..)| (member, session));
        sessions.filter_map(|who| Some((who, register.copied(who.0, who.1)?)))
    })
}

#[cfg(test)]
mod tests {
    use pares_types::{Command, InstrumentId, RequestId, Timestamp};

    use super::*;

    fn request(gateway: u16, name: u64, stamp_ns: u64) -> Request {
        Request {
            id: RequestId::new(GatewayId(gateway), name),
            stamp: Timestamp(stamp_ns),
            member: MemberId(7),
            client_order_id: ClientOrderId(name),
            instrument: InstrumentId(1),
            shard: ShardId(0),
            command: Command::MassCancel { side: None },
        }
    }

    #[test]
    fn requests_during_tap_outage_are_counted_apart() {
        const S: u64 = SETTLED_NS;
        let lives = vec![(100 * S, 200 * S), (300 * S, 400 * S)];
        let covers = [(GatewayId(0), Cover { lives, holes: vec![(150 * S, 160 * S)] })].into();
        let mut recorded = ReadRecord { covers, ..ReadRecord::default() };
        let came = [(0, 110), (0, 149), (0, 161), (0, 162), (0, 250), (0, 400), (0, 401), (1, 110)];
        for (name, (gateway, seconds)) in (1..).zip(came) {
            recorded.take(&request(gateway, name, seconds * S));
        }
        recorded.sort();
        recorded.request(MemberId(7), ClientOrderId(6)).unwrap().is_asked = true;
        let covered: Vec<_> = recorded.unasked().map(|one| (one.name.0, one.covered)).collect();
        let (not, perhaps, surely) = (Covered::Not, Covered::Perhaps, Covered::Surely);
        let expected = [(1, surely), (2, perhaps), (3, perhaps), (4, surely), (5, not), (7, not), (8, not)];
        assert_eq!(covered, expected);
    }

    #[test]
    fn what_the_logs_before_had_takes_no_memory_again() {
        let mut recorded = ReadRecord::default();
        for _ in 0..3 {
            (1..=10).for_each(|name| recorded.take(&request(0, name, name)));
            assert_eq!(recorded.requests.len(), 10);
            recorded.sort();
        }
    }
}
