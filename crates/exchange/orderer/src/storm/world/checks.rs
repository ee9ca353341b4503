//! What must hold in a storm, and in the end.

use std::collections::BTreeMap;

use pares_cluster::memory::Disk;
use pares_cluster::{MemberRole, Replica};
use pares_types::{GatewayId, Position, RequestId, ShardId};

use super::{SHARDS, World};
use crate::Orderer;

impl World {
    /// Whether everything that was asked is ordered everywhere.
    pub(in super::super) fn has_all(&self) -> bool {
        let asked: usize = self.logs.iter().map(Vec::len).sum();
        let has = |orderer: &Orderer<Replica<Disk>>| {
            (0..SHARDS).map(|shard| orderer.ordered().next(ShardId(shard)).unwrap().0).sum::<u64>()
        };
        self.truth.len() == asked && self.up().all(|(_, orderer)| has(orderer) >= asked as u64)
    }

    pub(in super::super) fn describe(&self) -> String {
        let hosts = self.up().map(|(index, orderer)| {
            let (role, pending) = (orderer.role(), orderer.pending_len());
            format!(
                "host {index}: {role:?}, votes {}, {:?}, {pending} pending",
                orderer.votes(),
                orderer.state_of_members()
            )
        });
        format!("something is not ordered though all is calm: {}", hosts.collect::<Vec<_>>().join("; "))
    }

    /// A gateway's requests are in order in each shard.
    pub(in super::super) fn check_order(&self) -> Result<(), String> {
        let mut last: BTreeMap<(ShardId, GatewayId), u64> = BTreeMap::new();
        for (&(shard, position), id) in &self.truth {
            let before = last.insert((shard, id.gateway()), id.sequence()).unwrap_or_default();
            if before >= id.sequence() {
                return Err(format!("{id} at {position} of shard {shard} follows {before}"));
            }
        }
        Ok(())
    }

    pub(super) fn check(&mut self, shard: ShardId, position: Position, id: RequestId) -> Result<(), String> {
        let first = *self.truth.entry((shard, position)).or_insert(id);
        let place = *self.places.entry(id).or_insert((shard, position));
        match first == id && place == (shard, position) {
            true => Ok(()),
            false => {
                Err(format!("{id} at {position} of shard {shard}: {first} is there, and it is at {place:?}"))
            }
        }
    }

    /// One host leads in a term.
    pub(super) fn check_lead(&mut self, index: usize, role: MemberRole) -> Result<(), String> {
        let is_other = role.leads && *self.leaders.entry(role.term).or_insert(index) != index;
        if is_other { Err(format!("two hosts lead in term {}", role.term)) } else { Ok(()) }
    }
}
