//! Faults of the leading venue. The promise: no member notices.

use std::time::{Duration, Instant};

use pares_load::{LabError, Stretch};
use pares_node::NodeId;
use pares_types::VenueId;
use rustix::process::Signal;

use super::round::{Drill, WINDOW};

/// A slow venue sleeps so long, and then is awake for as long.
const NAP: Duration = Duration::from_millis(5);

/// Kills it, leaves it dead for a while, and waits until its replacement has caught up.
pub(super) fn kill(drill: &mut Drill) -> Result<u64, LabError> {
    let victim = drill.venues.leading();
    drill.observed().take_gap_max_ns();
    drill.system.supervisor.hold(NodeId::Venue(victim), true);
    drill.killer.kill(&mut drill.system.supervisor, victim)?;
    let gap = drill.longest_gap(WINDOW)?;
    drill.observed().enter(Stretch::Resync);
    drill.system.supervisor.hold(NodeId::Venue(victim), false);
    let back = |drill: &mut Drill| {
        let back = drill.killer.returns(&drill.system.supervisor, &drill.venues)?;
        drill.samples.resyncs.extend(back.iter().map(|back| back.resync.as_micros() as u64));
        Ok(!drill.killer.awaits())
    };
    let gap = gap.max(drill.wait_until(&format!("venue-{victim}"), back)?);
    Ok(gap)
}

/// Stops it, lets it sleep, wakes it and waits until it is where the others were when it woke.
pub(super) fn stop(drill: &mut Drill, asleep: Duration) -> Result<u64, LabError> {
    let victim = drill.venues.leading();
    drill.observed().take_gap_max_ns();
    drill.system.supervisor.signal(NodeId::Venue(victim), Signal::STOP)?;
    let gap = drill.longest_gap(asleep)?;
    drill.observed().enter(Stretch::Resync);
    drill.system.supervisor.signal(NodeId::Venue(victim), Signal::CONT)?;
    let gap = gap.max(await_in_step(drill, victim)?);
    Ok(gap.max(drill.longest_gap(WINDOW)?))
}

/// Lets it sleep half of the time in short naps, as on a machine that gives it too little processor, and then waits
/// until it is where the others are.
pub(super) fn slow(drill: &mut Drill, stretch: Duration) -> Result<u64, LabError> {
    let victim = drill.venues.leading();
    drill.observed().take_gap_max_ns();
    let begun = Instant::now();
    while begun.elapsed() < stretch {
        drill.system.supervisor.signal(NodeId::Venue(victim), Signal::STOP)?;
        drill.pause(NAP)?;
        drill.system.supervisor.signal(NodeId::Venue(victim), Signal::CONT)?;
        drill.pause(NAP)?;
    }
    let gap = drill.observed().take_gap_max_ns();
    drill.observed().enter(Stretch::Resync);
    Ok(gap.max(await_in_step(drill, victim)?))
}

/// Waits until the venue is where the furthest one is now.
fn await_in_step(drill: &mut Drill, victim: VenueId) -> Result<u64, LabError> {
    let begun = Instant::now();
    let others = drill.venues.states().iter().map(|state| state.position).max().unwrap_or(0);
    let in_step = |drill: &mut Drill| Ok(drill.venues.state(victim).position >= others);
    let gap = drill.wait_until(&format!("venue-{victim}"), in_step)?;
    drill.samples.resyncs.push(begun.elapsed().as_micros() as u64);
    Ok(gap)
}
