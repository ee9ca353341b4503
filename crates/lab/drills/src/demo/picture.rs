//! All that is shown, whatever shows it.

use std::collections::VecDeque;
use std::time::Duration;

use pares_node::NodeId;
use pares_types::VenueId;

use super::director::Happening;
use super::market::Top;
use super::minute::Minute;

/// Happenings remembered.
const TOLD_MAX: usize = 50;

/// What one venue is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// It is dead, or its process starts.
    #[default]
    Down,
    /// Its process runs and catches up.
    Resynchronising,
    /// It races.
    Up,
}

/// One venue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VenueLine {
    /// Its id.
    pub id: VenueId,
    /// What it is doing.
    pub condition: Condition,
    /// Whether it leads.
    pub leads: bool,
    /// Positions executed, over all shards.
    pub position: u64,
    /// Positions behind the one that is farthest.
    pub behind: u64,
    /// How many of the last second's positions were recorded from it, in percent.
    pub share_percent: u64,
    /// How long its last resynchronisation took.
    pub resync: Duration,
    /// How often it was killed.
    pub killed: u64,
    /// Whether it was killed a moment ago: it is back sooner than an eye can see.
    pub just_killed: bool,
}

impl VenueLine {
    /// A venue nothing is known of yet.
    pub fn new(id: VenueId) -> Self {
        Self { id, ..Self::default() }
    }

    /// Its name.
    pub fn name(&self) -> String {
        NodeId::Venue(self.id).to_string()
    }
}

/// All that is shown.
#[derive(Default)]
pub struct Picture {
    /// Since the start.
    pub elapsed: Duration,
    /// When it ends, if it does by itself.
    pub until: Option<Duration>,
    /// Requests offered per second.
    pub rate: u64,
    /// Whether kills are paused.
    pub paused: bool,
    /// The venues.
    pub venues: Vec<VenueLine>,
    /// Second by second.
    pub minute: Minute,
    /// The top of every book.
    pub tops: Vec<Top>,
    /// Requests answered.
    pub completed: u64,
    /// At most so many requests are lost: as many as were unanswered at the best moment of the last seconds.
    pub lost_max: u64,
    /// Answers beyond the first.
    pub duplicated: u64,
    /// Trades recorded.
    pub trades: u64,
    /// Recorded results that executing again did not reproduce.
    pub differing: u64,
    /// The longest gap around a kill.
    pub kill_gap_ns: u64,
    /// The longest gap otherwise.
    pub quiet_gap_ns: u64,
    /// Of a trading day: the state of the leading instrument.
    pub day: Option<String>,
    /// What happened, newest first.
    pub told: VecDeque<(Duration, Happening)>,
}

impl Picture {
    /// Kills so far.
    pub fn kills(&self) -> u64 {
        self.venues.iter().map(|venue| venue.killed).sum()
    }

    /// Adds a happening.
    pub fn tell(&mut self, elapsed: Duration, happening: Happening) {
        self.told.push_front((elapsed, happening));
        self.told.truncate(TOLD_MAX);
    }
}
