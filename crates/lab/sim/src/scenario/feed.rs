//! Market data in a run.

use super::{Durability, Fault, FaultMix, MS, Scenario, US};

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
    pub(super) fn feed(seed: u64) -> Self {
        let quick = Self::quick(seed);
        let durability = Durability::of_every_second(seed);
        Self {
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
            faults: FaultMix { torn_permille: 300, ..FaultMix::default() }.with([
                (Fault::CrashPublisher, 10 * MS),
                (Fault::PausePublisher, 15 * MS),
                (Fault::FillPublisher, 30 * MS),
                (Fault::WipePublisher, 40 * MS),
                (Fault::RotPublisher, 40 * MS),
                (Fault::CrashReplayer, 20 * MS),
                (Fault::PauseReplayer, 20 * MS),
                (Fault::ExhaustReplayer, 40 * MS),
                (Fault::BreakCall, 10 * MS),
                (Fault::RestartSubscriber, 15 * MS),
                (Fault::Forge, 10 * MS),
                (Fault::Cut, 10 * MS),
                (Fault::CrashVenue, 30 * MS),
                (Fault::PauseVenue, 30 * MS),
                (Fault::CrashGateway, 60 * MS),
                (Fault::CrashRecorder, 30 * MS),
                (Fault::PauseRecorder, 30 * MS),
                (Fault::Wipe, 60 * MS),
                (Fault::Rot, 60 * MS),
                (Fault::Restart, 100 * MS),
                (Fault::Power, durability.power_every(100 * MS)),
                (Fault::Break, 30 * MS),
            ]),
            ..quick
        }
    }
}
