//! Runs in which members ask for more than there is.

use super::{Durability, Fault, FaultMix, MS, Scenario, US};

impl Scenario {
    /// More requests than the gateways take on, a tiny window, recorders that stand still.
    pub(super) fn overload(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            clients: 6,
            requests_per_client: 60,
            think_ns: 30 * US,
            window: 4,
            in_flight_max: 8,
            patience_ns: MS,
            durability: Durability::Disk,
            faults: quick
                .faults
                .clone()
                .with([(Fault::PauseRecorder, 8 * MS), (Fault::CrashRecorder, 30 * MS)]),
            ..quick
        }
    }

    /// More requests than the venues take, for the whole time, and room for all of them: only waiting is too long.
    pub(super) fn flood(seed: u64) -> Self {
        let quick = Self::quick(seed);
        Self {
            duration_ns: 150 * MS,
            clients: 16,
            requests_per_client: 2_000,
            think_ns: 40 * US,
            gateways: 1,
            window: 2,
            in_flight_max: 512,
            wait_target_ns: MS,
            durability: Durability::Disk,
            floods: true,
            faults: FaultMix::default(),
            ..quick
        }
    }
}
