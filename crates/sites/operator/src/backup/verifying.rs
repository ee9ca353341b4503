//! `pares site backup verify`: what a directory of backups holds, and what can be restored of it.

use pares_site::backup::{BackupFolder, CopyFacts, FolderFacts, LogFacts};
use pares_text::{self as text, Table};
use pares_wice::Version;
use serde_json::json;

use super::{moment, origin};
use crate::error::{OperatorError, OperatorResult};

/// Reads all of a backup and says what it is; an error if anything has changed, or versions are missing before a log.
pub(super) fn verify(folder: &BackupFolder, json: bool) -> OperatorResult {
    let facts = folder.verify()?;
    if origin::of(folder.path())?.is_none() {
        return Err(OperatorError::Failed(format!(
            "{} is missing in {}, or an earlier build wrote none: a restore makes a system as `pares site init`. \
             Take another copy into this directory, which writes it",
            origin::ORIGIN_FILE,
            folder.path().display()
        )));
    }
    match json {
        true => text::print(&as_json(&facts).to_string()),
        false => print(&facts),
    }
    match facts.faults() {
        none if none.is_empty() => Ok(()),
        faults => Err(OperatorError::Failed(format!("every file is intact, but: {}", faults.join("; ")))),
    }
}

/// What there is, and what can be restored of it, for people.
fn print(facts: &FolderFacts) {
    let mut table = Table::new(["what", ">from", ">to", ">items", "last stored"]);
    for base in &facts.bases {
        let (version, items) = (text::grouped(base.version.0), text::grouped(base.items));
        table.row(vec!["base".into(), String::new(), version, items, String::new()]);
    }
    for log in &facts.logs {
        let (from, to) = (text::grouped(log.behind.0), text::grouped(log.last.0));
        let last = if log.last_ms == 0 { String::new() } else { moment(log.last_ms) };
        table.row(vec!["versions".into(), from, to, String::new(), last]);
    }
    for (base, last) in restored(facts) {
        let (from, to) = (text::grouped(base.0), text::grouped(last.0));
        table.row(vec!["restores".into(), from, to, String::new(), String::new()]);
    }
    text::print(&table.render());
    if let Some(at) = facts.logs.iter().find_map(|log| log.torn_at) {
        text::print(&format!(
            "the last log has no complete record from byte {at} on: it is still being written, its writer died, or the record has changed"
        ));
    }
}

/// From which version to which all can be restored.
fn restored(facts: &FolderFacts) -> Vec<(Version, Version)> {
    facts.runs().iter().filter_map(|run| Some((run.base?, run.last))).collect()
}

fn as_json(facts: &FolderFacts) -> serde_json::Value {
    let base = |base: &CopyFacts| {
        let digest = format!("{:016x}", base.digest);
        json!({ "version": base.version.0, "items": base.items, "bytes": base.bytes, "digest": digest })
    };
    let log = |log: &LogFacts| {
        let LogFacts { behind, last, last_ms, torn_at, .. } = log;
        json!({ "behind": behind.0, "last": last.0, "last_ms": last_ms, "torn_at": torn_at })
    };
    let restores: Vec<_> =
        restored(facts).iter().map(|(base, last)| json!({ "from": base.0, "to": last.0 })).collect();
    let bases: Vec<_> = facts.bases.iter().map(base).collect();
    let logs: Vec<_> = facts.logs.iter().map(log).collect();
    let faults = facts.faults();
    json!({ "identity": facts.identity, "bases": bases, "logs": logs, "restores": restores, "faults": faults })
}
