//! Which proven Logons are used up.
//!
//! A FIX Logon has no challenge, so who listens can send it again. It is good for one use: whatever becomes of a Logon whose proof is right, its time is
//! *spent*, and this gateway, which the proof names, accepts no other of its session with that time. That matters most for one that is refused since its
//! clock is ahead: its time is yet to come. The session's mark cannot say so, or that clock would lock out the right one until then.
//!
//! Spent times lie in the gateway's log before anything is answered, so that no restart forgets them. They count until a Logon of that time is refused for
//! its clock anyway. Those of a session that count and have fallen far behind are written again, so that the log is released at last.
//!
//! Room is bounded and never lost: of a session with too many times the two that are nearest become one, with all that lies between; and a session for
//! which there is no place is refused. Both refuse more than was used, never less.

use std::collections::{BTreeMap, BTreeSet};

use pares_log::{LogWriter, record};
use pares_port::LOGON_CLOCK_NS;
use pares_register::ENTRIES_MAX;
use pares_roles::world::{Sockets, World};
use pares_wire::record::SpentLogonRecord;
use zerocopy::IntoBytes;

use crate::edge::GatewayIo;
use crate::marks::BEHIND_MIN;
use crate::types::Who;

/// Sessions that have a place: no register has more.
const SESSIONS_MAX: usize = ENTRIES_MAX;
/// Spans of times of each.
const SPANS_MAX: usize = 64;
/// What a record takes in the log.
const RECORD_BYTES: u64 = record::size(size_of::<SpentLogonRecord>()) as u64;

/// Times from `first_ns` to `last_ns`, until which time of this gateway's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first_ns: u64,
    last_ns: u64,
    until_ns: u64,
}

impl Span {
    fn has(&self, time_ns: u64) -> bool {
        (self.first_ns..=self.last_ns).contains(&time_ns)
    }

    /// Both, and what lies between.
    fn with(&self, other: &Self) -> Self {
        Self {
            first_ns: self.first_ns.min(other.first_ns),
            last_ns: self.last_ns.max(other.last_ns),
            until_ns: self.until_ns.max(other.until_ns),
        }
    }
}

/// Those of a session.
#[derive(Debug, Default)]
struct Spent {
    /// The earliest first; apart from each other.
    spans: Vec<Span>,
    /// From where on the log has them, if it took them.
    begins: Option<u64>,
}

/// The times that are spent.
#[derive(Debug, Default)]
pub(crate) struct SpentLogons {
    sessions: BTreeMap<Who, Spent>,
    /// From where on the log has those of each.
    places: BTreeSet<(u64, Who)>,
    spans: u64,
    /// The turn in which one was last looked at that is refused anyway.
    looked_ns: u64,
}

impl SpentLogons {
    /// A record of this gateway's own log, which it reads as it starts.
    pub(crate) fn recover(&mut self, record: &SpentLogonRecord, offset: u64, now_ns: u64) {
        let (first_ns, last_ns) = (record.first_ns.get(), record.last_ns.get());
        let span = Span { first_ns, last_ns, until_ns: record.until_ns.get() };
        self.add(record.who(), span, now_ns);
        self.on_written(record.who(), offset);
    }

    /// A Logon of that time is used: what the log is to have before it is answered. `None` if that time is spent already, or there is no room.
    pub(crate) fn spend(&mut self, who: Who, time_ns: u64, now_ns: u64) -> Option<SpentLogonRecord> {
        if self.is_spent(who, time_ns) || !self.has_room(who, now_ns) {
            return None;
        }
        let until_ns = time_ns.max(now_ns).saturating_add(LOGON_CLOCK_NS);
        self.add(who, Span { first_ns: time_ns, last_ns: time_ns, until_ns }, now_ns);
        assert!(self.is_spent(who, time_ns), "what is used is spent");
        Some(SpentLogonRecord::new(who, (time_ns, time_ns), until_ns))
    }

    /// Whether one that is refused anyway may be looked at in the turn of that time, once.
    pub(crate) fn may_look(&mut self, now_ns: u64) -> bool {
        std::mem::replace(&mut self.looked_ns, now_ns) != now_ns
    }

    /// A record of a session lies there in the log, behind those before.
    pub(crate) fn on_written(&mut self, who: Who, offset: u64) {
        let last = self.places.last();
        assert!(last.is_none_or(|(last, _)| *last < offset), "a record lies behind those before");
        if self.sessions.get(&who).is_some_and(|spent| spent.begins.is_none()) {
            self.place(who, Some(offset));
        }
    }

    fn is_spent(&self, who: Who, time_ns: u64) -> bool {
        self.sessions.get(&who).is_some_and(|spent| spent.spans.iter().any(|span| span.has(time_ns)))
    }

    fn has_room(&mut self, who: Who, now_ns: u64) -> bool {
        if self.sessions.len() >= SESSIONS_MAX && !self.sessions.contains_key(&who) {
            let all: Vec<Who> = self.sessions.keys().copied().collect();
            all.into_iter().for_each(|who| self.drop_expired(who, now_ns));
        }
        self.sessions.len() < SESSIONS_MAX || self.sessions.contains_key(&who)
    }

    fn add(&mut self, who: Who, span: Span, now_ns: u64) {
        let spans = &mut self.sessions.entry(who).or_default().spans;
        self.spans -= spans.len() as u64;
        insert(spans, span, now_ns);
        self.spans += spans.len() as u64;
    }

    /// Forgets what does not count any more of a session.
    fn drop_expired(&mut self, who: Who, now_ns: u64) {
        let Some(Spent { spans, .. }) = self.sessions.get_mut(&who) else { return };
        self.spans -= spans.len() as u64;
        spans.retain(|span| span.until_ns >= now_ns);
        self.spans += spans.len() as u64;
        if spans.is_empty() {
            self.place(who, None);
            self.sessions.remove(&who);
        }
    }

    fn place(&mut self, who: Who, begins: Option<u64>) {
        let Some(spent) = self.sessions.get_mut(&who) else { return };
        if let Some(before) = std::mem::replace(&mut spent.begins, begins) {
            self.places.remove(&(before, who));
        }
        self.places.extend(begins.map(|begins| (begins, who)));
    }

    /// Up to where the log may be released, if all else allows it up to `answered`. The session whose times lie farthest behind has them written again,
    /// if that is far.
    pub(crate) fn keep_behind<W: World, S: Sockets>(
        &mut self,
        answered: u64,
        edge: &mut GatewayIo<W, S>,
    ) -> u64 {
        // In every turn: nothing is looked at while nothing is to be done.
        let Some(&(begins, who)) = self.places.first() else { return answered };
        if answered.saturating_sub(begins) > BEHIND_MIN.max(2 * self.spans * RECORD_BYTES) {
            self.write_again(who, edge);
        }
        self.places.first().map_or(answered, |(begins, _)| answered.min(*begins))
    }

    /// Writes those of a session that count again. If the log does not take them, they lie where they lay.
    fn write_again<W: World, S: Sockets>(&mut self, who: Who, edge: &mut GatewayIo<W, S>) {
        self.drop_expired(who, edge.world.now_ns());
        let mut begins = None;
        for span in self.sessions.get(&who).into_iter().flat_map(|spent| &spent.spans) {
            let record = SpentLogonRecord::new(who, (span.first_ns, span.last_ns), span.until_ns);
            let Some(offset) = edge.write_note(record.as_bytes()) else { return };
            begins.get_or_insert(offset);
        }
        edge.writer.publish();
        self.place(who, begins);
    }
}

/// Adds a span, and what it touches becomes one with it. If there are too many then, those go that do not count any more, or the two nearest become one.
fn insert(spans: &mut Vec<Span>, span: Span, now_ns: u64) {
    let touches = |one: &Span| one.first_ns <= span.last_ns && span.first_ns <= one.last_ns;
    let whole = spans.iter().filter(|one| touches(one)).fold(span, |whole, one| whole.with(one));
    spans.retain(|one| !touches(one));
    let place = spans.partition_point(|one| one.last_ns < whole.first_ns);
    spans.insert(place, whole);
    if spans.len() > SPANS_MAX {
        spans.retain(|one| one.until_ns >= now_ns);
    }
    if spans.len() > SPANS_MAX {
        let gap = |at: &usize| spans[at + 1].first_ns - spans[*at].last_ns;
        let nearest = (0..spans.len() - 1).min_by_key(gap).expect("there are several");
        let later = spans.remove(nearest + 1);
        spans[nearest] = spans[nearest].with(&later);
    }
    assert!(spans.len() <= SPANS_MAX, "a session has no more spans than it may");
    assert!(spans.windows(2).all(|two| two[0].last_ns < two[1].first_ns), "spans are apart, in their order");
}

#[cfg(test)]
mod tests {
    use pares_types::MemberId;

    use super::*;

    const WHO: Who = (MemberId(7), 1);
    const SECOND_NS: u64 = 1_000_000_000;

    fn spend(spent: &mut SpentLogons, who: Who, time_ns: u64) -> bool {
        spent.spend(who, time_ns, 0).is_some()
    }

    #[test]
    fn each_time_of_session_is_good_once() {
        let mut spent = SpentLogons::default();
        let asked = [(WHO, 5), (WHO, 5), (WHO, 6), ((MemberId(7), 2), 5), (WHO, u64::MAX), (WHO, u64::MAX)];
        let taken = asked.map(|(who, time_ns)| spend(&mut spent, who, time_ns));
        assert_eq!(taken, [true, false, true, true, true, false]);
    }

    /// What was not used may be refused, what was used is.
    #[test]
    fn too_many_times_become_spans_of_nearest() {
        let mut spent = SpentLogons::default();
        let times: Vec<u64> = (1..=500).map(|at| at * 10 * SECOND_NS + at % 7 * SECOND_NS).collect();
        let far_ns = 1 << 62;
        assert!(spend(&mut spent, WHO, far_ns));
        assert!(times.iter().all(|&time_ns| spend(&mut spent, WHO, time_ns)));
        assert_eq!((spent.spans, spent.sessions[&WHO].spans.len()), (64, SPANS_MAX));
        assert!(times.iter().all(|&time_ns| !spend(&mut spent, WHO, time_ns)));
        assert!(!spend(&mut spent, WHO, far_ns) && spend(&mut spent, WHO, far_ns - SECOND_NS), "it is apart");
    }

    #[test]
    fn expired_times_make_room_first() {
        let mut spent = SpentLogons::default();
        (0..SPANS_MAX as u64).for_each(|at| assert!(spend(&mut spent, WHO, 10 * at)));
        let now_ns = 2 * LOGON_CLOCK_NS;
        assert!(spent.spend(WHO, now_ns, now_ns).is_some());
        assert_eq!(spent.spans, 1);
    }

    #[test]
    fn session_without_place_is_refused_until_others_expire() {
        let mut spent = SpentLogons::default();
        let who = |at: usize| (MemberId(1 + at as u32), 1);
        assert!((0..SESSIONS_MAX).all(|at| spend(&mut spent, who(at), 5)));
        assert!(!spend(&mut spent, who(SESSIONS_MAX), 6) && spend(&mut spent, who(0), 6));
        let now_ns = 2 * LOGON_CLOCK_NS;
        assert!(spent.spend(who(SESSIONS_MAX), now_ns, now_ns).is_some());
        assert_eq!(spent.sessions.len(), 1);
    }

    #[test]
    fn recovered_records_say_what_was_spent() {
        let mut before = SpentLogons::default();
        let written: Vec<SpentLogonRecord> =
            (0..200).filter_map(|at| before.spend(WHO, at * at * SECOND_NS, 0)).collect();
        let mut after = SpentLogons::default();
        (1..).zip(&written).for_each(|(offset, record)| after.recover(record, offset, 0));
        assert_eq!(after.places.first(), Some(&(1, WHO)));
        assert!((0..200).all(|at| !spend(&mut after, WHO, at * at * SECOND_NS)));
    }
}
