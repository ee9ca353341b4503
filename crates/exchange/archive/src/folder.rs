//! An archived day: its files, compressed, in a folder of a store.
//!
//! ```text
//!  STORE/recorder-0/2026-11-23/00000000000004194304.seg.zst
//!                             /3-8192.ckpt.zst
//!                             /pares.toml            the system's configuration
//!                             /manifest.json         last: a day with a manifest is whole
//! ```
//! The manifest has the hashes of all the others, and of itself.

use std::io::Read;

use pares_types::BusinessDay;

use crate::manifest::{DayFile, Manifest};
use crate::seal::Flaw;
use crate::{ArchiveError, Store};

/// zstd's own default: three times smaller, at some 300 MB/s.
const LEVEL: i32 = 3;

pub(crate) const CONFIGURATION: &str = "pares.toml";
const MANIFEST: &str = "manifest.json";

/// Where a recorder's day lies.
pub(crate) struct Folder<'a> {
    store: &'a Store,
    recorder: &'a str,
    day: BusinessDay,
}

impl<'a> Folder<'a> {
    pub(crate) fn new(store: &'a Store, recorder: &'a str, day: BusinessDay) -> Self {
        Self { store, recorder, day }
    }

    fn key(&self, file: &str) -> String {
        format!("{}/{}/{file}", self.recorder, self.day)
    }

    /// What people call it.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}/{}", self.store.name(), self.recorder, self.day)
    }

    /// Its manifest, if there is one, or why it is not believed.
    pub(crate) fn manifest(&self) -> Result<Option<Result<Manifest, Flaw>>, ArchiveError> {
        let text = self.store.get(&self.key(MANIFEST))?;
        Ok(text.map(|text| Manifest::parse_of(&self.day.to_string(), &text)))
    }

    /// Says that the day is whole.
    pub(crate) fn put_manifest(&self, manifest: &Manifest) -> Result<(), ArchiveError> {
        self.store.put(&self.key(MANIFEST), manifest.text())
    }

    /// Puts a file there and reads it back; says how many bytes it takes.
    pub(crate) fn put(&self, file: &DayFile, content: &[u8]) -> Result<u64, ArchiveError> {
        let packed = zstd::encode_all(content, LEVEL)
            .map_err(|error| ArchiveError::Refused(format!("{} cannot be packed: {error}", file.name)))?;
        let bytes = packed.len() as u64;
        self.store.put(&self.key(&format!("{}.zst", file.name)), packed)?;
        match self.read(file)? {
            Some(_) => Ok(bytes),
            None => Err(ArchiveError::Refused(format!(
                "{}/{} reads back differently than it was written: archive to another disk or bucket",
                self.name(),
                file.name
            ))),
        }
    }

    /// A file, as it was.
    pub(crate) fn get(&self, file: &DayFile) -> Result<Vec<u8>, ArchiveError> {
        self.read(file)?.ok_or_else(|| self.damaged(&file.name))
    }

    /// `None` if it is not there, or not what it was.
    fn read(&self, file: &DayFile) -> Result<Option<Vec<u8>>, ArchiveError> {
        let Some(packed) = self.store.get(&self.key(&format!("{}.zst", file.name)))? else { return Ok(None) };
        // No longer than it was: what is packed may be anything.
        let mut content = Vec::with_capacity(usize::try_from(file.bytes).unwrap_or(0).min(1 << 30));
        let unpacked = zstd::Decoder::new(packed.as_slice())
            .and_then(|decoder| decoder.take(file.bytes.saturating_add(1)).read_to_end(&mut content));
        Ok(Some(content).filter(|content| unpacked.is_ok() && file.is(content)))
    }

    /// Puts the system's configuration there; says what it must be from then on.
    pub(crate) fn put_configuration(&self, content: Vec<u8>) -> Result<DayFile, ArchiveError> {
        let file = DayFile::with(CONFIGURATION, &content);
        self.store.put(&self.key(CONFIGURATION), content)?;
        Ok(file)
    }

    /// The configuration that its manifest names.
    pub(crate) fn configuration(&self, manifest: &Manifest) -> Result<Vec<u8>, ArchiveError> {
        let Some(file) = &manifest.configuration else {
            return Err(ArchiveError::Refused(format!(
                "{}/{MANIFEST} lacks the hash of {CONFIGURATION}: it was copied from a recorder by hand; \
                 archive that day with `pares archive`",
                self.name()
            )));
        };
        let content = self.store.get(&self.key(CONFIGURATION))?;
        content.filter(|content| file.is(content)).ok_or_else(|| self.damaged(CONFIGURATION))
    }

    /// Whether it is there, as its manifest has it.
    pub(crate) fn has_configuration(&self, manifest: &Manifest) -> bool {
        self.configuration(manifest).is_ok()
    }

    fn damaged(&self, file: &str) -> ArchiveError {
        ArchiveError::Refused(format!(
            "{}/{file} is missing or damaged (it does not match the day's manifest): use another recorder's days instead",
            self.name()
        ))
    }
}
