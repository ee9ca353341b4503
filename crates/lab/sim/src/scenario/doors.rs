//! Runs in which members come by FIX, OUCH or HTTP.

use super::{Durability, Fault, FaultMix, MS, Scenario, US};

impl Scenario {
    /// FIX sessions go from gateway to gateway as these die, stop and are full, connections break, everything is started again, and clocks jump. With
    /// every fourth seed gateways lose their disks, or power fails: then what they knew of sessions may be lost. With every fourth seed one more session
    /// receives the reports of the first of them, and its orders are refused. With two of five seeds those that speak FIX 4.4 ask for their trades.
    pub(super) fn fix(seed: u64) -> Self {
        let quick = Self::quick(seed);
        let is_lossy = seed % 4 == 3;
        let durability = if seed % 8 == 3 { Durability::Disk } else { Durability::Os };
        Self {
            clients: 2,
            fix: 2,
            copies: seed % 4 == 2,
            trades: seed % 5 < 2,
            gateways: 2 + (seed / 2 % 2) as usize,
            requests_per_client: 100,
            think_ns: 400 * US,
            duration_ns: 60 * MS,
            durability,
            faults: FaultMix { torn_permille: 300, hostile_permille: 20, ..quick.faults.clone() }.with([
                (Fault::CrashGateway, 8 * MS),
                (Fault::PauseGateway, 15 * MS),
                (Fault::FillGateway, 30 * MS),
                (Fault::CrashRecorder, 60 * MS),
                (Fault::CrashVenue, 40 * MS),
                (Fault::Restart, 50 * MS),
                (Fault::Break, 6 * MS),
                (Fault::JumpClock, if seed % 4 == 1 { 20 * MS } else { 0 }),
                (Fault::WipeGateway, if is_lossy { 40 * MS } else { 0 }),
                (Fault::RotGateway, if is_lossy { 40 * MS } else { 0 }),
                (Fault::Power, if is_lossy && durability == Durability::Disk { 40 * MS } else { 0 }),
            ]),
            ..quick
        }
    }

    /// OUCH sessions go from gateway to gateway as these die, stop and are full, connections break, everything is started again, clocks jump, disks are lost
    /// and power fails: what they receive is of the record, so nothing of it excuses anything. With every third seed members come by FIX too.
    pub(super) fn ouch(seed: u64) -> Self {
        let fix = Self::fix(seed);
        let faults = fix.faults.clone().with([(Fault::Power, fix.durability.power_every(40 * MS))]);
        Self { ouch: 2, fix: usize::from(seed.is_multiple_of(3)), copies: false, faults, ..fix }
    }

    /// Servers over HTTP go from gateway to gateway as these die, stop and are full, connections break and disks are lost, and die themselves; their clients ask again by name and
    /// follow their streams, some from the first number again or ahead of what there is. Of FIX and OUCH there is nobody.
    pub(super) fn http(seed: u64) -> Self {
        Self { web: 3, ouch: 0, fix: 0, ..Self::ouch(seed) }
    }
}
