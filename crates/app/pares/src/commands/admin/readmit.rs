//! `pares admin readmit venue-N`: a venue that was shut out may start again.

use pares_node::{Layout, NodeId, SystemConfig, readmit::readmit};
use serde_json::json;

use crate::error::{CommandError, CommandResult};
use crate::text;

/// Removes the notes about the venue and sets its log aside. Its supervisor starts it then.
///
/// # Errors
/// If it is no venue, not shut out or still running, or a recorder has not heard of it yet.
pub(super) fn run(role: NodeId, config: &SystemConfig, layout: &Layout, as_json: bool) -> CommandResult {
    let NodeId::Venue(venue) = role else {
        return Err(CommandError::Usage(format!("{role} is not a venue; only venues can be shut out")));
    };
    readmit(venue, config, layout)?;
    text::print(&match as_json {
        true => json!({ "readmitted": role.to_string() }).to_string(),
        false => format!("{role} is readmitted; it restores the agreed state and starts"),
    });
    Ok(())
}
