//! Runs in which members come by OUCH.

use super::{Durability, MS, Scenario};

impl Scenario {
    /// OUCH sessions go from gateway to gateway as these die, stop and are full, connections break, everything is started again, clocks jump, disks are lost
    /// and power fails: what they are told is of the record, so nothing of it excuses anything. With every third seed members come by FIX too.
    #[must_use]
    pub fn ouch(seed: u64) -> Self {
        let fix = Self::fix(seed);
        // A record that is not synced may lose with the power what was told.
        let is_synced = fix.durability == Durability::Disk;
        let mut faults = fix.faults.clone();
        faults.power_ns = if is_synced { 40 * MS } else { 0 };
        Self { name: "ouch", ouch: 2, fix: usize::from(seed.is_multiple_of(3)), copies: false, faults, ..fix }
    }
}
