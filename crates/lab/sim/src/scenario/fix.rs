//! Runs in which members come by FIX.

use super::{Durability, FaultMix, MS, Scenario, US};

impl Scenario {
    /// FIX sessions go from gateway to gateway as these die, stop and are full, connections break, everything is started again, and
    /// clocks jump. With every fourth seed gateways lose their disks, or power fails: then what they knew of sessions may be lost.
    /// With every fourth seed one more session is told of the first of them, and its orders are refused. With two of five seeds those that speak FIX 4.4 ask for their trades.
    #[must_use]
    pub fn fix(seed: u64) -> Self {
        let quick = Self::quick(seed);
        let is_lossy = seed % 4 == 3;
        let durability = if seed % 8 == 3 { Durability::Disk } else { Durability::Os };
        Self {
            name: "fix",
            clients: 2,
            fix: 2,
            copies: seed % 4 == 2,
            trades: seed % 5 < 2,
            gateways: 2 + (seed / 2 % 2) as usize,
            requests_per_client: 100,
            think_ns: 400 * US,
            duration_ns: 60 * MS,
            durability,
            faults: FaultMix {
                gateway_crash_ns: 8 * MS,
                gateway_pause_ns: 15 * MS,
                gateway_full_ns: 30 * MS,
                recorder_crash_ns: 60 * MS,
                venue_crash_ns: 40 * MS,
                restart_ns: 50 * MS,
                break_ns: 6 * MS,
                clock_jump_ns: if seed % 4 == 1 { 20 * MS } else { 0 },
                gateway_wipe_ns: if is_lossy { 40 * MS } else { 0 },
                gateway_rot_ns: if is_lossy { 40 * MS } else { 0 },
                power_ns: if is_lossy && durability == Durability::Disk { 40 * MS } else { 0 },
                torn_permille: 300,
                hostile_permille: 20,
                ..quick.faults.clone()
            },
            ..quick
        }
    }
}
