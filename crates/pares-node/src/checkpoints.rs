//! Checkpoint files: written by recorders, read by venues that start.
//!
//! ```text
//! recorder-R/checkpoints/SHARD-POSITION.ckpt
//! +-----------+-------+----------+------------+--------+-----------------+-------+
//! | PARESCKF1 | shard | position | log offset | length | crc32c of all   | state |
//! | 8 bytes   | u64   | u64      | u64        | u64    | else, u64       | bytes |
//! +-----------+-------+----------+------------+--------+-----------------+-------+
//! ```
//! `log offset`: where in this recorder's log replay starts; every record of the shard at `position` or later
//! lies behind it. A file is written under another name, read back, and only then renamed, so that a
//! checkpoint is whole or absent; older ones go only after a newer one is verified.

use std::io::Write;
use std::path::{Path, PathBuf};

use pares_log::Offset;
use pares_types::{Position, ShardId};

use crate::NodeError;
use crate::crash::{self, Point};

const MAGIC: &[u8; 8] = b"PARESCF1";
const HEAD_BYTES: usize = 48;
/// Verified checkpoints kept per shard.
const KEPT: usize = 2;

/// A checkpoint as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// The shard.
    pub shard: ShardId,
    /// The next position to execute on the state.
    pub position: Position,
    /// Where in the recorder's log replay starts.
    pub replay_from: Offset,
    /// The state (see `pares_venue::checkpoint`).
    pub state: Vec<u8>,
}

/// Stores a checkpoint and drops the oldest ones.
///
/// # Errors
/// If it cannot be written, or does not read back as written; older ones are then untouched.
pub fn store(dir: &Path, checkpoint: &StoredCheckpoint, sync: bool) -> Result<(), NodeError> {
    std::fs::create_dir_all(dir).map_err(NodeError::io("creating the checkpoint directory"))?;
    let path = dir.join(format!("{}-{}.ckpt", checkpoint.shard, checkpoint.position));
    let unfinished = path.with_extension("new");
    let mut bytes = head(checkpoint, 0);
    let crc = crc(&bytes, &checkpoint.state);
    bytes = head(checkpoint, crc);
    bytes.extend_from_slice(&checkpoint.state);
    write(&unfinished, &bytes, sync).map_err(NodeError::io("writing a checkpoint"))?;
    if load(&unfinished).as_ref() != Some(checkpoint) {
        return Err(NodeError::Config(format!("{}: does not read back as written", unfinished.display())));
    }
    crash::at(Point::RecorderStored);
    std::fs::rename(&unfinished, &path).map_err(NodeError::io("naming a checkpoint"))?;
    crash::at(Point::RecorderNamed);
    for (_, old) in list(dir, checkpoint.shard).into_iter().skip(KEPT) {
        std::fs::remove_file(old).map_err(NodeError::io("removing an old checkpoint"))?;
    }
    Ok(())
}

/// The newest intact checkpoint of a shard, not above `limit`.
#[must_use]
pub fn newest(dir: &Path, shard: ShardId, limit: Position) -> Option<StoredCheckpoint> {
    list(dir, shard).into_iter().filter(|(position, _)| *position <= limit).find_map(|(_, path)| load(&path))
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

fn write(path: &Path, bytes: &[u8], sync: bool) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    let (first, second) = bytes.split_at(bytes.len() / 2);
    file.write_all(first)?;
    crash::at(Point::RecorderStoring);
    file.write_all(second)?;
    if sync { file.sync_all() } else { Ok(()) }
}

fn head(checkpoint: &StoredCheckpoint, crc: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + checkpoint.state.len());
    bytes.extend_from_slice(MAGIC);
    let fields = [
        u64::from(checkpoint.shard.0),
        checkpoint.position.0,
        checkpoint.replay_from.0,
        checkpoint.state.len() as u64,
        u64::from(crc),
    ];
    fields.iter().for_each(|field| bytes.extend_from_slice(&field.to_le_bytes()));
    bytes
}

fn crc(head_with_zero_crc: &[u8], state: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(head_with_zero_crc), state)
}

fn load(path: &Path) -> Option<StoredCheckpoint> {
    let bytes = std::fs::read(path).ok()?;
    let (head_bytes, state) = bytes.split_at_checked(HEAD_BYTES)?;
    let field = |index: usize| {
        let at = 8 + index * 8;
        u64::from_le_bytes(head_bytes[at..at + 8].try_into().expect("eight bytes"))
    };
    let checkpoint = StoredCheckpoint {
        shard: ShardId(u16::try_from(field(0)).ok()?),
        position: Position(field(1)),
        replay_from: Offset(field(2)),
        state: state.to_vec(),
    };
    let intact = head_bytes.starts_with(MAGIC)
        && field(3) == state.len() as u64
        && field(4) == u64::from(crc(&head(&checkpoint, 0), state));
    intact.then_some(checkpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(position: u64) -> StoredCheckpoint {
        StoredCheckpoint {
            shard: ShardId(3),
            position: Position(position),
            replay_from: Offset(8 * position),
            state: vec![7; 100],
        }
    }

    #[test]
    fn the_newest_intact_checkpoint_is_found() {
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), &checkpoint(9), false).unwrap();
        store(dir.path(), &checkpoint(10), false).unwrap();
        assert_eq!(newest(dir.path(), ShardId(3), Position(99)), Some(checkpoint(10)));
        assert_eq!(newest(dir.path(), ShardId(3), Position(9)), Some(checkpoint(9)));
        assert_eq!(newest(dir.path(), ShardId(4), Position(99)), None);
    }

    #[test]
    fn a_flipped_bit_falls_back_to_the_older_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), &checkpoint(9), false).unwrap();
        store(dir.path(), &checkpoint(10), false).unwrap();
        let path = dir.path().join("3-10.ckpt");
        for at in 0..std::fs::read(&path).unwrap().len() {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(newest(dir.path(), ShardId(3), Position(99)), Some(checkpoint(9)), "byte {at}");
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
        }
    }

    #[test]
    fn checkpoints_above_a_position_can_be_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        store(dir.path(), &checkpoint(9), false).unwrap();
        store(dir.path(), &checkpoint(10), false).unwrap();
        remove_above(dir.path(), ShardId(4), Position(0)).unwrap();
        remove_above(dir.path(), ShardId(3), Position(9)).unwrap();
        assert_eq!(newest(dir.path(), ShardId(3), Position(99)), Some(checkpoint(9)));
    }

    #[test]
    fn older_checkpoints_go_when_newer_ones_are_verified() {
        let dir = tempfile::tempdir().unwrap();
        for position in 1..=5 {
            store(dir.path(), &checkpoint(position), false).unwrap();
        }
        assert_eq!(list(dir.path(), ShardId(3)).len(), KEPT);
        assert_eq!(newest(dir.path(), ShardId(3), Position(99)), Some(checkpoint(5)));
    }
}
