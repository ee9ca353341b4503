//! The operator's command that lets a venue participate again.

use pares_config::{Layout, SystemConfig};
use pares_types::VenueId;

use crate::{HostWorld, NodeError, NodeId, shut_out};

/// Lets a venue participate again that was shut out: its log and its notes go aside.
///
/// # Errors
/// If it still runs, or as [`shut_out::readmit`].
pub fn readmit(venue: VenueId, config: &SystemConfig, layout: &Layout) -> Result<(), NodeError> {
    let world = HostWorld::new(layout)?;
    let node = NodeId::Venue(venue);
    if shut_out::is_shut_out(&world, venue)?
        && let Some(process) = pares_log::writing_process(&layout.log(node))?
    {
        return Err(NodeError::Refused(format!(
            "{node} is still running as process {process}: try again in a moment; if it hangs, kill -9 {process}"
        )));
    }
    shut_out::readmit(&world, config, venue)
}
