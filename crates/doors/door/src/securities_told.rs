//! Messages about instruments: which there are (y), and how one trades (f).

use pares_fix::dictionary::tag;
use pares_fix::writer::FixWriter;
use pares_types::{InstrumentId, Phase, Price, Quantity, Reason, Symbol};

use crate::decimal::price_text;
use crate::types::{Pen, Version};

/// Of it, what names the answer too.
const RESPONSE_ID_BYTES: usize = 64;
/// SecurityIDSource: an id of the exchange's.
const EXCHANGE_ID: u64 = 8;

/// SecurityTradingStatus (326).
mod trading {
    pub(super) const OPENING_DELAY: u64 = 1;
    pub(super) const HALT: u64 = 2;
    pub(super) const PRICE_INDICATION: u64 = 5;
    pub(super) const READY: u64 = 17;
    pub(super) const NOT_AVAILABLE: u64 = 18;
    pub(super) const UNKNOWN: u64 = 20;
    /// FIX 4.4 only.
    pub(super) const PRE_OPEN: u64 = 21;
}

/// An instrument of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Security {
    pub(crate) instrument: InstrumentId,
    pub(crate) symbol: Symbol,
    pub(crate) lot: Quantity,
}

/// A SecurityList: a part of all that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecurityList {
    pub(crate) request: Vec<u8>,
    pub(crate) result: u64,
    /// Of all parts together.
    pub(crate) total: usize,
    pub(crate) is_last: bool,
    pub(crate) part: Vec<Security>,
}

/// A SecurityStatus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecurityState {
    pub(crate) request: Vec<u8>,
    pub(crate) symbol: Vec<u8>,
    /// `None`: nobody knows it, or the gateway could not tell, as `why` says.
    pub(crate) trading: Option<(Phase, bool)>,
    pub(crate) why: Reason,
    pub(crate) last: Option<Price>,
}

impl SecurityList {
    pub(crate) fn none(request: Vec<u8>, result: u64) -> Self {
        Self { request, result, total: 0, is_last: true, part: Vec::new() }
    }

    /// Writes what follows the header that every message has.
    pub(crate) fn write(&self, writer: &mut FixWriter<'_>) {
        writer.text(tag::SECURITY_REQ_ID, &self.request);
        writer.text(tag::SECURITY_RESPONSE_ID, &self.request[..self.request.len().min(RESPONSE_ID_BYTES)]);
        writer.number(tag::SECURITY_REQUEST_RESULT, self.result);
        writer.number(tag::TOT_NO_RELATED_SYM, self.total as u64);
        writer.letter(tag::LAST_FRAGMENT, if self.is_last { b'Y' } else { b'N' });
        if self.part.is_empty() {
            return;
        }
        writer.number(tag::NO_RELATED_SYM, self.part.len() as u64);
        for security in &self.part {
            writer.text(tag::SYMBOL, security.symbol.as_str().as_bytes());
            writer.number(tag::SECURITY_ID, u64::from(security.instrument.0));
            writer.number(tag::SECURITY_ID_SOURCE, EXCHANGE_ID);
            writer.number(tag::ROUND_LOT, security.lot.0);
        }
    }
}

impl SecurityState {
    pub(crate) fn none(request: Vec<u8>, symbol: Vec<u8>, why: Reason) -> Self {
        Self { request, symbol, trading: None, why, last: None }
    }

    /// Writes what follows the header that every message has.
    pub(crate) fn write(&self, pen: Pen<'_>, writer: &mut FixWriter<'_>) {
        let is_44 = pen.version == Version::Fix44;
        writer.text(tag::SECURITY_STATUS_REQ_ID, &self.request);
        writer.text(tag::SYMBOL, &self.symbol);
        writer.letter(tag::UNSOLICITED_INDICATOR, b'N');
        writer.number(tag::SECURITY_TRADING_STATUS, self.trading_status(is_44));
        if let Some(last) = self.last {
            writer.text(tag::LAST_PX, price_text(last).as_bytes());
        }
        writer.time(tag::TRANSACT_TIME, pen.utc_ns);
        if is_44 {
            let text = match self.trading {
                None if self.why != Reason::None => self.why.word(),
                None => "no instrument of that symbol",
                Some((_, true)) => "quarantined",
                Some((phase, false)) => word(phase),
            };
            writer.text(tag::TEXT, text.as_bytes());
        }
    }

    fn trading_status(&self, is_44: bool) -> u64 {
        let Some((phase, quarantined)) = self.trading else { return trading::UNKNOWN };
        match phase {
            _ if quarantined => trading::HALT,
            Phase::OpeningCall if is_44 => trading::PRE_OPEN,
            Phase::OpeningCall => trading::OPENING_DELAY,
            Phase::Continuous => trading::READY,
            Phase::VolatilityCall | Phase::ClosingCall => trading::PRICE_INDICATION,
            Phase::Halted => trading::HALT,
            Phase::Closed | Phase::PostClose => trading::NOT_AVAILABLE,
        }
    }
}

/// A phase, as the journal names it.
fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Closed => "closed",
        Phase::OpeningCall => "opening_call",
        Phase::Continuous => "continuous",
        Phase::VolatilityCall => "volatility_call",
        Phase::ClosingCall => "closing_call",
        Phase::PostClose => "post_close",
        Phase::Halted => "halted",
    }
}
