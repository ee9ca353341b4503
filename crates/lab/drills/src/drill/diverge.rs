//! A venue that computes something else. The promise: it is found within 1,024 positions and shut out, and the others continue.

use std::path::Path;

use pares_faults::wrong::{VARIABLE, Wrong};
use pares_load::{LabError, Stretch};
use pares_node::readmit::readmit;
use pares_node::shut_out::Note;
use pares_node::{HostWorld, Layout, NodeId, SystemConfig};
use pares_types::{Position, ShardId, VenueId};
use rustix::process::Signal;

use super::record as audit;
use super::round::{Drill, WINDOW};

/// Fewer venues have no majority.
pub(super) const VENUES_MIN: u16 = 3;
/// Part of a second of the load that goes by before the venue becomes wrong: it is to lead then, and not to catch up.
const HEAD_START: u64 = 4;

/// What a wrong venue left behind.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// From its first wrong result to the position by which it was found, at most, over all rounds.
    pub(super) found_after: Option<u64>,
    /// Positions answered as it alone said.
    pub(super) disputed: u64,
    /// Where they lie: from the first to the last, both included.
    pub(super) between: Vec<(ShardId, Position, Position)>,
}

impl Trace {
    /// Whether a position may have been answered as a wrong venue alone said.
    pub(super) fn covers(&self, shard: ShardId, position: Position) -> bool {
        self.between.iter().any(|&(of, first, last)| of == shard && (first..=last).contains(&position))
    }

    /// Takes in what each recorder noted. How many positions there are is what one of them has taken, at most.
    fn take_in(&mut self, notes: &[Note]) {
        let disputed = |note: &Note| note.disputed.iter().map(|one| one.count).sum::<u64>();
        self.disputed += notes.iter().map(disputed).max().unwrap_or(0);
        let all = notes.iter().flat_map(|note| &note.disputed);
        self.between.extend(all.map(|one| (ShardId(one.shard), Position(one.first), Position(one.last))));
    }
}

/// Replaces the leading venue by a wrong one, waits until it is shut out, readmits it, and waits until it has caught up.
pub(super) fn diverge(drill: &mut Drill, rate: u64) -> Result<u64, LabError> {
    let victim = drill.venues.leading();
    let role = NodeId::Venue(victim);
    let wrong =
        Wrong { from: audit::last_sequence(&mut drill.records)? + rate.div_ceil(HEAD_START), shard: None };
    drill.observed().take_gap_max_ns();
    drill.system.supervisor.arm(role, vec![(VARIABLE, wrong.to_string())]);
    drill.system.supervisor.signal(role, Signal::KILL)?;
    let mut gap = drill.wait_until_dead(role)?;
    let mut notes = Vec::new();
    gap = gap.max(drill.wait_until("the finding of a wrong venue", |drill| {
        let supervisor = &drill.system.supervisor;
        notes = read_notes(victim, supervisor.config(), supervisor.layout())?;
        Ok(notes.len() == usize::from(supervisor.config().recorders) && !supervisor.is_up(role))
    })?);
    let layout = drill.system.supervisor.layout().clone();
    let after = found_after(&notes, &layout.venue_log(victim), wrong)?;
    let trace = &mut drill.samples.trace;
    trace.found_after = trace.found_after.max(after);
    trace.take_in(&notes);
    gap = gap.max(drill.longest_gap(WINDOW)?);
    drill.observed().enter(Stretch::Resync);
    readmit(victim, drill.system.supervisor.config(), &layout)?;
    let back = |drill: &mut Drill| Ok(drill.venues.all_back(&drill.system.supervisor));
    gap = gap.max(drill.wait_until(&role.to_string(), back)?);
    drill.samples.resyncs.push(drill.venues.state(victim).resync_us);
    Ok(gap)
}

fn read_notes(venue: VenueId, config: &SystemConfig, layout: &Layout) -> Result<Vec<Note>, LabError> {
    let world = HostWorld::new(layout)?;
    let notes = config.recorder_ids().filter_map(|by| Note::read(&world, venue, by).transpose());
    Ok(notes.collect::<Result<_, _>>()?)
}

/// Positions from the first wrong result that the venue handed out, in the shard where it was found, to the one that showed it;
/// 0 if it was found by a state before any result. The most that any recorder says.
fn found_after(notes: &[Note], log: &Path, wrong: Wrong) -> Result<Option<u64>, LabError> {
    let mut most = None;
    for found in notes.iter().filter_map(|note| note.found.as_ref()) {
        let first = wrong.first_in(log, ShardId(found.shard)).map_err(LabError::Failed)?;
        most = most.max(Some(first.map_or(0, |first| found.position.saturating_sub(first.0))));
    }
    Ok(most)
}
