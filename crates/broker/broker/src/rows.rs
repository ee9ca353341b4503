//! What lies in which item.
//!
//! ```text
//!   key                                    value                                  one for each
//!   ba user                                Account                                user
//!   bp user way place                      Pending                                pending buy or sell
//!   bh user symbol                         shares u64                             user and stock that has some
//!   bb user symbol                         BuyTrigger                             amount set
//!   bs user symbol                         SellTrigger                            amount set
//!   bx symbol way user                     price u64                              armed trigger
//!   bl user number                         AuditRecord                            request
//!
//!   user: length u8, name; way u8; place, number: u64, big-endian; symbol: 3 bytes
//! ```
//! Every key but `bx` begins with its user, and that ends with one, so no two users ever write the same item. A stack's entries are items of their
//! own, so that pushing costs the same however many there are; the account says where it begins and ends.

use pares_wice::codec::Coded;
use pares_wice::{Key, KeyRange, Value};

use crate::coded::fields;
use crate::command::{StockSymbol, UserName};
use crate::ledger::{BrokerError, Ledger};
use crate::request::TradeWay;

/// Most buys, and most sells, that a user may have pending.
pub const PENDING_MAX: u64 = 10_000;

/// A stack of pending buys or sells: places `bottom` (in) to `top` (out). The newest is on top; the oldest lapses first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// The place of the oldest.
    pub bottom: u64,
    /// The next free place.
    pub top: u64,
}

impl Stack {
    /// How many are pending.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.top - self.bottom
    }
}

/// A user's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Cents that are free: no hold, no reserve.
    pub cash_cents: u64,
    /// The latest time of a command that changed it: no later one has an earlier time, whatever a front's clock says.
    pub latest_ms: u64,
    /// Pending buys.
    pub buys: Stack,
    /// Pending sells.
    pub sells: Stack,
}

impl Account {
    pub(crate) fn stack(&mut self, way: TradeWay) -> &mut Stack {
        match way {
            TradeWay::Buy => &mut self.buys,
            TradeWay::Sell => &mut self.sells,
        }
    }
}

/// A pending buy, which holds `cents`, or sell, which holds `shares`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The number of the command that made it.
    pub number: u64,
    /// Of which stock.
    pub symbol: StockSymbol,
    /// How many shares.
    pub shares: u64,
    /// For how much, cents.
    pub cents: u64,
    /// When, ms.
    pub placed_ms: u64,
}

/// What an armed trigger waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    /// At this price or a better one, cents.
    pub price_cents: u64,
    /// Shares reserved; 0 of a buy.
    pub shares: u64,
    /// The number of the command that armed it.
    pub number: u64,
}

/// A buy at a price to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuyTrigger {
    /// Cents reserved.
    pub reserve_cents: u64,
    /// Once a price is set.
    pub armed: Option<Armed>,
}

/// A sell at a price to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SellTrigger {
    /// So much is to be sold, cents.
    pub amount_cents: u64,
    /// Once a price is set.
    pub armed: Option<Armed>,
}

fields! {
    Stack { bottom, top }
    Account { cash_cents, latest_ms, buys, sells }
    Pending { number, symbol, shares, cents, placed_ms }
    Armed { price_cents, shares, number }
    BuyTrigger { reserve_cents, armed }
    SellTrigger { amount_cents, armed }
}

/// Kinds of items: the second byte of their keys.
pub(crate) const ACCOUNT: u8 = b'a';
pub(crate) const PENDING: u8 = b'p';
pub(crate) const HOLDING: u8 = b'h';
pub(crate) const BUY_TRIGGER: u8 = b'b';
pub(crate) const SELL_TRIGGER: u8 = b's';
pub(crate) const AUDIT: u8 = b'l';
const ARMED: u8 = b'x';

pub(crate) fn of_user(kind: u8, user: &str, rest: &[u8]) -> Vec<u8> {
    let length = u8::try_from(user.len()).expect("users' names are short");
    [&[b'b', kind, length], user.as_bytes(), rest].concat()
}

pub(crate) fn account(user: &UserName) -> Key {
    Key::new(of_user(ACCOUNT, user.as_str(), &[]))
}

pub(crate) fn pending(user: &UserName, way: TradeWay, place: u64) -> Key {
    let rest = [&[way as u8], &place.to_be_bytes()[..]].concat();
    Key::new(of_user(PENDING, user.as_str(), &rest))
}

pub(crate) fn of_symbol(kind: u8, user: &UserName, symbol: StockSymbol) -> Key {
    Key::new(of_user(kind, user.as_str(), &symbol.padded()))
}

/// `user` is empty for an entry of nobody.
pub(crate) fn audit(user: &str, number: u64) -> Key {
    Key::new(of_user(AUDIT, user, &number.to_be_bytes()))
}

pub(crate) fn armed(symbol: StockSymbol, way: TradeWay, user: &UserName) -> Key {
    let letters = symbol.padded();
    Key::new([&[b'b', ARMED], &letters[..], &[way as u8], user.as_str().as_bytes()].concat())
}

/// All items of a kind that a user has.
pub(crate) fn all_of(kind: u8, user: &str) -> KeyRange {
    KeyRange::prefix(&of_user(kind, user, &[]))
}

/// All entries of the log.
pub(crate) fn all_audit() -> KeyRange {
    KeyRange::prefix(&[b'b', AUDIT])
}

/// The row of an item.
pub(crate) fn row<T: Coded, E>(value: &Value) -> Result<T, BrokerError<E>> {
    T::decode(&mut value.as_bytes()).map_err(BrokerError::Damaged)
}

/// The row under `key`, if there is one.
pub(crate) fn take<T: Coded, L: Ledger>(
    ledger: &mut L,
    key: &Key,
) -> Result<Option<T>, BrokerError<L::Error>> {
    let value = ledger.get(key).map_err(BrokerError::Items)?;
    value.as_ref().map(row).transpose()
}

/// Writes a row.
pub(crate) fn put<T: Coded, L: Ledger>(ledger: &mut L, key: &Key, row: &T) {
    let mut bytes = Vec::new();
    row.encode(&mut bytes);
    ledger.put(key, Value::new(bytes));
}
