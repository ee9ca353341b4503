//! What an order is, and what is noted of it: what requests and items have in common.

use pares_wice::{fields, kinds};

use crate::command::{StockSymbol, TradeWay, UserName};

/// How long an order stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderLife {
    /// Until the exchange's day ends.
    Day,
    /// What does not trade at once is cancelled: a market order that has a limit.
    Immediate,
}

/// What a customer wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderTerms {
    /// Which stock.
    pub symbol: StockSymbol,
    /// Buy or sell.
    pub way: TradeWay,
    /// How many shares, from 1.
    pub shares: u64,
    /// The most, or the least, for a share: cents, from 1.
    pub limit_cents: u64,
    /// How long.
    pub life: OrderLife,
}

/// An order: whose, and the number of the request that placed it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CustomerOrderId {
    /// Whose.
    pub user: UserName,
    /// The number.
    pub number: u64,
}

/// What happened to an order, as the log keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderNote {
    /// The number of the request that placed it; of `Repaid` that of the request that paid, and of no order.
    pub order: u64,
    /// Which way; of `Repaid` that of the void trade.
    pub way: TradeWay,
    /// Of which stock.
    pub symbol: StockSymbol,
    /// How many shares are concerned.
    pub shares: u64,
    /// Cents: the limit of a share where something was placed, accepted or released, else the sum.
    pub cents: u64,
    /// What happened.
    pub happened: OrderHappened,
}

/// What can happen to an order. `Repaid` is about what a void trade left owed, and of no order: cash, under the stock of the latest void sale, or shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderHappened {
    /// Placed: held.
    Placed,
    /// So much of it traded.
    Traded,
    /// So much of it will not trade.
    Released,
    /// So much that had traded is void.
    Void,
    /// So much that was owed is paid.
    Repaid,
    /// The exchange has it: so much of it may trade.
    Accepted,
}

impl OrderHappened {
    pub(crate) const ALL: [Self; 6] =
        [Self::Placed, Self::Traded, Self::Released, Self::Void, Self::Repaid, Self::Accepted];

    /// Whether its cents are a share's, and not the sum.
    pub(crate) fn is_at_limit(self) -> bool {
        matches!(self, Self::Placed | Self::Accepted | Self::Released)
    }

    /// As the log's XML says it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Placed => "placed",
            Self::Traded => "traded",
            Self::Released => "released",
            Self::Void => "void",
            Self::Repaid => "repaid",
            Self::Accepted => "accepted",
        }
    }
}

kinds!(OrderHappened, "event of an order" {
    1 => Placed, 2 => Traded, 3 => Released, 4 => Void, 5 => Repaid, 6 => Accepted,
});
kinds!(OrderLife, "life of an order" { 1 => Day, 2 => Immediate });
fields! {
    OrderTerms { symbol, way, shares, limit_cents, life }
    CustomerOrderId { user, number }
    OrderNote { order, way, symbol, shares, cents, happened }
}
