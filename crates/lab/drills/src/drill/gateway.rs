//! Faults of a gateway. The promise: its members connect to another one, repeat what is open under the same names,
//! and receive the outcome of each; the members of the other gateways notice nothing.

use std::sync::atomic::Ordering;
use std::time::Instant;

use pares_load::{LabError, Stretch};
use pares_node::NodeId;
use pares_types::GatewayId;
use rustix::process::Signal;

use super::round::{Drill, WINDOW};

/// Kills it, leaves it dead for a while, and waits until its replacement is up and its members are back there. Gives
/// the longest gap of the others' members.
pub(super) fn kill(drill: &mut Drill, victim: GatewayId) -> Result<u64, LabError> {
    let role = NodeId::Gateway(victim);
    forget_gaps(drill);
    drill.system.supervisor.hold(role, true);
    drill.system.supervisor.signal(role, Signal::KILL)?;
    drill.pause(WINDOW)?;
    drill.wait_until_dead(role)?;
    drill.observed().enter(Stretch::Resync);
    drill.system.supervisor.hold(role, false);
    let begun = Instant::now();
    drill.wait_until(&role.to_string(), |drill| Ok(drill.system.supervisor.is_up(role)))?;
    drill.samples.resyncs.push(begun.elapsed().as_micros() as u64);
    drill.observed().recall(true);
    drill.wait_until("a member", |drill| Ok(drill.observed().away.load(Ordering::Relaxed) == 0))?;
    drill.observed().recall(false);
    let moved = drill.observed().take_gap_max_ns_of(usize::from(victim.0));
    drill.samples.moved.push(moved);
    Ok(take_gap_of_others(drill, victim))
}

/// The longest gap in the next quiet stretch, of the members of all gateways but `victim`: the baseline for [`kill`].
pub(super) fn quiet(drill: &mut Drill, victim: GatewayId) -> Result<u64, LabError> {
    forget_gaps(drill);
    drill.pause(WINDOW)?;
    Ok(take_gap_of_others(drill, victim))
}

fn forget_gaps(drill: &Drill) {
    for gateway in drill.system.supervisor.config().gateway_ids() {
        drill.observed().take_gap_max_ns_of(usize::from(gateway.0));
    }
}

/// Of each gateway's members by themselves: what the others receive does not shorten a member's wait.
fn take_gap_of_others(drill: &Drill, victim: GatewayId) -> u64 {
    let others = drill.system.supervisor.config().gateway_ids().filter(|&id| id != victim);
    others.map(|id| drill.observed().take_gap_max_ns_of(usize::from(id.0))).max().unwrap_or(0)
}
