//! What a server is told from outside its system: the market, and what the exchange tells the member.
//!
//! Neither needs agreement between servers. The market is a function of the exchange's record, the same from every publisher; what the exchange tells the
//! member is numbered by it, so that copies of the same report are known as such.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use pares_desk::view::BookView;
use pares_types::ShardId;

/// How a shard's market data are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum MarketState {
    /// All that was sent, as far as anybody knows.
    Current = 1,
    /// Messages are missing, and asked for.
    Gap = 2,
    /// Publishers are asked what is true.
    Recovering = 3,
    /// Nobody was heard for long, or ever.
    #[default]
    Stale = 4,
    /// The business day is over.
    Over = 5,
}

impl MarketState {
    /// The state of that code.
    #[must_use]
    pub fn of(code: u8) -> Option<Self> {
        use MarketState::*;
        [Current, Gap, Recovering, Stale, Over].into_iter().find(|state| *state as u8 == code)
    }

    /// In a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Gap => "gap",
            Self::Recovering => "recovering",
            Self::Stale => "stale",
            Self::Over => "over",
        }
    }
}

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

/// Where the market comes from.
pub trait MarketFeed: Send {
    /// The next that came, without waiting.
    fn next(&mut self) -> Option<MarketNews>;
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

/// What a server is told from outside.
#[derive(Default)]
pub struct Sources {
    /// The market, if it is received.
    pub market: Option<Box<dyn MarketFeed>>,
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

impl<T> Handed<T> {
    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl MarketFeed for Handed<MarketNews> {
    fn next(&mut self) -> Option<MarketNews> {
        Handed::next(self)
    }
}

impl DropCopy for Handed<CopiedReport> {
    fn next(&mut self) -> Option<CopiedReport> {
        Handed::next(self)
    }
}
