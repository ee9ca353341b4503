//! Checkpoints on their way from venues to recorders, and the notice that one has arrived.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{CHECKPOINT_CHUNK, CHECKPOINT_STORED, check};
use crate::WireError;

layout! {
    /// A piece of a shard's checkpoint on its way to the recorders; its bytes follow.
    CheckpointChunk (24) {
        /// [`CHECKPOINT_CHUNK`].
        schema: u8,
        /// [`super::VERSION`].
        version: u8,
        /// The shard.
        shard: U16,
        /// The life of the window it was taken in.
        epoch: U32,
        /// The next position to execute on this state.
        position: U64,
        /// Bytes of the whole checkpoint in its last piece, 0 in the others: nobody knows it earlier.
        total_bytes: U32,
        /// Where this piece starts in it.
        start: U32,
    }
}

layout! {
    /// A recorder has a whole, verified checkpoint on disk.
    CheckpointStored (16) {
        /// [`CHECKPOINT_STORED`].
        schema: u8,
        /// [`super::VERSION`].
        version: u8,
        /// The shard.
        shard: U16,
        /// The life of the window it was taken in.
        epoch: U32,
        /// The next position to execute on that state.
        position: U64,
    }
}

impl CheckpointChunk {
    /// Reads a chunk and the bytes it carries.
    ///
    /// # Errors
    /// If the bytes are not a chunk of this version, reach beyond what a checkpoint can have, or are a last one that
    /// does not end where the checkpoint does.
    pub fn read(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        let (chunk, rest) = Self::ref_from_prefix(bytes).map_err(|_| WireError::Truncated)?;
        check(chunk.schema, chunk.version, CHECKPOINT_CHUNK)?;
        let end = u64::from(chunk.start.get()) + rest.len() as u64;
        if end > u64::from(u32::MAX) {
            return Err(WireError::InvalidField("start"));
        }
        if chunk.total().is_some_and(|total| total != end) {
            return Err(WireError::InvalidField("total_bytes"));
        }
        Ok((chunk, rest))
    }

    /// Bytes of the whole checkpoint, if this is its last piece.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        Some(u64::from(self.total_bytes.get())).filter(|&total| total > 0)
    }
}

impl CheckpointStored {
    /// Reads the notice, which must be all of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not such a notice of this version.
    pub fn read(bytes: &[u8]) -> Result<&Self, WireError> {
        let stored = Self::ref_from_bytes(bytes).map_err(|_| WireError::Truncated)?;
        check(stored.schema, stored.version, CHECKPOINT_STORED)?;
        Ok(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(start: u32, total_bytes: u32) -> Vec<u8> {
        let head = CheckpointChunk {
            schema: CHECKPOINT_CHUNK,
            version: super::super::VERSION,
            shard: 1.into(),
            epoch: 1.into(),
            position: 9.into(),
            total_bytes: total_bytes.into(),
            start: start.into(),
        };
        [head.as_bytes(), b"abcd"].concat()
    }

    fn total(bytes: &[u8]) -> Result<Option<u64>, WireError> {
        CheckpointChunk::read(bytes).map(|(chunk, _)| chunk.total())
    }

    #[test]
    fn only_the_last_piece_tells_the_total() {
        assert_eq!(total(&chunk(8, 0)), Ok(None));
        assert_eq!(total(&chunk(8, 12)), Ok(Some(12)));
        assert_eq!(total(&chunk(u32::MAX - 4, 0)), Ok(None));
        assert_eq!(total(&chunk(u32::MAX - 3, 0)), Err(WireError::InvalidField("start")));
    }

    #[test]
    fn a_last_piece_ends_where_the_checkpoint_does() {
        for wrong in [11, 13] {
            assert_eq!(total(&chunk(8, wrong)), Err(WireError::InvalidField("total_bytes")));
        }
    }
}
