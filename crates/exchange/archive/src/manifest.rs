//! A business day as closed files: which they are, and what they must hash to.
//!
//! A recorder begins another segment when a day has ended in all shards, so the segments before it are whole and will never change.
//! A manifest beside the log names them. It says nothing that the log does not: lost or damaged, it is made again.
//!
//! ```text
//! recorder-R/days/2026-11-23.json            the manifest
//! recorder-R/days/2026-11-23/S-P.ckpt        of each shard, the newest checkpoint there was at the day's end
//! recorder-R/days/2026-11-23.archived        where it was archived (`archive`)
//!
//!    day before            this day                     next day
//!  ...seg | seg seg seg ... DayEnded(last shard) pad | BeginDay ...
//!         ^ from                                      ^ until
//! ```

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use pares_log::{MarksReader, Offset, record};
use pares_types::{BusinessDay, ShardId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{ArchiveError, DayScan};

/// A file of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayFile {
    /// Its name: a segment in the log's directory, or a checkpoint in the day's.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of all of it, hexadecimal.
    pub sha256: String,
}

/// A shard's part of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayShard {
    /// The shard.
    pub shard: u16,
    /// Where the day began.
    pub first: u64,
    /// Where it ended.
    pub last: u64,
    /// Of its books, statistics and totals at the end.
    pub state_hash: String,
}

/// A closed day of a recorder's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// 1.
    pub version: u32,
    /// The date.
    pub day: String,
    /// Where its first segment begins.
    pub from: u64,
    /// Where its last segment ends.
    pub until: u64,
    /// Bytes of each segment.
    pub segment_bytes: u64,
    /// Where a reader must begin that looks for the next day.
    pub next_from: u64,
    /// By shard.
    pub shards: Vec<DayShard>,
    /// In the order of the log.
    pub segments: Vec<DayFile>,
    /// At most one of each shard.
    pub checkpoints: Vec<DayFile>,
}

impl Manifest {
    /// A manifest that somebody wrote; `None` if this build makes no such.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let read: Self = serde_json::from_slice(text).ok()?;
        let is_name = |file: &DayFile| !file.name.contains('/') && !file.name.starts_with('.');
        let is_possible = read.version == 1
            && read.day().is_ok()
            && read.segment_bytes > 0
            && read.from <= read.until
            && read.has_its_segments()
            && read.segments.iter().chain(&read.checkpoints).all(is_name);
        is_possible.then_some(read)
    }

    /// Whether its segments are those between its ends, none left out.
    fn has_its_segments(&self) -> bool {
        let (first, step) = (self.from - self.from % self.segment_bytes, self.segment_bytes);
        let count = (self.until - first).div_ceil(step);
        count == self.segments.len() as u64
            && (0..count).zip(&self.segments).all(|(at, file)| file.name == segment_name(first + at * step))
    }

    /// Whether it is of the same history: what was recorded on that day, wherever it lies in the log.
    pub(crate) fn is_same_day(&self, other: &Self) -> bool {
        (&self.day, &self.shards) == (&other.day, &other.shards)
    }

    /// The date.
    ///
    /// # Errors
    /// If it is none.
    pub fn day(&self) -> Result<BusinessDay, ArchiveError> {
        self.day.parse().map_err(|error| ArchiveError::Refused(format!("{}: {error}", self.day)))
    }
}

/// The days of a recorder's log.
pub struct Days {
    log: PathBuf,
    shards: Vec<ShardId>,
}

impl Days {
    /// Of the log in that directory, of a system with these shards.
    #[must_use]
    pub fn new(log: &Path, shards: &[ShardId]) -> Self {
        Self { log: log.to_owned(), shards: shards.to_vec() }
    }

    /// The log's directory.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Where manifests lie.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.log.join("days")
    }

    /// The manifest of a day.
    #[must_use]
    pub fn path(&self, day: BusinessDay) -> PathBuf {
        self.dir().join(format!("{day}.json"))
    }

    /// Where the checkpoints of a day lie.
    #[must_use]
    pub fn checkpoints(&self, day: BusinessDay) -> PathBuf {
        self.dir().join(day.to_string())
    }

    /// All manifests that can be read, in the order of their days.
    ///
    /// # Errors
    /// If the directory cannot be listed.
    pub fn manifests(&self) -> Result<Vec<Manifest>, ArchiveError> {
        let entries = match fs::read_dir(self.dir()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(io(&self.dir()))?,
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let json = paths.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
        let mut found: Vec<Manifest> =
            json.filter_map(|path| Manifest::parse(&fs::read(path).ok()?)).collect();
        found.sort_by_key(|manifest| manifest.from);
        Ok(found)
    }

    /// Makes the manifests that are missing; says of which days.
    ///
    /// # Errors
    /// If the log cannot be read, or they cannot be written: the next call tries again.
    pub fn close(&self) -> Result<Vec<BusinessDay>, ArchiveError> {
        let stats = MarksReader::open(&self.log)?.stats();
        let there = self.manifests()?;
        let (mut from, mut look_from) = (stats.released.0, stats.released.0);
        for manifest in there.iter().filter(|manifest| manifest.until > stats.released.0) {
            if manifest.from > from {
                break;
            }
            (from, look_from) = (manifest.until, manifest.next_from);
        }
        let scan = DayScan::of_log(&self.log, Offset(look_from))?;
        let mut closed = Vec::new();
        for day in scan.ended(&self.shards) {
            let end =
                self.shards.iter().filter_map(|shard| Some(scan.days.get(&(day, *shard))?.offsets.1)).max();
            let Some(end) = end.filter(|end| end.0 > from) else { continue };
            let Some(until) = self.end_of_segment(end.0, stats.segment_bytes, stats.written.0)? else {
                break;
            };
            self.write(&scan, day, (from, until), stats.segment_bytes)?;
            from = until;
            closed.push(day);
        }
        Ok(closed)
    }

    /// Removes the checkpoints of days that the log has dropped. What such a day was stays in its manifest.
    ///
    /// # Errors
    /// If they cannot be removed: the next call tries again.
    pub fn tidy(&self) -> Result<(), ArchiveError> {
        let released = self.released()?;
        for manifest in self.manifests()?.iter().filter(|manifest| manifest.until <= released) {
            let dir = self.checkpoints(manifest.day()?);
            match fs::remove_dir_all(&dir) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                removed => removed.map_err(io(&dir))?,
            }
        }
        Ok(())
    }

    /// Where the log begins by now.
    ///
    /// # Errors
    /// If its marks cannot be read.
    pub fn released(&self) -> Result<u64, ArchiveError> {
        Ok(MarksReader::open(&self.log)?.stats().released.0)
    }

    /// Where the segment ends in which a day does; `None` while it may still change.
    fn end_of_segment(
        &self,
        end: u64,
        segment_bytes: u64,
        written: u64,
    ) -> Result<Option<u64>, ArchiveError> {
        let place = end % segment_bytes;
        let next = end - place + segment_bytes;
        if place == 0 {
            return Ok(Some(end));
        }
        if written >= next {
            return Ok(Some(next));
        }
        let path = self.log.join(segment_name(end - place));
        let mut head = [0; record::HEADER_BYTES];
        let read = fs::File::open(&path).and_then(|file| {
            use std::os::unix::fs::FileExt;
            file.read_exact_at(&mut head, place)
        });
        read.map_err(io(&path))?;
        Ok(matches!(record::decode(&head, end, true), Ok(record::Decoded::Pad)).then_some(next))
    }

    fn write(
        &self,
        scan: &DayScan,
        day: BusinessDay,
        (from, until): (u64, u64),
        segment_bytes: u64,
    ) -> Result<(), ArchiveError> {
        let dir = self.checkpoints(day);
        fs::create_dir_all(&dir).map_err(io(&dir))?;
        let (mut shards, mut checkpoints) = (Vec::new(), Vec::new());
        for &shard in &self.shards {
            let Some((of_shard, ended)) = scan.days.get(&(day, shard)).and_then(|of| Some((of, of.ended?)))
            else {
                continue;
            };
            let state_hash = format!("{:016x}", ended.state_hash);
            shards.push(DayShard {
                shard: shard.0,
                first: of_shard.first.0,
                last: of_shard.last.0,
                state_hash,
            });
            checkpoints.extend(self.keep_checkpoint(&dir, shard, of_shard.last.0 + 1)?);
        }
        let bases = (from - from % segment_bytes..until).step_by(segment_bytes as usize);
        let segments =
            bases.map(|base| DayFile::of(&self.log, segment_name(base))).collect::<Result<_, _>>()?;
        // A shard may be in its next day before another has ended this one.
        let begun = scan.days.iter().filter(|((next, _), _)| *next > day).map(|(_, of)| of.offsets.0.0);
        let next_from = begun.fold(until, u64::min);
        let day = day.to_string();
        let manifest = Manifest {
            version: 1,
            day,
            from,
            until,
            segment_bytes,
            next_from,
            shards,
            segments,
            checkpoints,
        };
        let text = serde_json::to_vec_pretty(&manifest).expect("a manifest is always valid JSON");
        let path = self.path(manifest.day()?);
        pares_os::replace_file(&path, &text).map_err(io(&path))
    }

    /// Keeps the newest checkpoint of a shard that is not beyond `position`, by another name: recorders remove older ones.
    fn keep_checkpoint(
        &self,
        dir: &Path,
        shard: ShardId,
        position: u64,
    ) -> Result<Option<DayFile>, ArchiveError> {
        let all = self.log.join("checkpoints");
        let entries = match fs::read_dir(&all) {
            // The first checkpoint makes the directory.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            entries => entries.map_err(io(&all))?,
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let of_shard = names.filter_map(|name| {
            let (of, at) = name.strip_suffix(".ckpt")?.split_once('-')?;
            let at = at.parse::<u64>().ok().filter(|at| *at <= position && of.parse() == Ok(shard.0))?;
            Some((at, name))
        });
        let Some((_, name)) = of_shard.max() else { return Ok(None) };
        let kept = dir.join(&name);
        let linked = fs::hard_link(all.join(&name), &kept);
        match linked {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            // Gone meanwhile, for a newer one.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            linked => linked.map_err(io(&kept))?,
        }
        DayFile::of(dir, name).map(Some)
    }
}

/// The name of the segment that begins there.
pub(crate) fn segment_name(base: u64) -> String {
    format!("{base:020}.seg")
}

impl DayFile {
    /// The file of that name in `dir`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(dir: &Path, name: String) -> Result<Self, ArchiveError> {
        let path = dir.join(&name);
        let mut file = fs::File::open(&path).map_err(io(&path))?;
        let (mut hash, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 256 << 10]);
        loop {
            match file.read(&mut buffer).map_err(io(&path))? {
                0 => break,
                read => {
                    hash.update(&buffer[..read]);
                    bytes += read as u64;
                }
            }
        }
        Ok(Self { name, bytes, sha256: hex(&hash.finalize()) })
    }

    /// Whether that is its content.
    #[must_use]
    pub fn is(&self, content: &[u8]) -> bool {
        content.len() as u64 == self.bytes && hex(&Sha256::digest(content)) == self.sha256
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What became of a file, with its name.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ArchiveError + '_ {
    |source| ArchiveError::Io { path: path.to_owned(), source }
}
