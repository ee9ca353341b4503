//! Members' streams: who receives what, live. A session receives one member's: its own, or the one that it copies.
//!
//! A session that never asks for the stream receives all that happens to its member's orders, and the answers to what it asked itself. One
//! that resumes a shard's stream gets every message of its member there, answers to others included, once and in order: first, from
//! the record, what it missed; what happens meanwhile waits in the record too. So a shard's stream is in one of three states:
//!
//! ```text
//!   Own --resume--> Withheld --record read up to what is committed--> All
//!    |                                                                 ^
//!    +---- resume from now on, or nothing was missed ------------------+
//! ```
//! The turn from the record to live needs no overlap: both are read by one thread, and the position to come is the same for both.

use pares_stream::Told;
use pares_types::{MemberId, Position, Reason, Reply, ShardId};

use crate::gateway::Shard;
use crate::sessions::{Listener, Sessions};
use crate::{Gateway, GatewaySink, SessionId};

/// What a session receives live of its member's stream in a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Follow {
    /// What happens to orders; answers to its own requests only.
    #[default]
    Own,
    /// Nothing: it is being told what it missed, or has yet to ask for it.
    Withheld,
    /// Everything.
    All,
}

/// The listener that the session is, of those of a member.
pub(crate) fn listener_of(listeners: &mut [Listener], session: SessionId) -> Option<&mut Listener> {
    listeners.iter_mut().find(|listener| listener.session == session)
}

/// How a stream is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Nothing was missed: live from now on, beginning with that number.
    Live(u64),
    /// What the member was sent before has to be read from the record; then [`Gateway::go_live`].
    FromRecord(MemberId),
}

impl Sessions {
    /// The sessions that speak for the member: those that receive its streams, the newest last, and then those that receive another's.
    pub(crate) fn speaking_for(&self, member: MemberId) -> impl Iterator<Item = SessionId> {
        let own = self.listeners(member).iter().filter(|one| !one.is_copy).map(|one| one.session);
        own.chain(self.copies(member))
    }

    /// The connections of one session of a member.
    pub(crate) fn of_session(&self, (member, number): (MemberId, u16)) -> impl Iterator<Item = SessionId> {
        let is_it = move |session: &SessionId| self.asker(*session).is_some_and(|one| one.number == number);
        self.speaking_for(member).filter(is_it)
    }

    /// The sessions that a change of the member in the register may concern: those that speak for it, and those that receive its streams.
    pub(crate) fn concerned(&self, member: MemberId) -> Vec<SessionId> {
        let copies_of_it = self.listeners(member).iter().filter(|one| one.is_copy).map(|one| one.session);
        self.speaking_for(member).chain(copies_of_it).collect()
    }
}

impl Gateway {
    /// The session receives nothing of its member's streams until it resumes them. To be called as it has signed on.
    pub fn withhold(&mut self, session: SessionId) {
        let Some(member) = self.sessions.told_of(session) else { return };
        (0..self.shards.len()).for_each(|at| self.set_follow(session, member, at, Follow::Withheld));
    }

    /// The member whose stream of the shard the session can be told.
    ///
    /// # Errors
    /// [`Reason::NotSignedOn`], [`Reason::UnknownShard`].
    pub fn may_resume(&self, session: SessionId, shard: ShardId) -> Result<MemberId, Reason> {
        let member = self.sessions.told_of(session).ok_or(Reason::NotSignedOn)?;
        self.shard_index(shard).map(|_| member).ok_or(Reason::UnknownShard)
    }

    /// The session wants its member's stream of the shard from number `next` on; 0: from now on.
    ///
    /// # Errors
    /// As [`Gateway::may_resume`].
    pub fn on_resume(&mut self, session: SessionId, shard: ShardId, next: u64) -> Result<Resume, Reason> {
        let member = self.may_resume(session, shard)?;
        let at = self.shard_index(shard).ok_or(Reason::UnknownShard)?;
        let live = self.shards[at].numbers.last(member) + 1;
        let is_live = next == 0 || next == live;
        self.set_follow(session, member, at, if is_live { Follow::All } else { Follow::Withheld });
        Ok(if is_live { Resume::Live(live) } else { Resume::FromRecord(member) })
    }

    /// The session was sent, from the record, all of its member's stream below number `next`, and all below `position`. If that is all
    /// there is, it receives the rest live: gives the first number.
    pub fn go_live(
        &mut self,
        session: SessionId,
        shard: ShardId,
        position: Position,
        next: u64,
    ) -> Option<u64> {
        let member = self.sessions.told_of(session)?;
        let at = self.shard_index(shard)?;
        let live = self.shards[at].numbers.last(member) + 1;
        // A number that is not used yet: another gateway, which has read further, told the one before.
        let is_all = position >= self.committed(shard) && next <= live;
        is_all.then(|| {
            self.set_follow(session, member, at, Follow::All);
            live
        })
    }

    /// The session's stream of the shard cannot be sent: the session receives what it did before it asked.
    pub fn give_up_resuming(&mut self, session: SessionId, shard: ShardId) {
        if let (Some(member), Some(at)) = (self.sessions.told_of(session), self.shard_index(shard)) {
            self.set_follow(session, member, at, Follow::Own);
        }
    }

    /// The first position of the shard that is not followed.
    #[must_use]
    pub fn committed(&self, shard: ShardId) -> Position {
        self.shard_index(shard).and_then(|at| self.shards[at].next).unwrap_or_default()
    }

    /// All shards, in order.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + '_ {
        self.shards.iter().map(|shard| shard.id)
    }

    fn set_follow(&mut self, session: SessionId, member: MemberId, at: usize, follow: Follow) {
        let shards = self.shards.len();
        self.sessions.set_follow((session, member), (at, shards), follow);
    }

    /// Tells all sessions of those concerned, and gives the answer's number; 0 if it has none.
    pub(crate) fn report(&mut self, told: &Told<'_>, sink: &mut impl GatewaySink) -> u64 {
        let at = self.shard_index(told.request.shard);
        let Self { sessions, shards, .. } = self;
        let mut answered = 0;
        let mut tell = |member, reply: Reply, number| {
            let is_answer = matches!(reply, Reply::Answer(_));
            if is_answer {
                answered = number;
            }
            let reply = reply.numbered(number);
            for listener in sessions.listeners(member) {
                match listener.follow(at) {
                    Follow::All => sink.reply(listener.session, reply),
                    Follow::Own if !is_answer => sink.reply(listener.session, reply),
                    Follow::Own | Follow::Withheld => {}
                }
            }
        };
        match at.map(|at| &mut shards[at]) {
            Some(Shard { numbers, positions, .. }) => told.count(numbers, positions, tell),
            None => told.read(|member, reply| tell(member, reply, 0)),
        }
        answered
    }
}
