//! `pares instruments`: phase, rules and top of the book of every instrument, from the record.
//!
//! Not from `pares.toml`: that says how instruments began. Not from a venue: nobody is asked, so this works beside a system that
//! runs, stands still or is down.

use std::path::PathBuf;

use pares_book::{Book, FastBook, Level, TickRow};
use pares_node::Layout;
use pares_types::{Price, ShardId, Side, Timestamp};
use serde_json::{Value, json};

use super::stat::configuration;
use crate::error::{CommandError, CommandResult};
use crate::standing::Standing;
use crate::text::{self, Table, cents, grouped, name};
use crate::utc;

/// Arguments of `pares instruments`.
#[derive(clap::Args)]
pub struct Args {
    /// Symbol or id: all rules of this one
    instrument: Option<String>,
    /// The system's directory; it may be running
    #[arg(long, default_value = "pares-data")]
    dir: PathBuf,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Prints all instruments, or one.
///
/// # Errors
/// If there is no such system or instrument, or the record is damaged.
pub fn run(args: &Args) -> CommandResult {
    let layout = Layout::new(&args.dir);
    let standing = Standing::read(&configuration(&layout)?, &layout)?;
    let mut all: Vec<(ShardId, &FastBook)> =
        standing.shards().flat_map(|shard| shard.books().iter().map(|book| (shard.id(), book))).collect();
    all.sort_by_key(|(_, book)| book.instrument().id);
    if let Some(asked) = &args.instrument {
        let id = standing.find(asked).map(|instrument| instrument.id);
        all.retain(|(_, book)| Some(book.instrument().id) == id);
    }
    if let (true, Some(asked)) = (all.is_empty(), &args.instrument) {
        return Err(CommandError::Usage(format!(
            "no instrument is called `{asked}`; `pares instruments` lists them"
        )));
    }
    let shown = match (args.json, &args.instrument) {
        (true, _) => json!({ "instruments": all.iter().map(fields).collect::<Vec<_>>() }).to_string(),
        (false, None) => table(&all),
        (false, Some(_)) => all.iter().map(|one| lines(&fields(one))).collect(),
    };
    text::print(&shown);
    Ok(())
}

fn table(all: &[(ShardId, &FastBook)]) -> String {
    let mut table = Table::new([
        ">id",
        "instrument",
        ">shard",
        "phase",
        ">shares",
        ">bid",
        ">offer",
        ">shares",
        ">last",
        ">reference",
        ">static band",
        ">dynamic band",
        ">orders",
    ]);
    for (shard, book) in all {
        let (instrument, trading) = (book.instrument(), book.trading());
        let [bid, offer] = [Side::Buy, Side::Sell].map(|side| book.best(side));
        let shares = |level: Option<Level>| level.map_or("-".to_owned(), |level| grouped(level.quantity.0));
        table.row(vec![
            instrument.id.to_string(),
            instrument.symbol.to_string(),
            shard.to_string(),
            name(&trading.phase),
            shares(bid),
            price(bid.map(|level| level.price)),
            price(offer.map(|level| level.price)),
            shares(offer),
            price(trading.last),
            price(trading.reference),
            band(instrument.static_band),
            band(instrument.dynamic_band),
            grouped(book.orders_len() as u64),
        ]);
    }
    table.render()
}

fn price(price: Option<Price>) -> String {
    price.map_or("-".into(), cents)
}

/// Hundredths of a percent.
fn band(width: u32) -> String {
    if width == 0 { "-".into() } else { format!("{}.{:02} %", width / 100, width % 100) }
}

/// All there is to say of an instrument. Bands are in hundredths of a percent, as `pares admin rule` takes them.
fn fields((shard, book): &(ShardId, &FastBook)) -> Value {
    let (instrument, trading) = (book.instrument(), book.trading());
    let level = |side| {
        book.best(side).map(|level| json!({ "price": level.price.to_string(), "quantity": level.quantity.0 }))
    };
    let money = |price: Option<Price>| price.map(|price| price.to_string());
    let ticks = instrument.ticks.rows().iter();
    // The first row begins anywhere at or below the lowest price.
    let tick = |row: &TickRow| [row.from.max(instrument.price_min).to_string(), row.tick.to_string()];
    let schedule = instrument.timetable.rows().iter();
    json!({
        "id": instrument.id.0,
        "symbol": instrument.symbol.as_str(),
        "shard": shard.0,
        "phase": name(&trading.phase),
        "phase_until": (trading.until != Timestamp::NEVER).then(|| utc::format(trading.until)),
        "bid": level(Side::Buy),
        "offer": level(Side::Sell),
        "orders": book.orders_len(),
        "last": money(trading.last),
        "reference": money(trading.reference),
        "closing": money(trading.closing),
        "indicative": trading.indicated.map(|(price, quantity)| {
            json!({ "price": price.to_string(), "quantity": quantity.0 })
        }),
        "rules": {
            "price_range": [instrument.price_min.to_string(), instrument.price_max.to_string()],
            "ticks": ticks.map(tick).collect::<Vec<_>>(),
            "lot": instrument.lot.0,
            "quantity_max": instrument.quantity_max.0,
            "value_max": instrument.value_max,
            "orders_max": instrument.orders_max,
            "step_max": instrument.step_max,
            "static_band": instrument.static_band,
            "dynamic_band": instrument.dynamic_band,
            "call_time_ms": instrument.call_ns / 1_000_000,
            "schedule": schedule.map(|row| [utc::time_of_day(row.at_ns), name(&row.phase)]).collect::<Vec<_>>(),
        },
    })
}

/// One line for each field, the rules' among them.
fn lines(fields: &Value) -> String {
    let Value::Object(fields) = fields else { unreachable!("an instrument is an object") };
    let line = |(name, value): (&String, &Value)| match value {
        Value::Object(_) if name == "rules" => lines(value),
        Value::Null => format!("{name:<14}-\n"),
        Value::String(text) => format!("{name:<14}{text}\n"),
        Value::Object(level) => format!("{name:<14}{} at {}\n", level["quantity"], plain(&level["price"])),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("{name:<14}{}\n", if items.is_empty() { "-".into() } else { items.join(", ") })
        }
        other => format!("{name:<14}{other}\n"),
    };
    fields.iter().map(line).collect()
}

/// A word, or some of them.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_is_shown_in_percent() {
        assert_eq!([0, 5, 500, 1_250].map(band), ["-", "0.05 %", "5.00 %", "12.50 %"]);
    }
}
