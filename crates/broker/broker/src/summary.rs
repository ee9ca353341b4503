//! What a user has, and what the log holds: reads of a snapshot.

use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Key, KeyRange};

use crate::audit::AuditRecord;
use crate::coded::{Text, fields, kinds};
use crate::command::{StockSymbol, UserName};
use crate::ledger::{BrokerError, Shelf};
use crate::orders::{self, OrderRead};
use crate::request::TradeWay;
use crate::rows::{
    self, ACCOUNT, Account, BUY_TRIGGER, BuyTrigger, HOLDING, PENDING, Pending, SELL_TRIGGER, SellTrigger,
};

/// All that a user has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountSummary {
    /// Free cash and the stacks' places.
    pub account: Account,
    /// Pending buys, the oldest first.
    pub buys: Vec<Pending>,
    /// Pending sells, the oldest first.
    pub sells: Vec<Pending>,
    /// Free shares of each stock.
    pub shares: Vec<(StockSymbol, u64)>,
    /// Buys at a price to come.
    pub buy_triggers: Vec<(StockSymbol, BuyTrigger)>,
    /// Sells at a price to come.
    pub sell_triggers: Vec<(StockSymbol, SellTrigger)>,
}

/// What `user` has; none without an account.
///
/// # Errors
/// If the items cannot be read, or are damaged.
pub fn summary<S: Shelf>(
    shelf: &S,
    user: &UserName,
) -> Result<Option<AccountSummary>, BrokerError<S::Error>> {
    let name = user.as_str();
    let accounts = rows_of::<Account, S>(shelf, &rows::all_of(ACCOUNT, name))?;
    let Some((_, account)) = accounts.into_iter().next() else { return Ok(None) };
    let pending = rows_of::<Pending, S>(shelf, &rows::all_of(PENDING, name))?;
    let way_at = rows::all_of(PENDING, name).from.as_bytes().len();
    let of_way = |way: TradeWay| {
        let of_way = pending.iter().filter(move |(key, _)| key.as_bytes().get(way_at) == Some(&(way as u8)));
        of_way.map(|(_, pending)| *pending).collect()
    };
    Ok(Some(AccountSummary {
        account,
        buys: of_way(TradeWay::Buy),
        sells: of_way(TradeWay::Sell),
        shares: by_symbol(shelf, HOLDING, name)?,
        buy_triggers: by_symbol(shelf, BUY_TRIGGER, name)?,
        sell_triggers: by_symbol(shelf, SELL_TRIGGER, name)?,
    }))
}

fn rows_of<T: Coded, S: Shelf>(shelf: &S, range: &KeyRange) -> Result<Vec<(Key, T)>, BrokerError<S::Error>> {
    let items = shelf.first(range, usize::MAX).map_err(BrokerError::Items)?;
    items.into_iter().map(|(key, value)| Ok((key, rows::row(&value)?))).collect()
}

fn by_symbol<T: Coded, S: Shelf>(
    shelf: &S,
    kind: u8,
    user: &str,
) -> Result<Vec<(StockSymbol, T)>, BrokerError<S::Error>> {
    let found = rows_of::<T, S>(shelf, &rows::all_of(kind, user))?;
    let symbol = |key: &Key| key.as_bytes().last_chunk().and_then(|letters| StockSymbol::of_padded(*letters));
    Ok(found.into_iter().filter_map(|(key, row)| Some((symbol(&key)?, row))).collect())
}

/// Most entries in a page of the log: it fits into a reply.
pub const AUDIT_PAGE_MAX: usize = 100;

/// An entry of the log, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Whose; empty for an entry of nobody.
    pub user: String,
    /// The request's number.
    pub number: u64,
    /// What happened.
    pub record: AuditRecord,
}

/// Entries of the log, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// At most [`AUDIT_PAGE_MAX`].
    pub entries: Vec<AuditEntry>,
    /// Where the next page begins; none after the last.
    pub next: Option<Key>,
}

/// What can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerRead {
    /// What a user has: an [`AccountSummary`], if there is an account.
    Summary {
        /// Whose.
        user: UserName,
    },
    /// A page of the log: an [`AuditPage`].
    Log {
        /// Whose; without one, all of it, user by user.
        user: Option<UserName>,
        /// Where the page begins: what the page before said, or at the beginning.
        from: Option<Key>,
    },
    /// Of orders on the exchange.
    Order {
        /// What.
        read: OrderRead,
    },
}

/// Answers a read, in bytes.
///
/// # Errors
/// If the items cannot be read, or are damaged.
pub fn answer<S: Shelf>(read: &BrokerRead, shelf: &S) -> Result<Vec<u8>, BrokerError<S::Error>> {
    match read {
        BrokerRead::Summary { user } => summary(shelf, user).map(|found| found.to_bytes()),
        BrokerRead::Log { user, from } => {
            audit_page(shelf, user.as_ref(), from.as_ref()).map(|page| page.to_bytes())
        }
        BrokerRead::Order { read } => orders::answer(read, shelf),
    }
}

/// A page of the log of one user, or of all of it, user by user, each in the order of the numbers. What lies outside that log is never shown, wherever `from` is.
///
/// # Errors
/// If the items cannot be read, or are damaged.
pub fn audit_page<S: Shelf>(
    shelf: &S,
    user: Option<&UserName>,
    from: Option<&Key>,
) -> Result<AuditPage, BrokerError<S::Error>> {
    let all = user.map_or_else(rows::all_audit, |user| rows::all_of(rows::AUDIT, user.as_str()));
    let first = from.filter(|from| **from > all.from).unwrap_or(&all.from).clone();
    let range = KeyRange { from: first, to: all.to };
    let items = shelf.first(&range, AUDIT_PAGE_MAX).map_err(BrokerError::Items)?;
    let last = items.last().filter(|_| items.len() == AUDIT_PAGE_MAX);
    let next = last.map(|(key, _)| Key::new([key.as_bytes(), &[0]].concat()));
    let mut entries = Vec::with_capacity(items.len());
    for (key, value) in items {
        let (user, number) = place(&key).ok_or(BrokerError::Damaged(DecodeError::Length))?;
        entries.push(AuditEntry { user, number, record: rows::row(&value)? });
    }
    Ok(AuditPage { entries, next })
}

/// Whose entry a key is, and its number.
fn place(key: &Key) -> Option<(String, u64)> {
    let (user, number) = key.as_bytes().get(3..)?.split_last_chunk()?;
    Some((String::from_utf8(user.to_vec()).ok()?, u64::from_be_bytes(*number)))
}

impl Coded for AuditEntry {
    fn encode(&self, to: &mut Vec<u8>) {
        (Text(self.user.clone()), self.number).encode(to);
        self.record.encode(to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let (user, number) = <(Text, u64)>::decode(from)?;
        Ok(Self { user: user.0, number, record: Coded::decode(from)? })
    }
}

fields! {
    AccountSummary { account, buys, sells, shares, buy_triggers, sell_triggers }
    AuditPage { entries, next }
}
kinds!(BrokerRead, "read" { 1 => Summary { user }, 2 => Log { user, from }, 20 => Order { read } });
