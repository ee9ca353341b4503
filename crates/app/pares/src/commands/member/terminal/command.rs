//! What a trader types.
//!
//! ```text
//!   buy 100 at 10.50      sell 100 at 10.50 in 3      cancel 1712...
//!   to 3 are you there?   all good morning       note cheap        ask 500        quit
//! ```
//! A word that is none of these is not sent: it was to be an order, perhaps.

use pares_desk::item::{ItemBody, TraderId};
use pares_types::{InstrumentId, Price, Quantity, Side};

use crate::commands::admin::price;

/// What can be typed.
pub(super) const HELP: &str = "Commands: buy 100 at 10.50 [in INSTRUMENT] | sell 100 at 10.50 | cancel \
     ORDER | all WORDS | to TRADER WORDS | note WORDS | ask [QUANTITY] | help | quit. Keys: Tab, Up, Down: \
     other books; Esc: quit. INSTRUMENT is the number beside its symbol.";

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Leave.
    Quit,
    /// Say what can be typed.
    Help,
    /// Say something.
    Say(Words),
    /// Enter an order.
    Order(Ticket),
    /// Cancel one.
    Cancel(u64),
}

/// An order as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) instrument: InstrumentId,
    pub(super) side: Side,
    pub(super) quantity: Quantity,
    pub(super) price: Price,
}

/// Something to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Words {
    Message { to: TraderId, text: String },
    Note { instrument: InstrumentId, text: String },
    Ask { instrument: InstrumentId, quantity: Quantity },
}

impl Words {
    pub(super) fn as_body(&self) -> ItemBody<'_> {
        match self {
            Self::Message { to, text } => ItemBody::Message { to: *to, text },
            Self::Note { instrument, text } => ItemBody::Note { instrument: *instrument, text },
            Self::Ask { instrument, quantity } => {
                ItemBody::QuoteRequest { to: TraderId(0), instrument: *instrument, quantity: *quantity }
            }
        }
    }
}

/// Reads a line; orders and notes are for the instrument shown. Nothing if the line is empty.
pub(super) fn read(line: &str, instrument: Option<InstrumentId>) -> Result<Option<Command>, String> {
    let line = line.trim();
    let (word, rest) = line.split_once(' ').map_or((line, ""), |(word, rest)| (word, rest.trim()));
    let here = || {
        instrument.ok_or_else(|| {
            "no instrument is shown yet: wait for market data, or name one with `in INSTRUMENT`".to_owned()
        })
    };
    Ok(Some(match word {
        "" => return Ok(None),
        "quit" | "q" => Command::Quit,
        "help" | "?" => Command::Help,
        "buy" => Command::Order(ticket(rest, instrument, Side::Buy)?),
        "sell" => Command::Order(ticket(rest, instrument, Side::Sell)?),
        "cancel" => {
            Command::Cancel(rest.parse().map_err(|_| "expected: cancel ORDER, the order's name".to_owned())?)
        }
        "note" => Command::Say(Words::Note { instrument: here()?, text: rest.into() }),
        "ask" => {
            let how = |_| "expected: ask, or ask QUANTITY".to_owned();
            let quantity = if rest.is_empty() { 0 } else { rest.parse().map_err(how)? };
            let quantity = Quantity(quantity);
            Command::Say(Words::Ask { instrument: here()?, quantity })
        }
        "to" => {
            let how = || "expected: to TRADER WORDS".to_owned();
            let (to, text) = rest.split_once(' ').ok_or_else(how)?;
            let to = TraderId(to.parse().map_err(|_| how())?);
            Command::Say(Words::Message { to, text: text.into() })
        }
        "all" => Command::Say(Words::Message { to: TraderId(0), text: rest.into() }),
        _ => return Err(format!("`{word}` is not a command; `help` lists them")),
    }))
}

/// An order for the instrument that is named, or shown.
fn ticket(text: &str, shown: Option<InstrumentId>, side: Side) -> Result<Ticket, String> {
    let how = || "expected: QUANTITY at PRICE, and `in INSTRUMENT` if it is not the one shown".to_owned();
    let words: Vec<&str> = text.split_whitespace().filter(|word| !["at", "@", "in"].contains(word)).collect();
    let (quantity, price, named) = match words[..] {
        [quantity, price] => (quantity, price, None),
        [quantity, price, named] => (quantity, price, Some(named)),
        _ => return Err(how()),
    };
    let named = named.map(|named| named.parse().map(InstrumentId).map_err(|_| how())).transpose()?;
    let instrument = named.or(shown).ok_or_else(how)?;
    let quantity = quantity.parse().ok().filter(|&quantity| quantity > 0).ok_or_else(how)?;
    let price = read_price(price).ok_or_else(how)?;
    Ok(Ticket { instrument, side, quantity: Quantity(quantity), price })
}

/// A price with at most four decimals, not below zero; a point may end a whole number.
fn read_price(text: &str) -> Option<Price> {
    let whole = text.strip_suffix('.').filter(|whole| !whole.contains('.'));
    price(whole.unwrap_or(text)).ok().filter(|_| !text.starts_with('-'))
}
