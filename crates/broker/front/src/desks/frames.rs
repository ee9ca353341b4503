//! Frames between fronts and desks, in the layouts of the sites' codec.
//!
//! | from a front | | |
//! |---|---|---|
//! | 1 | want | question `u64`, symbol, user |
//! | 2 | noted | count `u64`: that hit of this desk is in the log |
//! | 3 | are you there | - |
//!
//! | from a desk | | |
//! |---|---|---|
//! | 1 | desk | number `u64` of this life of the desk: the first frame |
//! | 2 | quote | question `u64`, quote, hit's count `u64`? if this front is the one to note it |
//! | 3 | none | question `u64`, fault `u8` |
//! | 4 | hit | count `u64`, quote: to be noted by this front, since nobody else has |
//! | 5 | here | - |

use pares_broker::{StockQuote, StockSymbol, UserName};
use pares_wice::codec::{Coded, DecodeError};

use crate::line::QuoteFault;

/// Longest frame, bytes.
pub const FRAME_MAX: usize = 1 << 10;

/// What a front says to a desk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToDesk {
    /// A stock's quote is wanted.
    Want {
        /// The front's number of the question.
        question: u64,
        /// Of which stock.
        symbol: StockSymbol,
        /// For which user.
        user: UserName,
    },
    /// A hit is in the log.
    Noted {
        /// Which one of this desk's.
        count: u64,
    },
    /// Say that you are there.
    AreYouThere,
}

/// What a desk says to a front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToFront {
    /// Who it is.
    Desk {
        /// The number of this life: no other desk has or had it.
        number: u64,
    },
    /// A quote.
    Quote {
        /// The front's number of the question.
        question: u64,
        /// The quote.
        quote: StockQuote,
        /// The hit, if this front is the one to have it noted.
        count: Option<u64>,
    },
    /// There is none.
    None {
        /// The front's number of the question.
        question: u64,
        /// Why.
        fault: QuoteFault,
    },
    /// A hit that is to be noted: who had it before has gone, or nobody used it.
    Hit {
        /// Which one of this desk's.
        count: u64,
        /// The quote.
        quote: StockQuote,
    },
    /// It is there.
    Here,
}

const FAULTS: [QuoteFault; 8] = [
    QuoteFault::Closed,
    QuoteFault::Silent,
    QuoteFault::Garbage,
    QuoteFault::OtherStock,
    QuoteFault::OtherUser,
    QuoteFault::Ahead,
    QuoteFault::Old,
    QuoteFault::Unreached,
];

fn code_of(fault: QuoteFault) -> u8 {
    let place = (1..).zip(FAULTS).find(|(_, other)| *other == fault);
    place.map_or(1, |(code, _)| code)
}

fn fault_of(code: u8) -> Result<QuoteFault, DecodeError> {
    let fault = usize::from(code).checked_sub(1).and_then(|at| FAULTS.get(at));
    fault.copied().ok_or(DecodeError::Kind(code, "fault"))
}

impl Coded for ToDesk {
    fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Want { question, symbol, user } => {
                (1u8, *question).encode(to);
                symbol.encode(to);
                user.encode(to);
            }
            Self::Noted { count } => (2u8, *count).encode(to),
            Self::AreYouThere => 3u8.encode(to),
        }
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(match u8::decode(from)? {
            1 => {
                let (question, symbol) = Coded::decode(from)?;
                Self::Want { question, symbol, user: Coded::decode(from)? }
            }
            2 => Self::Noted { count: Coded::decode(from)? },
            3 => Self::AreYouThere,
            other => return Err(DecodeError::Kind(other, "word to a desk")),
        })
    }
}

impl Coded for ToFront {
    fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Desk { number } => (1u8, *number).encode(to),
            Self::Quote { question, quote, count } => {
                (2u8, *question).encode(to);
                quote.encode(to);
                count.encode(to);
            }
            Self::None { question, fault } => ((3u8, *question), code_of(*fault)).encode(to),
            Self::Hit { count, quote } => {
                (4u8, *count).encode(to);
                quote.encode(to);
            }
            Self::Here => 5u8.encode(to),
        }
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(match u8::decode(from)? {
            1 => Self::Desk { number: Coded::decode(from)? },
            2 => {
                let (question, quote) = Coded::decode(from)?;
                Self::Quote { question, quote, count: Coded::decode(from)? }
            }
            3 => {
                let (question, code) = Coded::decode(from)?;
                Self::None { question, fault: fault_of(code)? }
            }
            4 => {
                let (count, quote) = Coded::decode(from)?;
                Self::Hit { count, quote }
            }
            5 => Self::Here,
            other => return Err(DecodeError::Kind(other, "word of a desk")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_were_written_and_nothing_else_is_one() {
        let (symbol, user) = (StockSymbol::new("ABC").unwrap(), UserName::new("jo").unwrap());
        let quote = StockQuote { price_cents: 7, symbol, user: "jo".into(), server_ms: 9, key: "key".into() };
        for word in
            [ToDesk::Want { question: 1, symbol, user }, ToDesk::Noted { count: 2 }, ToDesk::AreYouThere]
        {
            let bytes = word.to_bytes();
            assert_eq!(ToDesk::from_bytes(&bytes), Ok(word));
            assert!((0..bytes.len()).all(|end| ToDesk::from_bytes(&bytes[..end]).is_err()));
        }
        let faults = FAULTS.map(|fault| ToFront::None { question: 4, fault });
        let others = [
            ToFront::Desk { number: 3 },
            ToFront::Quote { question: 4, quote: quote.clone(), count: Some(8) },
            ToFront::Hit { count: 5, quote },
            ToFront::Here,
        ];
        for word in faults.into_iter().chain(others) {
            let bytes = word.to_bytes();
            assert_eq!(ToFront::from_bytes(&bytes), Ok(word));
            assert!((0..bytes.len()).all(|end| ToFront::from_bytes(&bytes[..end]).is_err()));
        }
    }
}
