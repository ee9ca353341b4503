//! Shards that move between venues while members trade.
//!
//! The command that moves a shard may be killed at each of its steps, in the middle of one too; a later one continues the move, or takes it
//! back. Nothing of it excuses a late answer: a shard has venues at each step. Checked of those who judge:
//!
//! - L2: who has a vote in a shard has come to it: restored it to where the record is.
//! - L3: of any two recorders that run, what one believes and what the other believes took a majority of the same venues.

use std::collections::BTreeSet;

use pares_config::{MoveStep, NodeId, Placement, Seats, SystemConfig};
use pares_roles::lanes::{self, MoveProgress};
use pares_types::{ShardId, VenueId, VenueSet, Voters};

use super::steps::{Ended, call};
use super::{Memory, World, index};
use crate::memory::host::Host;
use crate::queue::Action;
use crate::scenario::US;
use crate::{Verdict, must};

/// Of 1,000 steps of the command in so many it is killed.
const KILLED_PERMILLE: u64 = 15;

/// The command that moves a shard, and what it has led to.
pub(super) struct Moves {
    /// What the command that runs was asked for.
    command: Option<(ShardId, VenueSet)>,
    /// Who has come to which shard.
    came: BTreeSet<(VenueId, ShardId)>,
}

impl Moves {
    pub(super) fn new(config: &SystemConfig, placement: &Placement) -> Self {
        let of = |venue| placement.shards_of(venue).map(move |shard| (venue, shard));
        Self { command: None, came: config.venue_ids().flat_map(of).collect() }
    }
}

impl World<'_> {
    /// An operator moves a shard, unless one is just doing so.
    pub(super) fn begin_move(&mut self) {
        if self.moves.command.is_some() {
            return;
        }
        let under_way = self.placement.moving().next();
        let shard = under_way.unwrap_or_else(|| super::shard_id(self.random.index(self.scenario.shards)));
        let to = match self.placement.seats(shard) {
            Seats::Moving { before, after, .. } => [before, after][usize::from(self.random.chance(700))],
            Seats::Settled(_) => {
                let least = self.random.index(self.scenario.venues);
                let chosen = |venue: &usize| *venue == least || self.random.chance(350);
                (0..self.scenario.venues).filter(chosen).map(|venue| VenueId(venue as u16)).collect()
            }
        };
        self.trace.say(self.now_ns, &format!("shard {shard} is to move to {to:?}"));
        self.moves.command = Some((shard, to));
        self.queue.push(self.now_ns + US, Action::MoveOn);
    }

    /// The command looks, and writes the next step if it is time.
    pub(super) fn move_on(&mut self) -> Verdict {
        let Some(wanted) = self.moves.command else { return Ok(()) };
        let host = Host::supervisor(&self.machine);
        let is_killed = self.random.chance(KILLED_PERMILLE);
        let calls = is_killed.then(|| self.random.below(40) as u32);
        self.machine.lock().fate(host.node()).killed_in = calls;
        let runs = |node: NodeId| Ok(self.is_up(node));
        let ended = call(|| lanes::advance(&host, &self.config, wanted, runs));
        self.machine.lock().fate(host.node()).killed_in = None;
        self.take_effects()?;
        self.note_placement();
        for node in self.nodes() {
            self.schedule(node);
        }
        match ended {
            Ended::Back(Ok(MoveProgress::Stepped(_) | MoveProgress::Waits(_))) if !is_killed => {
                let pause_ns = self.random.between(50 * US, 300 * US);
                self.queue.push(self.now_ns + pause_ns, Action::MoveOn);
            }
            Ended::Back(Err(error)) => {
                self.trace.say(self.now_ns, &format!("shard {} does not move: {error}", wanted.0));
                self.moves.command = None;
            }
            Ended::Back(Ok(progress)) => {
                self.summary.ills.moved += u64::from(progress == MoveProgress::Done);
                self.moves.command = None;
            }
            Ended::Killed => self.moves.command = None,
        }
        Ok(())
    }

    /// What the file says now.
    pub(super) fn note_placement(&mut self) {
        let placement = lanes::placement(&Host::supervisor(&self.machine), &self.config);
        let placement = placement.expect("the file is whole, and pares.toml is as it was");
        if placement == self.placement {
            return;
        }
        for shard in (0..self.scenario.shards).map(super::shard_id) {
            let seats = placement.seats(shard);
            if seats != self.placement.seats(shard) {
                let number = placement.number();
                self.trace.say(self.now_ns, &format!("placement {number}: shard {shard} has {seats}"));
                if let Seats::Moving { step: MoveStep::Begun, .. } = seats {
                    seats.coming().iter().for_each(|venue| _ = self.moves.came.remove(&(venue, shard)));
                }
            }
        }
        self.placement = placement;
        // Fewer venues may have a shard than a moment ago.
        self.disturb_shards();
    }

    /// A venue has these shards after a turn.
    pub(super) fn note_came(&mut self, venue: NodeId) {
        let Some(Memory::Venue(node)) = &self.processes[&venue].memory else { return };
        let number = self.machine.counter(&venue.to_string(), lanes::NUMBER_COUNTER);
        if number == Some(self.placement.number()) && node.placement() == &self.placement {
            let venue = VenueId(index(venue) as u16);
            self.moves.came.extend(self.placement.shards_of(venue).map(|shard| (venue, shard)));
        }
    }

    /// L2, L3.
    pub(super) fn check_voters(&self, recorder: NodeId) -> Verdict {
        let Some(Memory::Recorder(node)) = &self.processes[&recorder].memory else { return Ok(()) };
        for (shard, voters) in node.voters() {
            let came = |venue: &VenueId| self.moves.came.contains(&(*venue, shard));
            must(voters.all().iter().all(|venue| came(&venue)), "L2 who votes has come", || {
                format!("{recorder} hears {voters:?} in shard {shard}, of {:?}", self.placement)
            })?;
        }
        for (other, process) in &self.processes {
            let Some(Memory::Recorder(other_node)) = &process.memory else { continue };
            for ((shard, own), (_, others)) in node.voters().zip(other_node.voters()) {
                must(share_a_set(own, others), "L3 recorders judge alike", || {
                    format!("shard {shard}: {recorder} by {own:?}, {other} by {others:?}")
                })?;
            }
        }
        Ok(())
    }
}

fn share_a_set(one: Voters, other: Voters) -> bool {
    [one.before, one.after].iter().any(|set| [other.before, other.after].contains(set))
}
