//! The duty cycle as a loop: how a role idles on a machine with few cores.
//!
//! Spinning gives the best latency while every process has a core; with more processes than cores it is a
//! disaster (18 ms per round trip measured on two cores), sleeping on timers costs 50 us and more, and waking
//! through the kernel each time costs twice as much as needed. So: work while there is work, then yield a
//! number of times (another that has work gets the core, and what it produces is found without a wake-up), then
//! sleep until a bell rings. The bell is armed before the last look at the inputs, so no wake is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pares_os::Bell;
pub use pares_roles::duty::{Duty, SLEEP_MAX};

use crate::NodeError;

/// How often a node yields before it sleeps.
const YIELDS: u32 = 50;
/// The same at a host of several. A request wakes nodes at each of them, most of which have nothing to do with its answer. Measured with three hosts on two
/// cores by `pares bench hosts --rate 1000`, p50: 2.3 ms with 50, 0.9 ms with 8. Hosts with cores to spare were not measured.
const YIELDS_OF_HOSTS: u32 = 8;

static IS_AT_HOST: AtomicBool = AtomicBool::new(false);

/// This process is a node at one of several hosts.
pub(crate) fn at_host() {
    IS_AT_HOST.store(true, Ordering::Relaxed);
}

/// Runs a node until `stop` is set. `sleep` returns when the bell rings, or that time is over.
///
/// # Errors
/// Whatever stopped the node.
pub fn run<D: Duty>(
    duty: &mut D,
    bell: &mut Bell,
    stop: &Arc<AtomicBool>,
    mut sleep: impl FnMut(&mut D, &Bell, Duration) -> Result<(), NodeError>,
) -> Result<(), NodeError> {
    let yields = if IS_AT_HOST.load(Ordering::Relaxed) { YIELDS_OF_HOSTS } else { YIELDS };
    let mut idle = 0;
    while !stop.load(Ordering::Relaxed) {
        if duty.work()? > 0 {
            idle = 0;
        } else if idle < yields {
            idle += 1;
            std::thread::yield_now();
        } else {
            bell.prepare();
            duty.look_everywhere();
            // Another log in the place of one is found in the first turn and read in the second.
            if duty.work()? + duty.work()? > 0 {
                bell.cancel();
            } else {
                let max = duty.sleep_max();
                sleep(duty, bell, max)?;
            }
            idle = 0;
        }
    }
    duty.stop()
}

/// Sleeps on the bell alone: for roles that wait for nothing else.
///
/// # Errors
/// Never.
pub fn on_bell<D: Duty>(_duty: &mut D, bell: &Bell, max: Duration) -> Result<(), NodeError> {
    bell.wait(max);
    Ok(())
}
