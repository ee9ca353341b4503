//! Faults of a recorder's disk: it is full, or slow. The promise: as long as a quorum is left nobody notices, and the recorder
//! has everything once the disk is well.
//!
//! Whose disk is full takes nothing more, so it is made full under load: what room is left in segments made ahead is used up by a
//! session that floods, and only then the figures count. A slow disk is one whose syncs sleep ([`pares_faults::device`]): it can only
//! be had by a process that starts with it, so the recorder is replaced before and after, and neither counts as the fault.

use std::path::Path;
use std::time::{Duration, Instant};

use pares_faults::device::DeviceFault;
use pares_load::{LabError, Stretch};
use pares_log::MarksReader;
use pares_node::NodeId;
use pares_types::RecorderId;
use rustix::process::Signal;

use super::flood::Flood;
use super::round::{Drill, WINDOW};

/// Fills the disk under the victim's log until it refuses records, leaves it full for so long, and makes room.
pub(super) fn fill(drill: &mut Drill, victim: RecorderId, stretch: Duration) -> Result<u64, LabError> {
    let log = drill.system.supervisor.layout().recorder_log(victim);
    drill.observed().enter(Stretch::Resync);
    let before = refused(&log)?;
    drill.system.small_disk()?.fill()?;
    let flood = Flood::start(drill.flooder.clone())?;
    let full = drill.wait_until("a refusal for want of room", |_| Ok(refused(&log)? > before));
    drill.flooder = flood.end()?.0;
    full?;
    // What the flood left to be read is read now: on few cores the drill's own work would count as the disk's.
    drill.records.furthest()?;
    drill.pause(WINDOW)?;
    drill.observed().enter(Stretch::Disturbed);
    drill.observed().take_gap_max_ns();
    let gap = drill.longest_gap(stretch)?;
    let goal = drill.records.furthest()?;
    drill.observed().enter(Stretch::Resync);
    drill.system.small_disk()?.make_room()?;
    Ok(gap.max(await_all_of(drill, victim, &goal)?))
}

/// Times that the log refused a record because its disk was full.
fn refused(log: &Path) -> Result<u64, LabError> {
    let marks = MarksReader::open(log).map_err(pares_node::NodeError::from)?;
    Ok(marks.stats().refused_full)
}

/// Replaces the victim by one whose every sync takes so long, lets it be for so long, and replaces it again.
pub(super) fn slow(
    drill: &mut Drill,
    victim: RecorderId,
    sync: Duration,
    stretch: Duration,
) -> Result<u64, LabError> {
    let role = NodeId::Recorder(victim);
    let sync_ms = u32::try_from(sync.as_millis()).unwrap_or(u32::MAX);
    drill.observed().enter(Stretch::Resync);
    drill.system.supervisor.arm(role, vec![DeviceFault::SlowSync(sync_ms).variable()]);
    replace(drill, victim)?;
    drill.observed().enter(Stretch::Disturbed);
    drill.observed().take_gap_max_ns();
    let gap = drill.longest_gap(stretch)?;
    drill.observed().enter(Stretch::Resync);
    let back_us = replace(drill, victim)?.as_micros() as u64;
    drill.samples.resyncs.push(back_us);
    Ok(gap)
}

/// Kills the recorder, and waits until another process is up in its place and has what its peers had. How long that took,
/// from its start.
fn replace(drill: &mut Drill, victim: RecorderId) -> Result<Duration, LabError> {
    let role = NodeId::Recorder(victim);
    drill.system.supervisor.hold(role, true);
    drill.system.supervisor.signal(role, Signal::KILL)?;
    drill.wait_until_dead(role)?;
    drill.system.supervisor.hold(role, false);
    let begun = Instant::now();
    let goal = drill.records.furthest()?;
    drill.wait_until(&role.to_string(), |drill| {
        Ok(drill.system.supervisor.is_up(role) && drill.records.has(victim, &goal)?)
    })?;
    let back = begun.elapsed();
    drill.pause(WINDOW)?;
    Ok(back)
}

fn await_all_of(drill: &mut Drill, victim: RecorderId, goal: &pares_load::Reach) -> Result<u64, LabError> {
    let begun = Instant::now();
    let what = NodeId::Recorder(victim).to_string();
    let gap = drill.wait_until(&what, |drill| drill.records.has(victim, goal))?;
    drill.samples.resyncs.push(begun.elapsed().as_micros() as u64);
    Ok(gap)
}
