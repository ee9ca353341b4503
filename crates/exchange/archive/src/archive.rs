//! Closed days, compressed, somewhere else ([`Folder`] says how they lie there).
//!
//! Everything is read back and compared with its hash before the manifest is written, and again before anything is restored.

use std::fs;
use std::path::Path;

use pares_types::BusinessDay;
use serde::{Deserialize, Serialize};

use crate::folder::Folder;
use crate::manifest::{Manifest, io};
use crate::seal::Flaw;
use crate::{ArchiveError, Days, Store};

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopiedDay {
    /// The days.
    pub days: Vec<String>,
    /// Bytes of their files.
    pub bytes: u64,
    /// Bytes of them in the archive.
    pub archived_bytes: u64,
}

/// A note beside a manifest: where its day was archived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archived {
    /// The store.
    pub to: String,
}

impl Days {
    fn note(&self, day: BusinessDay) -> std::path::PathBuf {
        self.dir().join(format!("{day}.archived"))
    }

    /// Whether a day was archived, and verified there.
    #[must_use]
    pub fn is_archived(&self, day: BusinessDay) -> bool {
        self.note(day).exists()
    }

    /// Whether it was archived, and verified, in that store.
    fn is_noted(&self, day: BusinessDay, store: &Store) -> bool {
        let note = fs::read(self.note(day)).ok();
        let note: Option<Archived> = note.and_then(|text| serde_json::from_slice(&text).ok());
        note.is_some_and(|note| note.to == store.name())
    }

    /// Archives closed days, or one of them, that `store` does not have yet. `system` holds the system's configuration; `recorder`
    /// is what the log's node is called.
    ///
    /// # Errors
    /// If a file is not what its manifest says, or the store fails: what was archived before stands.
    pub fn archive(
        &self,
        (system, recorder): (&Path, &str),
        store: &Store,
        only: Option<BusinessDay>,
    ) -> Result<CopiedDay, ArchiveError> {
        let mut copied = CopiedDay::default();
        let (mut manifests, released) = (self.manifests()?, self.released()?);
        // What is dropped of the log was archived before.
        manifests.retain(|manifest| manifest.from >= released);
        if let Some(day) = only.filter(|day| manifests.iter().all(|one| one.day != day.to_string())) {
            return Err(ArchiveError::Refused(format!("{recorder} has no closed day {day}")));
        }
        for manifest in manifests {
            let day = manifest.day()?;
            if only.is_some_and(|only| only != day) {
                continue;
            }
            let folder = Folder::new(store, recorder, day);
            if !has_day(&folder, &manifest, self.is_noted(day, store))? {
                self.archive_day(manifest, system, &folder, &mut copied)?;
            }
            let note = serde_json::to_vec(&Archived { to: store.name().to_owned() }).expect("plain JSON");
            pares_os::replace_shared_file(&self.note(day), &note).map_err(io(&self.note(day)))?;
        }
        Ok(copied)
    }

    fn archive_day(
        &self,
        mut manifest: Manifest,
        system: &Path,
        folder: &Folder<'_>,
        copied: &mut CopiedDay,
    ) -> Result<(), ArchiveError> {
        let kept = self.checkpoints(manifest.day()?);
        let segments = manifest.segments.iter().map(|file| (self.log(), file));
        let checkpoints = manifest.checkpoints.iter().map(|file| (kept.as_path(), file));
        for (dir, file) in segments.chain(checkpoints) {
            let path = dir.join(&file.name);
            let content = fs::read(&path).map_err(io(&path))?;
            if !file.is(&content) {
                return Err(ArchiveError::Refused(format!("{} does not match its manifest", path.display())));
            }
            copied.bytes += content.len() as u64;
            copied.archived_bytes += folder.put(file, &content)?;
        }
        let configuration = fs::read(system).map_err(io(system))?;
        manifest.configuration = Some(folder.put_configuration(configuration)?);
        folder.put_manifest(&manifest)?;
        if !folder.has_configuration(&manifest) {
            return Err(ArchiveError::Refused(format!(
                "{} was archived twice at the same time, with a change of pares.toml in between: archive it again",
                folder.name()
            )));
        }
        copied.days.push(manifest.day);
        Ok(())
    }
}

/// Whether the store has that day, whole; if it is not known to be, its files are read.
fn has_day(folder: &Folder<'_>, manifest: &Manifest, is_known: bool) -> Result<bool, ArchiveError> {
    let there = match folder.manifest()? {
        None => return Ok(false),
        Some(Ok(there)) => there,
        // It was this system's: it has rotted, or an earlier build wrote it.
        Some(Err(flaw)) if is_known && !matches!(flaw, Flaw::Later(_)) => return Ok(false),
        Some(Err(flaw)) => {
            return Err(ArchiveError::Refused(format!(
                "{}/manifest.json cannot be read: {flaw}. Nothing of that day was changed; move its folder away, then archive the day again",
                folder.name()
            )));
        }
    };
    if !there.is_same_day(manifest) {
        return Err(ArchiveError::Refused(format!(
            "{} belongs to another system, with other trades: nothing was changed; use a separate archive for this system",
            folder.name()
        )));
    }
    let mut files = there.segments.iter().chain(&there.checkpoints);
    let is_whole = is_known || files.all(|file| folder.get(file).is_ok());
    Ok(is_whole && folder.has_configuration(&there))
}
