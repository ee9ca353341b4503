//! Faults of a recorder. The promise: as long as a quorum is left no member notices, and the one that returns
//! finds what it missed in its peers' logs and the venues'.

use std::time::Instant;

use pares_load::{LabError, Stretch};
use pares_node::NodeId;
use pares_types::RecorderId;
use rustix::process::Signal;

use super::round::{Drill, WINDOW};

/// Kills it, leaves it dead for a while, and waits until its replacement has what its peers had when it started.
pub(super) fn kill(drill: &mut Drill, victim: RecorderId) -> Result<u64, LabError> {
    let gap = put_to_death(drill, victim)?;
    Ok(gap.max(bring_back(drill, victim)?))
}

/// Kills it, removes all it had, and waits until its replacement has got that from its peers.
///
/// It is always the same recorder: gateways and venues that run continue to tail the log they opened, and see nothing
/// of the one that takes its place until they restart. Wiping one recorder after the other would leave them without a
/// quorum although all recorders have everything.
pub(super) fn wipe(drill: &mut Drill, victim: RecorderId) -> Result<u64, LabError> {
    let gap = put_to_death(drill, victim)?;
    let log = drill.system.supervisor.layout().recorder_log(victim);
    std::fs::remove_dir_all(&log).map_err(LabError::io(format!("removing {}", log.display())))?;
    drill.records.forget(victim);
    Ok(gap.max(bring_back(drill, victim)?))
}

fn put_to_death(drill: &mut Drill, victim: RecorderId) -> Result<u64, LabError> {
    let role = NodeId::Recorder(victim);
    drill.observed().take_gap_max_ns();
    drill.system.supervisor.hold(role, true);
    drill.system.supervisor.signal(role, Signal::KILL)?;
    let gap = drill.longest_gap(WINDOW)?;
    Ok(gap.max(drill.wait_until_dead(role)?))
}

fn bring_back(drill: &mut Drill, victim: RecorderId) -> Result<u64, LabError> {
    let role = NodeId::Recorder(victim);
    let goal = drill.records.furthest()?;
    drill.observed().enter(Stretch::Resync);
    drill.system.supervisor.hold(role, false);
    let begun = Instant::now();
    let in_step =
        |drill: &mut Drill| Ok(drill.system.supervisor.is_up(role) && drill.records.has(victim, &goal)?);
    let gap = drill.wait_until(&role.to_string(), in_step)?;
    drill.samples.resyncs.push(begun.elapsed().as_micros() as u64);
    Ok(gap)
}
