//! The closed days of a recorder's log: manifests that are missing are made, from the log alone.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pares_log::{MarksReader, Offset, record};
use pares_types::{BusinessDay, ShardId};

use crate::manifest::{DayFile, DayShard, Manifest, io, segment_name};
use crate::{ArchiveError, DayScan};

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

    /// All manifests that are believed, in the order of their days.
    ///
    /// # Errors
    /// If the directory cannot be listed.
    pub fn manifests(&self) -> Result<Vec<Manifest>, ArchiveError> {
        let names = names_in(&self.dir())?;
        let believed = names.iter().filter_map(|name| {
            let text = fs::read(self.dir().join(name)).ok()?;
            Manifest::parse_of(name.strip_suffix(".json")?, &text).ok()
        });
        let mut found: Vec<Manifest> = believed.collect();
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
                Err(error) if error.kind() == ErrorKind::NotFound => {}
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
        let shards = self.shards_of(scan, day);
        let kept = shards.iter().map(|of| self.keep_checkpoint(&dir, of.shard, of.last + 1));
        let checkpoints = kept.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        let bases = (from - from % segment_bytes..until).step_by(segment_bytes as usize);
        let segments =
            bases.map(|base| DayFile::of(&self.log, segment_name(base))).collect::<Result<_, _>>()?;
        // A shard may be in its next day before another has ended this one.
        let begun = scan.days.iter().filter(|((next, _), _)| *next > day).map(|(_, of)| of.offsets.0.0);
        let next_from = begun.fold(until, u64::min);
        let day = day.to_string();
        let manifest = Manifest {
            day,
            from,
            until,
            segment_bytes,
            next_from,
            shards,
            segments,
            checkpoints,
            configuration: None,
        };
        let path = self.path(manifest.day()?);
        pares_os::replace_shared_file(&path, &manifest.text()).map_err(io(&path))
    }

    fn shards_of(&self, scan: &DayScan, day: BusinessDay) -> Vec<DayShard> {
        let ended = self.shards.iter().filter_map(|&shard| {
            let of = scan.days.get(&(day, shard))?;
            let state_hash = format!("{:016x}", of.ended?.state_hash);
            Some(DayShard { shard: shard.0, first: of.first.0, last: of.last.0, state_hash })
        });
        ended.collect()
    }

    /// Keeps the newest checkpoint of a shard that is not beyond `position`, by another name: recorders remove older ones. It may have been kept
    /// before, for a manifest that is lost.
    fn keep_checkpoint(
        &self,
        dir: &Path,
        shard: u16,
        position: u64,
    ) -> Result<Option<DayFile>, ArchiveError> {
        let all = self.log.join("checkpoints");
        let mut names = names_in(&all)?;
        names.extend(names_in(dir)?);
        let of_shard = names.into_iter().filter_map(|name| {
            let (of, at) = name.strip_suffix(".ckpt")?.split_once('-')?;
            let at = at.parse::<u64>().ok().filter(|at| *at <= position && of.parse() == Ok(shard))?;
            Some((at, name))
        });
        let Some((_, name)) = of_shard.max() else { return Ok(None) };
        let kept = dir.join(&name);
        match fs::hard_link(all.join(&name), &kept) {
            Err(_) if kept.exists() => {}
            // Gone meanwhile, for a newer one.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            linked => linked.map_err(io(&kept))?,
        }
        DayFile::of(dir, name).map(Some)
    }
}

/// What lies in a directory, which need not be there.
fn names_in(dir: &Path) -> Result<Vec<String>, ArchiveError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(io(dir))?,
    };
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
}
