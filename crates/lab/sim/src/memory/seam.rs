//! Defects put into the world on purpose, and engines that fail.
//!
//! The roles under test are those that ship, so nothing in them can be switched off. What can be broken is what they stand on: a
//! log that calls durable what is not, a window that forgets a decision, a library that reads wrongly. Each [`Bug`] is one such
//! breach, and the checkers must name the one failure that it causes (`tests/mutations.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pares_config::NodeId;
use pares_random::mix;
use pares_roles::lanes;
use pares_types::{Position, Request, ShardId, VenueId};

use super::files::Content;
use super::log::Lies;
use crate::bug::Bug;
use crate::engine::{Harm, Poison};
use crate::{Engines, defects};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed;

/// Everything that is wrong on purpose.
#[derive(Debug, Default)]
pub(crate) struct Seam {
    pub(super) bug: Option<Bug>,
    poison: Poison,
    /// By venue: executions until its engine fails by itself.
    fails_in: BTreeMap<NodeId, u32>,
    /// By shard: which venue's engine failed by itself, and where, until it is beyond that.
    failed: BTreeMap<ShardId, (NodeId, Position)>,
    /// Venues of a build with other rules.
    pub(super) other_builds: BTreeSet<NodeId>,
    pub(crate) counts: Engines,
    /// Drawn from where a choice is to be made that the seed decides.
    dice: u64,
}

impl Seam {
    pub(crate) fn new(bug: Option<Bug>, poison: Poison, seed: u64) -> Self {
        Self { bug, poison, dice: mix(seed), ..Self::default() }
    }

    pub(super) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// The venue fails by itself at one of the next requests it executes.
    pub(crate) fn fail_soon(&mut self, venue: NodeId, after: u32) {
        self.fails_in.insert(venue, after);
    }

    /// From its next start on the venue has other rules.
    pub(crate) fn rebuild(&mut self, venue: NodeId) {
        self.other_builds.insert(venue);
    }

    pub(crate) fn has_other_builds(&self) -> bool {
        !self.other_builds.is_empty()
    }

    pub(super) fn lies(&self, node: NodeId) -> Lies {
        let (recorder, gateway) = (matches!(node, NodeId::Recorder(_)), matches!(node, NodeId::Gateway(_)));
        Lies {
            durable_when_published: recorder && self.has(Bug::PromiseBeforeSync),
            failed_sync_is_done: recorder && self.has(Bug::BelieveFailedSync),
            full_is_appended: recorder && self.has(Bug::TakeWithoutRoom),
            durable_when_appended: gateway && self.has(Bug::AcceptBeforeWrite),
            mirror_has_gaps: self.has(Bug::MirrorsHaveGaps),
            mirror_is_durable: self.has(Bug::MirrorsAreDurable),
        }
    }

    /// Whether a log cannot be found by that process.
    pub(super) fn hides(&self, reader: NodeId, of: NodeId) -> bool {
        let peers = matches!((reader, of), (NodeId::Recorder(a), NodeId::Recorder(b)) if a != b);
        peers && self.has(Bug::HidePeers)
    }

    pub(super) fn window(&self, node: NodeId) -> Option<Bug> {
        let only_first = self.has(Bug::SwallowDecision);
        self.bug.filter(|_| !only_first || node == NodeId::Venue(VenueId(0)))
    }

    /// Whether a number in a file of that name stays as it is, once there is one.
    pub(super) fn forgets(&self, file: &Path) -> bool {
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return false };
        self.has(Bug::KeepLife) && name.starts_with("life-") || self.has(Bug::KeepStream) && name == "stream"
    }

    /// What the engine does at a request that it is about to execute.
    pub(super) fn executing(
        &mut self,
        node: NodeId,
        shard: ShardId,
        position: Position,
        request: &Request,
    ) -> Option<Harm> {
        if self.failed.get(&shard).is_some_and(|&(venue, at)| venue == node && position > at) {
            self.failed.remove(&shard);
        }
        if let Some(harm) = self.poison.harm(request) {
            self.counts.failed += 1;
            self.counts.deaths += u64::from(harm == Harm::Ends);
            return Some(harm);
        }
        let spared = self.failed.get(&shard).is_some_and(|&(venue, _)| venue != node);
        match self.fails_in.get_mut(&node) {
            Some(0) if !spared => {
                self.fails_in.remove(&node);
                self.failed.insert(shard, (node, position));
                self.counts.failed += 1;
                self.counts.by_themselves += 1;
                Some(Harm::Panics)
            }
            Some(left) => {
                *left = left.saturating_sub(1);
                None
            }
            None => None,
        }
    }

    /// Where another venue's engine has failed in that shard, if that venue is to be faster now.
    pub(super) fn rival(&mut self, node: NodeId, shard: ShardId) -> Option<Position> {
        let &(venue, at) = self.failed.get(&shard)?;
        self.dice = mix(self.dice);
        (venue != node && self.dice & 1 == 0).then_some(at)
    }
}

impl Seam {
    /// Which venue executes which shards, as a recorder reads it.
    pub(super) fn read_lanes(&self, reader: NodeId, path: &Path, content: &Content) -> Option<Content> {
        let is_it = matches!(reader, NodeId::Recorder(_)) && path == Path::new("lanes");
        (self.has(Bug::VoteBeforeComing) && is_it).then(|| content.replaced("begun", "joined"))
    }

    /// Which placement every node follows, as who moves a shard reads it.
    pub(super) fn follows(&self, counter: &str, lanes: impl FnOnce() -> Option<Vec<u8>>) -> Option<u64> {
        let is_it = self.has(Bug::MoveUnfollowed) && counter == lanes::NUMBER_COUNTER;
        let text = String::from_utf8(is_it.then(lanes)??).ok()?;
        text.lines().find_map(|line| line.strip_prefix("number = ")?.parse().ok())
    }
}

/// Bytes before the state in a checkpoint's file, and where in them length, checksum of the state and of all before it lie.
const HEAD_BYTES: usize = 56;
const AT_LENGTH: usize = 32;
const AT_STATE_CRC: usize = 40;
const AT_HEAD_CRC: usize = 48;

impl Seam {
    /// A checkpoint's file gets its name: what it holds from now on.
    pub(super) fn name_checkpoint(&self, file: &[u8]) -> Option<Vec<u8>> {
        let spoil = match self.bug? {
            Bug::CheckpointWithoutAnOrder => defects::without_an_order,
            Bug::ForgetNames => defects::without_floors,
            _ => return None,
        };
        let (head, state) = file.split_at_checked(HEAD_BYTES)?;
        let (mut head, state) = (head.to_vec(), spoil(state));
        let mut put = |at: usize, value: u64| head[at..at + 8].copy_from_slice(&value.to_le_bytes());
        put(AT_LENGTH, state.len() as u64);
        put(AT_STATE_CRC, crc32c::crc32c(&state).into());
        let crc = crc32c::crc32c(&head[..AT_HEAD_CRC]);
        head[AT_HEAD_CRC..].copy_from_slice(&u64::from(crc).to_le_bytes());
        Some([head, state].concat())
    }
}
