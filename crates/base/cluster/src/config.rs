//! What an owner of a replica chooses.

use std::ops::Range;

use crate::error::ReplicaError;
use crate::members::{Incarnation, MemberId, Members};

/// Where a log begins: behind `index`, which was of `term`, among these members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beginning {
    /// The last place that is not in it.
    pub index: u64,
    /// That place's term.
    pub term: u64,
    /// The members there. Without any it is the log of a site that is none yet: it neither stands for election nor votes.
    pub members: Members,
}

/// Settings of a [`Replica`](crate::Replica).
#[derive(Clone, Debug)]
pub struct ReplicaConfig {
    /// Names the database: a log of another is refused.
    pub database: String,
    /// This member.
    pub id: MemberId,
    /// Where a journal without records begins. Ignored for others, unless the next setting is on.
    pub beginning: Beginning,
    /// Whether the log begins again there, and keeps of what it holds only what it promised: its owner has taken a copy of the state at that place.
    pub anew: bool,
    /// After how many ticks without a word from the delegate a member tries to take its place: drawn from this range
    /// each time, so that two seldom try at once. The beginning is also how long a delegate continues alone before it steps down.
    pub election_ticks: Range<u32>,
    /// Ticks between two words of a delegate that has nothing to say. Less than `election_ticks.start`, a fifth of it or so.
    pub heartbeat_ticks: u32,
    /// Ticks after which a member that lacks what is compacted is looked after again.
    pub copy_ticks: u32,
    /// Where the draws of election timeouts come from. Same seed and same calls, same behaviour. Members need different ones.
    pub seed: u64,
    /// The caller's own state holds everything up to this place; what follows is handed out.
    pub applied: u64,
    /// Bytes of payload per message, about: more make several.
    pub message_bytes_max: u32,
    /// Messages with entries under way to one member before it has answered the first.
    pub inflight_max: u16,
    /// Bytes proposed and not committed yet, beyond which proposals are refused.
    pub backlog_bytes_max: usize,
}

impl ReplicaConfig {
    /// Member `number` of `members`, all in the first life of their disks: 10 to 20 ticks to an election, a heartbeat every 2, the number as seed,
    /// nothing applied.
    #[must_use]
    pub fn new(number: u8, members: u8) -> ReplicaConfig {
        ReplicaConfig {
            database: String::new(),
            id: MemberId { number, incarnation: Incarnation(0) },
            beginning: Beginning { members: Members::first(members), ..Beginning::default() },
            anew: false,
            election_ticks: 10..20,
            heartbeat_ticks: 2,
            copy_ticks: 20,
            seed: number.into(),
            applied: 0,
            message_bytes_max: 1 << 20,
            inflight_max: 64,
            backlog_bytes_max: 64 << 20,
        }
    }

    /// The same for a log that begins again behind that place, where its owner has taken a copy of the state.
    #[must_use]
    pub fn again_behind(self, beginning: Beginning) -> ReplicaConfig {
        ReplicaConfig { anew: true, beginning, ..self }
    }

    pub(crate) fn check(&self) -> Result<(), ReplicaError> {
        let refuse = |what| Err(ReplicaError::Config { what });
        let is_legal = |id: MemberId| id.number <= 8 && id.incarnation.0 < Incarnation::END;
        let mut members = self.beginning.members.all();
        if !is_legal(self.id) || !members.all(is_legal) || self.beginning.members.all().count() > 9 {
            return refuse("at most nine members, numbered from 0 to 8, their incarnations below 2^56");
        }
        if self.heartbeat_ticks == 0 || self.heartbeat_ticks >= self.election_ticks.start {
            return refuse("heartbeat_ticks must be at least 1 and less than election_ticks");
        }
        if self.election_ticks.is_empty() {
            return refuse("election_ticks must not be empty");
        }
        if self.message_bytes_max == 0 || self.inflight_max == 0 || self.backlog_bytes_max == 0 {
            return refuse("message_bytes_max, inflight_max and backlog_bytes_max must be at least 1");
        }
        Ok(())
    }
}
