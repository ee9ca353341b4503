//! Runs about members: their keys, and orders that die with their sessions.

use super::{FaultMix, MS, Scenario, US};

impl Scenario {
    /// Members' keys are changed and revoked while they trade, gateways die, and their clocks jump.
    #[must_use]
    pub fn revocations(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            name: "revocations",
            requests_per_client: 160,
            think_ns: 300 * US,
            revocations: true,
            faults: FaultMix {
                gateway_crash_ns: 15 * MS,
                gateway_pause_ns: 15 * MS,
                venue_crash_ns: 20 * MS,
                restart_ns: 60 * MS,
                break_ns: 8 * MS,
                clock_jump_ns: 2 * MS,
                hostile_permille: 30,
                ..quick.faults.clone()
            },
            ..quick
        }
    }

    /// Sessions that guard orders end: their connections break, their gateways die, everything starts again.
    #[must_use]
    pub fn sessions(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            name: "sessions",
            requests_per_client: 160,
            think_ns: 300 * US,
            guards: true,
            faults: FaultMix {
                gateway_crash_ns: 10 * MS,
                gateway_pause_ns: 15 * MS,
                gateway_full_ns: 20 * MS,
                recorder_crash_ns: 40 * MS,
                restart_ns: 60 * MS,
                break_ns: 4 * MS,
                hostile_permille: 20,
                ..quick.faults.clone()
            },
            ..quick
        }
    }
}
