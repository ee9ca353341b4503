//! Orders on the exchange, for the same accounts (docs/protocols/broker-orders.md).
//!
//! The obvious way, to send an order and to write down what came of it, loses money at every step at which a process can die: what was sent is not known, or what was
//! told is counted twice. Here funds or shares are held, and the order written down, by the transaction of its placing; a router finds what is held, and gives it a name by a
//! second transaction before it sends it, so that every repeat is the same order; and each message of the exchange is applied by a transaction that also counts it.
//!
//! | module | what |
//! |---|---|
//! | `asked`, `rows` | requests, replies, items |
//! | `debt` | what a void trade left owed, at quotes |
//! | `standing` | all of a customer that an order touches |
//! | `position` | how many shares of a stock count against a customer's limit |
//! | `placing` | place, cancel, limits, kill switch |
//! | `routing` | one router at a time, names |
//! | `settling` | what the exchange tells |
//! | `reads` | what can be read |

mod asked;
mod debt;
mod placing;
mod position;
mod reads;
mod routing;
mod rows;
mod settling;
mod standing;

pub use asked::{CustomerOrderId, OrderAsked, OrderEvent, OrderLife, OrderReply, OrderTerms, Settlement};
pub use reads::{ORDERS_PAGE_MAX, OrderListed, OrderRead, RouterSeat};
pub use rows::{Customer, CustomerLimits, Exposure, OPEN_ORDERS_MAX, Order, OrderStage};

pub(crate) use reads::{answer, held};

use crate::coded::fields;
use crate::command::StockSymbol;
use crate::execute::{Stopped, Turn};
use crate::ledger::Ledger;
use crate::reply::BrokerReply;
use crate::request::TradeWay;

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

crate::coded::kinds!(OrderHappened, "event of an order" {
    1 => Placed, 2 => Traded, 3 => Released, 4 => Void, 5 => Repaid, 6 => Accepted,
});
fields! { OrderNote { order, way, symbol, shares, cents, happened } }

impl<L: Ledger> Turn<'_, L> {
    pub(crate) fn order(&mut self, asked: &OrderAsked) -> Stopped<BrokerReply, L> {
        match asked {
            OrderAsked::Place { user, terms } => self.place(user, *terms),
            OrderAsked::Cancel { of } => self.cancel_order(of),
            OrderAsked::Limit { user, limits, by } => self.limit(user, *limits, by),
            OrderAsked::Block { user, is_blocked, by } => self.block(user, *is_blocked, by),
            OrderAsked::Claim { router, member, seen } => self.claim(*router, *member, *seen),
            OrderAsked::Name { term, orders } => self.name(*term, orders),
            OrderAsked::TurnAway { term, of, name, reason } => self.turn_away(*term, of, *name, *reason),
            OrderAsked::Settle { settlement } => self.settle_order(settlement),
            OrderAsked::Pass { term, shard, from, to } => self.pass(*term, *shard, *from, *to),
        }
    }
}
