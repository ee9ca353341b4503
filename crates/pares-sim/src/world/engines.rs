//! Matching engines that fail, and the shards that are away meanwhile.

use std::rc::Rc;

use pares_gateway::ClientRequest;
use pares_sequencer::Sequencer;
use pares_types::{Position, Reason, ShardId};

use crate::Broken;
use crate::client::EVERYWHERE;
use crate::engine::Poison;
use crate::random::mix;
use crate::record::{NodeId, Record};
use crate::scenario::MS;

use super::World;
use super::faults::GRACE_NS;

/// Processes that end at the same request before it is suspected: one may have been killed there by chance.
const DEATHS: u32 = 2;
/// After a shard is back it catches up for this long.
const BACK_NS: u64 = 5 * MS;

impl World<'_> {
    pub(super) fn poison(&self) -> Poison {
        let faults = &self.scenario.faults;
        Poison { permille: faults.poison_permille, shards: faults.poison_shards }
    }

    /// A venue fails by itself at one of the next requests it executes.
    pub(super) fn plan_engine_failure(&mut self, venue: NodeId) {
        let after = self.random.below(8) as u32;
        let NodeId::Venue(own) = venue else { return };
        if let Some(node) = &mut self.venues[own].node {
            node.engine.fails_in = Some(after);
        }
    }

    /// By shard: whether another venue than `own` is not over a failure of its own.
    pub(super) fn spared(&self, own: usize) -> Vec<bool> {
        let others = self.venues.iter().enumerate().filter(|(n, _)| *n != own);
        let nodes: Vec<_> = others.filter_map(|(_, host)| host.node.as_ref()).collect();
        let fails = |shard: usize| nodes.iter().any(|node| node.seats[shard].failed_at.is_some());
        (0..self.scenario.shards).map(fails).collect()
    }

    /// By shard: where another venue's engine has failed, if that venue is to be faster than `own` now.
    pub(super) fn rivals(&self, own: usize) -> Vec<Option<Position>> {
        let others = self.venues.iter().enumerate().filter(|(n, _)| *n != own);
        let nodes: Vec<_> = others.filter_map(|(_, host)| host.node.as_ref()).collect();
        let failed_at = |shard: usize| {
            let at = nodes.iter().find_map(|node| Some(node.seats[shard].rebuild.as_ref()?.failed_at));
            at.filter(|at| mix(self.now_ns ^ at.0) & 1 == 0)
        };
        (0..self.scenario.shards).map(failed_at).collect()
    }

    /// By shard: whether it is away at that venue.
    pub(super) fn away(&self, venue: usize) -> Vec<bool> {
        let node = self.venues[venue].node.as_ref();
        node.map_or(Vec::new(), |node| node.seats.iter().map(|seat| seat.shard.is_none()).collect())
    }

    /// Says which shards of a venue have gone and come back, and excuses answers where none is left.
    pub(super) fn note_away(&mut self, own: usize, before: &[bool]) {
        let after = self.away(own);
        for (shard, (before, after)) in before.iter().zip(&after).enumerate() {
            let node = self.venues[own].node.as_ref().expect("it has just stepped");
            let words = [own as u64, shard as u64, node.seats[shard].reached.0];
            match (before, after) {
                (false, true) => self.note("venue {} loses shard {} at position {}", &words),
                (true, false) => self.note("venue {} has shard {} back at position {}", &words),
                _ => {}
            }
        }
        let any = (0..self.venues.len()).any(|venue| self.away(venue).contains(&true));
        if any {
            self.disturb_shards();
        }
    }

    /// A shard's answers are excused as long as no venue has it, or has had it long enough to be in step.
    pub(super) fn disturb_shards(&mut self) {
        let now_ns = self.now_ns;
        for venue in 0..self.venues.len() {
            for (shard, away) in self.away(venue).into_iter().enumerate() {
                let back_ns = &mut self.venues[venue].shards_back_ns[shard];
                *back_ns = if away { now_ns + BACK_NS } else { *back_ns };
            }
        }
        for shard in 0..self.scenario.shards {
            let back = self.venues.iter().map(|host| host.healthy_at_ns.max(host.shards_back_ns[shard]));
            let enough_back_ns = back.min().expect("there is a venue");
            if enough_back_ns > now_ns {
                let until_ns = &mut self.shards_disturbed_until_ns[shard];
                *until_ns = (*until_ns).max(enough_back_ns + GRACE_NS);
            }
        }
    }

    /// Until when the answer to that request is excused; `shard` is where it came from.
    pub(super) fn shard_disturbed_until_ns(&self, request: &ClientRequest, shard: usize) -> u64 {
        let everywhere = match request {
            ClientRequest::MassCancel { instrument, .. } | ClientRequest::Exchange { instrument, .. } => {
                *instrument == EVERYWHERE
            }
            _ => false,
        };
        let of_all = self.shards_disturbed_until_ns.iter().copied().max();
        if everywhere { of_all.unwrap_or(0) } else { self.shards_disturbed_until_ns[shard] }
    }

    /// A venue's process ends with its engine, and leaves a mark. Says whether it did.
    pub(super) fn dies_of_engine(&mut self, own: usize) -> bool {
        let host = &mut self.venues[own];
        let Some(failed) = host.node.as_ref().and_then(|node| node.dies_of) else { return false };
        let place = Some((failed.shard, failed.position));
        host.deaths = if host.died_at == place { host.deaths + 1 } else { 1 };
        host.died_at = place;
        self.summary.engines.deaths += 1;
        self.note(
            "venue {} dies of shard {} position {}",
            &[own as u64, failed.shard.0.into(), failed.position.0],
        );
        self.crash(NodeId::Venue(own));
        true
    }

    /// What a venue's last processes died of.
    pub(super) fn suspect_of(&self, own: usize) -> Option<(ShardId, Position)> {
        let host = &self.venues[own];
        host.died_at.filter(|_| host.deaths >= DEATHS)
    }

    /// W6: what is void is executed by nobody, and nothing else is refused as void.
    pub(super) fn check_void(&self, record: &Rc<Record>) -> Result<(), Broken> {
        let shard = usize::from(record.shard().0);
        if record.epoch != self.epoch || record.position < self.epoch_first[shard] {
            return Ok(());
        }
        let is_void = self.windows[shard].clone().is_void(record.position);
        if is_void == (record.outcome.reason == Reason::Void) {
            return Ok(());
        }
        let what = format!("shard {shard} position {} is void: {is_void}, and {record:?}", record.position);
        Err(Broken { invariant: "W6 executed or void", what })
    }

    /// With nothing more to come no checkpoint will lead on: whoever waits for one is started anew. Says whether anybody was.
    pub(super) fn start_anew_who_waits(&mut self) -> bool {
        let waiting: Vec<usize> =
            (0..self.venues.len()).filter(|&venue| self.away(venue).contains(&true)).collect();
        for &venue in &waiting {
            self.summary.engines.restarted += 1;
            self.crash(NodeId::Venue(venue));
        }
        !waiting.is_empty()
    }
}
