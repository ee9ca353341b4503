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
use pares_wice::kinds;

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

kinds!(ToDesk, "word to a desk" { 1 => Want { question, symbol, user }, 2 => Noted { count }, 3 => AreYouThere });
kinds!(ToFront, "word of a desk" {
    1 => Desk { number },
    2 => Quote { question, quote, count },
    3 => None { question, fault },
    4 => Hit { count, quote },
    5 => Here,
});
kinds!(QuoteFault, "fault" {
    1 => Closed,
    2 => Silent,
    3 => Garbage,
    4 => OtherStock,
    5 => OtherUser,
    6 => Ahead,
    7 => Old,
    8 => Unreached,
});

#[cfg(test)]
mod tests {
    use pares_wice::codec::Coded;

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
        let faults = (1..=8).map(|code| QuoteFault::decode(&mut [code].as_slice()).unwrap());
        let faults = faults.map(|fault| ToFront::None { question: 4, fault });
        let others = [
            ToFront::Desk { number: 3 },
            ToFront::Quote { question: 4, quote: quote.clone(), count: Some(8) },
            ToFront::Hit { count: 5, quote },
            ToFront::Here,
        ];
        for word in faults.chain(others) {
            let bytes = word.to_bytes();
            assert_eq!(ToFront::from_bytes(&bytes), Ok(word));
            assert!((0..bytes.len()).all(|end| ToFront::from_bytes(&bytes[..end]).is_err()));
        }
    }
}
