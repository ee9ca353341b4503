//! What the record has that messages are held against.

use std::collections::BTreeSet;

use pares_log::Offset;
use pares_node::{Layout, SystemConfig};
use pares_register::Register;
use pares_types::{ClientOrderId, Command, Entry, MemberId, Position, Registration, Request, ShardId};
use pares_wire::record::{self, RequestRecord, ResultRecord};

use super::select::each_record;
use crate::error::CommandError;
use crate::standing::Standing;

/// A member's session.
pub(super) type Who = (MemberId, u16);

/// A request of the record, in sixteen bytes: a record has many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Known {
    pub(super) name: ClientOrderId,
    pub(super) member: MemberId,
    /// It came when all taps were there.
    pub(super) is_covered: bool,
    /// It is in a tap, and so is a report of it.
    pub(super) is_asked: bool,
    pub(super) is_told: bool,
}

/// What the record has.
#[derive(Default)]
pub(super) struct Recorded {
    /// In ascending order, each once.
    pub(super) requests: Vec<Known>,
    /// Sessions, and members whose streams they are told, or were.
    copies: BTreeSet<(Who, MemberId)>,
    /// Where they are recorded, in ascending order.
    places: Vec<(ShardId, Position, MemberId, ClientOrderId)>,
    /// From then on all taps are there, nanoseconds since 1970.
    pub(super) from_ns: u64,
    /// The time of the oldest request.
    pub(super) first_ns: Option<u64>,
}

impl Recorded {
    fn take(&mut self, request: &Request) {
        if let Command::Register(Registration { member, session, entry: Entry::SetCopied(copied) }) =
            request.command
        {
            self.copies.insert(((member, session), copied));
        }
        let stamp_ns = request.stamp.0;
        self.first_ns = Some(self.first_ns.map_or(stamp_ns, |first_ns| first_ns.min(stamp_ns)));
        self.requests.push(Known {
            name: request.client_order_id,
            member: request.member,
            is_covered: stamp_ns >= self.from_ns,
            is_asked: false,
            is_told: false,
        });
    }

    fn sort(&mut self) {
        self.requests.sort_unstable();
        self.requests.dedup_by_key(|one| (one.name, one.member));
        self.places.sort_unstable();
        self.places.dedup();
    }

    /// Reads the logs of gateways and recorders; all recorders have the same, so duplicates go after each.
    pub(super) fn read(config: &SystemConfig, layout: &Layout, from_ns: u64) -> Result<Self, CommandError> {
        let mut recorded = Self { from_ns, ..Self::default() };
        // What was entered before all that is kept is still so.
        if let Ok(standing) = Standing::read(config, layout) {
            recorded.copies = copies(standing.register()).collect();
        }
        let of_gateways = config.gateway_ids().map(|id| layout.gateway_log(id));
        for log in of_gateways.chain(config.recorder_ids().map(|id| layout.recorder_log(id))) {
            each_record(&log, Offset(u64::MAX), |one| {
                let wrong = |error| CommandError::Failed(format!("{}: {error}", log.display()));
                recorded.read_record(one.payload).map_err(wrong)
            })?;
            recorded.sort();
        }
        Ok(recorded)
    }

    fn read_record(&mut self, payload: &[u8]) -> Result<(), pares_wire::WireError> {
        match record::schema(payload) {
            Some(record::REQUEST) => self.take(&RequestRecord::read(payload)?),
            Some(record::RESULT) => {
                let result = ResultRecord::read(payload)?;
                let request = result.request()?;
                let place = (result.shard(), result.position());
                self.take(&request);
                self.places.push((place.0, place.1, request.member, request.client_order_id));
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn request(&mut self, member: MemberId, name: ClientOrderId) -> Option<&mut Known> {
        let found = self.requests.binary_search_by_key(&(name, member), |one| (one.name, one.member));
        found.ok().map(|index| &mut self.requests[index])
    }

    /// What is wrong with a report of what is recorded there, to a session and perhaps of its request, or of one's whose stream it is told.
    pub(super) fn check(
        &self,
        shard: ShardId,
        position: Position,
        to: Who,
        of: Option<ClientOrderId>,
    ) -> Checked {
        let at = self.places.partition_point(|one| (one.0, one.1) < (shard, position));
        match self.places.get(at) {
            Some(&(found, there, member, name)) if (found, there) == (shard, position) => match of {
                Some(of) if of != name || to.0 != member && !self.copies.contains(&(to, member)) => {
                    let what =
                        format!("the record has request {name} of member {member} at {shard}:{position}");
                    Checked::Differs(what)
                }
                _ => Checked::Right(member),
            },
            // The first of its shard lies behind it.
            Some(next) if next.0 == shard && (at == 0 || self.places[at - 1].0 != shard) => Checked::Dropped,
            _ => Checked::Differs(format!("nothing is recorded at {shard}:{position}")),
        }
    }
}

pub(super) enum Checked {
    /// It is of that member's request.
    Right(MemberId),
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
