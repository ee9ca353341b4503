//! The terms of an order: side, price, how long it stays, and what happens when it meets its owner's.

use crate::coded::coded;
use crate::{Price, Timestamp};

coded! {
    /// Buy or sell.
    #[derive(PartialOrd, Ord)]
    pub enum Side {
        /// Bids.
        Buy = 1 "buy",
        /// Offers (asks).
        Sell = 2 "sell",
    }
}

impl Side {
    /// The other side.
    #[must_use]
    #[inline]
    pub fn opposite(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }

    /// Whether an incoming order of this side limited to `limit` may trade at `resting`.
    #[must_use]
    #[inline]
    pub fn crosses(self, limit: Price, resting: Price) -> bool {
        match self {
            Self::Buy => limit >= resting,
            Self::Sell => limit <= resting,
        }
    }
}

/// At what price an order may trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderKind {
    /// At `price` or better.
    Limit {
        /// The worst price accepted.
        price: Price,
    },
    /// At whatever the book offers. What does not match is cancelled, unless the instrument lets it rest at the latest price.
    Market,
    /// At a price that follows the book, never worse than `limit`.
    Pegged {
        /// What it follows.
        to: Peg,
        /// The worst price accepted.
        limit: Price,
    },
}

impl OrderKind {
    /// The code that stands for it in checkpoints and hashes, and its limit; 0 at market.
    #[must_use]
    #[inline]
    pub const fn code(self) -> (u8, Price) {
        match self {
            Self::Limit { price } => (1, price),
            Self::Market => (2, Price(0)),
            Self::Pegged { to, limit } => (2 + to as u8, limit),
        }
    }

    /// What a code stands for, with that limit.
    #[must_use]
    pub const fn of(code: u8, limit: Price) -> Option<Self> {
        Some(match code {
            1 => Self::Limit { price: limit },
            2 => Self::Market,
            3 => Self::Pegged { to: Peg::Best, limit },
            4 => Self::Pegged { to: Peg::Mid, limit },
            _ => return None,
        })
    }
}

coded! {
    /// What a pegged order's price follows. Pegged orders themselves do not count.
    #[derive(PartialOrd, Ord)]
    pub enum Peg {
        /// The best price of its own side.
        Best = 1 "best",
        /// The middle between best bid and best offer, rounded to the tick away from the other side.
        Mid = 2 "mid",
    }
}

/// How long the part of an order that does not match at once stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeInForce {
    /// Until the end of the trading day.
    Day,
    /// Immediate or cancel: not at all.
    Ioc,
    /// Fill or kill: unless all of it matches at once, none of it trades.
    Fok,
    /// Until it is cancelled; it is carried over from day to day.
    Gtc,
    /// Until the first time request at or after `until`; it is carried over from day to day.
    Gtd {
        /// When it expires.
        until: Timestamp,
    },
    /// It participates in the opening call only.
    AtOpen,
    /// It participates in the closing call only; entered before, it waits for it.
    AtClose,
}

impl TimeInForce {
    /// The code that stands for it in records, frames and checkpoints, and the date of an order that has one; else 0.
    #[must_use]
    #[inline]
    pub const fn code(self) -> (u8, u64) {
        match self {
            Self::Day => (1, 0),
            Self::Ioc => (2, 0),
            Self::Fok => (3, 0),
            Self::Gtc => (4, 0),
            Self::Gtd { until } => (5, until.0),
            Self::AtOpen => (6, 0),
            Self::AtClose => (7, 0),
        }
    }

    /// What a code stands for; the date counts for [`TimeInForce::Gtd`] only.
    #[must_use]
    pub const fn of(code: u8, until_ns: u64) -> Option<Self> {
        Some(match code {
            1 => Self::Day,
            2 => Self::Ioc,
            3 => Self::Fok,
            4 => Self::Gtc,
            5 => Self::Gtd { until: Timestamp(until_ns) },
            6 => Self::AtOpen,
            7 => Self::AtClose,
            _ => return None,
        })
    }
}

coded! {
    /// What happens when an incoming order meets a resting one of the same member: the incoming order's
    /// wish counts. Auctions do not look.
    #[derive(Default, PartialOrd, Ord)]
    pub enum SelfTrade {
        /// They trade.
        Allow = 0 "allow" default,
        /// The resting order is cancelled, the incoming one continues.
        CancelResting = 1 "cancel_resting",
        /// What is left of the incoming order is cancelled.
        CancelIncoming = 2 "cancel_incoming",
        /// Both are cancelled.
        CancelBoth = 3 "cancel_both",
        /// Both lose as many shares as would have traded.
        Decrement = 4 "decrement",
    }
}
