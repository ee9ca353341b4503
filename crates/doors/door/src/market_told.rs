//! Messages of market data, and how each is written: the same in both versions.

use std::sync::Arc;

use pares_fix::dictionary::tag;
use pares_fix::writer::FixWriter;
use pares_types::{Price, Quantity};

use crate::decimal::price_text;

/// MDEntryType (269).
pub(crate) mod entry {
    pub(crate) const BID: u8 = b'0';
    pub(crate) const OFFER: u8 = b'1';
    pub(crate) const TRADE: u8 = b'2';
}

/// MDUpdateAction (279).
pub(crate) mod update {
    pub(crate) const NEW: u8 = b'0';
    pub(crate) const CHANGE: u8 = b'1';
    pub(crate) const DELETE: u8 = b'2';
}

/// A price, or a trade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarketEntry {
    pub(crate) kind: u8,
    /// What became of it, and of which symbol.
    pub(crate) update: Option<(u8, Arc<str>)>,
    pub(crate) price: Price,
    pub(crate) quantity: Quantity,
}

/// A message of market data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MarketTold {
    Snapshot { id: Vec<u8>, symbol: Arc<str>, entries: Vec<MarketEntry> },
    Refresh { id: Vec<u8>, entries: Vec<MarketEntry> },
}

/// A MarketDataRequestReject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarketReject {
    pub(crate) id: Vec<u8>,
    pub(crate) reason: Option<u8>,
    pub(crate) text: &'static str,
}

impl MarketTold {
    pub(crate) fn msg_type(&self) -> &'static [u8] {
        match self {
            Self::Snapshot { .. } => b"W",
            Self::Refresh { .. } => b"X",
        }
    }

    /// Writes what follows the header that every message has.
    pub(crate) fn write(&self, writer: &mut FixWriter<'_>) {
        let (Self::Snapshot { id, entries, .. } | Self::Refresh { id, entries }) = self;
        writer.text(tag::MD_REQ_ID, id);
        if let Self::Snapshot { symbol, .. } = self {
            writer.text(tag::SYMBOL, symbol.as_bytes());
        }
        writer.number(tag::NO_MD_ENTRIES, entries.len() as u64);
        entries.iter().for_each(|entry| entry.write(writer));
    }
}

impl MarketEntry {
    fn write(&self, writer: &mut FixWriter<'_>) {
        if let Some((action, _)) = &self.update {
            writer.letter(tag::MD_UPDATE_ACTION, *action);
        }
        writer.letter(tag::MD_ENTRY_TYPE, self.kind);
        if let Some((_, symbol)) = &self.update {
            writer.text(tag::SYMBOL, symbol.as_bytes());
        }
        writer.text(tag::MD_ENTRY_PX, price_text(self.price).as_bytes());
        if !self.quantity.is_zero() {
            writer.number(tag::MD_ENTRY_SIZE, self.quantity.0);
        }
    }
}

impl MarketReject {
    /// Writes what follows the header that every message has.
    pub(crate) fn write(&self, writer: &mut FixWriter<'_>) {
        writer.text(tag::MD_REQ_ID, &self.id);
        if let Some(reason) = self.reason {
            writer.letter(tag::MD_REQ_REJ_REASON, reason);
        }
        writer.text(tag::TEXT, self.text.as_bytes());
    }
}
