//! `pares journal verify`: every checksum of a log, and what to do when one is wrong.

use std::path::{Path, PathBuf};

use pares_log::{Damage, Verification};
use serde_json::{Value, json};

use super::inspect::failed;
use crate::error::{CommandError, CommandResult};
use crate::progress;
use crate::text::{self, count};

/// Arguments of `pares journal verify`.
#[derive(clap::Args)]
pub struct Args {
    /// The log: a directory such as pares-data/recorder-0
    log: PathBuf,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Checks the log.
///
/// # Errors
/// If there is no log, it cannot be read, or it is damaged.
pub fn run(args: &Args) -> CommandResult {
    let bar = progress::bytes("verifying", 0);
    let mut tell = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let found = pares_log::verify(&args.log, &mut tell);
    bar.finish_and_clear();
    let found = found.map_err(|error| failed(&args.log, &error))?;
    text::print(&match args.json {
        true => as_json(&args.log, &found).to_string(),
        false => summary(&found),
    });
    found.damage.first().map_or(Ok(()), |first| Err(CommandError::Failed(advice(&args.log, first, &found))))
}

fn summary(found: &Verification) -> String {
    let Verification { records, payload_bytes, log_bytes, segments, damage } = found;
    let verdict = match damage.len() {
        0 => "intact".to_owned(),
        places => format!("DAMAGED in {places} of them"),
    };
    format!(
        "{} ({} of payload) in {} of log, {}: {verdict}",
        count(*records, "record"),
        text::bytes(*payload_bytes),
        text::bytes(*log_bytes),
        count(*segments, "written segment"),
    )
}

/// What is damaged, and what to do about it; which depends on whose log it is.
fn advice(log: &Path, first: &Damage, found: &Verification) -> String {
    let path = log.display();
    let mut says = format!("{path} is damaged at offset {}: {}.\n", first.offset, first.what);
    for damage in &found.damage {
        says.push_str(&format!("  unreadable: {} up to {}\n", damage.offset, damage.until));
    }
    let node = log.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let remedy = match node.split_once('-').map(|(role, _)| role) {
        Some("recorder") => {
            "Restart its recorder: it rebuilds the log from the intact records and from the logs of other \
             recorders and venues, and keeps the damaged log beside it as damaged-N."
        }
        Some("venue") => {
            "Stop the system and remove the directory: the next start orders requests that no recorder has \
             again, from the gateways' logs."
        }
        Some("gateway") => {
            "Restore the directory from a copy. Without a copy, requests after the damage that no recorder has are lost."
        }
        _ => "Restore the directory from a copy.",
    };
    says.push_str(remedy);
    let (at, lost) = (first.offset, "to discard everything after the damage (last resort)");
    says.push_str(&format!("\nWithout a copy, run `pares journal cut {path} --at {at} --yes` {lost}."));
    says
}

fn as_json(log: &Path, found: &Verification) -> Value {
    let damage =
        |damage: &Damage| json!({ "offset": damage.offset.0, "until": damage.until.0, "what": damage.what });
    json!({
        "log": log.display().to_string(),
        "intact": found.damage.is_empty(),
        "records": found.records,
        "payload_bytes": found.payload_bytes,
        "log_bytes": found.log_bytes,
        "segments": found.segments,
        "damage": found.damage.iter().map(damage).collect::<Vec<_>>(),
    })
}
