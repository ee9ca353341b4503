//! Archived days as a system's directory again. Nothing is written there that does not fit its hash.

use std::fs;
use std::path::Path;

use pares_log::{Config, Offset};
use pares_types::BusinessDay;

use crate::archive::CopiedDay;
use crate::folder::{CONFIGURATION, Folder};
use crate::manifest::{Manifest, io};
use crate::unfinished::Unfinished;
use crate::{ArchiveError, Days, Store};

/// A note in a directory that holds a record to be read, and no system.
const DAYS_ONLY: &str = "days-only";

/// Whether a directory was made of archived days: a system that began there would trade on beside the one that they are of.
#[must_use]
pub fn holds_days_only(dir: &Path) -> bool {
    dir.join(DAYS_ONLY).exists()
}

/// Restores archived days of a recorder into a system's directory that does not exist yet, or is empty: all of them, or those from `first` to `last`. It
/// can be read as any system's: by `pares history`, `day report`, `journal`.
///
/// # Errors
/// If the directory is not empty, a day in between is missing, or a file is not what its manifest says.
pub fn restore(
    store: &Store,
    recorder: &str,
    (first, last): (Option<BusinessDay>, Option<BusinessDay>),
    into: &Path,
) -> Result<CopiedDay, ArchiveError> {
    let unfinished = Unfinished::begin(into)?;
    let days = Days::new(&into.join(recorder), &[]);
    let (mut copied, mut row): (CopiedDay, Option<Row>) = (CopiedDay::default(), None);
    for name in store.list(recorder)? {
        let Ok(day) = name.parse::<BusinessDay>() else { continue };
        if first.is_some_and(|first| day < first) || last.is_some_and(|last| day > last) {
            continue;
        }
        let folder = Folder::new(store, recorder, day);
        let manifest = restore_day(&folder, &days, into, &mut copied)?;
        row = Some(Row::with(row, &manifest, &folder)?);
    }
    let none = || ArchiveError::Refused(format!("{} does not contain this day of {recorder}", store.name()));
    row.ok_or_else(none)?.adopt(days.log())?;
    let note = into.join(DAYS_ONLY);
    let text = "Restored from archived days, for `pares history` and `pares day report`. This directory cannot be started.\n";
    fs::write(&note, text).map_err(io(&note))?;
    unfinished.end()?;
    Ok(copied)
}

/// Days that follow each other.
struct Row {
    from: u64,
    until: u64,
    segment_bytes: u64,
}

impl Row {
    fn with(row: Option<Self>, next: &Manifest, folder: &Folder<'_>) -> Result<Self, ArchiveError> {
        let (from, segment_bytes) = match row {
            None => (next.from, next.segment_bytes),
            Some(row) if row.until == next.from => (row.from, row.segment_bytes),
            Some(_) => {
                return Err(ArchiveError::Refused(format!(
                    "{} does not follow the previous day: a day is missing, or the recorder's log was \
                     rebuilt between them; restore the two days separately",
                    folder.name()
                )));
            }
        };
        Ok(Self { from, until: next.until, segment_bytes })
    }

    /// Makes a log of the segments that lie there.
    fn adopt(&self, log: &Path) -> Result<(), ArchiveError> {
        let begin = self.from - self.from % self.segment_bytes;
        let config = Config::default().segment_bytes(self.segment_bytes);
        pares_log::adopt(log, config, (Offset(begin), Offset(self.until)))
            .map_err(|error| ArchiveError::Refused(error.to_string()))
    }
}

fn restore_day(
    folder: &Folder<'_>,
    days: &Days,
    into: &Path,
    copied: &mut CopiedDay,
) -> Result<Manifest, ArchiveError> {
    let mut manifest = believed(folder)?;
    let configuration = folder.configuration(&manifest)?;
    let checkpoints = days.checkpoints(manifest.day()?);
    fs::create_dir_all(&checkpoints).map_err(io(&checkpoints))?;
    let segments = manifest.segments.iter().map(|file| (days.log(), file));
    for (dir, file) in segments.chain(manifest.checkpoints.iter().map(|file| (checkpoints.as_path(), file))) {
        let content = folder.get(file)?;
        write(&dir.join(&file.name), &content)?;
        copied.bytes += content.len() as u64;
    }
    write(&into.join(CONFIGURATION), &configuration)?;
    // As the recorder had it.
    manifest.configuration = None;
    write(&days.path(manifest.day()?), &manifest.text())?;
    copied.days.push(manifest.day.clone());
    Ok(manifest)
}

fn believed(folder: &Folder<'_>) -> Result<Manifest, ArchiveError> {
    let name = folder.name();
    match folder.manifest()? {
        None => Err(ArchiveError::Refused(format!(
            "{name} is incomplete (no manifest.json): archive that day again, or restore the days before and after it separately"
        ))),
        Some(Err(flaw)) => Err(ArchiveError::Refused(format!("{name}/manifest.json cannot be read: {flaw}"))),
        Some(Ok(manifest)) => Ok(manifest),
    }
}

fn write(path: &Path, content: &[u8]) -> Result<(), ArchiveError> {
    fs::write(path, content).map_err(io(path))
}
