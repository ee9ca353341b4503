//! `pares admin lanes SHARD VENUES`: other venues execute a shard, while members trade.

use pares_node::{Layout, SystemConfig, lanes};
use pares_types::{ShardId, VenueId, VenueSet};
use serde_json::json;

use crate::error::CommandResult;
use crate::text;

/// Moves the shard; shows each step.
///
/// # Errors
/// If it cannot be moved there.
pub(super) fn run(
    (shard, venues): (u16, &[u16]),
    config: &SystemConfig,
    layout: &Layout,
    as_json: bool,
) -> CommandResult {
    let to: VenueSet = venues.iter().copied().map(VenueId).collect();
    let tell = |step: &str| {
        if !as_json {
            pares_text::say!("{step}");
        }
    };
    lanes::move_shard((ShardId(shard), to), (config, layout), tell)?;
    let numbers: Vec<u16> = to.iter().map(|venue| venue.0).collect();
    text::print(&match as_json {
        true => json!({ "shard": shard, "venues": numbers }).to_string(),
        false => format!("shard {shard} is moved"),
    });
    Ok(())
}

/// Reads the number of a venue.
pub(super) fn venue(text: &str) -> Result<u16, String> {
    let number = text.strip_prefix("venue-").unwrap_or(text).parse().ok();
    number
        .filter(|&venue| venue < 16)
        .ok_or_else(|| "a venue is a number from 0 to 15, or venue-0 to venue-15".into())
}
