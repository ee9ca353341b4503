//! Books of the market as sockets receive them: whole, or as what changed.
//!
//! A thousand who look at a book would have its change written a thousand times. Here it is written once, when it happens and a socket watches, and all share the text; who is some
//! changes behind gets their texts, one after the other. Only who is further behind has a difference of his own written, so that nothing is queued.

use std::collections::VecDeque;

use axum::extract::ws::Utf8Bytes;
use pares_port::Levels;
use pares_resources::decimal::price_text;
use pares_types::{Price, Quantity};
use serde::Serialize;
use utoipa::ToSchema;

/// A book as received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookTold {
    /// The number of the shard's market data that comes next: what lies before it is in the book.
    pub number: u64,
    /// Whether the book is the market's: not while data are missing.
    pub is_current: bool,
    /// Its prices.
    pub levels: Levels,
}

/// The texts of a book's last changes are kept up to so many bytes together: who is further behind is better off with one difference.
const STEPS_BYTES_MAX: usize = 4 << 10;

/// A book, and what those who look receive of it.
#[derive(Debug, Default)]
pub(crate) struct BookNow {
    pub(crate) told: BookTold,
    /// How often it has changed.
    changes: u64,
    /// The texts of its last changes, the newest at the end.
    steps: VecDeque<Utf8Bytes>,
}

impl BookNow {
    /// How it is now, unless that is how it was. The text of the change is with it if a socket watches.
    pub(crate) fn next(&self, symbol: &str, told: &BookTold, is_looked_at: bool) -> Option<Self> {
        let before = &self.told;
        if self.changes > 0 && before.levels == told.levels && before.is_current == told.is_current {
            return None;
        }
        let steps = if is_looked_at { self.steps_to(symbol, told) } else { VecDeque::new() };
        Some(Self { told: told.clone(), changes: self.changes + 1, steps })
    }

    /// The texts of the last changes, with that from here to `told`.
    fn steps_to(&self, symbol: &str, told: &BookTold) -> VecDeque<Utf8Bytes> {
        let mut steps = self.steps.clone();
        steps.push_back(step_text(symbol, &self.told, told).into());
        let mut bytes: usize = steps.iter().map(|text| text.len()).sum();
        while bytes > STEPS_BYTES_MAX {
            bytes -= steps.pop_front().map_or(bytes, |text| text.len());
        }
        steps
    }

    /// How many texts of changes are kept.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Adds the messages for one who received `before` last.
    pub(crate) fn since(&self, symbol: &str, before: &Self, texts: &mut Vec<Utf8Bytes>) {
        let behind = usize::try_from(self.changes - before.changes).unwrap_or(usize::MAX);
        match self.steps.len().checked_sub(behind) {
            Some(known) => texts.extend(self.steps.range(known..).cloned()),
            None => texts.push(step_text(symbol, &before.told, &self.told).into()),
        }
    }
}

/// A price and the shares shown there.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct LevelShown {
    price: String,
    /// Shares; in a difference 0 for a price that is gone.
    quantity: String,
}

/// What a socket receives of a book.
#[derive(Serialize, ToSchema)]
pub(crate) struct BookMessage<'a> {
    /// `book`.
    channel: &'static str,
    /// `snapshot` or `delta`.
    #[serde(rename = "type")]
    kind: &'static str,
    #[schema(value_type = String)]
    symbol: &'a str,
    /// The number of the message that it builds on; a snapshot on none.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    number: String,
    is_current: bool,
    bids: Vec<LevelShown>,
    offers: Vec<LevelShown>,
    checksum: String,
}

pub(crate) fn level_shown((price, shares): &(Price, Quantity)) -> LevelShown {
    LevelShown { price: price_text(*price), quantity: shares.to_string() }
}

pub(crate) fn shown(side: &[(Price, Quantity)]) -> Vec<LevelShown> {
    side.iter().map(level_shown).collect()
}

pub(crate) fn checksum(levels: &Levels) -> String {
    format!("{:08x}", levels.sum())
}

fn text(symbol: &str, previous: Option<u64>, changes: &Levels, told: &BookTold) -> String {
    let message = BookMessage {
        channel: "book",
        kind: if previous.is_some() { "delta" } else { "snapshot" },
        symbol,
        previous: previous.map(|number| number.to_string()),
        number: told.number.to_string(),
        is_current: told.is_current,
        bids: shown(&changes.bids),
        offers: shown(&changes.offers),
        checksum: checksum(&told.levels),
    };
    serde_json::to_string(&message).expect("a book is plain")
}

/// The whole book as a message.
pub(crate) fn snapshot_text(symbol: &str, told: &BookTold) -> String {
    text(symbol, None, &told.levels, told)
}

/// What changed since `before` as a message.
fn step_text(symbol: &str, before: &BookTold, told: &BookTold) -> String {
    text(symbol, Some(before.number), &told.levels.since(&before.levels), told)
}
