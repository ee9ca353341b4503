//! What a user has, and what the log holds: reads of a snapshot.

use pares_wice::{Key, KeyRange};

use crate::audit::AuditRecord;
use crate::command::{StockSymbol, UserName};
use crate::ledger::{BrokerError, Shelf};
use crate::request::Way;
use crate::rows::{
    self, ACCOUNT, Account, BUY_TRIGGER, BuyTrigger, HOLDING, PENDING, Pending, SELL_TRIGGER, SellTrigger,
};
use pares_wice::codec::Coded;

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
    let of_way = |way: Way| {
        let of_way = pending.iter().filter(move |(key, _)| key.as_bytes().get(way_at) == Some(&(way as u8)));
        of_way.map(|(_, pending)| *pending).collect()
    };
    Ok(Some(AccountSummary {
        account,
        buys: of_way(Way::Buy),
        sells: of_way(Way::Sell),
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

/// Where the log lies: of one user, or all of it, user by user, each in the order of his numbers.
#[must_use]
pub fn audit_range(user: Option<&UserName>) -> KeyRange {
    user.map_or_else(rows::all_audit, |user| rows::all_of(rows::AUDIT, user.as_str()))
}

/// The first `limit` entries of a range of the log: user (empty: nobody's), number, entry. Where the rest of it begins comes with them, if there is more.
///
/// # Errors
/// If the items cannot be read, or are damaged.
#[expect(clippy::type_complexity, reason = "a list, and where it goes on")]
pub fn audit_page<S: Shelf>(
    shelf: &S,
    range: &KeyRange,
    limit: usize,
) -> Result<(Vec<(String, u64, AuditRecord)>, Option<KeyRange>), BrokerError<S::Error>> {
    let items = shelf.first(range, limit).map_err(BrokerError::Items)?;
    let last = items.last().filter(|_| items.len() == limit).map(|(key, _)| key.clone());
    let rest =
        last.map(|key| KeyRange { from: Key::new([key.as_bytes(), &[0]].concat()), to: range.to.clone() });
    let mut entries = Vec::with_capacity(items.len());
    for (key, value) in items {
        let (user, number) = place(&key).unwrap_or_default();
        entries.push((user, number, rows::row(&value)?));
    }
    Ok((entries, rest))
}

/// Whose entry a key is, and its number.
fn place(key: &Key) -> Option<(String, u64)> {
    let (user, number) = key.as_bytes().get(3..)?.split_last_chunk()?;
    Some((String::from_utf8(user.to_vec()).ok()?, u64::from_be_bytes(*number)))
}
