//! What lies in which item.
//!
//! ```text
//!   key                                    value                                  one for each
//!   ba user                                UserRow                                user
//!   bc user session                        number u64                             session that the row has no room for
//!   bk user name                           Named                                  command that its sender has named
//!   bp user way place                      Pending                                pending buy or sell
//!   be user way                            the oldest was placed, ms u64          stack that is not empty
//!   bh user symbol                         shares u64                             user and stock that has some
//!   bb user symbol                         BuyTrigger                             amount set
//!   bs user symbol                         SellTrigger                            amount set
//!   bx symbol way user                     price u64                              armed trigger
//!   bl user place                          AuditRecord                            request; for nobody its number is its place
//!   bd desk count                          nothing                                hit that the log has
//!   bf                                     u64                                    all: the latest front's number
//!   bv digest user                         LogHead                                log that was written
//!   bz user                                LogHead                                user, or all: the log that was written last
//!
//!   user: length u8, name; way u8; place, session, desk, count: u64, big-endian; symbol: 3 bytes
//! ```
//! Every key that a user's commands write begins with him, `bx` and `bv` end with him, and `bd` is a hit's, so no two users ever write the same item. A stack's entries are items of their
//! own, so that pushing costs the same however many there are; the account says where it begins and ends. `be` and `bx` are there for fronts, which look what is to lapse and to fire.

use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Key, KeyRange, Value, fields};

use crate::command::{StockSymbol, TradeWay, UserName};
use crate::heads::LogDigest;
use crate::ledger::{BrokerError, Executed, Found, Ledger, Shelf};
use crate::names::{CommandName, HitName};

/// Most buys, and most sells, that a user may have pending.
pub const PENDING_MAX: u64 = 10_000;
/// The end of the year 9999: an account's time never goes back, so one made later would have all lapse for good.
pub(crate) const TIME_MAX_MS: u64 = 253_402_300_799_999;

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
    /// `ADD` was done: before that there is a log, and no account.
    pub is_open: bool,
    /// Cents that are free: no hold, no reserve.
    pub cash_cents: u64,
    /// The time of the latest entry that no router made: none behind it has an earlier one, whatever a front's clock says.
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

/// What is kept of a user from his first command on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserRow {
    pub(crate) account: Account,
    /// The next place in his log.
    pub(crate) place: u64,
    /// The numbers of his latest command in each of the sessions that he used last, the latest first.
    pub(crate) latest: Vec<u64>,
    /// A void trade on the exchange left cash or shares owed. A byte that is there only if so.
    pub(crate) is_in_debt: bool,
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
    Account { is_open, cash_cents, latest_ms, buys, sells }
    Pending { number, symbol, shares, cents, placed_ms }
    Armed { price_cents, shares, number }
    BuyTrigger { reserve_cents, armed }
    SellTrigger { amount_cents, armed }
}

/// Places are below it: one that is not was never written, and one more than it is a number still.
const PLACE_END: u64 = 1 << 63;

impl Coded for Stack {
    fn encode(&self, to: &mut Vec<u8>) {
        (self.bottom, self.top).encode(to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let (bottom, top) = Coded::decode(from)?;
        if bottom <= top && top < PLACE_END { Ok(Self { bottom, top }) } else { Err(DecodeError::Length) }
    }
}

impl Coded for UserRow {
    fn encode(&self, to: &mut Vec<u8>) {
        self.account.encode(to);
        (self.place, self.latest.clone()).encode(to);
        if self.is_in_debt {
            true.encode(to);
        }
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let account = Account::decode(from)?;
        let (place, latest) = Coded::decode(from)?;
        let is_in_debt = !from.is_empty() && bool::decode(from)?;
        let is_sound = place < PLACE_END && account.latest_ms <= TIME_MAX_MS;
        if is_sound { Ok(Self { account, place, latest, is_in_debt }) } else { Err(DecodeError::Length) }
    }
}

/// Kinds of items: the second byte of their keys.
pub(crate) const ACCOUNT: u8 = b'a';
pub(crate) const PENDING: u8 = b'p';
pub(crate) const HOLDING: u8 = b'h';
pub(crate) const BUY_TRIGGER: u8 = b'b';
pub(crate) const SELL_TRIGGER: u8 = b's';
pub(crate) const AUDIT: u8 = b'l';
const ARMED: u8 = b'x';
const SESSION: u8 = b'c';
const NAME: u8 = b'k';
const LAPSING: u8 = b'e';
const HIT: u8 = b'd';
const FRONT: u8 = b'f';
const HEAD: u8 = b'v';
const LATEST_HEAD: u8 = b'z';

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
pub(crate) fn audit(user: &str, place: u64) -> Key {
    Key::new(of_user(AUDIT, user, &place.to_be_bytes()))
}

pub(crate) fn session(user: &UserName, session: u64) -> Key {
    Key::new(of_user(SESSION, user.as_str(), &session.to_be_bytes()))
}

/// `user` is empty for a command of nobody.
pub(crate) fn named(user: &str, name: &CommandName) -> Key {
    Key::new(of_user(NAME, user, name.as_str().as_bytes()))
}

pub(crate) fn lapsing(user: &UserName, way: TradeWay) -> Key {
    Key::new(of_user(LAPSING, user.as_str(), &[way as u8]))
}

pub(crate) fn hit(name: HitName) -> Key {
    Key::new([&[b'b', HIT], &name.desk.to_be_bytes()[..], &name.count.to_be_bytes()].concat())
}

/// The latest front's number.
pub(crate) fn front() -> Key {
    Key::new(vec![b'b', FRONT])
}

/// All heads with a digest.
pub(crate) fn heads_of(digest: &LogDigest) -> KeyRange {
    KeyRange::prefix(&[&[b'b', HEAD], &digest.0[..]].concat())
}

/// Without a user: of the log of everything.
pub(crate) fn head(digest: &LogDigest, user: Option<&UserName>) -> Key {
    let user = of_user(HEAD, user.map_or("", UserName::as_str), &[]);
    Key::new([&user[..2], &digest.0, &user[2..]].concat())
}

/// Without a user: of the log of everything.
pub(crate) fn latest_head(user: Option<&UserName>) -> Key {
    Key::new(of_user(LATEST_HEAD, user.map_or("", UserName::as_str), &[]))
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

/// All armed triggers.
pub(crate) fn all_armed() -> KeyRange {
    KeyRange::prefix(&[b'b', ARMED])
}

/// All stacks that are not empty.
pub(crate) fn all_lapsing() -> KeyRange {
    KeyRange::prefix(&[b'b', LAPSING])
}

/// The entries of a user's log from one place to before another.
pub(crate) fn audit_between(user: &UserName, from: u64, to: u64) -> KeyRange {
    KeyRange { from: audit(user.as_str(), from), to: Some(audit(user.as_str(), to)) }
}

/// The row of an item.
pub(crate) fn row<T: Coded, E>(value: &Value) -> Result<T, BrokerError<E>> {
    T::decode(&mut value.as_bytes()).map_err(BrokerError::Damaged)
}

/// The row under `key`, if there is one.
pub(crate) fn take<T: Coded, L: Ledger>(ledger: &mut L, key: &Key) -> Executed<Option<T>, L> {
    let value = ledger.get(key).map_err(BrokerError::Items)?;
    value.as_ref().map(row).transpose()
}

/// The row under `key`, if there is one, as it is until this transaction has committed: see [`Ledger::hold`].
pub(crate) fn hold<T: Coded, L: Ledger>(ledger: &mut L, key: &Key) -> Executed<Option<T>, L> {
    let value = ledger.hold(key).map_err(BrokerError::Items)?;
    value.as_ref().map(row).transpose()
}

/// The row under `key` of a snapshot, if there is one.
pub(crate) fn one<T: Coded, S: Shelf>(shelf: &S, key: &Key) -> Found<Option<T>, S> {
    let range = KeyRange { from: key.clone(), to: Some(behind(key)) };
    let items = shelf.first(&range, 1).map_err(BrokerError::Items)?;
    items.first().map(|(_, value)| row(value)).transpose()
}

/// The least key behind that one.
pub(crate) fn behind(key: &Key) -> Key {
    Key::new([key.as_bytes(), &[0]].concat())
}

/// Writes a row.
pub(crate) fn put<T: Coded, L: Ledger>(ledger: &mut L, key: &Key, row: &T) {
    let mut bytes = Vec::new();
    row.encode(&mut bytes);
    ledger.put(key, Value::new(bytes));
}
