//! Runs in which not every venue executes every shard.

use super::{MS, Scenario};
use crate::Fault;

impl Scenario {
    /// Shards in two lanes of two venues or more, some of which are in both, under all that befalls venues and recorders elsewhere, and moved
    /// to others meanwhile.
    pub(super) fn lanes(seed: u64) -> Self {
        let worlds = [Self::quick, Self::crashes, Self::power, Self::partition, Self::poison, Self::wipes];
        let base = worlds[(seed % 6) as usize](seed / 6);
        Self {
            seed,
            venues: 4 + (seed / 2 % 2) as usize,
            shards: 2 + (seed / 4 % 2) as usize,
            lanes: 2,
            in_both_permille: [0, 300][(seed / 3 % 2) as usize],
            faults: base.faults.clone().with([(Fault::MoveShard, 3 * MS)]),
            ..base
        }
    }

    /// Three venues in one lane and two in another, one of which becomes another build; long enough that states are compared.
    pub(super) fn lanes_of_versions(seed: u64) -> Self {
        let versions = Self::versions(seed);
        // Two shards share what one has there.
        let requests_per_client = 2 * versions.requests_per_client;
        Self {
            venues: 5,
            shards: 2,
            lanes: 2,
            requests_per_client,
            think_ns: versions.think_ns / 2,
            faults: versions.faults.clone().with([(Fault::MoveShard, 8 * MS)]),
            ..versions
        }
    }
}
