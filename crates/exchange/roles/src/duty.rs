//! One turn of a role: poll, step the rules, flush, ring.

use std::time::Duration;

use crate::NodeError;

/// How long a node sleeps at most, so that it notices being asked to stop.
pub const SLEEP_MAX: Duration = Duration::from_millis(100);

/// One role's work.
pub trait Duty {
    /// Does what there is to do, without waiting. Says how much that was; 0 means idle.
    ///
    /// # Errors
    /// Whatever stops the node.
    fn work(&mut self) -> Result<usize, NodeError>;

    /// The node sleeps, unless one of two more turns finds work. What costs system calls and is looked for only now and then is
    /// looked for now: the bell may have been rung for it.
    fn look_everywhere(&mut self) {}

    /// How long the node may sleep: less than the default if it has a deadline.
    fn sleep_max(&self) -> Duration {
        SLEEP_MAX
    }

    /// Called when the node is asked to stop, to leave everything in order.
    fn stop(&mut self) -> Result<(), NodeError> {
        Ok(())
    }
}
