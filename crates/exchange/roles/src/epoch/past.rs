//! Recorders that are back with what a start gave up.
//!
//! A start that found a recorder's disk away, an empty directory in its place, knew nothing of what lies there. When the disk is
//! back its log is whole, and has other records than those that were recorded since. A start begins a shard behind all that
//! it knows to be recorded, so the logs tell: what has an epoch and lies behind the beginning of a later one was given up.
//!
//! ```text
//!   recorder 0     1 1 1 1          was away when life 2 began at position 1: all but the first is given up
//!   recorder 1     1 2 2
//! ```
//! Where the recorder has a life later still, it continued from what had been given up, and members were answered from both
//! histories. Which of them counts only an operator can say.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};

use pares_config::{NodeId, SystemConfig};
use pares_types::{Epoch, Position, RecorderId, ShardId};

use crate::NodeError;
use crate::left_out::LeftOut;
use crate::recorder::{self, Contents};
use crate::world::World;

/// A recorder, and a life in another's log that begins where it has a record of an earlier one.
struct Past {
    id: RecorderId,
    other: RecorderId,
    shard: ShardId,
    epoch: Epoch,
    first: Position,
}

impl Past {
    /// All there are in these logs.
    fn find(each: &BTreeMap<RecorderId, Contents>) -> Vec<Self> {
        let mut past = Vec::new();
        for (&other, theirs) in each {
            for (&(shard, epoch), &(first, _)) in &theirs.lives {
                // Positions rise with epochs along a log, so the last life before says it.
                let before = (shard, Epoch(0))..(shard, epoch);
                let is_past = |contents: &Contents| {
                    let last = contents.lives.range(before.clone()).next_back();
                    last.is_some_and(|(_, &(_, last))| last >= first)
                };
                let ids = each.iter().filter(|(_, contents)| is_past(contents)).map(|(&id, _)| id);
                past.extend(ids.map(|id| Self { id, other, shard, epoch, first }));
            }
        }
        past
    }

    fn went_on(&self, each: &BTreeMap<RecorderId, Contents>) -> bool {
        let later = (Excluded((self.shard, self.epoch)), Included((self.shard, Epoch(u32::MAX))));
        each[&self.id].lives.range(later).next().is_some()
    }

    /// An operator must say which of two histories counts.
    fn refused(&self) -> NodeError {
        let Self { shard, first, .. } = self;
        let [one, other] = [self.id, self.other].map(NodeId::Recorder);
        NodeError::Refused(format!(
            "{one} and {other} have different records of shard {shard} from {first} on, because each was \
             started without the other. Members may have answers from both. Nothing was changed. Decide \
             whose records count, move the other directory away, and start again: that recorder rebuilds \
             its log"
        ))
    }
}

fn left_out(past: &[Past]) -> BTreeMap<RecorderId, LeftOut> {
    let mut lives: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for &Past { id, shard, epoch, first, .. } in past {
        lives.entry(id).or_default().push((shard, epoch, first));
    }
    lives.into_iter().map(|(id, lives)| (id, LeftOut::new(lives))).collect()
}

/// Notes what was given up, by what can be read of the logs.
///
/// # Errors
/// If two recorders each continued without the other: then nothing is noted. If a note cannot be written.
pub(super) fn note(
    world: &impl World,
    config: &SystemConfig,
    logs: &[(RecorderId, Result<Contents, NodeError>)],
) -> Result<(), NodeError> {
    let mut each = BTreeMap::new();
    for (id, log) in logs {
        let contents = match log {
            Ok(contents) => Some(contents.clone()),
            Err(error) if error.is_damage() => recorder::salvaged(world, *id, config).ok(),
            Err(_) => None,
        };
        each.extend(contents.map(|contents| (*id, contents)));
    }
    let past = Past::find(&each);
    if let Some(past) = past.iter().find(|past| past.went_on(&each)) {
        return Err(past.refused());
    }
    for (id, left_out) in left_out(&past) {
        let recorder = NodeId::Recorder(id);
        world.complain(&format_args!(
            "{recorder} has records that an earlier start gave up, and other recorders differ there: {left_out}"
        ));
        left_out.note(world, id)?;
    }
    Ok(())
}

/// Looks again once logs are repaired.
///
/// # Errors
/// If one that could not be read before shows what another should not have.
pub(super) fn check(each: &BTreeMap<RecorderId, Contents>) -> Result<(), NodeError> {
    let Some((id, left_out)) = left_out(&Past::find(each)).pop_first() else { return Ok(()) };
    let recorder = NodeId::Recorder(id);
    Err(NodeError::Refused(format!(
        "a log that was just repaired shows that {recorder} has records that an earlier start gave up: \
         {left_out}. Start again. If the message repeats, move {recorder}'s directory away: it rebuilds its \
         log from the others"
    )))
}
