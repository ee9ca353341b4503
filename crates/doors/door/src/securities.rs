//! Instruments, told to a member who asks: which there are (x, y), and how one trades (e, f).
//!
//! The gateway tells them as a list, one list at a time to a session; a member asks for twenty instruments in a row. So questions wait
//! here for their turn, in bounds.

use pares_fix::dictionary::tag;
use pares_fix::message::FixMessage;
use pares_types::{InstrumentId, InstrumentStatus, List, ListEnd, ListRequest, Reason, Symbol};
use pares_wire::frame::ClientFrame;
use std::sync::Arc;

use crate::desk::Desk;
use crate::outbound::Told;
use crate::pending::{Found, ListAsked};
use crate::request::Asking;
use crate::securities_told::{Security, SecurityList, SecurityState};

/// Questions for lists that wait.
const LISTS_MAX: usize = 1_024;
/// Instruments in a message: some 50 bytes each, and peers take messages of 8 KiB.
const FRAGMENT: usize = 100;
/// A SecurityReqID beyond that would make them too long.
const ID_BYTES_MAX: usize = 1_024;

/// SecurityRequestResult (560).
mod result {
    pub(super) const VALID: u64 = 0;
    pub(super) const NOT_SUPPORTED: u64 = 1;
    pub(super) const NONE_FOUND: u64 = 2;
    pub(super) const UNAVAILABLE: u64 = 4;
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
                self.told.push(Told::Security(SecurityState::none(asked.id, symbol, reason)));
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
            (Err(_), Some(_)) => {
                self.told.push(Told::Security(SecurityState::none(id, text, Reason::AlreadyAsked)))
            }
            (Err(_), None) => self.told.push(Told::Security(SecurityState::none(id, text, Reason::None))),
        }
    }

    /// Which instrument has the symbol that was sought first.
    pub(crate) fn on_found(&mut self, instrument: Option<InstrumentId>) {
        let Some((id, symbol)) = self.sought.pop_front() else { return };
        match instrument {
            Some(instrument) => self.ask_security(id, symbol, instrument),
            None => self.told.push(Told::Security(SecurityState::none(id, symbol, Reason::None))),
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
