//! A checkpoint being taken and handed out, piece by piece.

use pares_types::{Position, ShardId};
use pares_venue::Piece as Written;

use crate::bug::Bug;
use crate::defects;
use crate::shard::AnyShard;

/// What is written of it, and how much of that is handed out.
pub(crate) struct Outgoing {
    pub(crate) shard: ShardId,
    pub(crate) position: Position,
    pub(crate) state: Vec<u8>,
    is_whole: bool,
    pub(crate) sent: usize,
}

impl Outgoing {
    pub(crate) fn begin(id: ShardId, shard: &mut AnyShard) -> Self {
        let mut state = Vec::new();
        let position = shard.begin_checkpoint(&mut state);
        Self { shard: id, position, state, is_whole: false, sent: 0 }
    }

    /// Writes on if all is handed out, while requests go on changing the shard. Says whether the checkpoint can go on: not if the
    /// shard is another one by now, or away.
    pub(crate) fn write_more(
        &mut self,
        shard: Option<&mut AnyShard>,
        bytes: usize,
        bug: Option<Bug>,
    ) -> bool {
        let spoils = bug == Some(Bug::CheckpointWithoutAnOrder);
        if self.is_whole || self.sent < self.state.len() && !spoils {
            return true;
        }
        let Some(shard) = shard else { return false };
        let bytes = if spoils { usize::MAX } else { bytes };
        let written = shard.checkpoint_piece(&mut self.state, bytes);
        self.is_whole = written == Written::Last;
        if spoils {
            self.state = defects::without_an_order(&self.state);
        }
        written != Written::NoCheckpoint
    }

    /// The next piece, and whether it is the last.
    pub(crate) fn next_piece(&mut self, bytes: usize) -> (Vec<u8>, bool) {
        let end = self.state.len().min(self.sent + bytes);
        let piece = self.state[self.sent..end].to_vec();
        self.sent = end;
        (piece, self.is_whole && end == self.state.len())
    }
}
