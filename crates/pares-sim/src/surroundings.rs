//! What a venue finds when it starts and in each step, and what it counts.

use pares_book::Instrument;
use pares_sequencer::LocalWindow;
use pares_types::{Position, Request, ShardId, VenueId};

use crate::bug::Bug;
use crate::build::Build;
use crate::engine::Poison;
use crate::log::Log;
use crate::record::{RecorderEntry, StoredCheckpoint};

/// What happened in steps, for the summary.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) executed: u64,
    pub(crate) observed: u64,
    pub(crate) window_full: u64,
    pub(crate) too_far_behind: u64,
    pub(crate) awaits_body: u64,
    /// Times the engine failed, of those by itself, and shards taken back.
    pub(crate) failed: u64,
    pub(crate) by_itself: u64,
    pub(crate) restored: u64,
    pub(crate) overruled: u64,
    pub(crate) stuck: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.executed += other.executed;
        self.observed += other.observed;
        self.window_full += other.window_full;
        self.too_far_behind += other.too_far_behind;
        self.awaits_body += other.awaits_body;
        self.failed += other.failed;
        self.by_itself += other.by_itself;
        self.restored += other.restored;
        self.overruled += other.overruled;
        self.stuck += other.stuck;
    }
}

/// What a venue needs to start: the paper's join (section 4), every time.
pub(crate) struct Join<'a> {
    pub(crate) naive: bool,
    pub(crate) piece_bytes: usize,
    pub(crate) venue: VenueId,
    pub(crate) venues: u16,
    pub(crate) shards: Vec<ShardId>,
    pub(crate) instruments: &'a [Vec<Instrument>],
    pub(crate) windows: &'a [LocalWindow],
    /// Each gateway's mark: requests before it are answered. Read before the checkpoints.
    pub(crate) answered: Vec<u64>,
    pub(crate) checkpoints: Vec<&'a [StoredCheckpoint]>,
    pub(crate) quorum: usize,
    /// Positions of a window.
    pub(crate) window: usize,
    pub(crate) checkpoint_every: u64,
    /// Requests in flight at all gateways together: no more than these can be undecided.
    pub(crate) pending_max: usize,
    pub(crate) poison: Poison,
    pub(crate) build: Build,
    /// What this venue's processes died of.
    pub(crate) suspect: Option<(ShardId, Position)>,
    pub(crate) bug: Option<Bug>,
}

/// What a venue finds around it in a step.
pub(crate) struct Around<'a> {
    pub(crate) now_ns: u64,
    /// Whether its log takes more.
    pub(crate) room: bool,
    pub(crate) gateways: &'a [(&'a Log<Request>, u64)],
    /// Each gateway's mark: requests before it are answered.
    pub(crate) answered: &'a [u64],
    pub(crate) recorders: &'a [&'a Log<RecorderEntry>],
    pub(crate) readable: &'a [u64],
    /// By recorder.
    pub(crate) checkpoints: &'a [&'a [StoredCheckpoint]],
}
