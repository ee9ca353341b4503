//! All nodes at once. The promise: whatever was acknowledged is on record, whatever was in flight is answered once, and
//! trading continues by itself.

use pares_load::{LabError, Stretch};
use pares_node::NodeId;
use pares_os::clock::mono_ns;
use rustix::process::Signal;

use super::round::Drill;

/// Kills every node, and waits until members are answered again, and then until every node is in step.
pub(super) fn kill(drill: &mut Drill) -> Result<u64, LabError> {
    let roles = NodeId::all(drill.system.supervisor.config());
    drill.observed().take_gap_max_ns();
    drill.observed().take_resumed_ns();
    let killed_ns = mono_ns();
    for &role in &roles {
        drill.system.supervisor.signal(role, Signal::KILL)?;
    }
    let mut resumed_ns = None;
    let gap = drill.wait_until("the exchange", |drill| {
        resumed_ns = drill.observed().take_resumed_ns();
        Ok(resumed_ns.is_some())
    })?;
    let resumed_ns = resumed_ns.expect("waited for");
    drill.samples.restarts.push(resumed_ns.saturating_sub(killed_ns));
    drill.observed().enter(Stretch::Resync);
    let gap = gap.max(await_all(drill, &roles)?);
    drill.samples.resyncs.push((mono_ns() - killed_ns) / 1_000);
    Ok(gap)
}

/// Waits until every node runs, every venue has caught up and every recorder has what any of them has now.
fn await_all(drill: &mut Drill, roles: &[NodeId]) -> Result<u64, LabError> {
    let gap = drill.wait_until("a node", |drill| {
        let supervisor = &drill.system.supervisor;
        Ok(roles.iter().all(|&role| supervisor.is_up(role)) && drill.venues.all_back(supervisor))
    })?;
    let goal = drill.records.furthest()?;
    let ids: Vec<_> = drill.system.supervisor.config().recorder_ids().collect();
    let in_step = drill.wait_until("a recorder", |drill| {
        ids.iter().try_fold(true, |all, &id| Ok(all && drill.records.has(id, &goal)?))
    })?;
    Ok(gap.max(in_step))
}
