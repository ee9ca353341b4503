//! `pares instruments`: phase, rules and top of the book of every instrument, from the record.
//!
//! Not from `pares.toml`: that says how instruments began. Not from a venue: no process is asked, so this works beside a
//! system that runs, stalls or is down.

use std::path::PathBuf;

use pares_book::{Book, FastBook, Instrument, Level, TickRow, TickTable};
use pares_node::Layout;
use pares_types::{Band, Price, ShardId, Side, Timestamp};
use serde_json::{Value, json};

use super::stat::configuration;
use crate::error::{CommandError, CommandResult};
use crate::standing::Standing;
use crate::text::{self, Table, cents, grouped, name};
use crate::utc;

/// Arguments of `pares instruments`.
#[derive(clap::Args)]
pub struct Args {
    /// Symbol or id; shows all rules of the instrument
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
            "there is no instrument `{asked}`; `pares instruments` lists them"
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
fn band(Band { width, least }: Band) -> String {
    let percent = format!("{}.{:02} %", width / 100, width % 100);
    match (width, least) {
        (0, Price(0)) => "-".into(),
        (0, least) => least.to_string(),
        (_, Price(0)) => percent,
        (_, least) => format!("{percent} or {least}"),
    }
}

/// All there is to say of an instrument. Bands are in hundredths of a percent, as `pares admin rule` takes them.
fn fields((shard, book): &(ShardId, &FastBook)) -> Value {
    let (instrument, trading) = (book.instrument(), book.trading());
    let level = |side| {
        book.best(side).map(|level| json!({ "price": level.price.to_string(), "quantity": level.quantity.0 }))
    };
    let money = |price: Option<Price>| price.map(|price| price.to_string());
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
            "ticks": ticks(instrument),
            "lot": instrument.lot.0,
            "quantity_max": instrument.quantity_max.0,
            "value_max": instrument.value_max,
            "orders_max": instrument.orders_max,
            "step_max": instrument.step_max,
            "static_band": instrument.static_band.width,
            "static_band_least": instrument.static_band.least.to_string(),
            "dynamic_band": instrument.dynamic_band.width,
            "dynamic_band_least": instrument.dynamic_band.least.to_string(),
            "call_ms": instrument.call_ns / 1_000_000,
            "extension_ms": instrument.extension_ns / 1_000_000,
            "extensions_max": instrument.extensions_max,
            "extends_for_market": instrument.extends_for_market,
            "random_end_ms": instrument.random_end_ns / 1_000_000,
            "auction_min": instrument.auction_min.0,
            "tie_break": name(&instrument.tie_break),
            "pressure_limit": instrument.pressure_limit,
            "display_decrease_keeps": instrument.display_decrease_keeps,
            "iceberg_refill_fresh": instrument.iceberg_refill_fresh,
            "market_remainder_rests": instrument.market_remainder_rests,
            "schedule": schedule.map(|row| [utc::time_of_day(row.at_ns), name(&row.phase)]).collect::<Vec<_>>(),
        },
    })
}

/// The rows of the tick table that hold for legal prices, each from where it was put: by that it is replaced or removed. A row that
/// holds from the lowest price on, whatever that is, has no beginning.
fn ticks(instrument: &Instrument) -> Vec<Value> {
    let rows = instrument.ticks.rows();
    let holds = |(index, row): &(usize, &TickRow)| {
        let ends = rows.get(index + 1).is_some_and(|next| next.from <= instrument.price_min);
        row.from <= instrument.price_max && !ends
    };
    let from = |row: &TickRow| {
        let has_beginning = TickTable::flat(row.tick).rows()[0].from != row.from;
        has_beginning.then(|| row.from.to_string())
    };
    let shown = |(_, row): (usize, &TickRow)| json!({ "from": from(row), "step": row.tick.to_string() });
    rows.iter().enumerate().filter(holds).map(shown).collect()
}

/// One line for each field, the rules' among them.
fn lines(fields: &Value) -> String {
    let Value::Object(fields) = fields else { unreachable!("an instrument is an object") };
    let line = |(name, value): (&String, &Value)| match value {
        Value::Object(_) if name == "rules" => lines(value),
        Value::Null => format!("{name:<24}-\n"),
        Value::String(text) => format!("{name:<24}{text}\n"),
        Value::Object(level) => format!("{name:<24}{} at {}\n", level["quantity"], plain(&level["price"])),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("{name:<24}{}\n", if items.is_empty() { "-".into() } else { items.join(", ") })
        }
        other => format!("{name:<24}{other}\n"),
    };
    fields.iter().map(line).collect()
}

/// A word, or some of them; a row of ticks.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(" "),
        Value::Object(tick) => format!("from {} step {}", plain(&tick["from"]), plain(&tick["step"])),
        Value::Null => "the lowest".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_types::{InstrumentId, Rule, Symbol};

    #[test]
    fn tick_rows_shown_from_where_they_were_set() {
        let with = |instrument: Instrument, rule| instrument.with_rule(rule, false).unwrap();
        let range = |min, max| Rule::PriceRange { min: Price(min), max: Price(max) };
        let shown = |one: &Instrument| ticks(one).iter().map(plain).collect::<Vec<_>>().join(", ");
        let new = Instrument::listed(InstrumentId(1), Symbol::new("A").unwrap());
        assert_eq!(shown(&new), "from the lowest step 0.0100");
        let coarse = with(new, Rule::Tick { from: Price(100_000), tick: Price(500) });
        assert_eq!(shown(&coarse), "from the lowest step 0.0100, from 10.0000 step 0.0500");
        assert_eq!(shown(&with(coarse, range(100, 50_000))), "from the lowest step 0.0100");
        assert_eq!(shown(&with(coarse, range(200_000, 500_000))), "from 10.0000 step 0.0500");
    }

    #[test]
    fn a_band_is_shown_in_percent() {
        let bands = [0, 5, 500, 1_250].map(Band::of).map(band);
        assert_eq!(bands, ["-", "0.05 %", "5.00 %", "12.50 %"]);
        let least = Price(500);
        let bands = [Band { width: 0, least }, Band { width: 500, least }].map(band);
        assert_eq!(bands, ["0.0500", "5.00 % or 0.0500"]);
    }
}
