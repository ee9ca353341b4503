//! How far the numbers of FIX sessions may have gone: the newest mark of each, of all gateways.
//!
//! The numbers of a session are kept nowhere but at the gateway that gives them, and that may die. So it gives no number that a
//! mark in its log does not cover: one mark for each logon and each thousand messages, a copy of some hundred bytes. All gateways read
//! each other's logs anyway, so each knows where a session continues when its client comes.
//!
//! Two gateways may both have a connection that says it is the session's: a client that continued elsewhere while its old
//! connection was not known to be dead. So marks bear a number, the *reign*: one more for each connection that takes a session. The higher one
//! has the session, and who has a lower one and reads that ends its connection; what that still writes is older.
//! A client that was sent a number had its mark published before, so who takes the session reads all logs to their ends first.
//! A gateway may stand still between taking a session and publishing that: another one then takes the same reign. Neither knew of the other, so once
//! one reads of the other no connection keeps that reign, and the next one continues behind the numbers of both.
//!
//! Logs are released as their requests are answered, and a mark is not answered ever. So nothing is released behind the oldest
//! of this gateway's newest marks; and one that has fallen far behind is written again, so that the log is released at last.

use std::collections::BTreeMap;

use pares_gateway::SessionId;
use pares_log::LogWriter;
use pares_roles::world::{Sockets, World};
use pares_types::{GatewayId, ShardId};
use pares_wire::record::{SessionMark, SessionMarkRecord};

use crate::connections::Connections;
use crate::edge::GatewayIo;
use crate::types::Who;

/// Sessions of which marks are known; a further one is refused.
const MARKS_MAX: usize = 65_536;
/// A mark is written again if it lies further behind than this, or than all marks take twice.
pub(crate) const BEHIND_MIN: u64 = 1 << 20;

/// The newest marks of each session, and which connections here have which.
pub(crate) struct Marks {
    id: GatewayId,
    newest: BTreeMap<Who, SessionTenure>,
    claims: BTreeMap<SessionId, Claim>,
    /// By the connections that are there: when the proven Logon says it was sent, nanoseconds since 1970.
    logons: BTreeMap<SessionId, u64>,
    /// Where this gateway's own lie in its log.
    places: BTreeMap<u64, Who>,
    place_of: BTreeMap<Who, u64>,
}

/// A session's highest reign: the last mark of each gateway that took it.
struct SessionTenure {
    number: u32,
    /// When the session's last proven Logon was sent, in this reign or before.
    logon_ns: u64,
    marks: BTreeMap<GatewayId, SessionMark>,
}

struct Claim {
    who: Who,
    reign: u32,
    /// When its Logon was sent, if that was proven; 0 if it was not.
    logon_ns: u64,
    /// The newest marks then, by which its numbers go.
    seen: Option<Seen>,
}

/// Of a reign: its number, how many gateways took it, and up to which number it goes.
type Seen = (u32, usize, u64);

impl SessionTenure {
    fn of(record: SessionMarkRecord) -> Self {
        let SessionMarkRecord { reign, gateway, logon_ns, mark } = record;
        Self { number: reign, logon_ns, marks: [(gateway, mark)].into() }
    }

    /// Where the session continues: behind the numbers of all, and before what the peer of any may not have been told.
    fn mark(&self) -> SessionMark {
        let all = self.marks.values();
        let merged = all.clone().cloned().reduce(|one, other| SessionMark {
            next_in: one.next_in.min(other.next_in),
            out_max: one.out_max.max(other.out_max),
            told: earliest(one.told.into_iter().chain(other.told)),
            ..one
        });
        let mut merged = merged.expect("a term has an owner");
        // Places in the streams of two members are none.
        if all.clone().any(|mark| mark.copied != merged.copied) {
            merged.told.clear();
        }
        merged
    }

    fn seen(&self) -> Seen {
        assert!(!self.marks.is_empty(), "a reign is of a gateway that took it");
        let out_max = self.marks.values().map(|mark| mark.out_max).max();
        (self.number, self.marks.len(), out_max.unwrap_or_default())
    }

    fn is_of_alone(&self, id: GatewayId) -> bool {
        self.marks.len() == 1 && self.marks.contains_key(&id)
    }
}

/// The earliest place in each shard. 0 says that none is known.
fn earliest(told: impl Iterator<Item = (ShardId, u64)>) -> Vec<(ShardId, u64)> {
    let mut all = BTreeMap::new();
    for (shard, next) in told {
        let earliest = all.entry(shard).or_insert(next);
        *earliest = if *earliest == 0 || next == 0 { (*earliest).max(next) } else { next.min(*earliest) };
    }
    all.into_iter().collect()
}

impl Marks {
    pub(crate) fn new(id: GatewayId) -> Self {
        Self {
            id,
            newest: BTreeMap::new(),
            claims: BTreeMap::new(),
            logons: BTreeMap::new(),
            places: BTreeMap::new(),
            place_of: BTreeMap::new(),
        }
    }

    /// A mark in this gateway's own log, which it reads as it starts.
    pub(crate) fn recover(&mut self, record: SessionMarkRecord, offset: u64) {
        if self.is_newest(&record) {
            self.put(record, Some(offset));
        }
    }

    /// A connection is to give a session's numbers. Where those before stood.
    pub(crate) fn claim(&mut self, session: SessionId, who: Who) -> Option<SessionMark> {
        let newest = self.newest.get(&who);
        let reign = newest.map_or(0, |newest| newest.number).saturating_add(1);
        let logon_ns = self.logons.get(&session).copied().unwrap_or_default();
        self.claims.insert(session, Claim { who, reign, logon_ns, seen: newest.map(SessionTenure::seen) });
        newest.map(SessionTenure::mark)
    }

    /// A connection has proven a Logon that was sent then. Whether that is later than the last one that was accepted. It is the last one once it
    /// is accepted, with its first mark.
    pub(crate) fn note_logon(&mut self, session: SessionId, who: Who, sent_ns: u64) -> bool {
        let is_new = sent_ns > self.last_logon_ns(who);
        if is_new {
            self.logons.insert(session, sent_ns);
        }
        is_new
    }

    fn last_logon_ns(&self, who: Who) -> u64 {
        self.newest.get(&who).map_or(0, |newest| newest.logon_ns)
    }

    /// A connection is gone.
    pub(crate) fn on_disconnect(&mut self, session: SessionId) {
        self.claims.remove(&session);
        self.logons.remove(&session);
    }

    /// A mark in another gateway's log: who has that session here, has it no more.
    pub(crate) fn on_peer<S: Sockets>(
        &mut self,
        record: SessionMarkRecord,
        connections: &mut Connections<S>,
    ) {
        if self.is_newest(&record) && self.has_room(who(&record)) {
            self.end_below(&record, None, connections);
            self.put(record, None);
        }
    }

    /// Writes a mark of a connection here into the log; other connections here that had the session have it no more. If the log does not
    /// take it, or the session continues elsewhere, this one has it no more.
    pub(crate) fn keep<W: World, S: Sockets>(
        &mut self,
        (session, mark): (SessionId, SessionMark),
        edge: &mut GatewayIo<W, S>,
    ) {
        let kept = self.record(session, mark).and_then(|record| {
            let offset = edge.write_note(&record.bytes())?;
            Some((record, offset))
        });
        let Some((record, offset)) = kept else {
            self.claims.remove(&session);
            return edge.connections.take_over(session);
        };
        assert!(self.is_newest(&record), "a mark is written in the highest reign of its session");
        self.end_below(&record, Some(session), &mut edge.connections);
        assert!(self.claims.contains_key(&session), "who writes a mark has claimed its session");
        self.put(record, Some(offset));
    }

    /// The mark as it is to be written, if the session is this connection's.
    /// None if who had the session has gone on since it was claimed, to numbers that would be used twice; or by the same Logon, which is used twice.
    fn record(&self, session: SessionId, mark: SessionMark) -> Option<SessionMarkRecord> {
        let claim = self.claims.get(&session)?;
        let last_ns = self.last_logon_ns(claim.who);
        let logon_ns = claim.logon_ns.max(last_ns);
        let record = SessionMarkRecord { reign: claim.reign, gateway: self.id, logon_ns, mark };
        let newest = self.newest.get(&claim.who);
        let is_later = claim.logon_ns == 0 || claim.logon_ns > last_ns;
        let is_as_seen = is_later && newest.map(SessionTenure::seen) == claim.seen;
        let is_own = newest.is_some_and(|newest| newest.number == claim.reign && newest.is_of_alone(self.id));
        let may = who(&record) == claim.who && (is_as_seen || is_own) && self.has_room(claim.who);
        may.then_some(record)
    }

    /// Up to where the log may be released, if its requests allow it up to `answered`. The oldest mark is written again if it lies
    /// far behind.
    pub(crate) fn keep_behind<W: World, S: Sockets>(
        &mut self,
        answered: u64,
        edge: &mut GatewayIo<W, S>,
    ) -> u64 {
        // In every turn: nothing is copied while nothing is to be done.
        let Some((&offset, &who)) = self.places.first_key_value() else { return answered };
        let behind = answered.saturating_sub(offset);
        if behind > BEHIND_MIN {
            self.write_again(who, behind, edge);
        }
        self.places.first_key_value().map_or(answered, |(&oldest, _)| oldest.min(answered))
    }

    /// Writes a session's mark again, unless all marks are so long that it does not lie far behind.
    fn write_again<W: World, S: Sockets>(&mut self, who: Who, behind: u64, edge: &mut GatewayIo<W, S>) {
        assert!(self.place_of.contains_key(&who), "a mark that is written again has a place");
        let newest = &self.newest[&who];
        assert!(newest.marks.contains_key(&self.id), "an own mark that has a place is among the newest");
        let mark = newest.marks[&self.id].clone();
        let (reign, logon_ns) = (newest.number, newest.logon_ns);
        let record = SessionMarkRecord { reign, gateway: self.id, logon_ns, mark };
        let all = (self.places.len() * record.bytes().len()) as u64;
        if behind > 2 * all
            && let Some(offset) = edge.write_note(&record.bytes())
        {
            edge.writer.publish();
            self.put(record, Some(offset));
        }
    }

    /// A mark that is among the newest. Where it lies, if it is this gateway's own; its own of a reign before is needed no more.
    fn put(&mut self, mut record: SessionMarkRecord, own: Option<u64>) {
        let who = who(&record);
        record.logon_ns = record.logon_ns.max(self.last_logon_ns(who));
        let is_new = self.newest.get(&who).is_none_or(|newest| newest.number < record.reign);
        let own = own.filter(|_| record.gateway == self.id);
        if (is_new || own.is_some())
            && let Some(before) = self.place_of.remove(&who)
        {
            self.places.remove(&before);
        }
        if let Some(offset) = own {
            let last = self.places.last_key_value();
            assert!(last.is_none_or(|(last, _)| *last < offset), "a mark lies behind those written before");
            self.places.insert(offset, who);
            self.place_of.insert(who, offset);
        }
        assert_eq!(self.places.len(), self.place_of.len(), "each of the own marks lies in one place");
        match self.newest.get_mut(&who) {
            Some(newest) if !is_new => {
                newest.logon_ns = record.logon_ns;
                newest.marks.insert(record.gateway, record.mark);
            }
            _ => _ = self.newest.insert(who, SessionTenure::of(record)),
        }
    }

    fn is_newest(&self, record: &SessionMarkRecord) -> bool {
        self.newest.get(&who(record)).is_none_or(|newest| record.reign >= newest.number)
    }

    fn has_room(&self, who: Who) -> bool {
        self.newest.len() < MARKS_MAX || self.newest.contains_key(&who)
    }

    /// Ends connections here, but this one, that claim the session of a mark and do not reign after it. They have no say from
    /// now on, whatever they have said in this turn.
    fn end_below<S: Sockets>(
        &mut self,
        record: &SessionMarkRecord,
        but: Option<SessionId>,
        connections: &mut Connections<S>,
    ) {
        self.claims.retain(|&session, claim| {
            let stays = Some(session) == but || claim.who != who(record) || claim.reign > record.reign;
            if !stays {
                connections.take_over(session);
            }
            stays
        });
    }
}

fn who(record: &SessionMarkRecord) -> Who {
    (record.mark.member, record.mark.session)
}
