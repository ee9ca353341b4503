//! All that was measured, and what others publish of themselves. Nothing where it was not measured.

use serde::Serialize;

use super::{itch_book, itchy};

/// What CppTrader's own page says of its ITCH handler: "ITCH message throughput: 41460256 msg/s", over the 283,238,832 messages of 2017-01-30,
/// on an i7-4790K at 4 GHz (README.md of github.com/chronoxor/CppTrader).
const CPPTRADER_DECODED_PER_S: u64 = 41_460_256;
/// The same page of its books, "Market manager (optimized version)": "ITCH message throughput: 8293747 msg/s", 8,371 symbols and at most
/// 1,647,972 orders.
const CPPTRADER_BOOKS_PER_S: u64 = 8_293_747;
/// Where it says so.
const CPPTRADER_SOURCE: &str = "README.md of github.com/chronoxor/CppTrader, i7-4790K";

/// Rates are messages a second, and medians of rounds as all others are.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figures {
    /// From records to packets.
    pub(crate) published_per_s: Option<u64>,
    /// From a committed position to its packet on both lines, at 10,000 requests a second, microseconds.
    pub(crate) committed_to_sent_p50_us: Option<f64>,
    pub(crate) committed_to_sent_p99_us: Option<f64>,
    /// From packets to messages.
    pub(crate) decoded_per_s: Option<u64>,
    /// From packets to books.
    pub(crate) books_per_s: Option<u64>,
    /// From packets on the sockets of two lines to the same books; each message counts once.
    pub(crate) received_per_s: Option<u64>,
    /// Messages that came by one of them only, in all rounds.
    pub(crate) received_by_one_line: Option<u64>,
    /// From bytes to messages, by `itchy`.
    pub(crate) itchy_per_s: Option<u64>,
    /// From bytes to books, by `itch-book`.
    pub(crate) itch_book_per_s: Option<u64>,
    /// Why there is no figure of `itch-book`.
    pub(crate) itch_book_missing: Option<String>,
    /// What others publish of themselves.
    #[serde(flatten)]
    pub(super) elsewhere: PublishedElsewhere,
    /// Instruments of the books.
    pub(crate) instruments: u16,
    /// Orders in them at the end.
    pub(crate) living_orders: u64,
    /// Traders of one member server, by TCP.
    pub(crate) traders: u32,
    /// Items that all of them received, a second.
    pub(crate) deliveries_per_s: Option<u64>,
    /// From an item's submission to its being read, microseconds.
    pub(crate) fast_p50_us: Option<f64>,
    pub(crate) fast_p99_us: Option<f64>,
    /// The same of those who read, while so many do not.
    pub(crate) slow_traders: u32,
    pub(crate) deliveries_slow_per_s: Option<u64>,
    pub(crate) fast_p99_slow_us: Option<f64>,
    /// The same of as many traders by WebSocket.
    pub(crate) web_deliveries_per_s: Option<u64>,
    pub(crate) web_p99_us: Option<f64>,
    /// Items that a trader by UDP received, a second; the packets they came in; and those that did not come, in all rounds.
    pub(crate) cast_messages_per_s: Option<u64>,
    pub(crate) packets_per_s: Option<u64>,
    pub(crate) cast_lost: Option<u64>,
    /// Rounds of each.
    pub(crate) runs: u32,
}

/// What others publish of themselves.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PublishedElsewhere {
    itchy_published_decoded_per_s: u64,
    itch_book_published_books_per_s: u64,
    cpptrader_published_decoded_per_s: u64,
    cpptrader_published_books_per_s: u64,
    cpptrader_source: &'static str,
}

impl Default for PublishedElsewhere {
    fn default() -> Self {
        Self {
            itchy_published_decoded_per_s: itchy::PUBLISHED_PER_S,
            itch_book_published_books_per_s: itch_book::PUBLISHED_PER_S,
            cpptrader_published_decoded_per_s: CPPTRADER_DECODED_PER_S,
            cpptrader_published_books_per_s: CPPTRADER_BOOKS_PER_S,
            cpptrader_source: CPPTRADER_SOURCE,
        }
    }
}
