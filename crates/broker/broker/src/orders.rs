//! Orders on the exchange, for the same accounts (docs/protocols/broker-orders.md).
//!
//! The obvious way, to send an order and to write down what came of it, loses money at every step at which a process can die: what was sent is not known, or an answer
//! is counted twice. Here funds or shares are held, and the order written down, by the transaction of its placing; a router finds what is held, and gives it a name by a
//! second transaction before it sends it, so that every repeat is the same order; and each message of the exchange is applied by a transaction that also counts it.
//!
//! | module | what |
//! |---|---|
//! | `terms`, `asked`, `rows` | what an order is, requests and replies, items |
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
mod terms;

pub use asked::{OrderAsked, OrderEvent, OrderReply, Settlement};
pub use reads::{ORDERS_PAGE_MAX, OrderListed, OrderRead, RouterSeat};
pub use rows::{Customer, CustomerLimits, Exposure, OPEN_ORDERS_MAX, Order, OrderStage};
pub use terms::{CustomerOrderId, OrderHappened, OrderLife, OrderNote, OrderTerms};

pub(crate) use reads::{answer, held};

use crate::execute::{Stopped, Turn};
use crate::ledger::Ledger;
use crate::reply::BrokerReply;

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
