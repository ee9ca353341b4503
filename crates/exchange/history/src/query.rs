//! Questions to the index.

mod reading;

use pares_types::{
    ClientOrderId, InstrumentId, MemberId, OrderId, Position, Price, Quantity, RequestId, ShardId, Timestamp,
};
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params, params_from_iter};

use super::index::{HistoryError, Index};
use reading::{order, step, trade, word};

/// What to look for: every condition that is given must hold.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Trades of this order.
    pub order: Option<OrderId>,
    /// In this instrument.
    pub instrument: Option<InstrumentId>,
    /// Of this member.
    pub member: Option<MemberId>,
    /// Of orders the member calls so.
    pub client_order_id: Option<ClientOrderId>,
    /// Orders with this status.
    pub status: Option<String>,
    /// Taken in at or after.
    pub from: Option<Timestamp>,
    /// Taken in before.
    pub to: Option<Timestamp>,
    /// Rows at most.
    pub limit: usize,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            order: None,
            instrument: None,
            member: None,
            client_order_id: None,
            status: None,
            from: None,
            to: None,
            limit: 50,
        }
    }
}

/// Rows found, newest first, and whether there are more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// At most as many as asked for.
    pub rows: Vec<T>,
    /// Whether the limit cut some off.
    pub more: bool,
}

/// An order as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderRow {
    /// Its id.
    pub id: OrderId,
    /// Its owner.
    pub member: MemberId,
    /// The owner's name for it.
    pub client_order_id: ClientOrderId,
    /// What it is for.
    pub instrument: InstrumentId,
    /// `buy` or `sell`.
    pub side: String,
    /// `limit`, `market` or `pegged`.
    pub kind: String,
    /// `day`, `ioc`, `fok`, `gtc`, `gtd`, `at_open` or `at_close`.
    pub time_in_force: String,
    /// Whether it was to be refused rather than take liquidity.
    pub post_only: bool,
    /// Its limit, as last amended; `None` for a market order.
    pub price: Option<Price>,
    /// Its total quantity, as last amended.
    pub quantity: Quantity,
    /// Shares traded so far.
    pub executed: Quantity,
    /// Shares left, on the book or held.
    pub remaining: Quantity,
    /// `resting`, `held`, `filled`, `cancelled` or `refused`.
    pub status: String,
    /// Why it was cancelled or refused; else `none`.
    pub reason: String,
    /// Its total order.
    pub shard: ShardId,
    /// Its place in it.
    pub position: Position,
    /// When a gateway took it in.
    pub stamp: Timestamp,
    /// The place of the last request that changed it.
    pub changed_position: Position,
    /// That request's time.
    pub changed_stamp: Timestamp,
    /// What an iceberg shows at a time.
    pub display: Option<Quantity>,
    /// How much had to match at once.
    pub minimum: Option<Quantity>,
    /// What a stop order waits, or waited, for.
    pub trigger: Option<Price>,
    /// When it expires.
    pub until: Option<Timestamp>,
}

/// A trade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TradeRow {
    /// The total order it happened in.
    pub shard: ShardId,
    /// The place of the request that caused it.
    pub position: Position,
    /// Which of that request's events, from 0.
    pub number: u32,
    /// In what.
    pub instrument: InstrumentId,
    /// At what price.
    pub price: Price,
    /// Shares.
    pub quantity: Quantity,
    /// The buying order and its owner.
    pub buy: (OrderId, MemberId),
    /// The selling order and its owner.
    pub sell: (OrderId, MemberId),
    /// The side that came in and took; `none` in an auction.
    pub aggressor: String,
    /// The time of the request that caused it.
    pub stamp: Timestamp,
    /// Whether it was declared void since.
    pub busted: bool,
}

/// One request that concerned an order, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its place.
    pub position: Position,
    /// The request's id.
    pub id: RequestId,
    /// When a gateway took it in.
    pub stamp: Timestamp,
    /// `enter`, `amend`, `cancel` or `mass_cancel`.
    pub command: String,
    /// The price asked for.
    pub price: Option<Price>,
    /// The quantity asked for.
    pub quantity: Option<Quantity>,
    /// What became of it.
    pub status: String,
    /// Why not.
    pub reason: String,
    /// Shares of the order executed, after it.
    pub executed: Quantity,
    /// Shares of the order on the book, after it.
    pub remaining: Quantity,
}

/// All there is to know about one order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// How it stands.
    pub order: OrderRow,
    /// The requests that concerned it, in order.
    pub steps: Vec<Step>,
    /// Its trades, in order.
    pub trades: Vec<TradeRow>,
}

/// Conditions of a query, each with its values.
#[derive(Default)]
struct Conditions {
    sql: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// Adds a condition in which `?` stands for `value`, as often as it occurs.
    fn add(&mut self, sql: &str, value: Option<i64>) {
        let Some(value) = value else { return };
        self.values.extend(sql.matches('?').map(|_| Value::from(value)));
        self.sql.push(sql.to_owned());
    }

    fn add_times(&mut self, filter: &Filter) {
        self.add("stamp >= ?", filter.from.map(|from| from.0.cast_signed()));
        self.add("stamp < ?", filter.to.map(|to| to.0.cast_signed()));
        self.add("instrument = ?", filter.instrument.map(|id| i64::from(id.0)));
    }

    /// The query's end: conditions, order, and one row more than asked for.
    fn finish(mut self, order: &str, limit: usize) -> (String, Vec<Value>) {
        self.values.push(Value::from(i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)));
        let conditions = match self.sql.is_empty() {
            true => String::new(),
            false => format!("WHERE {} ", self.sql.join(" AND ")),
        };
        (format!("{conditions}ORDER BY {order} LIMIT ?"), self.values)
    }
}

impl Index {
    /// Instruments added while the system ran, first the oldest.
    ///
    /// # Errors
    /// [`HistoryError::Index`].
    pub fn added(&self) -> Result<Vec<(InstrumentId, String)>, HistoryError> {
        let read = || -> rusqlite::Result<Vec<(InstrumentId, String)>> {
            let mut statement = self.db.prepare("SELECT id, symbol FROM instruments ORDER BY rowid")?;
            statement.query_map([], |row| Ok((InstrumentId(row.get(0)?), row.get(1)?)))?.collect()
        };
        read().map_err(self.fail())
    }

    /// Orders, newest first.
    ///
    /// # Errors
    /// [`HistoryError::Index`].
    pub fn orders(&self, filter: &Filter) -> Result<Page<OrderRow>, HistoryError> {
        let mut conditions = Conditions::default();
        conditions.add("id = ?", filter.order.map(|order| order.0.to_bits().cast_signed()));
        conditions.add("member = ?", filter.member.map(|member| i64::from(member.0)));
        conditions.add("client_order_id = ?", filter.client_order_id.map(|id| id.0.cast_signed()));
        conditions.add_times(filter);
        if let Some(status) = &filter.status {
            conditions.sql.push("status = ?".to_owned());
            conditions.values.push(Value::from(status.clone()));
        }
        let (sql, values) = conditions.finish("stamp DESC, id DESC", filter.limit);
        self.found(&format!("SELECT * FROM orders {sql}"), values, filter.limit, order)
    }

    /// Trades, newest first.
    ///
    /// # Errors
    /// [`HistoryError::Index`].
    pub fn trades(&self, filter: &Filter) -> Result<Page<TradeRow>, HistoryError> {
        let mut conditions = Conditions::default();
        let order = filter.order.map(|order| order.0.to_bits().cast_signed());
        conditions.add("(buy_order = ? OR sell_order = ?)", order);
        let member = filter.member.map(|member| i64::from(member.0));
        conditions.add_times(filter);
        match filter.client_order_id.map(|id| id.0.cast_signed()) {
            None => conditions.add("(buy_member = ? OR sell_member = ?)", member),
            Some(named) => {
                // The member must own the order of that name, not merely be on the other side of its trade.
                let owner = member.map_or(String::new(), |member| format!(" AND member = {member}"));
                let orders = format!("(SELECT id FROM orders WHERE client_order_id = ?{owner})");
                conditions.add(&format!("(buy_order IN {orders} OR sell_order IN {orders})"), Some(named));
            }
        }
        let newest = "stamp DESC, shard DESC, position DESC, number DESC";
        let (sql, values) = conditions.finish(newest, filter.limit);
        self.found(&format!("SELECT * FROM trades {sql}"), values, filter.limit, trade)
    }

    /// The trade of an instrument at that position and event.
    ///
    /// # Errors
    /// [`HistoryError::Index`].
    pub fn trade_at(
        &self,
        instrument: InstrumentId,
        (position, event): (Position, u32),
    ) -> Result<Option<TradeRow>, HistoryError> {
        let sql = "SELECT * FROM trades WHERE instrument = ?1 AND position = ?2 AND number = ?3";
        let values = params![instrument.0, position.0.cast_signed(), event];
        self.db.query_row(sql, values, trade).optional().map_err(self.fail())
    }

    /// The name of an order; `None` if there is no such order.
    ///
    /// # Errors
    /// [`HistoryError::Index`].
    pub fn name_of(&self, id: OrderId) -> Result<Option<ClientOrderId>, HistoryError> {
        let sql = "SELECT client_order_id FROM orders WHERE id = ?1";
        let found =
            self.db.query_row(sql, params![id.0.to_bits().cast_signed()], |row| word(row, "client_order_id"));
        Ok(found.optional().map_err(self.fail())?.map(ClientOrderId))
    }

    /// All about one order; `None` if there is no such order.
    ///
    /// # Errors
    /// [`HistoryError::Index`].
    pub fn story(&self, id: OrderId) -> Result<Option<Story>, HistoryError> {
        let word = id.0.to_bits().cast_signed();
        let found = self.db.query_row("SELECT * FROM orders WHERE id = ?1", params![word], order).optional();
        let Some(found) = found.map_err(self.fail())? else { return Ok(None) };
        let sql = "SELECT position, -1 AS number, id, stamp, command, price, quantity, status, reason, executed, \
                   remaining FROM requests WHERE order_id = ?1 \
                   UNION SELECT changes.position, number, id, stamp, change, NULL, NULL, changes.status, \
                   changes.reason, changes.executed, changes.remaining \
                   FROM changes JOIN requests USING (shard, position) WHERE changes.order_id = ?1 \
                   ORDER BY position, number";
        let steps = self.all(sql, vec![word.into()], step)?;
        let sql = "SELECT * FROM trades WHERE buy_order = ?1 OR sell_order = ?1 ORDER BY position, number";
        let trades = self.all(sql, vec![word.into()], trade)?;
        Ok(Some(Story { order: found, steps, trades }))
    }

    fn found<T>(
        &self,
        sql: &str,
        values: Vec<Value>,
        limit: usize,
        read: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Page<T>, HistoryError> {
        let mut rows = self.all(sql, values, read)?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        Ok(Page { rows, more })
    }

    fn all<T>(
        &self,
        sql: &str,
        values: Vec<Value>,
        read: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, HistoryError> {
        let rows = || {
            let mut statement = self.db.prepare(sql)?;
            statement.query_map(params_from_iter(values), read)?.collect()
        };
        let rows: rusqlite::Result<Vec<T>> = rows();
        rows.map_err(self.fail())
    }
}
