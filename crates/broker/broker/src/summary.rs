//! What a user has: a read of a snapshot.

use pares_wice::codec::Coded;
use pares_wice::{Key, KeyRange, fields};

use crate::command::{StockSymbol, TradeWay, UserName};
use crate::ledger::{BrokerError, Found, Shelf};
use crate::orders;
use crate::rows::{
    self, ACCOUNT, Account, BUY_TRIGGER, BuyTrigger, HOLDING, PENDING, Pending, SELL_TRIGGER, SellTrigger,
    UserRow,
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
    /// Cents that orders on the exchange hold.
    pub orders_held_cents: u64,
    /// Shares of each stock that they hold.
    pub orders_held_shares: Vec<(StockSymbol, u64)>,
}

/// What `user` has; none without an account.
///
/// # Errors
/// If the items cannot be read, or are damaged.
pub fn summary<S: Shelf>(shelf: &S, user: &UserName) -> Found<Option<AccountSummary>, S> {
    let name = user.as_str();
    let Some(account) = user_row(shelf, name)?.map(|row| row.account).filter(|account| account.is_open)
    else {
        return Ok(None);
    };
    let pending = rows_of::<Pending, S>(shelf, &rows::all_of(PENDING, name))?;
    let way_at = rows::all_of(PENDING, name).from.as_bytes().len();
    let of_way = |way: TradeWay| {
        let of_way = pending.iter().filter(move |(key, _)| key.as_bytes().get(way_at) == Some(&(way as u8)));
        of_way.map(|(_, pending)| *pending).collect()
    };
    let held = orders::held(shelf, user)?;
    Ok(Some(AccountSummary {
        account,
        buys: of_way(TradeWay::Buy),
        sells: of_way(TradeWay::Sell),
        shares: by_symbol(shelf, HOLDING, name)?,
        buy_triggers: by_symbol(shelf, BUY_TRIGGER, name)?,
        sell_triggers: by_symbol(shelf, SELL_TRIGGER, name)?,
        orders_held_cents: held.cents,
        orders_held_shares: held.shares.into_iter().collect(),
    }))
}

/// What is kept of a user.
pub(crate) fn user_row<S: Shelf>(shelf: &S, name: &str) -> Found<Option<UserRow>, S> {
    let found = rows_of::<UserRow, S>(shelf, &rows::all_of(ACCOUNT, name))?;
    Ok(found.into_iter().next().map(|(_, row)| row))
}

fn rows_of<T: Coded, S: Shelf>(shelf: &S, range: &KeyRange) -> Found<Vec<(Key, T)>, S> {
    let items = shelf.first(range, usize::MAX).map_err(BrokerError::Items)?;
    items.into_iter().map(|(key, value)| Ok((key, rows::row(&value)?))).collect()
}

fn by_symbol<T: Coded, S: Shelf>(shelf: &S, kind: u8, user: &str) -> Found<Vec<(StockSymbol, T)>, S> {
    let found = rows_of::<T, S>(shelf, &rows::all_of(kind, user))?;
    let symbol = |key: &Key| key.as_bytes().last_chunk().and_then(|letters| StockSymbol::of_padded(*letters));
    Ok(found.into_iter().filter_map(|(key, row)| Some((symbol(&key)?, row))).collect())
}

fields! {
    AccountSummary { account, buys, sells, shares, buy_triggers, sell_triggers, orders_held_cents, orders_held_shares }
}
