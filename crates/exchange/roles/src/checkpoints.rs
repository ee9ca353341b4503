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
//! lies behind it. A state may be larger than a process should hold twice, so a file is written piece by piece as they come, under
//! another name and with nothing for a head ([`UnfinishedCheckpoint`]); it is read back, and only then gets head and
//! name, so that a checkpoint is whole or absent. Older ones go only after a newer one is verified. A venue reads heads
//! first ([`checkpoints`]) and the state of one it wants into memory once.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use pares_config::Layout;
use pares_log::Offset;
use pares_types::{Position, RecorderId, ShardId};

use crate::world::{File, World};
use crate::{NodeError, left_out};

const MAGIC: &[u8; 8] = b"PARESCF2";
const HEAD_BYTES: usize = 56;
/// Verified checkpoints kept per shard.
const KEPT: usize = 2;
/// Bytes written between two syncs, so that the last one has little left to do.
const SYNC_EVERY: u64 = 8 << 20;
const READ_BYTES: usize = 256 << 10; // at once

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
pub struct UnfinishedCheckpoint<W: World> {
    world: W,
    shard: ShardId,
    position: Position,
    dir: PathBuf,
    path: PathBuf,
    file: W::File,
    length: u64,
    crc: u32,
    /// How far it is synced, if it is to be.
    synced: Option<u64>,
}

impl<W: World> UnfinishedCheckpoint<W> {
    /// Begins a file in `dir`, for a checkpoint of a shard; syncs it now and then if `sync`. `who` is the venue that took it, or what
    /// else distinguishes it: no other file has that name.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(
        world: &W,
        dir: &Path,
        (shard, position): (ShardId, Position),
        (who, sync): (&dyn Display, bool),
    ) -> Result<Self, NodeError> {
        let path = dir.join(format!("{shard}-{position}-{who}.new"));
        let mut file = world.create_file(&path).map_err(NodeError::io("creating a checkpoint"))?;
        file.append(&[0; HEAD_BYTES]).map_err(NodeError::io("writing a checkpoint"))?;
        let (world, dir, synced) = (world.clone(), dir.into(), sync.then_some(0));
        Ok(Self { world, shard, position, dir, path, file, length: 0, crc: 0, synced })
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
        self.file.append(piece).map_err(NodeError::io("writing a checkpoint"))?;
        self.length += piece.len() as u64;
        assert!(self.synced <= Some(self.length), "no more of a checkpoint is synced than is written");
        self.crc = crc32c::crc32c_append(self.crc, piece);
        match &mut self.synced {
            Some(synced) if self.length - *synced >= SYNC_EVERY => {
                *synced = self.length;
                self.file.sync().map_err(NodeError::io("syncing a checkpoint"))
            }
            _ => Ok(()),
        }
    }

    /// Writes the last piece and reads all of them back.
    ///
    /// # Errors
    /// If it cannot be written, or does not read back as written.
    pub fn finish(&mut self, last: &[u8]) -> Result<(), NodeError> {
        self.write(last)?;
        let (mut length, mut crc) = (0, 0);
        let on_piece = |piece: &[u8]| {
            length += piece.len() as u64;
            crc = crc32c::crc32c_append(crc, piece);
            Ok(())
        };
        read_state(&self.file, on_piece).map_err(NodeError::io("reading a checkpoint back"))?;
        if (length, crc) == (self.length, self.crc) {
            return Ok(());
        }
        let source = io::Error::other("does not read back as written");
        Err(NodeError::Read { path: self.path.clone(), source })
    }

    /// Gives it its name, and drops the oldest ones of its shard.
    ///
    /// # Errors
    /// If it cannot be written; older ones are then untouched.
    pub fn name(mut self, replay_from: Offset) -> Result<(), NodeError> {
        let (shard, position) = self.place();
        let head = Head { shard, position, replay_from, length: self.length, crc: self.crc };
        self.file.write_at(&head.to_bytes(), 0).map_err(NodeError::io("writing a checkpoint's head"))?;
        if self.synced.is_some() {
            self.file.sync().map_err(NodeError::io("syncing a checkpoint"))?;
        }
        let path = self.dir.join(format!("{shard}-{position}.ckpt"));
        self.world.rename(&self.path, &path).map_err(NodeError::io("naming a checkpoint"))?;
        if self.synced.is_some() {
            let synced = self.world.sync_dir(&self.dir);
            synced.map_err(NodeError::io("syncing the checkpoint directory"))?;
        }
        for (_, old) in list(&self.world, &self.dir, shard)?.into_iter().skip(KEPT) {
            self.world.remove_file(&old).map_err(NodeError::io("removing an old checkpoint"))?;
        }
        Ok(())
    }
}

impl<W: World> Drop for UnfinishedCheckpoint<W> {
    fn drop(&mut self) {
        // It is gone already if it was named; what cannot be removed now is removed at the next start.
        let _ = self.world.remove_file(&self.path);
    }
}

/// Reads what is behind the head, piece by piece.
fn read_state(file: &impl File, mut on: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    let mut at = HEAD_BYTES as u64;
    loop {
        match file.read_at(&mut buffer, at)? {
            0 => return Ok(()),
            read => {
                at += read as u64;
                on(&buffer[..read])?;
            }
        }
    }
}

/// Removes what was unfinished when the last process died that wrote here. For the only writer of `dir`.
pub fn remove_unfinished(world: &impl World, dir: &Path) {
    for name in world.list(dir).unwrap_or_default() {
        if name.ends_with(".new") {
            // In the way of nothing but the disk's room.
            let _ = world.remove_file(&dir.join(name));
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
    pub fn read(&self, world: &impl World, mut pause: impl FnMut()) -> Option<Vec<u8>> {
        let file = world.open_file(&self.path).ok()?;
        // A length that is not the file's is refused before so much is allocated.
        if file.bytes().ok()? != self.head.length.checked_add(HEAD_BYTES as u64)? {
            return None;
        }
        let mut state = Vec::with_capacity(usize::try_from(self.head.length).ok()?);
        let on_piece = |piece: &[u8]| {
            state.extend_from_slice(piece);
            pause();
            Ok(())
        };
        read_state(&file, on_piece).ok()?;
        (state.len() as u64 == self.head.length && crc32c::crc32c(&state) == self.head.crc).then_some(state)
    }

    /// A copy in another directory, durable, with another place from which replay starts; not if it is damaged.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn copy(&self, world: &impl World, dir: &Path, replay_from: Offset) -> Result<(), NodeError> {
        self.copied(world, dir, true)?.map_or(Ok(()), |copy| copy.name(replay_from))
    }

    /// A copy in another directory, whole and without a name; `None` if it is damaged.
    pub(crate) fn copied<W: World>(
        &self,
        world: &W,
        dir: &Path,
        sync: bool,
    ) -> Result<Option<UnfinishedCheckpoint<W>>, NodeError> {
        let file = world.open_file(&self.path).map_err(NodeError::io("opening a checkpoint"))?;
        let place = (self.head.shard, self.head.position);
        let mut copy = UnfinishedCheckpoint::create(world, dir, place, (&"copy", sync))?;
        let on_piece = |piece: &[u8]| copy.write(piece).map_err(io::Error::other);
        read_state(&file, on_piece).map_err(NodeError::io("copying a checkpoint"))?;
        copy.finish(&[])?;
        Ok(((copy.length, copy.crc) == (self.head.length, self.head.crc)).then_some(copy))
    }
}

/// A recorder's checkpoints of a shard, as [`checkpoints`]. None of a recorder that is left out: their states may be given up.
///
/// # Errors
/// As [`checkpoints`].
pub fn stored_by(
    world: &impl World,
    recorder: RecorderId,
    shard: ShardId,
) -> Result<Vec<StoredCheckpoint>, NodeError> {
    match left_out::is_noted(world, recorder) {
        true => Ok(Vec::new()),
        false => checkpoints(world, &Layout::new("").checkpoints(recorder), shard),
    }
}

/// The checkpoints of a shard in `dir` whose heads are intact, newest first.
///
/// # Errors
/// If the directory cannot be listed: that there are none cannot be said then.
pub fn checkpoints(
    world: &impl World,
    dir: &Path,
    shard: ShardId,
) -> Result<Vec<StoredCheckpoint>, NodeError> {
    let all = list(world, dir, shard)?.into_iter().filter_map(|(_, path)| open(world, path));
    Ok(all.filter(|stored| stored.head.shard == shard).collect())
}

fn open(world: &impl World, path: PathBuf) -> Option<StoredCheckpoint> {
    let file = world.open_file(&path).ok()?;
    let mut bytes = [0; HEAD_BYTES];
    file.fill(&mut bytes, 0).ok()?;
    Some(StoredCheckpoint { path, head: Head::from_bytes(&bytes)? })
}

/// At which positions there are checkpoints of a shard, intact or not, newest first.
///
/// # Errors
/// As [`checkpoints`].
pub fn positions(world: &impl World, dir: &Path, shard: ShardId) -> Result<Vec<Position>, NodeError> {
    Ok(list(world, dir, shard)?.into_iter().map(|(position, _)| position).collect())
}

/// The checkpoint of a shard at that position, if its head is intact.
///
/// # Errors
/// As [`checkpoints`].
pub fn at(
    world: &impl World,
    dir: &Path,
    shard: ShardId,
    position: Position,
) -> Result<Option<StoredCheckpoint>, NodeError> {
    Ok(checkpoints(world, dir, shard)?.into_iter().find(|stored| stored.position() == position))
}

/// Removes the checkpoints of a shard above a position: what made them is not to be believed.
///
/// # Errors
/// If the directory cannot be listed, or one cannot be removed.
pub fn remove_above(
    world: &impl World,
    dir: &Path,
    shard: ShardId,
    position: Position,
) -> Result<(), NodeError> {
    above(world, dir, shard, position)?.iter().try_for_each(|file| remove(world, file))
}

/// The checkpoint files of a shard above a position, newest first.
pub(crate) fn above(
    world: &impl World,
    dir: &Path,
    shard: ShardId,
    position: Position,
) -> Result<Vec<PathBuf>, NodeError> {
    let all = list(world, dir, shard)?.into_iter();
    Ok(all.filter(|(at, _)| *at > position).map(|(_, file)| file).collect())
}

/// Removes a checkpoint's file; one that is gone is removed.
pub(crate) fn remove(world: &impl World, file: &Path) -> Result<(), NodeError> {
    match world.remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(NodeError::io("removing a checkpoint that is not to be believed")(error))
        }
        _ => Ok(()),
    }
}

/// The checkpoint files of a shard, newest first.
fn list(world: &impl World, dir: &Path, shard: ShardId) -> Result<Vec<(Position, PathBuf)>, NodeError> {
    let names = world.list(dir).map_err(NodeError::io("listing a recorder's checkpoints"))?;
    let mut found: Vec<_> = names
        .into_iter()
        .filter_map(|name| {
            let (of, position) = name.strip_suffix(".ckpt")?.split_once('-')?;
            (of.parse() == Ok(shard.0)).then_some((Position(position.parse().ok()?), dir.join(name.as_str())))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    Ok(found)
}

#[cfg(test)]
mod tests;
