//! Checkpoint files: written by recorders, read by venues that start.
//!
//! ```text
//! recorder-R/checkpoints/SHARD-POSITION.ckpt
//! +----------+-------+----------+------------+--------+--------------+--------------+-------+
//! | PARESCF2 | shard | position | log offset | length | crc32c of    | crc32c of    | state |
//! | 8 bytes  | u64   | u64      | u64        | u64    | state, u64   | before, u64  | bytes |
//! +----------+-------+----------+------------+--------+--------------+--------------+-------+
//! ```
//! `log offset`: where in this recorder's log replay starts; every record of the shard at `position` or later
//! lies behind it. A state may be larger than anybody wants to hold twice, so a file is written piece by piece as they come, under
//! another name and with nothing for a head ([`UnfinishedCheckpoint`]); it is read back, and only then gets head and
//! name, so that a checkpoint is whole or absent. Older ones go only after a newer one is verified. A venue reads heads
//! first ([`checkpoints`]) and the state of one it wants into memory once.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pares_log::Offset;
use pares_types::{Position, ShardId, VenueId};

use crate::NodeError;
use crate::crash::{self, Point};

const MAGIC: &[u8; 8] = b"PARESCF2";
const HEAD_BYTES: usize = 56;
/// Verified checkpoints kept per shard.
const KEPT: usize = 2;
/// Bytes written between two syncs, so that the last one has little left to do.
const SYNC_EVERY: u64 = 8 << 20;
/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;

/// What the head of a checkpoint file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    shard: ShardId,
    position: Position,
    replay_from: Offset,
    length: u64,
    crc: u32,
}

impl Head {
    fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        let fields =
            [u64::from(self.shard.0), self.position.0, self.replay_from.0, self.length, u64::from(self.crc)];
        for (at, field) in (8..).step_by(8).zip(fields) {
            bytes[at..at + 8].copy_from_slice(&field.to_le_bytes());
        }
        let crc = u64::from(crc32c::crc32c(&bytes[..HEAD_BYTES - 8]));
        bytes[HEAD_BYTES - 8..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let field = |index: usize| {
            let at = 8 + index * 8;
            u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
        };
        let head = Self {
            shard: ShardId(u16::try_from(field(0)).ok()?),
            position: Position(field(1)),
            replay_from: Offset(field(2)),
            length: field(3),
            crc: u32::try_from(field(4)).ok()?,
        };
        (head.to_bytes() == *bytes).then_some(head)
    }
}

/// A checkpoint whose pieces are being written. It is removed when it is dropped without a name.
#[derive(Debug)]
pub struct UnfinishedCheckpoint {
    shard: ShardId,
    position: Position,
    dir: PathBuf,
    path: PathBuf,
    file: File,
    length: u64,
    crc: u32,
    /// How far it is synced, if it is to be.
    synced: Option<u64>,
}

impl UnfinishedCheckpoint {
    /// Begins a file in `dir`, for the checkpoint of a shard that a venue took; syncs it now and then if `sync`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(
        dir: &Path,
        (shard, position): (ShardId, Position),
        venue: VenueId,
        sync: bool,
    ) -> Result<Self, NodeError> {
        std::fs::create_dir_all(dir).map_err(NodeError::io("creating the checkpoint directory"))?;
        let path = dir.join(format!("{shard}-{position}-{venue}.new"));
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
        let mut file = options.map_err(NodeError::io("creating a checkpoint"))?;
        file.write_all(&[0; HEAD_BYTES]).map_err(NodeError::io("writing a checkpoint"))?;
        let synced = sync.then_some(0);
        Ok(Self { shard, position, dir: dir.into(), path, file, length: 0, crc: 0, synced })
    }

    /// Of which shard, taken where.
    #[must_use]
    pub fn place(&self) -> (ShardId, Position) {
        (self.shard, self.position)
    }

    /// Writes a piece behind those before it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), NodeError> {
        self.file.write_all(piece).map_err(NodeError::io("writing a checkpoint"))?;
        self.length += piece.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, piece);
        match &mut self.synced {
            Some(synced) if self.length - *synced >= SYNC_EVERY => {
                *synced = self.length;
                self.file.sync_data().map_err(NodeError::io("syncing a checkpoint"))
            }
            _ => Ok(()),
        }
    }

    /// Writes the last piece and reads all of them back.
    ///
    /// # Errors
    /// If it cannot be written, or does not read back as written.
    pub fn finish(&mut self, last: &[u8]) -> Result<(), NodeError> {
        let (first, second) = last.split_at(last.len() / 2);
        self.write(first)?;
        crash::at(Point::RecorderStoring);
        self.write(second)?;
        let mut length = 0;
        let mut crc = 0;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let read = self.file.read_at(&mut buffer, HEAD_BYTES as u64 + length);
            let read = read.map_err(NodeError::io("reading a checkpoint back"))?;
            if read == 0 {
                break;
            }
            length += read as u64;
            crc = crc32c::crc32c_append(crc, &buffer[..read]);
        }
        match (length, crc) == (self.length, self.crc) {
            true => Ok(()),
            false => {
                Err(NodeError::Config(format!("{}: does not read back as written", self.path.display())))
            }
        }
    }

    /// Gives it its name, and drops the oldest ones of its shard.
    ///
    /// # Errors
    /// If it cannot be written; older ones are then untouched.
    pub fn name(self, replay_from: Offset) -> Result<(), NodeError> {
        let (shard, position) = self.place();
        let head = Head { shard, position, replay_from, length: self.length, crc: self.crc };
        self.file.write_all_at(&head.to_bytes(), 0).map_err(NodeError::io("writing a checkpoint's head"))?;
        if self.synced.is_some() {
            self.file.sync_all().map_err(NodeError::io("syncing a checkpoint"))?;
        }
        crash::at(Point::RecorderStored);
        let path = self.dir.join(format!("{shard}-{position}.ckpt"));
        std::fs::rename(&self.path, &path).map_err(NodeError::io("naming a checkpoint"))?;
        if self.synced.is_some() {
            let synced = File::open(&self.dir).and_then(|dir| dir.sync_all());
            synced.map_err(NodeError::io("syncing the checkpoint directory"))?;
        }
        crash::at(Point::RecorderNamed);
        for (_, old) in list(&self.dir, shard).into_iter().skip(KEPT) {
            std::fs::remove_file(old).map_err(NodeError::io("removing an old checkpoint"))?;
        }
        Ok(())
    }
}

impl Drop for UnfinishedCheckpoint {
    fn drop(&mut self) {
        // It is gone already if it was named; what cannot be removed now is removed at the next start.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes what was unfinished when the last process that wrote here died. For whoever alone writes into `dir`.
pub fn remove_unfinished(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_some_and(|extension| extension == "new") {
            // In the way of nothing but the disk's room.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A checkpoint file whose head is intact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCheckpoint {
    path: PathBuf,
    head: Head,
}

impl StoredCheckpoint {
    /// The next position to execute on the state.
    #[must_use]
    pub fn position(&self) -> Position {
        self.head.position
    }

    /// Where in the recorder's log replay starts.
    #[must_use]
    pub fn replay_from(&self) -> Offset {
        self.head.replay_from
    }

    /// Bytes of the state.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.head.length
    }

    /// The state (see `pares_venue::checkpoint`); `None` if it is not what was written.
    /// `pause` is called every now and then.
    #[must_use]
    pub fn read(&self, mut pause: impl FnMut()) -> Option<Vec<u8>> {
        let mut file = File::open(&self.path).ok()?;
        file.read_exact(&mut [0; HEAD_BYTES]).ok()?;
        let length = usize::try_from(self.head.length).ok()?;
        // A length that is not the file's is refused before so much is allocated.
        if file.metadata().ok()?.len() != HEAD_BYTES as u64 + self.head.length {
            return None;
        }
        let mut state = Vec::with_capacity(length);
        while state.len() < length {
            let from = state.len();
            let read = (&mut file).take(READ_BYTES as u64).read_to_end(&mut state).ok()?;
            if read == 0 {
                return None;
            }
            debug_assert_eq!(state.len(), from + read);
            pause();
        }
        (crc32c::crc32c(&state) == self.head.crc).then_some(state)
    }
}

impl StoredCheckpoint {
    /// Writes it into another directory, durably, with another place from which replay starts; not if it is damaged.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn copy(&self, dir: &Path, replay_from: Offset) -> Result<(), NodeError> {
        let mut file = File::open(&self.path).map_err(NodeError::io("opening a checkpoint"))?;
        let mut buffer = vec![0; READ_BYTES];
        file.read_exact(&mut buffer[..HEAD_BYTES]).map_err(NodeError::io("reading a checkpoint"))?;
        let place = (self.head.shard, self.head.position);
        let mut copy = UnfinishedCheckpoint::create(dir, place, VenueId(0), true)?;
        loop {
            match file.read(&mut buffer).map_err(NodeError::io("reading a checkpoint"))? {
                0 => break,
                read => copy.write(&buffer[..read])?,
            }
        }
        copy.finish(&[])?;
        match (copy.length, copy.crc) == (self.head.length, self.head.crc) {
            true => copy.name(replay_from),
            false => Ok(()),
        }
    }
}

/// The checkpoints of a shard in `dir` whose heads are intact, newest first.
#[must_use]
pub fn checkpoints(dir: &Path, shard: ShardId) -> Vec<StoredCheckpoint> {
    let of_shard = |stored: &StoredCheckpoint| stored.head.shard == shard;
    list(dir, shard).into_iter().filter_map(|(_, path)| open(path)).filter(of_shard).collect()
}

fn open(path: PathBuf) -> Option<StoredCheckpoint> {
    let mut bytes = [0; HEAD_BYTES];
    File::open(&path).ok()?.read_exact(&mut bytes).ok()?;
    Some(StoredCheckpoint { path, head: Head::from_bytes(&bytes)? })
}

/// At which positions there are checkpoints of a shard, intact or not, newest first.
#[must_use]
pub fn positions(dir: &Path, shard: ShardId) -> Vec<Position> {
    list(dir, shard).into_iter().map(|(position, _)| position).collect()
}

/// The checkpoint of a shard at that position, if its head is intact.
#[must_use]
pub fn at(dir: &Path, shard: ShardId, position: Position) -> Option<StoredCheckpoint> {
    checkpoints(dir, shard).into_iter().find(|stored| stored.position() == position)
}

/// Removes the checkpoints of a shard above a position: what made them is not to be believed.
///
/// # Errors
/// If one cannot be removed.
pub fn remove_above(dir: &Path, shard: ShardId, position: Position) -> Result<(), NodeError> {
    for (_, path) in list(dir, shard).into_iter().filter(|(at, _)| *at > position) {
        std::fs::remove_file(path)
            .map_err(NodeError::io("removing a checkpoint that is not to be believed"))?;
    }
    Ok(())
}

/// The checkpoint files of a shard, newest first.
fn list(dir: &Path, shard: ShardId) -> Vec<(Position, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let (of, position) = path.file_name()?.to_str()?.strip_suffix(".ckpt")?.split_once('-')?;
            (of.parse() == Ok(shard.0)).then_some((Position(position.parse().ok()?), path))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARD: ShardId = ShardId(3);

    fn state(position: u64) -> Vec<u8> {
        (0..100 + position).map(|at| (at * 7 + position) as u8).collect()
    }

    fn store(dir: &Path, position: u64) {
        let state = state(position);
        let mut unfinished =
            UnfinishedCheckpoint::create(dir, (SHARD, Position(position)), VenueId(1), true).unwrap();
        unfinished.write(&state[..40]).unwrap();
        unfinished.write(&state[40..60]).unwrap();
        unfinished.finish(&state[60..]).unwrap();
        assert_eq!(list(dir, SHARD).iter().filter(|(at, _)| at.0 == position).count(), 0, "no name yet");
        unfinished.name(Offset(8 * position)).unwrap();
    }

    /// Positions of those that can be read.
    fn readable(dir: &Path, shard: ShardId) -> Vec<u64> {
        let intact = |stored: &StoredCheckpoint| {
            let at = stored.position().0;
            assert_eq!(stored.replay_from(), Offset(8 * at));
            stored.read(|| {}).map(|read| (at, read)).map(|(at, read)| {
                assert_eq!(read, state(at));
                at
            })
        };
        checkpoints(dir, shard).iter().filter_map(intact).collect()
    }

    #[test]
    fn what_was_written_in_pieces_is_read_newest_first() {
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), 9);
        store(dir.path(), 10);
        assert_eq!(readable(dir.path(), SHARD), [10, 9]);
        assert_eq!(readable(dir.path(), ShardId(4)), []);
    }

    #[test]
    fn a_flipped_bit_leaves_the_older_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), 9);
        store(dir.path(), 10);
        let path = dir.path().join("3-10.ckpt");
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(readable(dir.path(), SHARD), [9], "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(readable(dir.path(), SHARD), [9], "cut at byte {at}");
        }
    }

    #[test]
    fn a_copy_has_the_state_and_a_new_place_to_replay_from_and_a_damaged_one_is_not_copied() {
        let (dir, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        store(dir.path(), 9);
        let stored = at(dir.path(), SHARD, Position(9)).unwrap();
        stored.copy(to.path(), Offset(72)).unwrap();
        assert_eq!(readable(to.path(), SHARD), [9]);
        let mut bytes = std::fs::read(dir.path().join("3-9.ckpt")).unwrap();
        bytes[HEAD_BYTES + 5] ^= 1;
        std::fs::write(dir.path().join("3-9.ckpt"), &bytes).unwrap();
        let other = tempfile::tempdir().unwrap();
        stored.copy(other.path(), Offset(72)).unwrap();
        assert_eq!(readable(other.path(), SHARD), []);
    }

    #[test]
    fn a_file_of_another_shard_under_this_ones_name_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), 9);
        std::fs::rename(dir.path().join("3-9.ckpt"), dir.path().join("4-9.ckpt")).unwrap();
        assert_eq!(readable(dir.path(), ShardId(4)), []);
    }

    #[test]
    fn checkpoints_above_a_position_can_be_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), 9);
        store(dir.path(), 10);
        remove_above(dir.path(), ShardId(4), Position(0)).unwrap();
        remove_above(dir.path(), SHARD, Position(9)).unwrap();
        assert_eq!(readable(dir.path(), SHARD), [9]);
    }

    #[test]
    fn older_checkpoints_go_when_newer_ones_are_verified() {
        let dir = tempfile::tempdir().unwrap();
        (1..=5).for_each(|position| store(dir.path(), position));
        assert_eq!(list(dir.path(), SHARD).len(), KEPT);
        assert_eq!(readable(dir.path(), SHARD), [5, 4]);
    }

    #[test]
    fn an_unfinished_checkpoint_goes_with_its_writer_or_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let files = || std::fs::read_dir(dir.path()).unwrap().count();
        let begin =
            || UnfinishedCheckpoint::create(dir.path(), (SHARD, Position(7)), VenueId(0), false).unwrap();
        drop(begin());
        assert_eq!(files(), 0);
        std::mem::forget(begin());
        assert_eq!((files(), readable(dir.path(), SHARD)), (1, vec![]));
        remove_unfinished(dir.path());
        assert_eq!(files(), 0);
    }

    #[test]
    fn what_does_not_read_back_gets_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let mut unfinished =
            UnfinishedCheckpoint::create(dir.path(), (SHARD, Position(7)), VenueId(0), false).unwrap();
        unfinished.write(&[1; 50]).unwrap();
        unfinished.file.write_all_at(&[9], HEAD_BYTES as u64 + 20).unwrap();
        assert!(unfinished.finish(&[2; 50]).is_err());
    }
}
