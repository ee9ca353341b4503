//! Closed days, compressed, somewhere else.
//!
//! ```text
//!  STORE/recorder-0/2026-11-23/00000000000004194304.seg.zst
//!                             /3-8192.ckpt.zst
//!                             /pares.toml            the system's configuration
//!                             /manifest.json         last: a day with a manifest is whole
//! ```
//! Everything is read back and compared with its hash before the manifest is written, and again before anything is restored.

use std::fs;
use std::path::Path;

use pares_log::{Config, Offset};
use pares_types::BusinessDay;
use serde::{Deserialize, Serialize};

use crate::manifest::{DayFile, Days, Manifest, io};
use crate::unfinished::Unfinished;
use crate::{ArchiveError, Store};

/// zstd's own default: three times smaller, at some 300 MB/s.
const LEVEL: i32 = 3;

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
            return Err(ArchiveError::Refused(format!("{day} is no closed day that {recorder} has")));
        }
        for manifest in manifests {
            let day = manifest.day()?;
            if only.is_some_and(|only| only != day) {
                continue;
            }
            let folder = format!("{recorder}/{day}");
            if !has_day(store, &folder, &manifest, self.is_noted(day, store))? {
                self.archive_day(&manifest, (system, &folder), store, &mut copied)?;
            }
            let note = serde_json::to_vec(&Archived { to: store.name().to_owned() }).expect("plain JSON");
            pares_os::replace_file(&self.note(day), &note).map_err(io(&self.note(day)))?;
        }
        Ok(copied)
    }

    fn archive_day(
        &self,
        manifest: &Manifest,
        (system, folder): (&Path, &str),
        store: &Store,
        copied: &mut CopiedDay,
    ) -> Result<(), ArchiveError> {
        let kept = self.checkpoints(manifest.day()?);
        let segments = manifest.segments.iter().map(|file| (self.log(), file));
        let checkpoints = manifest.checkpoints.iter().map(|file| (kept.as_path(), file));
        for (dir, file) in segments.chain(checkpoints) {
            let path = dir.join(&file.name);
            let content = fs::read(&path).map_err(io(&path))?;
            if !file.is(&content) {
                return Err(ArchiveError::Refused(format!(
                    "{} is not what its manifest says",
                    path.display()
                )));
            }
            let packed = zstd::encode_all(content.as_slice(), LEVEL).map_err(io(&path))?;
            copied.bytes += content.len() as u64;
            copied.archived_bytes += packed.len() as u64;
            store.put(&format!("{folder}/{}.zst", file.name), packed)?;
            get(store, folder, file)?;
        }
        let config = fs::read(system).map_err(io(system))?;
        store.put(&format!("{folder}/pares.toml"), config)?;
        let text = serde_json::to_vec_pretty(manifest).expect("a manifest is always valid JSON");
        store.put(&format!("{folder}/manifest.json"), text)?;
        copied.days.push(manifest.day.clone());
        Ok(())
    }
}

/// Whether the store has that day, whole; if it is not known to be, its files are read.
fn has_day(store: &Store, folder: &str, manifest: &Manifest, is_known: bool) -> Result<bool, ArchiveError> {
    let Some(text) = store.get(&format!("{folder}/manifest.json"))? else { return Ok(false) };
    let there = match Manifest::parse(&text) {
        Some(there) => there,
        // It was this system's: it has rotted.
        None if is_known => return Ok(false),
        None => {
            return Err(ArchiveError::Refused(format!(
                "{}/{folder}/manifest.json cannot be read: it is damaged, or of a later version. Nothing of that day was touched; move it away \
                 to archive the day anew",
                store.name()
            )));
        }
    };
    if !there.is_same_day(manifest) {
        return Err(ArchiveError::Refused(format!(
            "{}/{folder} is of another history, with other trades: nothing of it was touched; archive to a place of this system's own",
            store.name()
        )));
    }
    let is_whole = |file| get(store, folder, file).is_ok();
    Ok(is_known || there.segments.iter().chain(&there.checkpoints).all(is_whole))
}

/// A file of an archived day, as it was.
fn get(store: &Store, folder: &str, file: &DayFile) -> Result<Vec<u8>, ArchiveError> {
    let damaged =
        || ArchiveError::Refused(format!("{}/{folder}/{} is missing or damaged", store.name(), file.name));
    let packed = store.get(&format!("{folder}/{}.zst", file.name))?.ok_or_else(damaged)?;
    // No longer than it was: what is packed may be anything.
    let mut content = Vec::with_capacity(usize::try_from(file.bytes).unwrap_or(0).min(1 << 30));
    let unpacked = zstd::Decoder::new(packed.as_slice()).and_then(|decoder| {
        std::io::Read::read_to_end(
            &mut std::io::Read::take(decoder, file.bytes.saturating_add(1)),
            &mut content,
        )
    });
    unpacked.map_err(|_| damaged())?;
    if file.is(&content) { Ok(content) } else { Err(damaged()) }
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
    let (mut copied, mut place): (CopiedDay, Option<(u64, u64, u64)>) = (CopiedDay::default(), None);
    for name in store.list(recorder)? {
        let Ok(day) = name.parse::<BusinessDay>() else { continue };
        if first.is_some_and(|first| day < first) || last.is_some_and(|last| day > last) {
            continue;
        }
        let manifest = restore_day(store, &format!("{recorder}/{day}"), &days, into, &mut copied)?;
        place = match place {
            None => Some((manifest.from, manifest.until, manifest.segment_bytes)),
            Some((from, until, bytes)) if manifest.from == until => Some((from, manifest.until, bytes)),
            Some(_) => {
                return Err(ArchiveError::Refused(format!(
                    "{day} of {recorder} in {} does not follow the day before: one is missing, or its log was made anew between \
                     them; restore them apart",
                    store.name()
                )));
            }
        };
    }
    let Some((from, until, segment_bytes)) = place else {
        return Err(ArchiveError::Refused(format!("{} has no such day of {recorder}", store.name())));
    };
    let from = from - from % segment_bytes;
    pares_log::adopt(
        days.log(),
        Config::default().segment_bytes(segment_bytes),
        (Offset(from), Offset(until)),
    )
    .map_err(|error| ArchiveError::Refused(error.to_string()))?;
    unfinished.end()?;
    Ok(copied)
}

fn restore_day(
    store: &Store,
    folder: &str,
    days: &Days,
    into: &Path,
    copied: &mut CopiedDay,
) -> Result<Manifest, ArchiveError> {
    let whole = || ArchiveError::Refused(format!("{}/{folder} is not whole", store.name()));
    let text = store.get(&format!("{folder}/manifest.json"))?.ok_or_else(whole)?;
    let manifest = Manifest::parse(&text).ok_or_else(whole)?;
    let checkpoints = days.checkpoints(manifest.day()?);
    fs::create_dir_all(&checkpoints).map_err(io(&checkpoints))?;
    let segments = manifest.segments.iter().map(|file| (days.log(), file));
    for (dir, file) in segments.chain(manifest.checkpoints.iter().map(|file| (checkpoints.as_path(), file))) {
        let content = get(store, folder, file)?;
        let path = dir.join(&file.name);
        fs::write(&path, &content).map_err(io(&path))?;
        copied.bytes += content.len() as u64;
    }
    let config = store.get(&format!("{folder}/pares.toml"))?.ok_or_else(whole)?;
    fs::write(into.join("pares.toml"), config).map_err(io(into))?;
    fs::write(days.path(manifest.day()?), &text).map_err(io(days.log()))?;
    copied.days.push(manifest.day.clone());
    Ok(manifest)
}
