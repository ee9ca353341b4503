//! How far the numbers of FIX sessions may have gone: the newest mark of each, of all gateways.
//!
//! The numbers of a session are kept nowhere but at the gateway that gives them, and that may die. So it gives no number that a
//! mark in its log does not cover: one mark for each logon and each thousand messages, a copy of some hundred bytes. All gateways read
//! each other's logs anyway, so each knows where a session goes on when its client comes.
//!
//! Two gateways may both have a connection that says it is the session's: a client that went on elsewhere while its old
//! connection was not known to be dead. So marks bear a number, the *reign*: one more for each connection that takes a session. The higher one
//! has the session, and who has a lower one and reads that ends its connection; what that still writes is older.
//! A client that was sent a number had its mark published before, so who takes the session reads all logs to their ends first.
//! A gateway may stand still between taking a session and publishing that: another one then takes the same reign. Neither knew of the other, so once
//! one reads of the other no connection keeps that reign, and the next one goes on behind the numbers of both.
//!
//! Logs are released as their requests are answered, and a mark is not answered ever. So nothing is released behind the oldest
//! of this gateway's newest marks; and one that has fallen far behind is written again, so that the log is released at last.

use std::collections::BTreeMap;

use pares_gateway::SessionId;
use pares_log::LogWriter;
use pares_types::{GatewayId, MemberId};
use pares_wire::record::{SessionMark, SessionMarkRecord};

use super::connections::Connections;
use super::edge::Edge;
use crate::world::{Sockets, World};

/// A member's session.
pub(super) type Who = (MemberId, u16);

/// Sessions of which marks are known; a further one is refused.
const MARKS_MAX: usize = 65_536;
/// A mark is written again if it lies further behind than this, or than all marks take twice.
const BEHIND_MIN: u64 = 1 << 20;

/// The newest mark of each session, and which connections here have which.
#[derive(Default)]
pub(super) struct Marks {
    newest: BTreeMap<Who, SessionMarkRecord>,
    /// Reigns that two gateways took at once.
    contested: BTreeMap<Who, u32>,
    claims: BTreeMap<SessionId, Claim>,
    /// The time of each session's last Logon that proved it, nanoseconds since 1970.
    logons: BTreeMap<Who, u64>,
    /// Where this gateway's own lie in its log.
    places: BTreeMap<u64, Who>,
    place_of: BTreeMap<Who, u64>,
}

struct Claim {
    who: Who,
    reign: u32,
    /// The newest mark then, by which its numbers go.
    seen: Option<Seen>,
}

/// Of a mark: its rank, and up to which number it goes.
type Seen = (u32, GatewayId, u64);

impl Marks {
    /// A mark in this gateway's own log, which it reads as it starts.
    pub(super) fn recover(&mut self, record: SessionMarkRecord, offset: u64) {
        if self.is_newer(&record) {
            let record = self.with_rival(record);
            self.put(record, Some(offset));
        }
    }

    /// A connection is to give a session's numbers. Where the one before stood.
    pub(super) fn claim(&mut self, session: SessionId, who: Who) -> Option<&SessionMark> {
        let newest = self.newest.get(&who);
        let reign = newest.map_or(0, |record| record.reign).saturating_add(1);
        self.claims.insert(session, Claim { who, reign, seen: newest.map(seen) });
        newest.map(|record| &record.mark)
    }

    /// Whether a Logon of that time is later than the last that was accepted; if so it is the last. Who has written one down cannot use
    /// it again here.
    pub(super) fn is_new_logon(&mut self, who: Who, time_ns: u64) -> bool {
        let is_new = self.logons.get(&who).is_none_or(|&last_ns| time_ns > last_ns);
        if is_new {
            self.logons.insert(who, time_ns);
        }
        is_new
    }

    /// A connection is gone.
    pub(super) fn on_disconnect(&mut self, session: SessionId) {
        self.claims.remove(&session);
    }

    /// A mark in another gateway's log: who has that session here, has it no more.
    pub(super) fn on_peer<S: Sockets>(
        &mut self,
        record: SessionMarkRecord,
        connections: &mut Connections<S>,
    ) {
        let who = who(&record);
        let is_rival = self.newest.get(&who).is_some_and(|newest| is_rival(newest, &record));
        if (self.is_newer(&record) || is_rival) && self.has_room(who) {
            self.below(&record, None).into_iter().for_each(|session| connections.take_over(session));
            let record = self.with_rival(record);
            // What this gateway has of it is still needed.
            let own =
                self.place_of.get(&who).copied().filter(|_| self.contested.get(&who) == Some(&record.reign));
            self.put(record, own);
        }
    }

    /// A mark as it is to be gone by: if two gateways took its reign, behind the numbers of both, and before what either's peer may not have
    /// been told.
    fn with_rival(&mut self, record: SessionMarkRecord) -> SessionMarkRecord {
        let who = who(&record);
        let Some(newest) = self.newest.get(&who).filter(|newest| newest.reign == record.reign) else {
            return record;
        };
        if !is_rival(newest, &record) && self.contested.get(&who) != Some(&record.reign) {
            return record;
        }
        self.contested.insert(who, record.reign);
        let (one, other) = (&newest.mark, &record.mark);
        let told_of =
            |shard| other.told.iter().find(|(of, _)| *of == shard).map_or(u64::MAX, |(_, next)| *next);
        let mark = SessionMark {
            next_in: one.next_in.min(other.next_in),
            out_max: one.out_max.max(other.out_max),
            told: one.told.iter().map(|&(shard, next)| (shard, next.min(told_of(shard)))).collect(),
            ..*one
        };
        SessionMarkRecord { gateway: newest.gateway.max(record.gateway), reign: record.reign, mark }
    }

    /// Writes a mark of a connection here into the log; other connections here that had the session have it no more. If the log does not
    /// take it, or the session goes on elsewhere, this one has it no more.
    pub(super) fn keep<W: World, S: Sockets>(
        &mut self,
        id: GatewayId,
        (session, mark): (SessionId, SessionMark),
        edge: &mut Edge<W, S>,
    ) {
        let Some(record) = self.record(id, session, mark) else {
            return edge.connections.take_over(session);
        };
        let Some(offset) = edge.write_mark(&record) else { return edge.connections.take_over(session) };
        let others = self.below(&record, Some(session));
        self.put(record, Some(offset));
        others.into_iter().for_each(|session| edge.connections.take_over(session));
    }

    /// The mark as it is to be written, if the session is this connection's.
    /// None if who had the session has gone on since it was claimed, to numbers that would be used twice.
    fn record(&self, gateway: GatewayId, session: SessionId, mark: SessionMark) -> Option<SessionMarkRecord> {
        let claim = self.claims.get(&session)?;
        let record = SessionMarkRecord { reign: claim.reign, gateway, mark };
        let who = who(&record);
        let newest = self.newest.get(&who);
        let is_as_seen = newest.map(seen) == claim.seen;
        let is_own = newest.is_some_and(|newest| rank(newest) == rank(&record));
        let may = who == claim.who && (is_as_seen || is_own) && self.is_newer(&record) && self.has_room(who);
        may.then_some(record)
    }

    /// Up to where the log may be released, if its requests allow it up to `answered`. The oldest mark is written again if it lies
    /// far behind.
    pub(super) fn keep_behind<W: World, S: Sockets>(&mut self, answered: u64, edge: &mut Edge<W, S>) -> u64 {
        let Some((&offset, who)) = self.places.first_key_value() else { return answered };
        let record = self.newest[who].clone();
        let all = (self.places.len() * record.bytes().len()) as u64;
        if answered.saturating_sub(offset) > BEHIND_MIN.max(2 * all)
            && let Some(offset) = edge.write_mark(&record)
        {
            edge.writer.publish();
            self.put(record, Some(offset));
        }
        self.places.first_key_value().map_or(answered, |(&oldest, _)| oldest.min(answered))
    }

    fn put(&mut self, record: SessionMarkRecord, offset: Option<u64>) {
        let who = who(&record);
        if let Some(before) = self.place_of.remove(&who) {
            self.places.remove(&before);
        }
        if let Some(offset) = offset {
            self.places.insert(offset, who);
            self.place_of.insert(who, offset);
        }
        self.newest.insert(who, record);
    }

    fn is_newer(&self, record: &SessionMarkRecord) -> bool {
        self.newest.get(&who(record)).is_none_or(|newest| rank(record) >= rank(newest))
    }

    fn has_room(&self, who: Who) -> bool {
        self.newest.len() < MARKS_MAX || self.newest.contains_key(&who)
    }

    /// Connections here, but this one, that claim the session of a mark and do not reign after it.
    fn below(&self, record: &SessionMarkRecord, but: Option<SessionId>) -> Vec<SessionId> {
        let is_below = |claim: &Claim| claim.who == who(record) && claim.reign <= record.reign;
        let claims = self.claims.iter().filter(|(session, claim)| Some(**session) != but && is_below(claim));
        claims.map(|(session, _)| *session).collect()
    }
}

fn seen(record: &SessionMarkRecord) -> Seen {
    (record.reign, record.gateway, record.mark.out_max)
}

fn who(record: &SessionMarkRecord) -> Who {
    (record.mark.member, record.mark.session)
}

/// Whether two gateways took one reign.
fn is_rival(one: &SessionMarkRecord, other: &SessionMarkRecord) -> bool {
    one.reign == other.reign && one.gateway != other.gateway
}

/// The higher, the newer; of equal ones, which are of one log, the later.
fn rank(record: &SessionMarkRecord) -> (u32, GatewayId) {
    (record.reign, record.gateway)
}
