//! `pares day`: what happened on a business day.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pares_archive::{Agreement, Store, holds_days_only, reports, restore};
use pares_node::{Layout, NodeId, SystemConfig};
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
    /// Compare the recorders' reports of a day; exit status 7 if they differ
    Report {
        /// The date [default: the last day that ended]
        day: Option<BusinessDay>,
        /// Read the day from this archive (`pares archive --to`) instead of the system's directory
        #[arg(long)]
        archive: Option<String>,
        /// One JSON object instead of lines
        #[arg(long, conflicts_with = "html")]
        json: bool,
        /// An HTML page instead of lines
        #[arg(long)]
        html: bool,
    },
}

/// Does what is asked about days.
///
/// # Errors
/// If there is no such system or day, a log cannot be read, or recorders do not agree.
pub fn run(args: &Args) -> CommandResult {
    let What::Report { day, archive, json, html } = &args.what;
    let found = match archive {
        Some(name) => of_archive(&Store::open_existing(name)?, *day)?,
        None => of_system(&Layout::new(&args.dir), *day)?,
    };
    text::print(&match (json, html) {
        (true, _) => as_json(&found).to_string(),
        (_, true) => found.html(),
        _ => as_lines(&found),
    });
    match found.differences.len() {
        0 => Ok(()),
        count => Err(CommandError::Disagree(format!("the day's report has {count} differences"))),
    }
}

fn of_system(layout: &Layout, day: Option<BusinessDay>) -> Result<Agreement, CommandError> {
    let config = configuration(layout)?;
    let logs = config.recorder_ids().map(|id| (id, layout.recorder_log(id)));
    let (there, missing): (Vec<_>, Vec<_>) = logs.partition(|(_, log)| log.is_dir());
    let mut found = read(&config, &there, day)?;
    found.missing = missing.into_iter().map(|(id, _)| id.0).collect();
    // Of a directory of restored days, those of one recorder may be all there is.
    if !holds_days_only(layout.root()) {
        let gone = found.missing.iter().map(|id| format!("recorder {id} has no log"));
        found.differences.extend(gone);
    }
    Ok(found)
}

/// Restores the day, of each recorder by itself, and reads that.
fn of_archive(store: &Store, day: Option<BusinessDay>) -> Result<Agreement, CommandError> {
    let mut archived: Vec<(RecorderId, BTreeSet<BusinessDay>)> = Vec::new();
    for name in store.list("")? {
        let Ok(NodeId::Recorder(id)) = name.parse() else { continue };
        archived.push((id, store.list(&name)?.iter().filter_map(|day| day.parse().ok()).collect()));
    }
    let last = || archived.iter().filter_map(|(_, days)| days.last().copied()).max();
    let Some(day) = day.or_else(last) else {
        return Err(CommandError::Failed(format!("{} has no day of any recorder", store.name())));
    };
    let there = archived.into_iter().filter(|(_, days)| days.contains(&day));
    let scratch = tempfile::tempdir().map_err(CommandError::io("making a directory to restore into"))?;
    let (mut logs, mut config, mut damaged) = (Vec::new(), None, Vec::new());
    for (id, _) in there {
        let (layout, name) = (Layout::new(scratch.path().join(id.to_string())), NodeId::Recorder(id));
        match restore(store, &name.to_string(), (Some(day), Some(day)), layout.root()) {
            Ok(_) => {
                logs.push((id, layout.recorder_log(id)));
                config = Some(configuration(&layout)?);
            }
            Err(error) => damaged.push(error),
        }
    }
    let Some(config) = config else {
        let none = || CommandError::Failed(format!("the archive of {} does not contain {day}", store.name()));
        return Err(damaged.pop().map_or_else(none, CommandError::from));
    };
    let mut found = read(&config, &logs, Some(day))?;
    let read = |id: &RecorderId| logs.iter().any(|(one, _)| one == id);
    found.missing = config.recorder_ids().filter(|id| !read(id)).map(|id| id.0).collect();
    found.differences.extend(damaged.iter().map(ToString::to_string));
    Ok(found)
}

fn read(
    config: &SystemConfig,
    logs: &[(RecorderId, PathBuf)],
    day: Option<BusinessDay>,
) -> Result<Agreement, CommandError> {
    let shards: Vec<ShardId> = config.shards()?.into_keys().collect();
    let logs: Vec<_> = logs.iter().map(|(id, log)| (*id, log.as_path())).collect();
    Ok(reports(&logs, &shards, day)?)
}

fn as_lines(found: &Agreement) -> String {
    let mut lines = found.report.lines();
    let read: Vec<String> = found.recorders.iter().map(|id| format!("recorder-{id}")).collect();
    let verdict = match (found.differences.is_empty(), read.len()) {
        (true, 1) => "no other recorder to compare with",
        (true, _) => "no difference",
        (false, _) => "they differ",
    };
    lines.push_str(&format!("read out of {}: {verdict}\n", read.join(", ")));
    found
        .missing
        .iter()
        .for_each(|id| lines.push_str(&format!("recorder-{id} has no report of this day here\n")));
    found.differences.iter().for_each(|difference| lines.push_str(&format!("DIFFERS: {difference}\n")));
    lines.trim_end().to_owned()
}

fn as_json(found: &Agreement) -> Value {
    json!({
        "day": found.report.day,
        "recorders": found.recorders,
        "missing": found.missing,
        "agreed": found.differences.is_empty(),
        "differences": found.differences,
        "shards": found.report.shards,
        "instruments": found.report.instruments,
        "members": found.report.members,
    })
}
