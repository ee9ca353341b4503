//! A request's entry in the log: one item, written in the transaction that did it.
//!
//! The log's XML repeats a command's fields in each of its elements. Kept is the command once, and beside it only what the elements add.

use pares_wice::{fields, kinds};

use crate::command::{StockSymbol, UserCommand, UserName, Verb};
use crate::orders::{CustomerLimits, OrderAsked, OrderNote};
use crate::reply::BrokerReply;
use crate::request::StockQuote;

/// What a request did, in the order in which it did it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditNote {
    /// The quote server was asked: `quoteServer`.
    Hit {
        /// What it returned.
        quote: StockQuote,
    },
    /// Free cash has changed: `accountTransaction`.
    Moved {
        /// The command it belongs to.
        origin: u64,
        /// Whether cash came, and did not go.
        is_add: bool,
        /// Cents.
        cents: u64,
    },
    /// A trigger has fired, or something pending has lapsed: `systemEvent`.
    Done {
        /// The command it belongs to.
        origin: u64,
        /// Its verb.
        verb: Verb,
        /// Of which stock.
        symbol: StockSymbol,
        /// How much, cents.
        cents: u64,
    },
    /// At which price how many shares were held or changed hands: `debugEvent`. Without it nobody could replay the log, since a shared quote stands with its first user.
    Deal {
        /// The command it belongs to.
        origin: u64,
        /// Its verb.
        verb: Verb,
        /// Of which stock.
        symbol: StockSymbol,
        /// How many.
        shares: u64,
        /// At how much each, cents.
        price_cents: u64,
    },
    /// Something happened to an order on the exchange: `systemEvent`, and `debugEvent` for the shares.
    Order {
        /// What.
        note: OrderNote,
    },
    /// The user's limits were set: `systemEvent`, and `debugEvent` for which.
    Limited {
        /// By whom.
        by: UserName,
        /// All of them.
        limits: CustomerLimits,
    },
    /// The user was blocked, or is not any more: the same.
    Blocked {
        /// By whom.
        by: UserName,
        /// On or off.
        is_blocked: bool,
    },
    /// What was asked of orders, limits or blocks, and refused: `systemEvent`, and `errorEvent` for why.
    NotDone {
        /// What.
        asked: OrderAsked,
    },
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// The request's number.
    pub number: u64,
    /// When, ms since 1970. Of one user's entries, none is earlier than one before it, but for what a router told: that has the router's time, if it is later.
    pub time_ms: u64,
    /// The command, if the request was one. A refused one: `errorEvent`.
    pub command: Option<UserCommand>,
    /// The reply: a repeat of the request gets the same.
    pub reply: BrokerReply,
    /// What happened.
    pub notes: Vec<AuditNote>,
}

kinds!(AuditNote, "note" {
    1 => Hit { quote },
    2 => Moved { origin, is_add, cents },
    3 => Done { origin, verb, symbol, cents },
    4 => Deal { origin, verb, symbol, shares, price_cents },
    20 => Order { note },
    21 => Limited { by, limits },
    22 => Blocked { by, is_blocked },
    23 => NotDone { asked },
});
fields! { AuditRecord { number, time_ms, command, reply, notes } }
