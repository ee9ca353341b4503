//! Phases of an instrument's trading day, and the rules the exchange can change while it runs.

use crate::coded::coded;
use crate::{Price, Quantity, Timestamp};

coded! {
    /// What an instrument is doing. docs/rules.md says what each phase allows.
    ///
    /// ```text
    ///  Closed -> OpeningCall -> Continuous -> ClosingCall -> PostClose -> Closed
    ///                             |    ^
    ///                             v    |              any phase -> Halted -> any phase
    ///                         VolatilityCall
    /// ```
    #[derive(Default, PartialOrd, Ord)]
    pub enum Phase {
        /// Between trading days: orders may only be cancelled.
        Closed = 1 "closed",
        /// Orders gather for the opening auction; nothing matches until the phase ends.
        OpeningCall = 2 "opening_call",
        /// Orders match as they come.
        Continuous = 3 "continuous" default,
        /// Orders gather because a trade would have been outside a price band.
        VolatilityCall = 4 "volatility_call",
        /// Orders gather for the closing auction.
        ClosingCall = 5 "closing_call",
        /// Orders match at the closing price.
        PostClose = 6 "post_close",
        /// Stopped by the exchange: orders may only be cancelled.
        Halted = 7 "halted",
    }
}

impl Phase {
    /// Whether orders gather without matching.
    #[must_use]
    #[inline]
    pub fn is_call(self) -> bool {
        matches!(self, Self::OpeningCall | Self::VolatilityCall | Self::ClosingCall)
    }

    /// Whether orders match as they come.
    #[must_use]
    #[inline]
    pub fn matches(self) -> bool {
        matches!(self, Self::Continuous | Self::PostClose)
    }
}

/// One rule of an instrument, with its new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The legal limit prices, both included; multiples of their ticks. Only while no order is there.
    PriceRange {
        /// Lowest.
        min: Price,
        /// Highest.
        max: Price,
    },
    /// The tick of prices from `from` up to the next row of the table; a zero `tick` removes the row.
    /// Only while no order is there.
    Tick {
        /// Where it begins; a multiple of the tick. The first row begins at the lowest legal price or below.
        from: Price,
        /// The smallest price step.
        tick: Price,
    },
    /// The smallest quantity step. Only while no order is there.
    Lot(Quantity),
    /// The largest order, in shares.
    QuantityMax(Quantity),
    /// The largest order, in price units times shares; zero for no limit.
    ValueMax(u64),
    /// The most orders that may be there at one time.
    OrdersMax(u32),
    /// The most events one step may cause.
    StepMax(u32),
    /// How far from the reference price trades may be, auctions included.
    StaticBand(Band),
    /// How far from the last trade trades may be, auctions included.
    DynamicBand(Band),
    /// How long a volatility call lasts; zero for none: what would trade outside a band is cancelled.
    Call {
        /// Nanoseconds.
        ns: u64,
    },
    /// At that time of each day (nanoseconds since midnight UTC) the instrument enters `phase`;
    /// `None` removes the row.
    Schedule {
        /// Nanoseconds since midnight UTC, below 86,400 seconds.
        at_ns: u64,
        /// The phase; not [`Phase::Halted`] nor [`Phase::VolatilityCall`].
        phase: Option<Phase>,
    },
    /// The reference price of the static band and of auctions.
    Reference(Price),
    /// How long a call is extended that would end outside a band.
    Extension {
        /// Nanoseconds of each extension.
        ns: u64,
        /// Extensions of one call at most; after the last one it takes the best price within the bands, or halts. Zero for none.
        max: u8,
        /// Whether a call is extended that would leave market orders over, too.
        market: bool,
    },
    /// Within which time after its end a call ends at random, so that nobody knows the last moment; zero for at its end.
    RandomEnd {
        /// Nanoseconds.
        ns: u64,
    },
    /// An auction of fewer shares sets neither the closing nor the reference price.
    AuctionMin(Quantity),
    /// Which of several prices an auction takes that are as good, with shares of either side left over, or none.
    TieBreak(TieBreak),
    /// How far from the latest price what is left over of one side moves an auction's price, in hundredths of a percent; zero for no limit.
    PressureLimit(u32),
    /// How an iceberg shows more.
    IcebergRefill {
        /// An order that takes more than it shows takes the hidden rest in one trade, after all that is shown at that price, and it
        /// shows a whole peak then; otherwise peak after peak, and it shows what is left of the last.
        fresh: bool,
    },
    /// What becomes of a market order that has traded and finds nobody any more.
    MarketRemainder {
        /// It rests at the latest price, as a limit order; otherwise what is left of it is cancelled.
        rests: bool,
    },
    /// Whether an iceberg that is to show less keeps its priority.
    DisplayDecrease {
        /// It does.
        keeps: bool,
    },
}

/// Which of several prices an auction takes that are as good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TieBreak {
    /// The latest price, as near as they allow (BNB).
    #[default]
    Latest = 0,
    /// The limit next to the latest price, of two as near the higher (Xetra).
    NearestLimit = 1,
}

/// How far from a price trades may be: the larger of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Band {
    /// Hundredths of a percent of the price's magnitude.
    pub width: u32,
    /// Price units, not below zero: what holds near zero, where a percentage is nothing.
    pub least: Price,
}

impl Band {
    /// No limit.
    pub const NONE: Self = Self { width: 0, least: Price(0) };

    /// So many hundredths of a percent.
    #[must_use]
    pub const fn of(width: u32) -> Self {
        Self { width, least: Price(0) }
    }

    /// Whether it is a limit at all.
    #[must_use]
    #[inline]
    pub fn is_set(self) -> bool {
        self != Self::NONE
    }
}

/// Nanoseconds of a day.
pub const DAY_NS: u64 = 86_400_000_000_000;

impl Timestamp {
    /// A time that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// `self` later by so many nanoseconds; [`Timestamp::NEVER`] beyond the end of time.
    #[must_use]
    #[inline]
    pub fn plus_ns(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }
}
