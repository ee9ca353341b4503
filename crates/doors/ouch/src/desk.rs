//! Messages of the member, one by one, and what the gateway says of them outside of the stream.

use std::collections::BTreeMap;

use pares_port::DoorConfig;
use pares_types::{
    Answer, ClientOrderId, ClientRequest, InstrumentId, NewTerms, Quantity, Reason, Reply, ShardId, Side,
    Status, Symbol,
};
use pares_wire::frame::ClientFrame;

use crate::fields::Fields;
use crate::instruments::{Instruments, unlisted};
use crate::known::Known;
use crate::names::OuchNames;
use crate::numbers::UserRefNums;
use crate::orders::{self, Entry, MALFORMED, Refused, Replacement, UNSUPPORTED, tag};

/// Changes that wait for their answers; a gateway lets a session have fewer.
const CHANGES_MAX: usize = 1 << 16;
/// Names that are tried for one change.
const TRIES_MAX: u32 = 8;

/// An X or M that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Change {
    /// As the client named the order.
    user_ref_num: u32,
    target: ClientOrderId,
    /// Its total from now on; 0 ends it.
    total: Quantity,
    tries: u32,
}

impl Change {
    fn request(self, client_order_id: ClientOrderId) -> ClientRequest {
        let Self { target, total, .. } = self;
        match total {
            Quantity::ZERO => ClientRequest::Cancel { client_order_id, target },
            _ => ClientRequest::Amend { client_order_id, target, terms: NewTerms::reduction(total) },
        }
    }
}

/// The application of a connection.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) names: OuchNames,
    shard: ShardId,
    instruments: Instruments,
    unlisted: InstrumentId,
    known: Known,
    changes: BTreeMap<ClientOrderId, Change>,
    numbers: UserRefNums,
    /// The highest UserRefNum that the stream has told. A client that comes again sends what was not answered, also below what was.
    told: u32,
    is_disabled: bool,
    pub(crate) utc_ns: u64,
    pub(crate) asks: Vec<ClientFrame>,
    /// What is said outside of the stream.
    pub(crate) said: Vec<String>,
}

impl Desk {
    pub(crate) fn new(names: OuchNames, shard: ShardId, config: &DoorConfig) -> Self {
        Self {
            names,
            shard,
            instruments: Instruments::default(),
            unlisted: unlisted(shard, &config.shards),
            known: Known::new(config.orders_max),
            changes: BTreeMap::new(),
            numbers: UserRefNums::default(),
            told: 0,
            is_disabled: false,
            utc_ns: 0,
            asks: Vec::new(),
            said: Vec::new(),
        }
    }

    /// An instrument there is.
    pub(crate) fn list(&mut self, symbol: Symbol, instrument: InstrumentId, shard: ShardId) {
        self.instruments.list(symbol, (instrument, shard), shard == self.shard);
    }

    /// A message of the member.
    pub(crate) fn take(&mut self, message: &[u8]) {
        let Some((kind, body)) = message.split_first() else { return self.refuse('?', 0, MALFORMED) };
        let fields = Fields(body);
        match kind {
            b'O' => self.on_enter(fields),
            b'U' => self.on_replace(fields),
            b'X' => self.on_cancel(fields),
            b'M' => self.on_modify(fields),
            b'C' => self.on_mass_cancel(fields),
            b'D' | b'E' => self.on_entry_switch(*kind == b'D', fields),
            // 0 if there is none left.
            b'Q' => self.said.push(format!("Q {}", self.numbers.highest().max(self.told).wrapping_add(1))),
            _ => self.refuse('?', 0, UNSUPPORTED),
        }
    }

    fn refuse(&mut self, letter: char, user_ref_num: u32, word: &str) {
        self.said.push(format!("{letter} {user_ref_num} {word}"));
    }

    /// What bears that UserRefNum is not taken.
    fn refuse_number(&mut self, number: u32, word: &str) {
        self.refuse('J', number, word);
        self.numbers.refused(number);
    }

    fn on_enter(&mut self, mut fields: Fields<'_>) {
        let Some(number) = fields.u32() else { return self.refuse('J', 0, MALFORMED) };
        if !self.numbers.takes(number) {
            return;
        }
        match self.entry(fields) {
            Ok((instrument, order)) => {
                self.known.enter(number);
                let client_order_id = self.names.of(number);
                self.ask(ClientRequest::Enter { client_order_id, instrument, order });
            }
            Err(word) => self.refuse_number(number, word),
        }
    }

    fn entry(&self, fields: Fields<'_>) -> Result<(InstrumentId, pares_types::NewOrder), Refused> {
        let entry = Entry::read(fields, self.utc_ns)?;
        self.may_enter()?;
        let instrument = self.instrument(entry.symbol)?;
        // Whatever else an operator might list under that number, this enters nothing.
        let quantity = if instrument == self.unlisted { Quantity::ZERO } else { entry.order.quantity };
        Ok((instrument, pares_types::NewOrder { quantity, ..entry.order }))
    }

    fn may_enter(&self) -> Result<(), Refused> {
        if self.is_disabled { Err("disabled") } else { Ok(()) }
    }

    /// One of this shard; of a symbol that is none the unlisted one, so that the shard refuses it.
    fn instrument(&self, field: [u8; 8]) -> Result<InstrumentId, Refused> {
        let text = std::str::from_utf8(field.trim_ascii_end()).map_err(|_| MALFORMED)?;
        let own = self.instruments.find(text).filter(|(_, shard)| *shard == self.shard);
        Ok(own.map_or(self.unlisted, |(instrument, _)| instrument))
    }

    fn on_replace(&mut self, fields: Fields<'_>) {
        let Some(replacement) = Replacement::read(fields, self.utc_ns) else {
            return self.refuse('J', 0, MALFORMED);
        };
        let Replacement { original, user_ref_num, terms } = replacement;
        if !self.numbers.takes(user_ref_num) {
            return;
        }
        match self.may_enter().and(terms) {
            Ok(terms) => {
                let target = self.names.of(self.known.entry(original));
                self.known.replace(original, user_ref_num);
                let client_order_id = self.names.of(user_ref_num);
                self.ask(ClientRequest::Amend { client_order_id, target, terms });
            }
            Err(word) => self.refuse_number(user_ref_num, word),
        }
    }

    fn on_cancel(&mut self, mut fields: Fields<'_>) {
        let (Some(number), quantity) = (fields.u32(), fields.u32()) else {
            return self.refuse('I', 0, MALFORMED);
        };
        let Some(quantity) = quantity.filter(|_| is_plain(fields)) else {
            return self.refuse('I', number, MALFORMED);
        };
        self.change(number, quantity);
    }

    fn on_modify(&mut self, mut fields: Fields<'_>) {
        let (Some(number), side, quantity) = (fields.u32(), fields.byte(), fields.u32()) else {
            return self.refuse('I', 0, MALFORMED);
        };
        let (Some(side), Some(quantity)) = (side, quantity.filter(|_| is_plain(fields))) else {
            return self.refuse('I', number, MALFORMED);
        };
        match orders::side(side) {
            Ok(_) => self.change(number, quantity),
            Err(word) => self.refuse('I', number, word),
        }
    }

    /// Makes an order smaller, to nothing if that is the quantity. What it has then is known to the shard alone: a fill or a change may be on its way.
    fn change(&mut self, user_ref_num: u32, quantity: u32) {
        if self.changes.len() >= CHANGES_MAX {
            return self.refuse('I', user_ref_num, Reason::Overloaded.word());
        }
        let (target, total) = (self.names.of(self.known.entry(user_ref_num)), Quantity(u64::from(quantity)));
        self.ask_change(Change { user_ref_num, target, total, tries: 1 });
    }

    fn ask_change(&mut self, change: Change) {
        let client_order_id = self.names.change(self.utc_ns);
        self.changes.insert(client_order_id, change);
        self.ask(change.request(client_order_id));
    }

    fn on_mass_cancel(&mut self, mut fields: Fields<'_>) {
        let Some(number) = fields.u32() else { return self.refuse('J', 0, MALFORMED) };
        if !self.numbers.takes(number) {
            return;
        }
        match self.mass_cancel(fields) {
            Ok((instrument, side)) => {
                let client_order_id = self.names.of(number);
                self.ask(ClientRequest::MassCancel { client_order_id, instrument, side });
            }
            Err(word) => self.refuse_number(number, word),
        }
    }

    fn mass_cancel(&self, mut fields: Fields<'_>) -> Result<(InstrumentId, Option<Side>), Refused> {
        fields.bytes::<4>().ok_or(MALFORMED)?;
        let symbol: [u8; 8] = fields.bytes().ok_or(MALFORMED)?;
        let mut side = None;
        for value in fields.appendage().ok_or(MALFORMED)? {
            match value.ok_or(MALFORMED)? {
                (tag::SIDE, value) => side = Some(orders::side(orders::byte(value)?)?),
                // Only the orders of a group would be more than was asked for.
                (tag::GROUP_ID, [0, 0]) => {}
                (tag::GROUP_ID, _) => return Err(UNSUPPORTED),
                (tag, value) => orders::inert(tag, value)?,
            }
        }
        if symbol == [b' '; 8] {
            return Ok((InstrumentId(0), side));
        }
        Ok((self.instrument(symbol)?, side))
    }

    fn on_entry_switch(&mut self, is_off: bool, mut fields: Fields<'_>) {
        let Some(number) = fields.u32() else { return self.refuse('J', 0, MALFORMED) };
        if self.numbers.takes(number) {
            self.is_disabled = is_off;
            self.said.push(format!("{} {number}", if is_off { 'G' } else { 'K' }));
        }
    }

    fn ask(&mut self, request: ClientRequest) {
        self.asks.push(ClientFrame::Request(request));
    }

    /// A message of the stream.
    pub(crate) fn on_stream(&mut self, reply: &Reply) {
        let answer = match reply {
            Reply::Answer(answer) => answer,
            Reply::Trade(trade) if trade.remaining.0 == 0 => return self.known.on_ended(trade.order),
            _ => return,
        };
        self.names.on_told(answer.client_order_id);
        // Where it is of another change, the one that was asked for here is refused, or has an answer of its own.
        let change = self.changes.get(&answer.client_order_id);
        if change.is_some_and(|change| !self.is_another(change, answer)) {
            self.changes.remove(&answer.client_order_id);
        }
        self.told = self.told.max(self.names.user_ref_num(answer.client_order_id));
        self.known.on_answer(&self.names, answer);
    }

    /// Whether the answer is of another change of that name, which was on its way already: a later login's, or another gateway's.
    fn is_another(&self, change: &Change, answer: &Answer) -> bool {
        let id = self.known.id(self.names.user_ref_num(change.target));
        let is_of_another_order = answer.status != Status::Refused && id.is_some_and(|id| id != answer.order);
        is_of_another_order || answer.asked.differs(change.request(answer.client_order_id).asked())
    }

    /// A message of another shard's stream: told there, and if it answers this connection, where.
    pub(crate) fn on_elsewhere(&mut self, reply: &Reply) {
        let Reply::Answer(answer) = reply else { return };
        let number = self.names.user_ref_num(answer.client_order_id);
        let change = self.changes.remove(&answer.client_order_id).map(|change| change.user_ref_num);
        self.told = self.told.max(number);
        let asked = Some(number).filter(|number| self.known.on_repeat(*number));
        if let Some(number) = change.or(asked) {
            self.say_elsewhere(number, answer.shard);
        }
    }

    fn say_elsewhere(&mut self, user_ref_num: u32, shard: ShardId) {
        self.said.push(format!("S {user_ref_num} {shard}"));
    }

    /// Something that is in no stream.
    pub(crate) fn on_aside(&mut self, reply: &Reply) {
        match reply {
            Reply::Answer(answer) => self.on_answer_aside(answer),
            // What was first asked under the number is in flight: its answer is in the stream.
            Reply::Rejected { client_order_id, reason: Reason::DuplicateRequest }
                if !self.changes.contains_key(client_order_id) => {}
            Reply::Rejected { client_order_id, reason } => self.on_refused(*client_order_id, *reason),
            _ => {}
        }
    }

    fn on_answer_aside(&mut self, answer: &Answer) {
        let is_used = answer.repeat || answer.reason == Reason::DuplicateRequest;
        let is_old = answer.reason == Reason::TooOld;
        match self.changes.remove(&answer.client_order_id) {
            // Nobody repeats the name of a change, so another change has it: this one was not done.
            Some(change) if is_used || is_old => self.try_again(change, answer.reason),
            Some(change) => self.refuse('I', change.user_ref_num, answer.reason.word()),
            None if answer.status == Status::Refused && !answer.repeat => {
                self.on_refused(answer.client_order_id, answer.reason);
            }
            None => self.on_repeat(answer),
        }
    }

    /// Under a name that is far from those that are used.
    fn try_again(&mut self, change: Change, reason: Reason) {
        if change.tries >= TRIES_MAX {
            let reason = if reason == Reason::TooOld { reason } else { Reason::Overloaded };
            return self.refuse('I', change.user_ref_num, reason.word());
        }
        self.names.jump();
        self.ask_change(Change { tries: change.tries + 1, ..change });
    }

    /// It was answered before, and may have been changed since.
    fn on_repeat(&mut self, answer: &Answer) {
        let number = self.names.user_ref_num(answer.client_order_id);
        self.known.on_repeat(number);
        if answer.shard != self.shard {
            self.say_elsewhere(number, answer.shard);
        }
    }

    /// Nothing was recorded.
    fn on_refused(&mut self, name: ClientOrderId, reason: Reason) {
        match self.changes.remove(&name) {
            Some(change) if reason == Reason::DuplicateRequest => self.try_again(change, reason),
            Some(change) => self.refuse('I', change.user_ref_num, reason.word()),
            None => {
                let number = self.names.user_ref_num(name);
                self.known.on_refused(number);
                self.refuse_number(number, reason.word());
            }
        }
    }
}

/// Whether nothing follows but an appendage that changes nothing.
fn is_plain(fields: Fields<'_>) -> bool {
    fields.appendage().is_some_and(|mut appendage| {
        appendage.all(|value| value.is_some_and(|(tag, value)| orders::inert(tag, value).is_ok()))
    })
}
