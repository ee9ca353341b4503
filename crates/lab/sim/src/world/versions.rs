//! Venues that are wrong, and engines that fail.
//!
//! A build with other rules says nothing wrong about requests or their order, so nothing stops it at once. The promise is that the
//! recorders find it by what venues hand out: by results that differ, at the latest by the state hashes that are due every 1,024
//! positions. Of two venues nobody can say which is wrong: the shard halts, and no record of it is taken any more. Of three the
//! wrong one is shut out. Until then the simulator's own comparison looks away.
//!
//! What is recorded is not handed out again, and a hash is of the state, not of how it came about. So another result that only
//! the wrong venue hands out, and whose traces are gone before the next hash is due, is found by nobody; such runs are counted. Nor is a
//! difference settled at once that only two of three speak of.

use pares_config::NodeId;
use pares_gateway::ClientRequest;
use pares_types::VenueId;

use crate::client::EVERYWHERE;
use crate::engine::Poison;
use crate::scenario::MS;
use crate::{Broken, Verdict, broken};

use super::faults::GRACE_NS;
use super::{Memory, World, index, recorder_id, shard_id, venue_id};

const INVARIANT: &str = "a divergence is found within 1,024 positions";
/// After a shard is back it catches up for this long.
const BACK_NS: u64 = 5 * MS;

impl World<'_> {
    /// One venue is stopped and started as another build; once in a run.
    pub(super) fn upgrade(&mut self, venue: NodeId) {
        if self.mixed() || !self.is_up(venue) {
            return;
        }
        self.note("venue {} becomes another build", &[index(venue) as u64]);
        self.machine.lock().seam.rebuild(venue);
        self.crash(venue);
    }

    fn mixed(&self) -> bool {
        self.machine.lock().seam.has_other_builds()
    }

    fn may_differ(&self) -> bool {
        self.mixed() || self.ledger.looks_away
    }

    /// A recorder has halted a shard, or shut a venue out: venues differ, and it must be true.
    pub(super) fn check_halted(&mut self, recorder: usize) -> Verdict {
        let name = recorder_id(recorder).to_string();
        let of = |counter: &str| self.machine.counter(&name, counter).unwrap_or_default();
        let is_halted = of("halted_shards") > 0;
        if !is_halted && of("shut_out_venues") == 0 || std::mem::replace(&mut self.found[recorder], true) {
            return Ok(());
        }
        let contradicted = self.ledger.contradicted.iter().any(|at| !at.is_empty());
        if self.may_differ() && contradicted {
            self.note("recorder {} has found venues to differ", &[recorder as u64]);
            self.summary.ills.divergences += 1;
            self.summary.ills.shut_out += u64::from(!is_halted);
            // Nobody is answered any more, as it must be.
            self.disturbed_until_ns = u64::MAX;
            return Ok(());
        }
        let what = format!("recorder {recorder} halted a shard, and nobody has said anything else");
        broken("I1 agreement", what)
    }

    /// Whether every recorder has found it: there is nothing more to come.
    pub(super) fn is_halted(&self) -> bool {
        self.found.iter().all(|found| *found)
    }

    pub(super) fn is_shut_out(&self, venue: usize) -> bool {
        self.is_shut_out_node(venue_id(venue))
    }

    pub(super) fn is_shut_out_node(&self, node: NodeId) -> bool {
        self.may_differ() && self.processes[&node].is_out
    }

    /// The end of a run in which builds may have differed: found by every recorder, or no two hashes said so.
    ///
    /// # Errors
    /// As `ended`, where all venues had the same rules; or if a difference that hashes showed continued.
    pub(super) fn judge_versions(&mut self, ended: Verdict) -> Verdict {
        if self.is_halted() {
            return Ok(());
        }
        if !self.mixed() {
            return ended;
        }
        let contradicted = |shard: &usize| !self.ledger.contradicted[*shard].is_empty();
        if let Some(shard) =
            (0..self.scenario.shards).filter(contradicted).find(|&shard| !self.is_in_dispute(shard))
        {
            let at = self.ledger.contradicted[shard].first();
            let found = self.found.iter().filter(|found| **found).count();
            let what =
                format!("venues differ at {at:?} of shard {shard}, and {found} recorders have noticed");
            return Err(Broken { invariant: INVARIANT, what });
        }
        match ended {
            Err(Broken { invariant: "sequential replay" | "I5 conservation", .. }) => {
                self.summary.ills.unnoticed += 1;
                Ok(())
            }
            ended => ended,
        }
    }

    /// Whether the recorders that have not found who is wrong in a shard know that someone is: a third has not spoken, and where states were
    /// hashed since then all agreed. They wait for 4,096 positions, and a run may end before.
    fn is_in_dispute(&self, shard: usize) -> bool {
        self.found.iter().enumerate().filter(|(_, found)| !**found).all(|(recorder, _)| {
            let memory = &self.processes[&recorder_id(recorder)].memory;
            matches!(memory, Some(Memory::Recorder(node)) if node.is_in_dispute(shard_id(shard)))
        })
    }

    pub(super) fn poison(&self) -> Poison {
        let faults = &self.scenario.faults;
        Poison { permille: faults.poison_permille, shards: faults.poison_shards }
    }

    /// A venue fails by itself at one of the next requests it executes.
    pub(super) fn plan_engine_failure(&mut self, venue: NodeId) {
        let after = self.random.below(8) as u32;
        self.machine.lock().seam.fail_soon(venue, after);
    }

    /// By shard: whether it is away at that venue.
    fn away(&self, venue: usize) -> Vec<bool> {
        let Some(node) = self.venue(venue) else { return vec![false; self.scenario.shards] };
        let own = VenueId(u16::try_from(venue).expect("few venues"));
        let is_its = |shard| node.placement().executes(own, shard_id(shard));
        let mut away: Vec<bool> = (0..self.scenario.shards).map(is_its).collect();
        node.seated().for_each(|shard| away[usize::from(shard.id().0)] = false);
        away
    }

    pub(super) fn away_of(&self, node: NodeId) -> Vec<bool> {
        if let NodeId::Venue(_) = node { self.away(index(node)) } else { Vec::new() }
    }

    /// Says which shards of a venue have gone and come back, and excuses answers where none is left.
    pub(super) fn note_away(&mut self, node: NodeId, before: &[bool]) {
        for (shard, (before, after)) in before.iter().zip(self.away_of(node)).enumerate() {
            let words = [index(node) as u64, shard as u64];
            match (before, after) {
                (false, true) => self.note("venue {} loses shard {}", &words),
                (true, false) => self.note("venue {} has shard {} back", &words),
                _ => {}
            }
        }
        if (0..self.scenario.venues).any(|venue| self.away(venue).contains(&true)) {
            self.disturb_shards();
        }
    }

    /// A shard's answers are excused as long as no venue has it, or has had it long enough to be in step.
    pub(super) fn disturb_shards(&mut self) {
        let now_ns = self.now_ns;
        for venue in 0..self.scenario.venues {
            for (shard, away) in self.away(venue).into_iter().enumerate() {
                let back_ns = &mut self.shards_back_ns[venue][shard];
                *back_ns = if away { now_ns + BACK_NS } else { *back_ns };
            }
        }
        for shard in 0..self.scenario.shards {
            let back = self.venues_of(shard).map(|venue| {
                self.processes[&venue_id(venue)].healthy_at_ns.max(self.shards_back_ns[venue][shard])
            });
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
}
