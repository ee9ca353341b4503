//! A recorder's closed days, looked after beside its duty cycle: manifests are made, and what may be dropped is named.
//!
//! It costs the duty cycle nothing: it tells by a counter which day ended last, and reads now and then what it may release.

use std::path::Path;
use std::time::Duration;

use pares_archive::{ArchiveError, Days};
use pares_config::{Layout, SystemConfig};
use pares_os::CountersReader;
use pares_roles::recorder::{DAY_COUNTER, drop_note};
use pares_types::{BusinessDay, RecorderId, ShardId};

use crate::process::BACKGROUND;
use crate::{NodeError, NodeId, world};

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks after the days of a recorder's log as long as the process lives.
pub(crate) fn look_after(id: RecorderId, config: &SystemConfig, layout: &Layout) -> Result<(), NodeError> {
    let shards: Vec<ShardId> = config.shards()?.into_keys().collect();
    let days = Days::new(&layout.recorder_log(id), &shards);
    let (counters, note) =
        (layout.counters(&NodeId::Recorder(id).to_string()), layout.root().join(drop_note(id)));
    let retention_days = config.retention_days;
    let look_after = move || {
        world::enter_background(BACKGROUND);
        let (mut closed, mut told) = (None, false);
        loop {
            std::thread::sleep(LOOK_EVERY);
            let Some(day) = last_day(&counters) else { continue };
            let mut look = || -> Result<(), ArchiveError> {
                if closed != Some(day) {
                    days.close()?;
                    closed = Some(day);
                }
                if retention_days > 0 {
                    name_what_may_go(&days, (day, retention_days), &note)?;
                    days.tidy()?;
                }
                Ok(())
            };
            match look() {
                Ok(()) => told = false,
                Err(error) if !std::mem::replace(&mut told, true) => world::complain(&format_args!(
                    "closing the files of {day}, or dropping older ones, failed: {error}; trying again"
                )),
                Err(_) => {}
            }
        }
    };
    let thread = std::thread::Builder::new().name("days".into()).spawn(look_after);
    thread.map(|_| ()).map_err(NodeError::io("starting the thread that closes days"))
}

/// The last day that ended in all shards, as the duty cycle tells it; `None` before the first.
fn last_day(counters: &Path) -> Option<BusinessDay> {
    let day = CountersReader::open(counters).ok()?.get(DAY_COUNTER)?;
    u32::try_from(day).ok().map(BusinessDay).filter(|day| *day != BusinessDay::NONE)
}

/// Notes up to where the log may be dropped: days that are archived and older than the retention, none left out. A day whose manifest is lost or
/// damaged is one that was not archived.
fn name_what_may_go(
    days: &Days,
    (last, retention_days): (BusinessDay, u32),
    note: &Path,
) -> Result<(), ArchiveError> {
    let released = days.released()?;
    let mut until = None;
    for manifest in days.manifests()?.into_iter().filter(|manifest| manifest.until > released) {
        let day = manifest.day()?;
        let follows = manifest.from <= until.unwrap_or(released);
        if !follows || !days.is_archived(day) || day.0.saturating_add(retention_days) >= last.0 {
            break;
        }
        until = Some(manifest.until);
    }
    let Some(until) = until else { return Ok(()) };
    let text = until.to_string();
    if std::fs::read_to_string(note).is_ok_and(|there| there == text) {
        return Ok(());
    }
    pares_os::replace_file(note, text.as_bytes())
        .map_err(|source| ArchiveError::Io { path: note.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_archive::Manifest;
    use pares_log::{Config, Writer};

    /// Three days of a segment each; the last ended 30 days later.
    fn days(dir: &Path) -> Days {
        let (mut writer, _) = Writer::open(dir, Config::default().segment_bytes(1 << 20)).unwrap();
        for _ in 0..3 {
            writer.append(b"a day").unwrap();
            writer.begin_segment().unwrap();
        }
        writer.publish();
        std::fs::create_dir(dir.join("days")).unwrap();
        let days = Days::new(dir, &[]);
        for at in 0..3 {
            let day = BusinessDay(20_000 + at as u32);
            let (from, until) = (at << 20, (at + 1) << 20);
            let segments = vec![pares_archive::DayFile {
                name: format!("{from:020}.seg"),
                bytes: 1 << 20,
                sha256: String::new(),
            }];
            let manifest = Manifest {
                day: day.to_string(),
                from,
                until,
                segment_bytes: 1 << 20,
                next_from: until,
                shards: Vec::new(),
                segments,
                checkpoints: Vec::new(),
                configuration: None,
            };
            std::fs::write(days.path(day), manifest.text()).unwrap();
            std::fs::write(dir.join("days").join(format!("{day}.archived")), "{}").unwrap();
        }
        days
    }

    fn may_go(days: &Days) -> Option<u64> {
        let note = days.log().join("drop");
        let _ = std::fs::remove_file(&note);
        name_what_may_go(days, (BusinessDay(20_030), 1), &note).unwrap();
        Some(std::fs::read_to_string(note).ok()?.parse().unwrap())
    }

    #[test]
    fn retention_stops_before_unarchived_or_unknown_day() {
        let dir = tempfile::tempdir().unwrap();
        let days = days(dir.path());
        assert_eq!(may_go(&days), Some(3 << 20));
        let second = BusinessDay(20_001);
        let noted = dir.path().join("days").join(format!("{second}.archived"));
        std::fs::remove_file(&noted).unwrap();
        assert_eq!(may_go(&days), Some(1 << 20), "the second is not archived");
        std::fs::write(&noted, "{}").unwrap();
        std::fs::write(days.path(second), "rotten").unwrap();
        assert_eq!(may_go(&days), Some(1 << 20), "what lies behind the first nobody knows");
        std::fs::write(days.path(BusinessDay(20_000)), "rotten").unwrap();
        assert_eq!(may_go(&days), None);
    }
}
