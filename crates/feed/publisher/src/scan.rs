//! A publisher's log, read through: how far each shard's messages have come, and the states that it holds.
//!
//! A log is not believed where it contradicts itself: its publisher then makes another one out of the record, which loses nothing.

use std::collections::BTreeMap;

use pares_config::NodeId;
use pares_log::{LogReader, Offset, ReadError};
use pares_roles::World;
use pares_types::{Position, ShardId};

use crate::logged::{Logged, Published, Reached, StatePiece};

/// Steps that are kept of a shard.
const STEPS_MAX: usize = 1_024;

/// A state as it lies in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Where its first piece lies.
    pub(crate) offset: Offset,
    pub(crate) reached: Reached,
    pub(crate) position: Position,
    pub(crate) bytes: Vec<u8>,
    pieces: u32,
}

/// What a log holds of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// How far its messages have come.
    pub(crate) told: Option<Reached>,
    /// How far they had come, step by step, since the newest state: not every step, but the last one.
    pub(crate) steps: Vec<Reached>,
    /// The newest state that is whole.
    pub(crate) newest: Option<Stored>,
    /// The state in which the last session began; `None` if that was the first record.
    pub(crate) beginning: Option<Stored>,
    /// Where the last session and the one before began.
    pub(crate) sessions: [Offset; 2],
    unfinished: Option<Stored>,
}

/// Why a log is of no use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Useless {
    /// It is damaged, or contradicts itself.
    #[error("{0}")]
    Damaged(String),
    /// It cannot be read just now.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

impl Stored {
    /// A state that is to be written.
    pub(crate) fn new(reached: Reached, position: Position, bytes: Vec<u8>) -> Self {
        Self { offset: Offset::START, reached, position, bytes, pieces: 0 }
    }
}

impl Held {
    /// The next record of the shard.
    ///
    /// # Errors
    /// If it does not follow what came before.
    pub(crate) fn on_logged(&mut self, offset: Offset, logged: &Logged<'_>) -> Result<(), String> {
        match logged {
            Logged::Published(published) => self.on_published(offset, published),
            Logged::Piece(piece) => self.on_piece(offset, piece),
        }
    }

    fn on_published(&mut self, offset: Offset, published: &Published<'_>) -> Result<(), String> {
        let Published { first, reached, .. } = *published;
        if first == 1 {
            self.beginning = self.newest.clone();
            let began = self.newest.as_ref().map_or(offset, |state| state.offset);
            self.sessions = [self.sessions[1], began];
        } else {
            let follows = self
                .told
                .is_none_or(|told| (told.session, told.next, told.over) == (reached.session, first, false));
            if !follows {
                return Err(format!("message {first} of session {} does not follow", reached.session));
            }
        }
        self.told = Some(reached);
        self.step(reached);
        Ok(())
    }

    fn step(&mut self, reached: Reached) {
        if self.steps.len() >= STEPS_MAX {
            let mut odd = false;
            self.steps.retain(|_| {
                odd = !odd;
                odd
            });
        }
        self.steps.push(reached);
    }

    fn on_piece(&mut self, offset: Offset, piece: &StatePiece<'_>) -> Result<(), String> {
        let StatePiece { reached, position, index, count, bytes, .. } = *piece;
        if index == 0 {
            self.unfinished = Some(Stored { offset, reached, position, bytes: Vec::new(), pieces: 0 });
        }
        // The rest of one whose beginning was dropped.
        let Some(state) = &mut self.unfinished else { return Ok(()) };
        if (state.position, state.pieces) != (position, index) {
            return Err(format!("a piece of the state at {position} does not follow"));
        }
        state.bytes.extend_from_slice(bytes);
        state.pieces += 1;
        if state.pieces == u32::from(count) {
            self.newest = self.unfinished.take();
            self.steps.clear();
        }
        Ok(())
    }
}

/// What a publisher's log holds, by shard; nothing of one that is not there.
///
/// # Errors
/// If it is of no use.
pub(crate) fn scan<W: World>(world: &W, log: NodeId) -> Result<BTreeMap<ShardId, Held>, Useless> {
    let mut held: BTreeMap<ShardId, Held> = BTreeMap::new();
    let mut reader = match world.read_log_from_start(log) {
        Err(ReadError::NotYet { .. }) => return Ok(held),
        reader => reader.map_err(useless)?,
    };
    while let Some(record) = reader.next().map_err(useless)? {
        let logged = Logged::read(record.payload).map_err(|error| Useless::Damaged(error.to_string()))?;
        let shard = match &logged {
            Logged::Published(published) => published.shard,
            Logged::Piece(piece) => piece.shard,
        };
        let of = held.entry(shard).or_default();
        of.on_logged(record.offset, &logged).map_err(Useless::Damaged)?;
    }
    Ok(held)
}

fn useless(error: ReadError) -> Useless {
    if error.is_damage() { Useless::Damaged(error.to_string()) } else { error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_feed::publication::Session;

    const SHARD: ShardId = ShardId(1);

    fn reached(day: u8, next: u64) -> Reached {
        let session = Session([b'0', b'0', b'0', b'1', b'0', b'0', b'0', b'0', b'0', b'0' + day]);
        Reached { session, next, chain: 0, over: false }
    }

    fn messages(held: &mut Held, at: u64, day: u8, first: u64) -> Result<(), String> {
        let (position, blocks) = (Position(0), &[][..]);
        let reached = reached(day, first + 2);
        let published = Published { shard: SHARD, first, count: 2, reached, position, blocks };
        held.on_logged(Offset(at), &Logged::Published(published))
    }

    fn piece(held: &mut Held, at: u64, index: u32, bytes: &[u8]) -> Result<(), String> {
        let (reached, position) = (reached(1, 5), Position(9));
        let piece = StatePiece { shard: SHARD, index, count: 2, reached, position, bytes };
        held.on_logged(Offset(at), &Logged::Piece(piece))
    }

    #[test]
    fn newest_complete_state_and_session_start_are_kept() {
        let mut held = Held::default();
        messages(&mut held, 0, 1, 1).unwrap();
        assert_eq!((held.beginning.clone(), held.told.unwrap().next), (None, 3));
        messages(&mut held, 100, 1, 3).unwrap();
        piece(&mut held, 200, 0, b"ab").unwrap();
        assert_eq!(held.newest, None, "half of one");
        piece(&mut held, 300, 1, b"c").unwrap();
        assert_eq!(held.newest.clone().unwrap().bytes, b"abc");
        messages(&mut held, 400, 2, 1).unwrap();
        assert_eq!(held.beginning.clone().unwrap().offset, Offset(200));
        assert_eq!(held.sessions, [Offset(0), Offset(200)]);
        piece(&mut held, 500, 0, b"de").unwrap();
        assert_eq!(held.newest.unwrap().bytes, b"abc", "the next is not whole yet");
    }

    #[test]
    fn what_does_not_follow_is_found() {
        let mut held = Held::default();
        messages(&mut held, 0, 1, 1).unwrap();
        assert!(messages(&mut held, 100, 1, 4).is_err());
        assert!(messages(&mut held, 100, 2, 3).is_err());
        piece(&mut held, 200, 0, b"ab").unwrap();
        assert!(piece(&mut held, 300, 2, b"c").is_err());
    }

    #[test]
    fn a_log_whose_beginning_was_dropped_begins_anywhere() {
        let mut held = Held::default();
        piece(&mut held, 0, 1, b"c").unwrap();
        messages(&mut held, 100, 1, 40).unwrap();
        assert_eq!((held.newest, held.told.unwrap().next), (None, 42));
    }
}
