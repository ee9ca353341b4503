//! Runs about members: their keys, and orders that die with their sessions.

use super::{Fault, FaultMix, MS, Scenario, US};

impl Scenario {
    /// Members' keys are changed and revoked while they trade, gateways die, and their clocks jump.
    pub(super) fn revocations(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            requests_per_client: 160,
            think_ns: 300 * US,
            revocations: true,
            faults: FaultMix { hostile_permille: 30, ..quick.faults.clone() }.with([
                (Fault::CrashGateway, 15 * MS),
                (Fault::PauseGateway, 15 * MS),
                (Fault::CrashVenue, 20 * MS),
                (Fault::Restart, 60 * MS),
                (Fault::Break, 8 * MS),
                (Fault::JumpClock, 2 * MS),
            ]),
            ..quick
        }
    }

    /// Sessions that guard orders end: their connections break, their gateways die, everything starts again.
    pub(super) fn sessions(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            requests_per_client: 160,
            think_ns: 300 * US,
            guards: true,
            faults: FaultMix { hostile_permille: 20, ..quick.faults.clone() }.with([
                (Fault::CrashGateway, 10 * MS),
                (Fault::PauseGateway, 15 * MS),
                (Fault::FillGateway, 20 * MS),
                (Fault::CrashRecorder, 40 * MS),
                (Fault::Restart, 60 * MS),
                (Fault::Break, 4 * MS),
            ]),
            ..quick
        }
    }
}
