//! What the rules answer, as bytes.

use pares_wice::kinds;

use crate::command::StockSymbol;
use crate::orders::OrderReply;
use crate::people::Person;
use crate::refusal::Refusal;

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerReply {
    /// Nothing has changed but the log.
    Refused {
        /// Why.
        refusal: Refusal,
    },
    /// Done; there is no more to tell.
    Done,
    /// The account holds so much now.
    Cash {
        /// Cents.
        cash_cents: u64,
    },
    /// A quote.
    Price {
        /// Cents.
        price_cents: u64,
        /// The server's stamp, ms.
        server_ms: u64,
    },
    /// A buy or sell is pending.
    Held {
        /// So many shares.
        shares: u64,
        /// At this price.
        price_cents: u64,
        /// The last moment at which it can be committed, ms.
        until_ms: u64,
    },
    /// A pending buy or sell was committed or cancelled, or a trigger has fired.
    Settled {
        /// Of this stock.
        symbol: StockSymbol,
        /// So many shares.
        shares: u64,
        /// For so much, cents.
        cents: u64,
    },
    /// A trigger is armed.
    Armed {
        /// Shares reserved for it; 0 of a buy, which reserves cash.
        shares: u64,
    },
    /// So much was released.
    Lapsed {
        /// Buys or sells.
        count: u64,
    },
    /// There was nothing to fire or to release: at most the log has a hit more.
    Unchanged,
    /// The command before is not executed, so this one is not either: nothing has changed, and it may be sent again.
    Early,
    /// A front's number, which no other has.
    FrontNumber {
        /// 1 to [`FRONT_MAX`](crate::FRONT_MAX).
        front: u64,
    },
    /// A later one of its session was executed, and it is in none of the latest entries: it was executed long ago, or never will be. It is not executed now.
    Repeated,
    /// Another command of this user has this name, or this number. This one is not executed.
    NameTaken,
    /// A later command of the session was executed, and this one was not: it never will be.
    Overtaken,
    /// Of orders on the exchange.
    Order {
        /// What.
        reply: OrderReply,
    },
    /// A person who is about to sign in.
    Person {
        /// The person, this try included.
        person: Person,
    },
}

kinds!(BrokerReply, "reply" {
    1 => Refused { refusal },
    2 => Done,
    3 => Cash { cash_cents },
    4 => Price { price_cents, server_ms },
    5 => Held { shares, price_cents, until_ms },
    6 => Settled { symbol, shares, cents },
    7 => Armed { shares },
    8 => Lapsed { count },
    9 => Unchanged,
    10 => Early,
    11 => FrontNumber { front },
    12 => Repeated,
    13 => NameTaken,
    14 => Overtaken,
    30 => Order { reply },
    20 => Person { person },
});
