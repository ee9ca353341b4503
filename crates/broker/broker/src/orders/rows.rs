//! Items of orders.
//!
//! ```text
//!   bo user number      Order          order
//!   bi user place       u64            order: its number; places are counted from 0, as orders are placed
//!   bg user             Customer       customer
//!   bg user symbol      Exposure       customer and stock
//!   bq w user number    -              order that waits for its name
//!   bq o name           CustomerOrderId        order that is named and has not ended
//!   bq n name           CustomerOrderId        order that was ever named
//!   bq c name           -              cancel that is wished
//!   br                  Seat           the active router
//!   br shard            u64            the number of the next message of a shard
//! ```
//! What a customer's own requests write is his. Only routers write `bq o`, `bq n` and `br`.

use pares_wice::{Key, KeyRange, Value, fields, kinds};

use super::terms::{CustomerOrderId, OrderTerms};
use crate::command::{StockSymbol, TradeWay, UserName};
use crate::rows::of_user;

/// Most orders that a customer may have open, whatever the limits say: they are listed in one item.
pub const OPEN_ORDERS_MAX: u64 = 100;

/// How far an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderStage {
    /// Held, and without a name on the exchange.
    Waiting,
    /// Named: it may be there or not.
    Routed,
    /// The exchange has it.
    Open,
    /// Ended: all of it has traded.
    Filled,
    /// Ended: cancelled.
    Cancelled,
    /// Ended with the exchange's day.
    Expired,
    /// Ended: the exchange did not take it.
    Refused,
}

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// What was asked for.
    pub terms: OrderTerms,
    /// How far it is.
    pub state: OrderStage,
    /// The exchange's code for why it ended so; 0 for none.
    pub why: u8,
    /// Shares that may trade still: so many, or their cost at the limit, are held.
    pub left: u64,
    /// Shares that have traded.
    pub filled: u64,
    /// What they traded for, hundredths of a cent.
    pub value: u64,
    /// Its name on the exchange; 0 before it has one.
    pub name: u64,
    /// Whether it is to be cancelled.
    pub is_unwanted: bool,
    /// When it was placed, ms since 1970.
    pub placed_ms: u64,
}

impl Order {
    /// Whether nothing is held for it any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state >= OrderStage::Filled
    }

    /// What a sum of hundredths of a cent is to the customer: paid is rounded up to a cent, received down.
    #[must_use]
    pub fn charge(&self, value: u64) -> u64 {
        match self.terms.way {
            TradeWay::Buy => value.div_ceil(100),
            TradeWay::Sell => value / 100,
        }
    }

    /// Cash that is held for it, cents.
    #[must_use]
    pub fn held_cents(&self) -> u64 {
        match self.terms.way {
            TradeWay::Buy => self.terms.limit_cents * self.left,
            TradeWay::Sell => 0,
        }
    }
}

/// What a customer may do. 0 stands for the standard, of the loss for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CustomerLimits {
    /// Shares of an order.
    pub shares_max: u64,
    /// Cents of an order at its limit.
    pub cents_max: u64,
    /// Open orders; not more than [`OPEN_ORDERS_MAX`].
    pub open_max: u64,
    /// Shares of one stock.
    pub position_max: u64,
    /// Cents lost on a day.
    pub loss_max: u64,
}

impl CustomerLimits {
    /// The limits as they hold.
    #[must_use]
    pub fn in_force(self) -> Self {
        let or = |limit, standard| if limit == 0 { standard } else { limit };
        Self {
            shares_max: or(self.shares_max, 1_000_000),
            cents_max: or(self.cents_max, 10_000_000_000),
            open_max: or(self.open_max, 32).min(OPEN_ORDERS_MAX),
            position_max: or(self.position_max, 10_000_000),
            loss_max: or(self.loss_max, u64::MAX),
        }
    }
}

/// What counts against a customer's limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Customer {
    /// What was set.
    pub limits: CustomerLimits,
    /// The kill switch.
    pub is_blocked: bool,
    /// Orders that have not ended.
    pub open: Vec<u64>,
    /// The day of `result_cents`, since 1970.
    pub day: u64,
    /// What the day's trades on the exchange came to, cents.
    pub result_cents: i64,
    /// What a void sale left owed, cents.
    pub owed_cents: u64,
    /// Of how many stocks a void purchase left shares owed.
    pub owed_stocks: u64,
    /// The stock of the latest void sale that left cash owed.
    pub owed_for: Option<StockSymbol>,
    /// How many orders were ever placed: the place of the next one.
    pub placed: u64,
}

impl Customer {
    /// On a later day the result begins at zero. A day that was before is none: the clock of who asks is behind.
    pub(super) fn on(&mut self, day: u64) {
        if self.day < day {
            (self.day, self.result_cents) = (day, 0);
        }
    }
}

/// What a customer has to do with one stock on the exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exposure {
    /// Shares of orders to buy that have not ended.
    pub buying: u64,
    /// Shares of orders to sell that have not ended: they are held.
    pub selling: u64,
    /// Shares that a void purchase left owed.
    pub owed: u64,
    /// The day of what follows, since 1970.
    pub day: u64,
    /// Shares bought on the day, less those sold.
    pub day_shares: i64,
    /// Cents received on the day, less those paid.
    pub day_cents: i64,
    /// The price of the last trade, hundredths of a cent.
    pub last: u64,
}

impl Exposure {
    pub(super) fn on(&mut self, day: u64) {
        if self.day < day {
            (self.day, self.day_shares, self.day_cents) = (day, 0, 0);
        }
    }

    /// What the day's trades come to at the last one's price, cents.
    pub(super) fn result_cents(&self) -> i64 {
        let worth = i128::from(self.day_shares) * i128::from(self.last) / 100;
        let result = worth + i128::from(self.day_cents);
        i64::try_from(result).unwrap_or(if result < 0 { i64::MIN } else { i64::MAX })
    }

    pub(super) fn working(&mut self, way: TradeWay) -> &mut u64 {
        match way {
            TradeWay::Buy => &mut self.buying,
            TradeWay::Sell => &mut self.selling,
        }
    }
}

/// The active router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) router: u64,
    pub(super) term: u64,
    /// The number of the name to be given next, less one.
    pub(super) names: u64,
    /// How often a router has claimed it.
    pub(super) claims: u64,
}

kinds!(OrderStage, "state of an order" {
    1 => Waiting, 2 => Routed, 3 => Open, 4 => Filled, 5 => Cancelled, 6 => Expired, 7 => Refused,
});
fields! {
    Order { terms, state, why, left, filled, value, name, is_unwanted, placed_ms }
    CustomerLimits { shares_max, cents_max, open_max, position_max, loss_max }
    Customer { limits, is_blocked, open, day, result_cents, owed_cents, owed_stocks, owed_for, placed }
    Exposure { buying, selling, owed, day, day_shares, day_cents, last }
    Seat { router, term, names, claims }
}

impl Order {
    pub(super) fn placed(terms: OrderTerms, placed_ms: u64) -> Self {
        let (state, left) = (OrderStage::Waiting, terms.shares);
        Self { terms, state, why: 0, left, filled: 0, value: 0, name: 0, is_unwanted: false, placed_ms }
    }
}

const ORDER: u8 = b'o';
const CUSTOMER: u8 = b'g';
const PLACE: u8 = b'i';

pub(super) fn order(of: &CustomerOrderId) -> Key {
    Key::new(of_user(ORDER, of.user.as_str(), &of.number.to_be_bytes()))
}

/// Where the number of a customer's order lies, by its place among all of his.
pub(super) fn place(user: &UserName, place: u64) -> Key {
    Key::new(of_user(PLACE, user.as_str(), &place.to_be_bytes()))
}

pub(super) fn customer(user: &UserName) -> Key {
    Key::new(of_user(CUSTOMER, user.as_str(), &[]))
}

pub(super) fn exposure(user: &UserName, symbol: StockSymbol) -> Key {
    Key::new(of_user(CUSTOMER, user.as_str(), &symbol.padded()))
}

/// Lists of orders that a router looks through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Queue {
    Open = b'o',
    Named = b'n',
    Unwanted = b'c',
}

pub(super) fn queued(queue: Queue, name: u64) -> Key {
    Key::new([&[b'b', b'q', queue as u8][..], &name.to_be_bytes()].concat())
}

/// All of a list from a name on.
pub(super) fn queue_from(queue: Queue, name: u64) -> KeyRange {
    KeyRange { from: queued(queue, name), to: KeyRange::prefix(&[b'b', b'q', queue as u8]).to }
}

/// Where waiting orders lie: the user and the number are behind it, as in the order's own key.
pub(super) const WAITING: &[u8] = b"bqw";

pub(super) fn waiting(of: &CustomerOrderId) -> Key {
    Key::new([WAITING, &order(of).as_bytes()[2..]].concat())
}

/// The value of an item that says all by being there.
pub(super) fn mark() -> Value {
    Value::new(Vec::new())
}

pub(super) fn seat() -> Key {
    Key::new(b"br")
}

/// The member whose orders have names.
pub(super) fn member() -> Key {
    Key::new(b"bm")
}

pub(super) fn told(shard: u32) -> Key {
    Key::new([&b"br"[..], &shard.to_be_bytes()].concat())
}

/// The order of a key of [`WAITING`].
pub(super) fn waiting_order(key: &Key) -> Option<CustomerOrderId> {
    let (user, number) = key.as_bytes().get(WAITING.len() + 1..)?.split_last_chunk()?;
    let user = UserName::new(core::str::from_utf8(user).ok()?)?;
    Some(CustomerOrderId { user, number: u64::from_be_bytes(*number) })
}
