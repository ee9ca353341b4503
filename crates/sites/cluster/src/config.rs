//! What an owner of a replica chooses.

use std::ops::Range;

use crate::error::ReplicaError;

/// Settings of a [`Replica`](crate::Replica).
#[derive(Clone, Debug)]
pub struct ReplicaConfig {
    /// This member, below `members`.
    pub member: u8,
    /// Members of the cluster, 1 to 9, for ever the same: of three, one may fail, of five, two.
    pub members: u8,
    /// After how many ticks without a word from the delegate a member tries to take its place: drawn from this range
    /// each time, so that two seldom try at once. The beginning is also how long a delegate goes on alone before it steps down.
    pub election_ticks: Range<u32>,
    /// Ticks between two words of a delegate that has nothing to say. Less than `election_ticks.start`, a fifth of it or so.
    pub heartbeat_ticks: u32,
    /// Ticks without an answer after which a state is sent to a member again: more than the largest takes to get there.
    pub state_ticks: u32,
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
    /// Member `member` of `members`: 10 to 20 ticks to an election, a heartbeat every 2, a state again after 500, the member as
    /// seed, nothing applied.
    #[must_use]
    pub fn new(member: u8, members: u8) -> ReplicaConfig {
        ReplicaConfig {
            member,
            members,
            election_ticks: 10..20,
            heartbeat_ticks: 2,
            state_ticks: 500,
            seed: member.into(),
            applied: 0,
            message_bytes_max: 1 << 20,
            inflight_max: 64,
            backlog_bytes_max: 64 << 20,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ReplicaError> {
        let refuse = |what| Err(ReplicaError::Config { what });
        if !(1..=9).contains(&self.members) || self.member >= self.members {
            return refuse("member must be below members, which is 1 to 9");
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
