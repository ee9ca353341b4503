//! How the market data of a shard are, as traders are told.

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
