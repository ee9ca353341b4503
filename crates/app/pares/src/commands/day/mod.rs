//! `pares day`: what happened on a business day.

use std::path::PathBuf;

use pares_archive::{Agreement, reports};
use pares_node::Layout;
use pares_types::{BusinessDay, RecorderId, ShardId};
use serde_json::{Value, json};

use super::stat::configuration;
use crate::error::{CommandError, CommandResult};
use crate::text;

/// Arguments of `pares day`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// The system's directory
    #[arg(long, global = true, default_value = "pares-data")]
    dir: PathBuf,
}

#[derive(clap::Subcommand)]
enum What {
    /// Read a day out of each recorder's log, and compare; ends with status 7 if they differ
    Report {
        /// The date; the last day that ended unless given
        day: Option<BusinessDay>,
        /// One JSON object instead of lines
        #[arg(long, conflicts_with = "html")]
        json: bool,
        /// A page instead of lines
        #[arg(long)]
        html: bool,
    },
}

/// Does what is asked about days.
///
/// # Errors
/// If there is no such system or day, a log cannot be read, or recorders do not agree.
pub fn run(args: &Args) -> CommandResult {
    let layout = Layout::new(&args.dir);
    let What::Report { day, json, html } = &args.what;
    let config = configuration(&layout)?;
    let shards: Vec<ShardId> = config.shards()?.into_keys().collect();
    let logs: Vec<(RecorderId, PathBuf)> =
        config.recorder_ids().map(|id| (id, layout.recorder_log(id))).collect();
    let logs: Vec<_> = logs.iter().map(|(id, log)| (*id, log.as_path())).collect();
    // Of a directory of restored days, those of one recorder may be all there is.
    let (there, missing): (Vec<_>, Vec<_>) = logs.iter().partition(|(_, log)| log.is_dir());
    let found = reports(if there.is_empty() { &logs } else { &there }, &shards, *day)?;
    let missing: Vec<RecorderId> = missing.into_iter().map(|(id, _)| id).collect();
    text::print(&match (json, html) {
        (true, _) => as_json(&found).to_string(),
        (_, true) => found.html(),
        _ => as_lines(&found, &missing),
    });
    match found.differences.len() {
        0 => Ok(()),
        count => Err(CommandError::Disagree(format!("the day's report has {count} differences"))),
    }
}

fn as_lines(found: &Agreement, missing: &[RecorderId]) -> String {
    let mut lines = found.report.lines();
    let read: Vec<String> = found.recorders.iter().map(|id| format!("recorder-{id}")).collect();
    let verdict = if found.differences.is_empty() { "no difference" } else { "they differ" };
    lines.push_str(&format!("read out of {}: {verdict}\n", read.join(", ")));
    missing.iter().for_each(|id| lines.push_str(&format!("recorder-{id} has no log here\n")));
    found.differences.iter().for_each(|difference| lines.push_str(&format!("DIFFERS: {difference}\n")));
    lines.trim_end().to_owned()
}

fn as_json(found: &Agreement) -> Value {
    json!({
        "day": found.report.day,
        "recorders": found.recorders,
        "agreed": found.differences.is_empty(),
        "differences": found.differences,
        "shards": found.report.shards,
        "instruments": found.report.instruments,
        "members": found.report.members,
    })
}
