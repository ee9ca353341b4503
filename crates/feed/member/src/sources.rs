//! What a server receives from outside its system: the market, and what the exchange tells the member.
//!
//! Neither needs agreement between servers. The market is a function of the exchange's record, the same from every publisher; what the exchange tells the
//! member is numbered by it, so that copies of the same report are known as such.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

pub use pares_desk::market::MarketState;
use pares_desk::view::BookView;
use pares_types::ShardId;

/// Something about the market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarketNews {
    /// A book is like that now. States in between may have been left out.
    Book {
        /// Of which shard.
        shard: ShardId,
        /// Of which instrument there.
        locate: u16,
        /// What is shown of it.
        view: BookView,
    },
    /// A shard's data are worth this now.
    State {
        /// Which.
        shard: ShardId,
        /// What.
        state: MarketState,
    },
}

/// What the exchange told the member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedReport {
    /// Of which shard.
    pub shard: ShardId,
    /// Its number in the member's stream there.
    pub number: u64,
    /// The gateway's frame.
    pub frame: Vec<u8>,
}

/// Where it comes from: each shard's in the order of their numbers, from those that the server has not.
pub trait DropCopy: Send {
    /// The next that came, without waiting.
    fn next(&mut self) -> Option<CopiedReport>;
}

impl DropCopy for Handed<CopiedReport> {
    fn next(&mut self) -> Option<CopiedReport> {
        self.try_next().ok().flatten()
    }
}

/// What a server receives from outside.
#[derive(Default)]
pub struct Sources {
    /// The market, if it is received.
    pub market: Option<Handed<MarketNews>>,
    /// What the exchange tells the member, if that is copied.
    pub reports: Option<Box<dyn DropCopy>>,
}

/// What another thread hands over: bounded, so that a server that falls behind holds its source back and not its memory.
pub struct Handed<T>(Receiver<T>);

/// The two ends of a way from one thread to a server.
#[must_use]
pub fn handing<T: Send>(room: usize) -> (SyncSender<T>, Handed<T>) {
    let (sender, receiver) = sync_channel(room);
    (sender, Handed(receiver))
}

/// Who handed things over is gone, and nothing comes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceEnded;

impl<T> Handed<T> {
    /// The next that came, without waiting; `None` if nothing has come yet.
    ///
    /// # Errors
    /// If nothing will.
    pub fn try_next(&mut self) -> Result<Option<T>, SourceEnded> {
        match self.0.try_recv() {
            Ok(news) => Ok(Some(news)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(SourceEnded),
        }
    }
}
