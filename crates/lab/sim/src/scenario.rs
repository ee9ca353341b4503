//! What a run is made of: sizes, rates, faults.

mod feed;
mod fix;
mod flood;
mod http;
mod members;
mod ouch;

use crate::bug::Bug;
use crate::fault_mix::FaultMix;

pub use feed::Feed;

/// Nanoseconds in a microsecond and in a millisecond, of virtual time.
pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;

/// What the logs promise (design section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Page cache: what is published survives the death of its process.
    Os,
    /// Synced: what is promised survives a power failure.
    Disk,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Whether one more session by FIX is told of the first member that comes by FIX.
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

impl Scenario {
    /// The names [`Scenario::named`] knows.
    pub const NAMES: [&'static str; 18] = [
        "quick",
        "crashes",
        "power",
        "partition",
        "overload",
        "flood",
        "disks",
        "clocks",
        "poison",
        "wipes",
        "rot",
        "versions",
        "revocations",
        "sessions",
        "feed",
        "fix",
        "ouch",
        "http",
    ];

    /// One of the standard scenarios; `None` for a name that is not in [`Scenario::NAMES`].
    #[must_use]
    pub fn named(name: &str, seed: u64) -> Option<Self> {
        Some(match name {
            "quick" => Self::quick(seed),
            "crashes" => Self::crashes(seed),
            "power" => Self::power(seed),
            "partition" => Self::partition(seed),
            "overload" => Self::overload(seed),
            "flood" => Self::flood(seed),
            "disks" => Self::disks(seed),
            "clocks" => Self::clocks(seed),
            "poison" => Self::poison(seed),
            "wipes" => Self::wipes(seed),
            "rot" => Self::rot(seed),
            "versions" => Self::versions(seed),
            "revocations" => Self::revocations(seed),
            "sessions" => Self::sessions(seed),
            "feed" => Self::feed(seed),
            "fix" => Self::fix(seed),
            "ouch" => Self::ouch(seed),
            "http" => Self::http(seed),
            _ => return None,
        })
    }

    /// How many instruments there are; their ids count from 1.
    pub(crate) fn instruments(&self) -> u32 {
        u32::try_from(self.shards * self.instruments_per_shard).expect("few instruments")
    }

    /// A small system on a poor network whose venues come and go: nobody may notice.
    #[must_use]
    pub fn quick(seed: u64) -> Self {
        Self {
            name: "quick",
            seed,
            duration_ns: 45 * MS,
            clients: 3,
            fix: 0,
            ouch: 0,
            web: 0,
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
            patience_ns: 0,
            wait_target_ns: 10 * MS,
            floods: false,
            durability: Durability::Os,
            revocations: false,
            copies: false,
            trades: false,
            guards: false,
            feed: None,
            faults: FaultMix {
                cut_ns: 8 * MS,
                venue_crash_ns: 8 * MS,
                venue_pause_ns: 8 * MS,
                twin_permille: 50,
                ..FaultMix::default()
            },
            bug: None,
        }
    }

    /// Every kind of process dies and stops, alone and together.
    #[must_use]
    pub fn crashes(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            name: "crashes",
            venues: 2 + (seed % 2) as usize,
            recorders: 3,
            quorum: 1 + (seed / 2 % 3) as usize,
            faults: FaultMix {
                venues_crash_ns: 40 * MS,
                gateway_crash_ns: 20 * MS,
                gateway_pause_ns: 20 * MS,
                recorder_crash_ns: 20 * MS,
                recorder_pause_ns: 20 * MS,
                break_ns: 10 * MS,
                restart_ns: 30 * MS,
                hostile_permille: 60,
                ..quick.faults.clone()
            },
            ..quick
        }
    }

    /// Power failures among crashes; logs promise what is synced.
    #[must_use]
    pub fn power(seed: u64) -> Self {
        let crashes = Self::crashes(seed);
        Self {
            name: "power",
            durability: Durability::Disk,
            faults: FaultMix {
                power_ns: 15 * MS,
                slow_sync_permille: 200,
                gateway_crash_ns: 40 * MS,
                recorder_crash_ns: 40 * MS,
                ..crashes.faults.clone()
            },
            ..crashes
        }
    }

    /// Processes see each other late, for milliseconds.
    #[must_use]
    pub fn partition(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            name: "partition",
            feed: Feed::of_some(seed),
            venues: 3,
            recorders: 3,
            quorum: 2,
            faults: FaultMix { cut_ns: MS, break_ns: 10 * MS, ..quick.faults.clone() },
            ..quick
        }
    }

    /// Disks are full, slow, wiped, or fail to sync; what dies leaves half a record behind.
    #[must_use]
    pub fn disks(seed: u64) -> Self {
        let quick = Self::quick(seed);
        let durability = if seed.is_multiple_of(3) { Durability::Os } else { Durability::Disk };
        Self {
            name: "disks",
            feed: Feed::of_some(seed),
            recorders: 3,
            quorum: 1 + (seed % 2) as usize,
            durability,
            faults: FaultMix {
                gateway_full_ns: 15 * MS,
                venue_full_ns: 10 * MS,
                recorder_full_ns: 10 * MS,
                sync_failure_ns: 25 * MS,
                slow_disk_ns: 10 * MS,
                wipe_ns: 10 * MS,
                torn_permille: 500,
                gateway_crash_ns: 30 * MS,
                recorder_crash_ns: 30 * MS,
                restart_ns: 50 * MS,
                power_ns: if durability == Durability::Disk { 40 * MS } else { 0 },
                exhaust_ns: 20 * MS,
                ..quick.faults.clone()
            },
            ..quick
        }
    }

    /// Requests that no matching engine survives, and engines that fail for no such reason, while venues come and go.
    #[must_use]
    pub fn poison(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            name: "poison",
            venues: 2 + (seed % 2) as usize,
            faults: FaultMix {
                poison_permille: 15,
                // By turns: everywhere, in one shard only, nowhere.
                poison_shards: [2, 1, 0][(seed / 2 % 3) as usize],
                engine_failure_ns: 4 * MS,
                venue_crash_ns: 15 * MS,
                recorder_crash_ns: 40 * MS,
                gateway_crash_ns: 60 * MS,
                restart_ns: 60 * MS,
                ..quick.faults.clone()
            },
            ..quick
        }
    }

    /// Nodes of every kind lose their disks.
    #[must_use]
    pub fn wipes(seed: u64) -> Self {
        let quick = Self::quick(seed);
        let durability = if seed.is_multiple_of(2) { Durability::Os } else { Durability::Disk };
        Self {
            name: "wipes",
            recorders: 3,
            quorum: 1 + (seed / 2 % 2) as usize,
            durability,
            faults: FaultMix {
                wipe_ns: 15 * MS,
                venue_wipe_ns: 8 * MS,
                gateway_wipe_ns: 20 * MS,
                venues_crash_ns: 40 * MS,
                recorder_pause_ns: 20 * MS,
                gateway_crash_ns: 30 * MS,
                ..quick.faults.clone()
            },
            ..quick
        }
    }

    /// Logs of every kind and checkpoints rot while everything dies now and then.
    #[must_use]
    pub fn rot(seed: u64) -> Self {
        let quick = Self::quick(seed);
        let durability = if seed.is_multiple_of(2) { Durability::Os } else { Durability::Disk };
        Self {
            name: "rot",
            recorders: 3,
            quorum: 1 + (seed / 2 % 2) as usize,
            durability,
            faults: FaultMix {
                rot_ns: 8 * MS,
                venue_rot_ns: 12 * MS,
                gateway_rot_ns: 20 * MS,
                wipe_ns: 40 * MS,
                recorder_crash_ns: 20 * MS,
                gateway_crash_ns: 15 * MS,
                restart_ns: 50 * MS,
                power_ns: if durability == Durability::Disk { 50 * MS } else { 0 },
                ..quick.faults.clone()
            },
            ..quick
        }
    }

    /// A venue joins whose build has other rules; long enough that the recorders compare states.
    #[must_use]
    pub fn versions(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            name: "versions",
            shards: 1,
            requests_per_client: 700,
            think_ns: 60 * US,
            duration_ns: 80 * MS,
            faults: FaultMix { twin_permille: 50, other_build_ns: 10 * MS, ..FaultMix::default() },
            ..quick
        }
    }

    /// Gateways' clocks jump by an hour, both ways, while everything dies now and then.
    #[must_use]
    pub fn clocks(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            name: "clocks",
            faults: FaultMix {
                clock_jump_ns: 3 * MS,
                gateway_crash_ns: 15 * MS,
                restart_ns: 40 * MS,
                break_ns: 15 * MS,
                ..quick.faults.clone()
            },
            ..quick
        }
    }
}
