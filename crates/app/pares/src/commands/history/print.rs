//! The look of `pares history`: tables for people, one JSON object for programs.

use std::collections::BTreeMap;

use pares_history::{OrderRow, Page, Step, Story, TradeRow};
use pares_node::SystemConfig;
use pares_types::{InstrumentId, Price};
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
    let mut table = orders_table();
    found.rows.iter().for_each(|order| table.row(order_row(order, symbols)));
    finish(&table, found.more, "no such orders")
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
    let mut order = orders_table();
    order.row(order_row(&story.order, symbols));
    let mut out = order.render();
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

fn orders_table() -> Table {
    Table::new([
        "accepted (UTC)",
        ">order",
        ">member",
        ">client order id",
        "instrument",
        "side",
        "kind",
        ">price",
        ">quantity",
        ">executed",
        ">remaining",
        "status",
        "reason",
        ">shard",
        ">position",
    ])
}

fn order_row(order: &OrderRow, symbols: &Symbols) -> Vec<String> {
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
    vec![
        utc::format(order.stamp),
        order.id.to_string(),
        order.member.to_string(),
        order.client_order_id.to_string(),
        symbols.show(order.instrument),
        order.side.clone(),
        kind,
        optional(order.price),
        order.quantity.to_string(),
        order.executed.to_string(),
        order.remaining.to_string(),
        order.status.clone(),
        reason(&order.reason),
        order.shard.to_string(),
        order.position.to_string(),
    ]
}

fn trades_table(trades: &[TradeRow], symbols: &Symbols) -> Table {
    let mut table = Table::new([
        "time (UTC)",
        "instrument",
        ">price",
        ">quantity",
        ">buyer",
        ">buy order",
        ">seller",
        ">sell order",
        "aggressor",
        ">shard",
        ">position",
        "busted",
    ]);
    for trade in trades {
        table.row(vec![
            utc::format(trade.stamp),
            symbols.show(trade.instrument),
            trade.price.to_string(),
            trade.quantity.to_string(),
            trade.buy.1.to_string(),
            trade.buy.0.to_string(),
            trade.sell.1.to_string(),
            trade.sell.0.to_string(),
            trade.aggressor.clone(),
            trade.shard.to_string(),
            format!("{}.{}", trade.position, trade.number),
            if trade.busted { "yes" } else { "-" }.to_owned(),
        ]);
    }
    table
}

fn steps_table(steps: &[Step]) -> Table {
    let mut table = Table::new([
        ">position",
        "accepted (UTC)",
        ">request",
        "command",
        ">price",
        ">quantity",
        "status",
        "reason",
        ">executed",
        ">remaining",
    ]);
    for step in steps {
        table.row(vec![
            step.position.to_string(),
            utc::format(step.stamp),
            step.id.to_string(),
            step.command.clone(),
            optional(step.price),
            step.quantity.map_or("-".into(), |quantity| quantity.to_string()),
            step.status.clone(),
            reason(&step.reason),
            step.executed.to_string(),
            step.remaining.to_string(),
        ]);
    }
    table
}

fn optional(price: Option<Price>) -> String {
    price.map_or("-".into(), |price| price.to_string())
}

fn reason(reason: &str) -> String {
    if reason == "none" { "-".to_owned() } else { reason.to_owned() }
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
