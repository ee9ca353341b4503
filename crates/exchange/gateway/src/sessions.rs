//! Who is signed on, and how much each has in flight.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use pares_register::Permit;
use pares_types::{MemberId, Reason, Timestamp};

use crate::permits::Asker;
use crate::refusals::Refusals;
use crate::streams::{Follow, listener_of};
use crate::{Pace, SessionId};

/// Sessions that are not signed on of which the pace is known: more than a register has.
const PACED_MAX: usize = 1 << 14;

#[derive(Clone, Copy, Debug)]
struct Session {
    asker: Asker,
    /// How fast it may ask.
    pace: Pace,
    wants_journalled: bool,
    /// Whether it has entered guarded orders.
    guards: bool,
    /// When its timer runs out.
    timer_ns: Option<u64>,
    in_flight: u32,
    /// See [`Pace::admits`].
    paced: Timestamp,
    /// See [`Refusals::count`].
    refused: Timestamp,
}

/// A session that receives a member's streams, and what of them.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    pub(crate) session: SessionId,
    /// It is another member's.
    pub(crate) is_copy: bool,
    /// By shard's place; empty until it asks for any.
    follows: Box<[Follow]>,
}

impl Listener {
    /// What it receives of a shard's stream, given the shard's place.
    #[inline]
    pub(crate) fn follow(&self, shard: Option<usize>) -> Follow {
        shard.and_then(|shard| self.follows.get(shard)).copied().unwrap_or_default()
    }
}

/// The signed-on sessions. The maps are only ever looked up by key, never iterated: the order of a hash
/// map must not reach any effect.
#[derive(Default)]
pub(crate) struct Sessions {
    sessions: HashMap<SessionId, Session, BuildHasherDefault<Mixer>>,
    /// How many receive a reply when their requests are durable.
    journalled: usize,
    /// The sessions that receive each member's streams, the newest last.
    members: HashMap<MemberId, Vec<Listener>, BuildHasherDefault<Mixer>>,
    /// By member: its sessions that receive another's.
    copies: BTreeSet<(MemberId, SessionId)>,
    /// Of sessions that are not here now, what they have used of their pace: a session that connects again does not start from zero.
    paced: BTreeMap<(MemberId, u16), Timestamp>,
    refusals: Refusals,
    /// What those that are not signed on have used of their refusals, see [`Refusals::count`].
    strangers: Timestamp,
}

impl Sessions {
    /// On an error nothing changed: a session that is signed on stays what it is, with what it has in flight.
    pub(crate) fn sign_on(
        &mut self,
        session: SessionId,
        asker: Asker,
        wants_journalled: bool,
        member_sessions_max: usize,
    ) -> Result<(), Reason> {
        if self.sessions.contains_key(&session) {
            return Err(Reason::MalformedRequest);
        }
        let member = asker.member;
        if self.speaking_for(member).count() >= member_sessions_max {
            return Err(Reason::TooManySessions);
        }
        let (refused, pace) = (Timestamp(0), Pace::FREE);
        let paced = self.paced.remove(&(member, asker.number)).unwrap_or(Timestamp(0));
        self.journalled += usize::from(wants_journalled);
        self.sessions.insert(
            session,
            Session {
                asker,
                pace,
                wants_journalled,
                guards: false,
                timer_ns: None,
                in_flight: 0,
                paced,
                refused,
            },
        );
        let (is_copy, follows) = (asker.is_copy(), [].into());
        self.members.entry(asker.told_of).or_default().push(Listener { session, is_copy, follows });
        if is_copy {
            self.copies.insert((member, session));
        }
        Ok(())
    }

    /// Whose connection as which session it was, if it has entered guarded orders.
    pub(crate) fn disconnect(&mut self, session: SessionId) -> Option<(MemberId, u16)> {
        let gone = self.sessions.remove(&session)?;
        let Asker { member, number, told_of, .. } = gone.asker;
        self.journalled -= usize::from(gone.wants_journalled);
        self.remember_pace((member, number), gone.paced);
        self.copies.remove(&(member, session));
        let listeners = self.members.get_mut(&told_of)?;
        listeners.retain(|other| other.session != session);
        if listeners.is_empty() {
            self.members.remove(&told_of);
        }
        gone.guards.then_some((member, number))
    }

    /// Those that used theirs up a minute before make room. Without room it is forgotten, which a register of sessions never comes to.
    fn remember_pace(&mut self, who: (MemberId, u16), used: Timestamp) {
        if used == Timestamp(0) {
            return;
        }
        if self.paced.len() >= PACED_MAX {
            let long_ago = Timestamp(used.0.saturating_sub(60_000_000_000));
            self.paced.retain(|_, other| *other > long_ago);
        }
        if self.paced.len() >= PACED_MAX {
            return;
        }
        let of_session = self.paced.entry(who).or_default();
        *of_session = used.max(*of_session);
    }

    /// Whose session of which number it is, if it guards orders; it guards none from now on.
    pub(crate) fn release(&mut self, session: SessionId) -> Option<(MemberId, u16)> {
        let session = self.sessions.get_mut(&session)?;
        let Asker { member, number, .. } = session.asker;
        std::mem::take(&mut session.guards).then_some((member, number))
    }

    /// Says when its timer would have run out.
    pub(crate) fn set_timer(&mut self, session: SessionId, due_ns: Option<u64>) -> Option<u64> {
        std::mem::replace(&mut self.sessions.get_mut(&session)?.timer_ns, due_ns)
    }

    pub(crate) fn guard(&mut self, session: SessionId) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.guards = true;
        }
    }

    pub(crate) fn member(&self, session: SessionId) -> Option<MemberId> {
        self.asker(session).map(|asker| asker.member)
    }

    pub(crate) fn told_of(&self, session: SessionId) -> Option<MemberId> {
        self.asker(session).map(|asker| asker.told_of)
    }

    pub(crate) fn is_signed_on(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    pub(crate) fn asker(&self, session: SessionId) -> Option<Asker> {
        self.sessions.get(&session).map(|session| session.asker)
    }

    /// How fast it may ask, and how many of its requests are unanswered.
    pub(crate) fn used(&self, session: SessionId) -> Option<(Pace, u32)> {
        self.sessions.get(&session).map(|session| (session.pace, session.in_flight))
    }

    /// What it may do from now on, and no faster than `pace` either.
    pub(crate) fn set_permit(&mut self, session: SessionId, permit: Permit, pace: Pace) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.asker.permit = permit;
            session.pace = pace.slower(Pace::new(permit.limits.rate_max, permit.limits.burst_max));
        }
    }

    pub(crate) fn wants_journalled(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.wants_journalled)
    }

    /// Whether any session receives a reply when its requests are durable.
    pub(crate) fn want_journalled(&self) -> bool {
        self.journalled > 0
    }

    /// The sessions that receive the member's streams, the newest last.
    pub(crate) fn listeners(&self, member: MemberId) -> &[Listener] {
        self.members.get(&member).map_or(&[], Vec::as_slice)
    }

    /// The member's sessions that receive another's streams.
    pub(crate) fn copies(&self, member: MemberId) -> impl Iterator<Item = SessionId> {
        let all = (member, SessionId(0))..=(member, SessionId(u64::MAX));
        self.copies.range(all).map(|(_, session)| *session)
    }

    /// What the session receives from now on of `member`'s stream of the shard at that place among all `shards`.
    pub(crate) fn set_follow(
        &mut self,
        (session, member): (SessionId, MemberId),
        (at, shards): (usize, usize),
        follow: Follow,
    ) {
        let Some(of_member) = self.members.get_mut(&member) else { return };
        let Some(listener) = listener_of(of_member, session) else { return };
        let follows = &mut listener.follows;
        if follows.is_empty() {
            *follows = vec![Follow::Own; shards].into();
        }
        follows[at] = follow;
    }

    /// Whether the session may send one more order now; if so that is counted.
    pub(crate) fn check_pace(&mut self, session: SessionId, now: Timestamp) -> Result<(), Reason> {
        let session = self.sessions.get_mut(&session).ok_or(Reason::NotSignedOn)?;
        if session.pace.admits(&mut session.paced, now) { Ok(()) } else { Err(Reason::Throttled) }
    }

    /// Whether the session's member has less in flight than its share of the room in which orders wait.
    pub(crate) fn check_share(&self, session: SessionId, share_left: usize) -> Result<(), Reason> {
        let member = self.member(session).ok_or(Reason::NotSignedOn)?;
        // While no one waits long there is no share, and nothing to count.
        let of_session =
            |session: SessionId| self.sessions.get(&session).map_or(0, |one| one.in_flight as usize);
        let has_room =
            share_left == usize::MAX || self.speaking_for(member).map(of_session).sum::<usize>() < share_left;
        if has_room { Ok(()) } else { Err(Reason::Overloaded) }
    }

    /// Whether the session may ask for one more answer. What reduces its risk may be a sixteenth more than the rest.
    pub(crate) fn check_room(&self, session: SessionId, max: u16, reduces_risk: bool) -> Result<(), Reason> {
        let more = if reduces_risk { 1 + u32::from(max) / 16 } else { 0 };
        match self.sessions.get(&session) {
            Some(session) if session.in_flight < u32::from(max) + more => Ok(()),
            Some(_) => Err(Reason::Overloaded),
            None => Err(Reason::NotSignedOn),
        }
    }

    /// The session was refused something; an order `early`, because too much waits. For how long it is to be left unread, nanoseconds;
    /// 0: not at all. All that are not signed on count as one.
    pub(crate) fn on_refused(&mut self, session: SessionId, early: bool, now: Timestamp) -> u64 {
        let Self { sessions, refusals, strangers, .. } = self;
        let used = sessions.get_mut(&session).map_or(strangers, |session| &mut session.refused);
        refusals.count(used, early, now)
    }

    /// The session waits for one more answer.
    pub(crate) fn begin(&mut self, session: SessionId) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.in_flight += 1;
        }
    }

    /// The session waits for one answer less. Whether it is still there to be told.
    pub(crate) fn end(&mut self, session: SessionId) -> bool {
        let Some(session) = self.sessions.get_mut(&session) else { return false };
        debug_assert!(session.in_flight > 0, "an answer is awaited once");
        // A limit that is off by one is no reason to end.
        session.in_flight = session.in_flight.saturating_sub(1);
        true
    }
}

/// A fixed hasher for keys of one small integer that members do not choose freely.
#[derive(Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(member: u32) -> Asker {
        Asker { member: MemberId(member), number: 0, permit: Permit::FREE, told_of: MemberId(member) }
    }

    fn listed(sessions: &Sessions) -> Vec<u64> {
        sessions.listeners(MemberId(7)).iter().map(|listener| listener.session.0).collect()
    }

    #[test]
    fn a_member_s_sessions_are_listed_oldest_first() {
        let mut sessions = Sessions::default();
        for session in [3, 1, 2] {
            sessions.sign_on(SessionId(session), of(7), false, 3).unwrap();
        }
        sessions.disconnect(SessionId(1));
        assert_eq!(listed(&sessions), [3, 2]);
    }

    #[test]
    fn signing_on_again_is_refused_and_changes_nothing() {
        let mut sessions = Sessions::default();
        sessions.sign_on(SessionId(1), of(7), false, 3).unwrap();
        sessions.begin(SessionId(1));
        for member in [7, 8] {
            let again = sessions.sign_on(SessionId(1), of(member), true, 3);
            assert_eq!(again, Err(Reason::MalformedRequest));
        }
        assert_eq!(listed(&sessions), [1]);
        assert!(sessions.listeners(MemberId(8)).is_empty() && sessions.end(SessionId(1)));
    }

    #[test]
    fn a_member_has_so_many_sessions_and_one_more_once_one_has_gone() {
        let mut sessions = Sessions::default();
        let sign_on =
            |sessions: &mut Sessions, session| sessions.sign_on(SessionId(session), of(7), false, 2);
        let three = [1, 2, 3].map(|session| sign_on(&mut sessions, session));
        assert_eq!(three, [Ok(()), Ok(()), Err(Reason::TooManySessions)]);
        sessions.disconnect(SessionId(1));
        assert_eq!(sign_on(&mut sessions, 3), Ok(()));
    }
}
