//! The look of `pares history`: tables for people, one JSON object for programs.

use std::collections::BTreeMap;

use pares_history::{OrderRow, Page, Step, Story, TradeRow};
use pares_node::SystemConfig;
use pares_types::InstrumentId;
use serde_json::{Value, json};

use crate::text::Table;
use crate::utc;

/// What instruments are called.
pub struct Symbols {
    by_id: BTreeMap<InstrumentId, String>,
    /// In upper case: the latest instrument of that name.
    by_name: BTreeMap<String, InstrumentId>,
}

impl Symbols {
    /// The symbols of a system's configured instruments, and of those added since, first the oldest.
    pub fn of(config: &SystemConfig, added: Vec<(InstrumentId, String)>) -> Self {
        let configured = config.instruments.iter().map(|one| (InstrumentId(one.id), one.symbol.clone()));
        let all: Vec<(InstrumentId, String)> = configured.chain(added).collect();
        let by_name = all.iter().map(|(id, symbol)| (symbol.to_ascii_uppercase(), *id)).collect();
        Self { by_id: all.into_iter().collect(), by_name }
    }

    /// The instrument of that name.
    pub fn id(&self, symbol: &str) -> Option<InstrumentId> {
        self.by_name.get(&symbol.to_ascii_uppercase()).copied()
    }

    /// The instrument's name.
    pub fn symbol(&self, id: InstrumentId) -> Option<&str> {
        self.by_id.get(&id).map(String::as_str)
    }

    /// All names.
    pub fn list(&self) -> String {
        self.by_id.values().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// The name, or the id of an instrument that nothing names.
    fn show(&self, id: InstrumentId) -> String {
        self.symbol(id).map_or_else(|| id.to_string(), str::to_owned)
    }
}

/// Orders found.
pub fn orders(found: &Page<OrderRow>, symbols: &Symbols, as_json: bool) -> String {
    if as_json {
        let rows: Vec<Value> = found.rows.iter().map(|order| order_json(order, symbols)).collect();
        return json!({ "orders": rows, "more": found.more }).to_string();
    }
    finish(&orders_table(&found.rows, symbols), found.more, "no such orders")
}

/// Trades found.
pub fn trades(found: &Page<TradeRow>, symbols: &Symbols, as_json: bool) -> String {
    if as_json {
        let rows: Vec<Value> = found.rows.iter().map(|trade| trade_json(trade, symbols)).collect();
        return json!({ "trades": rows, "more": found.more }).to_string();
    }
    finish(&trades_table(&found.rows, symbols), found.more, "no such trades")
}

/// One order's story.
pub fn story(story: &Story, symbols: &Symbols, as_json: bool) -> String {
    if as_json {
        let trades: Vec<Value> = story.trades.iter().map(|trade| trade_json(trade, symbols)).collect();
        let requests: Vec<Value> = story.steps.iter().map(step_json).collect();
        let order = order_json(&story.order, symbols);
        return json!({ "order": order, "requests": requests, "trades": trades }).to_string();
    }
    let mut out = orders_table(std::slice::from_ref(&story.order), symbols).render();
    out.push_str(&format!("\nrequests\n{}", steps_table(&story.steps).render()));
    if !story.trades.is_empty() {
        out.push_str(&format!("\ntrades\n{}", trades_table(&story.trades, symbols).render()));
    }
    out
}

fn finish(table: &Table, more: bool, none: &str) -> String {
    match (table.is_empty(), more) {
        (true, _) => format!("{none}\n"),
        (false, false) => table.render(),
        (false, true) => format!("{}there are more rows: add conditions, or raise --limit\n", table.render()),
    }
}

/// Columns of a table: what each is headed by, and the field that it shows.
type Columns<const N: usize> = [(&'static str, &'static str); N];

const ORDERS: Columns<15> = [
    ("accepted (UTC)", "stamp"),
    (">order", "order"),
    (">member", "member"),
    (">client order id", "client_order_id"),
    ("instrument", "symbol"),
    ("side", "side"),
    ("kind", "kind"),
    (">price", "price"),
    (">quantity", "quantity"),
    (">executed", "executed"),
    (">remaining", "remaining"),
    ("status", "status"),
    ("reason", "reason"),
    (">shard", "shard"),
    (">position", "position"),
];

const TRADES: Columns<12> = [
    ("time (UTC)", "stamp"),
    ("instrument", "symbol"),
    (">price", "price"),
    (">quantity", "quantity"),
    (">buyer", "buy_member"),
    (">buy order", "buy_order"),
    (">seller", "sell_member"),
    (">sell order", "sell_order"),
    ("aggressor", "aggressor"),
    (">shard", "shard"),
    (">position", "position"),
    ("busted", "busted"),
];

const STEPS: Columns<10> = [
    (">position", "position"),
    ("accepted (UTC)", "stamp"),
    (">request", "request"),
    ("command", "command"),
    (">price", "price"),
    (">quantity", "quantity"),
    ("status", "status"),
    ("reason", "reason"),
    (">executed", "executed"),
    (">remaining", "remaining"),
];

fn table<const N: usize>(columns: &Columns<N>, rows: impl Iterator<Item = Value>) -> Table {
    let mut table = Table::new(columns.iter().map(|(title, _)| *title));
    rows.for_each(|row| table.row(columns.iter().map(|(_, field)| cell(&row[*field])).collect()));
    table
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn orders_table(orders: &[OrderRow], symbols: &Symbols) -> Table {
    let row = |order: &OrderRow| {
        let mut row = order_json(order, symbols);
        row["symbol"] = symbols.show(order.instrument).into();
        row["kind"] = kind(order).into();
        row["reason"] = reason(&order.reason);
        row
    };
    table(&ORDERS, orders.iter().map(row))
}

/// What it is, with all that is not usual of it.
fn kind(order: &OrderRow) -> String {
    let mut kind = order.kind.clone();
    if order.time_in_force != "day" {
        kind.push_str(&format!(" {}", order.time_in_force));
    }
    if let Some(until) = order.until {
        kind.push_str(&format!(" {}", utc::format(until)));
    }
    if order.post_only {
        kind.push_str(" post_only");
    }
    if let Some(display) = order.display {
        kind.push_str(&format!(" display {display}"));
    }
    if let Some(minimum) = order.minimum {
        kind.push_str(&format!(" minimum {minimum}"));
    }
    if let Some(trigger) = order.trigger {
        kind.push_str(&format!(" trigger {trigger}"));
    }
    kind
}

fn trades_table(trades: &[TradeRow], symbols: &Symbols) -> Table {
    let row = |trade: &TradeRow| {
        let mut row = trade_json(trade, symbols);
        row["symbol"] = symbols.show(trade.instrument).into();
        row["position"] = format!("{}.{}", trade.position, trade.number).into();
        row["busted"] = if trade.busted { "yes" } else { "-" }.into();
        row
    };
    table(&TRADES, trades.iter().map(row))
}

fn steps_table(steps: &[Step]) -> Table {
    let row = |step: &Step| {
        let mut row = step_json(step);
        row["reason"] = reason(&step.reason);
        row
    };
    table(&STEPS, steps.iter().map(row))
}

/// Why, if there is a reason.
fn reason(reason: &str) -> Value {
    if reason == "none" { Value::Null } else { reason.into() }
}

fn order_json(order: &OrderRow, symbols: &Symbols) -> Value {
    json!({
        "order": order.id.to_string(),
        "member": order.member.0,
        "client_order_id": order.client_order_id.0,
        "instrument": order.instrument.0,
        "symbol": symbols.symbol(order.instrument),
        "side": order.side,
        "kind": order.kind,
        "time_in_force": order.time_in_force,
        "post_only": order.post_only,
        "price": order.price.map(|price| price.to_string()),
        "quantity": order.quantity.0,
        "executed": order.executed.0,
        "remaining": order.remaining.0,
        "status": order.status,
        "reason": order.reason,
        "shard": order.shard.0,
        "position": order.position.0,
        "stamp": utc::format(order.stamp),
        "changed_position": order.changed_position.0,
        "changed_stamp": utc::format(order.changed_stamp),
        "display": order.display.map(|shares| shares.0),
        "minimum": order.minimum.map(|shares| shares.0),
        "trigger": order.trigger.map(|price| price.to_string()),
        "until": order.until.map(utc::format),
    })
}

fn trade_json(trade: &TradeRow, symbols: &Symbols) -> Value {
    json!({
        "shard": trade.shard.0,
        "position": trade.position.0,
        "number": trade.number,
        "instrument": trade.instrument.0,
        "symbol": symbols.symbol(trade.instrument),
        "price": trade.price.to_string(),
        "quantity": trade.quantity.0,
        "buy_order": trade.buy.0.to_string(),
        "buy_member": trade.buy.1.0,
        "sell_order": trade.sell.0.to_string(),
        "sell_member": trade.sell.1.0,
        "aggressor": trade.aggressor,
        "stamp": utc::format(trade.stamp),
        "busted": trade.busted,
    })
}

fn step_json(step: &Step) -> Value {
    json!({
        "position": step.position.0,
        "request": step.id.to_string(),
        "stamp": utc::format(step.stamp),
        "command": step.command,
        "price": step.price.map(|price| price.to_string()),
        "quantity": step.quantity.map(|quantity| quantity.0),
        "status": step.status,
        "reason": step.reason,
        "executed": step.executed.0,
        "remaining": step.remaining.0,
    })
}
