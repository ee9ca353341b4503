//! Instruments, told to a member who asks: which there are (x, y), and how one trades (e, f).
//!
//! The gateway tells them as a list, one list at a time to a session; a member asks for twenty instruments in a row. So questions wait
//! here for their turn, in bounds.

use pares_fix::dictionary::tag;
use pares_fix::message::FixMessage;
use pares_fix::writer::FixWriter;
use pares_types::{
    InstrumentId, InstrumentStatus, List, ListEnd, ListRequest, Phase, Price, Quantity, Reason, Symbol,
};
use pares_wire::frame::ClientFrame;
use std::sync::Arc;

use crate::decimal::price_text;
use crate::desk::{Desk, Found, ListAsked};
use crate::request::Asking;
use crate::told::{Pen, Told, Version};

/// Questions for lists that wait.
const LISTS_MAX: usize = 1_024;
/// Instruments in a message: some 50 bytes each, and peers take messages of 8 KiB.
const FRAGMENT: usize = 100;
/// A SecurityReqID beyond that would make them too long.
const ID_BYTES_MAX: usize = 1_024;
/// Of it, what names the answer too.
const RESPONSE_ID_BYTES: usize = 64;
/// SecurityIDSource: an id of the exchange's.
const EXCHANGE_ID: u64 = 8;

/// SecurityRequestResult (560).
mod result {
    pub(super) const VALID: u64 = 0;
    pub(super) const NOT_SUPPORTED: u64 = 1;
    pub(super) const NONE_FOUND: u64 = 2;
    pub(super) const UNAVAILABLE: u64 = 4;
}

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
    instrument: InstrumentId,
    symbol: Symbol,
    lot: Quantity,
}

/// A SecurityList: a part of all that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecurityList {
    request: Vec<u8>,
    result: u64,
    /// Of all parts together.
    total: usize,
    is_last: bool,
    part: Vec<Security>,
}

/// A SecurityStatus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecurityState {
    request: Vec<u8>,
    symbol: Vec<u8>,
    /// `None`: nobody knows it, or the gateway could not tell, as `why` says.
    trading: Option<(Phase, bool)>,
    why: Reason,
    last: Option<Price>,
}

impl Desk {
    /// Asks the gateway for a list, now or once the lists before it have ended.
    pub(crate) fn list(&mut self, id: Vec<u8>, list: List, instrument: Option<InstrumentId>, found: Found) {
        self.list_token += 1;
        let request = ListRequest { token: self.list_token, list, instrument };
        let asked = ListAsked { id, request, found };
        match self.lists.len() {
            LISTS_MAX => return self.tell_end(asked, Reason::AlreadyAsked),
            0 => self.asks.push(ClientFrame::ListRequest(request)),
            _ => {}
        }
        self.lists.push_back(asked);
    }

    /// The end of the list that is under way; the next one is asked for.
    pub(crate) fn on_list_end(&mut self, end: &ListEnd) {
        if self.lists.front().is_none_or(|list| list.request.token != end.request.token) {
            return;
        }
        let ended = self.lists.pop_front();
        let next = self.lists.front().map(|list| ClientFrame::ListRequest(list.request));
        self.asks.extend(next);
        ended.into_iter().for_each(|asked| self.tell_end(asked, end.reason));
    }

    fn tell_end(&mut self, asked: ListAsked, reason: Reason) {
        match asked.found {
            Found::Orders(last) => self.on_orders_end(asked.id, last, reason),
            Found::Securities(found) => self.tell_securities(&asked.id, &found, reason),
            Found::Security(symbol, false) => {
                self.told.push(SecurityState::none(asked.id, symbol, reason));
            }
            Found::Security(_, true) => {}
        }
    }

    /// SecurityListRequest.
    pub(crate) fn on_list_question(&mut self, message: &FixMessage<'_>) {
        let asking = Asking { message, instruments: &self.instruments };
        let id = message.text(tag::SECURITY_REQ_ID).unwrap_or_default().to_vec();
        let instrument = match message.text(tag::SECURITY_LIST_REQUEST_TYPE) {
            _ if id.len() > ID_BYTES_MAX => Err(result::NOT_SUPPORTED),
            Some(b"4") => Ok(None),
            Some(b"0") => asking.instrument().map(Some).map_err(|_| result::NONE_FOUND),
            _ => Err(result::NOT_SUPPORTED),
        };
        match instrument {
            Ok(instrument) => self.list(id, List::Instruments, instrument, Found::Securities(Vec::new())),
            Err(result) => self.told.push(Told::Securities(SecurityList::none(id, result))),
        }
    }

    /// SecurityStatusRequest. A symbol that is not known here may be of an instrument that was listed since: the gateway knows.
    pub(crate) fn on_security_question(&mut self, message: &FixMessage<'_>) {
        let asking = Asking { message, instruments: &self.instruments };
        let id = message.text(tag::SECURITY_STATUS_REQ_ID).unwrap_or_default().to_vec();
        let text = message.text(tag::SYMBOL).unwrap_or(b"NONE").to_vec();
        // A number that is none is no reason to go by the symbol.
        let named = std::str::from_utf8(&text).ok().filter(|_| !asking.is_by_number());
        let symbol = named.and_then(|text| Symbol::new(text).ok());
        match (asking.instrument(), symbol) {
            (Ok(instrument), _) => self.ask_security(id, text, instrument),
            (Err(_), Some(symbol)) if self.sought.len() < LISTS_MAX => {
                self.sought.push_back((id, text));
                self.finds.push(symbol);
            }
            (Err(_), Some(_)) => self.told.push(SecurityState::none(id, text, Reason::AlreadyAsked)),
            (Err(_), None) => self.told.push(SecurityState::none(id, text, Reason::None)),
        }
    }

    /// Which instrument has the symbol that was sought first.
    pub(crate) fn on_found(&mut self, instrument: Option<InstrumentId>) {
        let Some((id, symbol)) = self.sought.pop_front() else { return };
        match instrument {
            Some(instrument) => self.ask_security(id, symbol, instrument),
            None => self.told.push(SecurityState::none(id, symbol, Reason::None)),
        }
    }

    fn ask_security(&mut self, id: Vec<u8>, symbol: Vec<u8>, instrument: InstrumentId) {
        self.list(id, List::Instruments, Some(instrument), Found::Security(symbol, false));
    }

    /// An instrument of the list that is under way. Whatever it was asked for, it is known from now on.
    pub(crate) fn on_instrument(&mut self, status: &InstrumentStatus) {
        let InstrumentStatus { instrument, symbol, lot, phase, quarantined, last, .. } = *status;
        if !self.instruments.has(instrument) {
            Arc::make_mut(&mut self.instruments).add(instrument, symbol);
        }
        let Some(list) = self.lists.front_mut() else { return };
        match &mut list.found {
            Found::Securities(found) => found.push(Security { instrument, symbol, lot }),
            Found::Security(_, found) => {
                *found = true;
                let symbol = symbol.as_str().as_bytes().to_vec();
                let trading = Some((phase, quarantined));
                let (request, why) = (list.id.clone(), Reason::None);
                let told = SecurityState { request, symbol, trading, why, last };
                self.told.push(Told::Security(told));
            }
            Found::Orders(_) => {}
        }
    }

    fn tell_securities(&mut self, id: &[u8], found: &[Security], reason: Reason) {
        let result = match reason {
            _ if !found.is_empty() => result::VALID,
            Reason::None => result::NONE_FOUND,
            _ => result::UNAVAILABLE,
        };
        if result != result::VALID {
            return self.told.push(Told::Securities(SecurityList::none(id.to_vec(), result)));
        }
        let parts = found.chunks(FRAGMENT);
        let last = parts.len() - 1;
        self.told.extend(parts.enumerate().map(|(number, part)| {
            Told::Securities(SecurityList {
                request: id.to_vec(),
                result,
                total: found.len(),
                is_last: number == last,
                part: part.to_vec(),
            })
        }));
    }
}

impl SecurityList {
    fn none(request: Vec<u8>, result: u64) -> Self {
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
    fn none(request: Vec<u8>, symbol: Vec<u8>, why: Reason) -> Told {
        Told::Security(Self { request, symbol, trading: None, why, last: None })
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
