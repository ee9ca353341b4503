//! Market data in a run.

use super::{Durability, FaultMix, MS, Scenario, US};

/// Market data: two publishers, one on each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feed {
    /// Replayers, 1 to 8.
    pub replayers: usize,
    /// Subscribers, of each shard by turns; every third one has no lines.
    pub subscribers: usize,
    /// Datagrams that are lost, of 1,000.
    pub lost_permille: u64,
}

impl Feed {
    /// Every fourth seed has market data where they are not what it is about.
    pub(super) fn of_some(seed: u64) -> Option<Self> {
        (seed % 4 == 1).then_some(Self { replayers: 2, subscribers: 3, lost_permille: 20 })
    }
}

impl Scenario {
    /// Market data on lines that lose, while publishers and replayers die and lose what they have, and so does all that they read.
    #[must_use]
    pub fn feed(seed: u64) -> Self {
        let quick = Self::quick(seed);
        let durability = if seed.is_multiple_of(2) { Durability::Os } else { Durability::Disk };
        Self {
            name: "feed",
            recorders: 3,
            quorum: 1 + (seed / 2 % 2) as usize,
            durability,
            duration_ns: 120 * MS,
            requests_per_client: 200,
            think_ns: 600 * US,
            feed: Some(Feed {
                replayers: 2,
                subscribers: 6,
                lost_permille: [0, 10, 50, 200][(seed / 4 % 4) as usize],
            }),
            faults: FaultMix {
                publisher_crash_ns: 10 * MS,
                publisher_pause_ns: 15 * MS,
                publisher_full_ns: 30 * MS,
                publisher_wipe_ns: 40 * MS,
                publisher_rot_ns: 40 * MS,
                replayer_crash_ns: 20 * MS,
                replayer_pause_ns: 20 * MS,
                replayer_exhaust_ns: 40 * MS,
                call_break_ns: 10 * MS,
                subscriber_restart_ns: 15 * MS,
                forge_ns: 10 * MS,
                cut_ns: 10 * MS,
                venue_crash_ns: 30 * MS,
                venue_pause_ns: 30 * MS,
                gateway_crash_ns: 60 * MS,
                recorder_crash_ns: 30 * MS,
                recorder_pause_ns: 30 * MS,
                wipe_ns: 60 * MS,
                rot_ns: 60 * MS,
                restart_ns: 100 * MS,
                power_ns: if durability == Durability::Disk { 100 * MS } else { 0 },
                torn_permille: 300,
                break_ns: 30 * MS,
                ..FaultMix::default()
            },
            ..quick
        }
    }
}
