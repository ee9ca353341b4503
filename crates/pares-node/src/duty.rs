//! The duty cycle: poll, step, flush, ring; and how to idle on a machine with few cores.
//!
//! Spinning gives the best latency while every process has a core; with more processes than cores it is a
//! disaster (18 ms per round trip measured on two cores), sleeping on timers costs 50 us and more, and waking
//! through the kernel each time costs twice as much as needed. So: work while there is work, then yield a
//! number of times (whoever has work gets the core, and what it produces is found without a wake-up), then
//! sleep until a bell rings. The bell is armed before the last look at the inputs, so no wake is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pares_shm::Bell;

use crate::NodeError;

/// How often a node yields before it sleeps.
pub const YIELDS: u32 = 50;
/// How long a node sleeps at most, so that it notices being asked to stop.
pub(crate) const SLEEP_MAX: Duration = Duration::from_millis(100);

/// One role's work.
pub trait Duty {
    /// Does what there is to do, without waiting. Says how much that was; 0 means idle.
    ///
    /// # Errors
    /// Whatever stops the node.
    fn work(&mut self) -> Result<usize, NodeError>;

    /// Sleeps until the bell rings, but no longer than `max`. Roles that also wait for sockets
    /// do so here.
    fn sleep(&mut self, bell: &Bell, max: Duration) {
        bell.wait(max);
    }

    /// How long the node may sleep: less than the default if it has a deadline.
    fn sleep_max(&self) -> Duration {
        SLEEP_MAX
    }

    /// Called when the node is asked to stop, to leave everything in order.
    ///
    /// # Errors
    /// If it cannot.
    fn stop(&mut self) -> Result<(), NodeError> {
        Ok(())
    }
}

/// Runs a node until `stop` is set.
///
/// # Errors
/// Whatever stopped the node.
pub fn run(duty: &mut impl Duty, bell: &mut Bell, stop: &Arc<AtomicBool>) -> Result<(), NodeError> {
    let mut idle = 0;
    while !stop.load(Ordering::Relaxed) {
        if duty.work()? > 0 {
            idle = 0;
        } else if idle < YIELDS {
            idle += 1;
            std::thread::yield_now();
        } else {
            bell.prepare();
            if duty.work()? > 0 {
                bell.cancel();
            } else {
                let max = duty.sleep_max();
                duty.sleep(bell, max);
            }
            idle = 0;
        }
    }
    duty.stop()
}

/// Sets a flag on SIGTERM and SIGINT, for [`run`].
///
/// # Errors
/// If the handlers cannot be installed.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>, NodeError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(NodeError::io("installing a signal handler"))?;
    }
    Ok(stop)
}
