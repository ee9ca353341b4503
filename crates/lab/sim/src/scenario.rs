//! What a run is made of: sizes, rates, faults.

mod doors;
mod feed;
mod flood;
mod lanes;
mod members;

use crate::bug::Bug;
use crate::fault_mix::{Fault, FaultMix};

pub use feed::Feed;

/// Nanoseconds in a microsecond and in a millisecond, of virtual time.
pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;

/// What the logs promise (design section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Page cache: what is published survives the death of its process.
    #[default]
    Os,
    /// Synced: what is promised survives a power failure.
    Disk,
}

impl Durability {
    /// By turns.
    fn of_every_second(seed: u64) -> Self {
        if seed.is_multiple_of(2) { Self::Os } else { Self::Disk }
    }

    /// How often power may fail: a record that is not synced may be lost with it.
    fn power_every(self, mean_ns: u64) -> u64 {
        if self == Self::Disk { mean_ns } else { 0 }
    }
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scenario {
    /// Its name, for the command that replays a failure.
    pub name: &'static str,
    /// All chance comes from here.
    pub seed: u64,
    /// Virtual time during which clients ask and faults happen, ns; draining comes on top.
    pub duration_ns: u64,
    /// Members, each with a client of its own; at least 1.
    pub clients: usize,
    /// Members that come by FIX besides.
    pub fix: usize,
    /// Members that come by OUCH besides, each with a session for each shard.
    pub ouch: usize,
    /// Members that come by HTTP besides, each through a server that is a client of the gateways.
    pub web: usize,
    /// Requests each client makes, repeats not counted.
    pub requests_per_client: u64,
    /// Mean time between two requests of a client, ns.
    pub think_ns: u64,
    /// Gateways, 1 to 8.
    pub gateways: usize,
    /// Venues, 1 to 8; every second one runs the naive book.
    pub venues: usize,
    /// Recorders, 1 to 8.
    pub recorders: usize,
    /// Recorders that must have a record; 1 to `recorders`.
    pub quorum: usize,
    /// Shards; at least 1.
    pub shards: usize,
    /// Lanes, between which shards and venues are divided; 0: every venue executes every shard.
    pub lanes: usize,
    /// Venues that are in another lane too, of 1,000.
    pub in_both_permille: u64,
    /// Instruments of each shard; at least 1.
    pub instruments_per_shard: usize,
    /// Positions of each window, a power of two.
    pub window: usize,
    /// Positions between checkpoints.
    pub checkpoint_every: u64,
    /// Unanswered requests a gateway takes on.
    pub in_flight_max: usize,
    /// How long a shard may record nothing before gateways refuse new requests for it, ns; 0 for ever.
    pub patience_ns: u64,
    /// How long requests may wait before orders have less room, ns, whole milliseconds.
    pub wait_target_ns: u64,
    /// Whether members ask for more than there is, and waits are held to that target.
    pub floods: bool,
    /// What the logs promise.
    pub durability: Durability,
    /// Whether sessions sign on by keys, which the exchange changes and revokes.
    pub revocations: bool,
    /// Whether one more session by FIX receives the reports of the first member that comes by FIX.
    pub copies: bool,
    /// Whether sessions that speak FIX 4.4 ask for their trades.
    pub trades: bool,
    /// Whether half of the members' orders are guarded by their sessions.
    pub guards: bool,
    /// Market data, if the system has any.
    pub feed: Option<Feed>,
    /// What goes wrong.
    pub faults: FaultMix,
    /// A defect put into the simulator's own wiring, to see that the checkers see it.
    pub bug: Option<Bug>,
}

/// A name, and what makes the scenario of a seed.
type Standard = (&'static str, fn(u64) -> Scenario);

const STANDARD: [Standard; 20] = [
    ("quick", Scenario::quick),
    ("crashes", Scenario::crashes),
    ("power", Scenario::power),
    ("partition", Scenario::partition),
    ("overload", Scenario::overload),
    ("flood", Scenario::flood),
    ("disks", Scenario::disks),
    ("clocks", Scenario::clocks),
    ("poison", Scenario::poison),
    ("wipes", Scenario::wipes),
    ("rot", Scenario::rot),
    ("versions", Scenario::versions),
    ("lanes", Scenario::lanes),
    ("lanes-of-versions", Scenario::lanes_of_versions),
    ("revocations", Scenario::revocations),
    ("sessions", Scenario::sessions),
    ("feed", Scenario::feed),
    ("fix", Scenario::fix),
    ("ouch", Scenario::ouch),
    ("http", Scenario::http),
];

impl Scenario {
    /// The names [`Scenario::named`] knows.
    #[must_use]
    pub fn names() -> [&'static str; STANDARD.len()] {
        STANDARD.map(|(name, _)| name)
    }

    /// One of the standard scenarios; `None` for a name that is not among [`Scenario::names`].
    #[must_use]
    pub fn named(name: &str, seed: u64) -> Option<Self> {
        STANDARD
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(name, of_seed)| Self { name, ..of_seed(seed) })
    }

    /// How many instruments there are; their ids count from 1.
    pub(crate) fn instruments(&self) -> u32 {
        u32::try_from(self.shards * self.instruments_per_shard).expect("few instruments")
    }

    /// A small system on a poor network whose venues come and go: nobody may notice.
    fn quick(seed: u64) -> Self {
        Self {
            seed,
            duration_ns: 45 * MS,
            clients: 3,
            requests_per_client: 100,
            think_ns: 600 * US,
            gateways: 2,
            venues: 2,
            recorders: 2,
            quorum: 1,
            shards: 2,
            instruments_per_shard: 2,
            window: 16,
            checkpoint_every: 16,
            in_flight_max: 64,
            wait_target_ns: 10 * MS,
            faults: FaultMix { twin_permille: 50, ..FaultMix::default() }.with([
                (Fault::Cut, 8 * MS),
                (Fault::CrashVenue, 8 * MS),
                (Fault::PauseVenue, 8 * MS),
            ]),
            ..Self::default()
        }
    }

    /// Every kind of process dies and stops, alone and together.
    fn crashes(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            venues: 2 + (seed % 2) as usize,
            recorders: 3,
            quorum: 1 + (seed / 2 % 3) as usize,
            faults: FaultMix { hostile_permille: 60, ..quick.faults.clone() }.with([
                (Fault::CrashVenues, 40 * MS),
                (Fault::CrashGateway, 20 * MS),
                (Fault::PauseGateway, 20 * MS),
                (Fault::CrashRecorder, 20 * MS),
                (Fault::PauseRecorder, 20 * MS),
                (Fault::Break, 10 * MS),
                (Fault::Restart, 30 * MS),
            ]),
            ..quick
        }
    }

    /// Power failures among crashes; logs promise what is synced.
    fn power(seed: u64) -> Self {
        let crashes = Self::crashes(seed);
        Self {
            durability: Durability::Disk,
            faults: FaultMix { slow_sync_permille: 200, ..crashes.faults.clone() }.with([
                (Fault::Power, 15 * MS),
                (Fault::CrashGateway, 40 * MS),
                (Fault::CrashRecorder, 40 * MS),
            ]),
            ..crashes
        }
    }

    /// Processes see each other late, for milliseconds.
    fn partition(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            feed: Feed::of_some(seed),
            venues: 3,
            recorders: 3,
            quorum: 2,
            faults: quick.faults.clone().with([(Fault::Cut, MS), (Fault::Break, 10 * MS)]),
            ..quick
        }
    }

    /// Disks are full, slow, wiped, or fail to sync; what dies leaves half a record behind.
    fn disks(seed: u64) -> Self {
        let quick = Self::quick(seed);
        let durability = if seed.is_multiple_of(3) { Durability::Os } else { Durability::Disk };
        Self {
            feed: Feed::of_some(seed),
            recorders: 3,
            quorum: 1 + (seed % 2) as usize,
            durability,
            faults: FaultMix { torn_permille: 500, ..quick.faults.clone() }.with([
                (Fault::FillGateway, 15 * MS),
                (Fault::FillVenue, 10 * MS),
                (Fault::FillRecorder, 10 * MS),
                (Fault::FailSync, 25 * MS),
                (Fault::SlowDisk, 10 * MS),
                (Fault::Wipe, 10 * MS),
                (Fault::CrashGateway, 30 * MS),
                (Fault::CrashRecorder, 30 * MS),
                (Fault::Restart, 50 * MS),
                (Fault::Power, durability.power_every(40 * MS)),
                (Fault::Exhaust, 20 * MS),
            ]),
            ..quick
        }
    }

    /// Requests that no matching engine survives, and engines that fail for no such reason, while venues come and go.
    fn poison(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            venues: 2 + (seed % 2) as usize,
            faults: FaultMix {
                poison_permille: 15,
                // By turns: everywhere, in one shard only, nowhere.
                poison_shards: [2, 1, 0][(seed / 2 % 3) as usize],
                ..quick.faults.clone()
            }
            .with([
                (Fault::FailEngine, 4 * MS),
                (Fault::CrashVenue, 15 * MS),
                (Fault::CrashRecorder, 40 * MS),
                (Fault::CrashGateway, 60 * MS),
                (Fault::Restart, 60 * MS),
            ]),
            ..quick
        }
    }

    /// Nodes of every kind lose their disks.
    fn wipes(seed: u64) -> Self {
        let quick = Self::quick(seed);
        let durability = Durability::of_every_second(seed);
        Self {
            recorders: 3,
            quorum: 1 + (seed / 2 % 2) as usize,
            durability,
            faults: quick.faults.clone().with([
                (Fault::Wipe, 15 * MS),
                (Fault::WipeVenue, 8 * MS),
                (Fault::WipeGateway, 20 * MS),
                (Fault::CrashVenues, 40 * MS),
                (Fault::PauseRecorder, 20 * MS),
                (Fault::CrashGateway, 30 * MS),
            ]),
            ..quick
        }
    }

    /// Logs of every kind and checkpoints rot while everything dies now and then.
    fn rot(seed: u64) -> Self {
        let quick = Self::quick(seed);
        let durability = Durability::of_every_second(seed);
        Self {
            recorders: 3,
            quorum: 1 + (seed / 2 % 2) as usize,
            durability,
            faults: quick.faults.clone().with([
                (Fault::Rot, 8 * MS),
                (Fault::RotVenue, 12 * MS),
                (Fault::RotGateway, 20 * MS),
                (Fault::Wipe, 40 * MS),
                (Fault::CrashRecorder, 20 * MS),
                (Fault::CrashGateway, 15 * MS),
                (Fault::Restart, 50 * MS),
                (Fault::Power, durability.power_every(50 * MS)),
            ]),
            ..quick
        }
    }

    /// A venue joins whose build has other rules; long enough that the recorders compare states.
    fn versions(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            shards: 1,
            requests_per_client: 700,
            think_ns: 60 * US,
            duration_ns: 80 * MS,
            faults: FaultMix { twin_permille: 50, ..FaultMix::default() }.with([(Fault::Upgrade, 10 * MS)]),
            ..quick
        }
    }

    /// Gateways' clocks jump by an hour, both ways, while everything dies now and then.
    fn clocks(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            faults: quick.faults.clone().with([
                (Fault::JumpClock, 3 * MS),
                (Fault::CrashGateway, 15 * MS),
                (Fault::Restart, 40 * MS),
                (Fault::Break, 15 * MS),
            ]),
            ..quick
        }
    }
}
