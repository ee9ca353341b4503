//! Requests: 64 bytes that hold what nearly all of them say, and 40 more for those that say more.
//!
//! ```text
//!  RequestRecord                               plain orders, cancels, the time
//!  RequestRecord | TermsRecord                 amends; display, minimum, trigger, expiry
//!  RequestRecord | OperandsRecord              the exchange's requests
//!  RequestRecord | BustRecord                  a trade declared void
//! ```
//! One layout with room for everything would make every plain order in every log half as long again; a
//! length that the kind of request decides would forbid a plain order to stay plain. So bit 7 of `command`
//! says whether there is more, and the command which of the three it is.

use pares_types::{
    Amendment, BustedTrade, ClientOrderId, Command, Guarded, InstrumentId, MemberId, NewOrder, OrderId,
    Position, Price, Quantity, Registration, Request, RequestId, ShardId, TimeInForce, Timestamp,
};
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{REQUEST, VERSION, check};
use crate::WireError;
use crate::code::{
    FLAG_DISPLAY, FLAG_REDUCES, FLAG_TRIGGER, business_day, display, flags_code, is_extended, known,
    new_time_in_force, order_kind, order_kind_code, rule, rule_code, time_in_force, trigger,
};
use crate::field::{Field, coded};
use crate::register::{entry, entry_code};

/// The `command` byte: which [`Command`] a [`RequestRecord`] carries.
mod command {
    pub(super) const ENTER: u8 = 1;
    pub(super) const AMEND: u8 = 2;
    pub(super) const CANCEL: u8 = 3;
    pub(super) const MASS_CANCEL: u8 = 4;
    pub(super) const TIME: u8 = 5;
    pub(super) const REMOVE_INSTRUMENT: u8 = 9;
    /// An extension follows: if it has to, or (`_MORE`) if it may.
    pub(super) const EXTENDED: u8 = 128;
    pub(super) const ENTER_MORE: u8 = ENTER | EXTENDED;
    pub(super) const AMEND_MORE: u8 = AMEND | EXTENDED;
    pub(super) const SET_PHASE: u8 = 6 | EXTENDED;
    pub(super) const SET_RULE: u8 = 7 | EXTENDED;
    pub(super) const ADD_INSTRUMENT: u8 = 8 | EXTENDED;
    pub(super) const BLOCK: u8 = 10 | EXTENDED;
    pub(super) const UNBLOCK: u8 = 11 | EXTENDED;
    pub(super) const BUST: u8 = 12 | EXTENDED;
    pub(super) const BEGIN_DAY: u8 = 13 | EXTENDED;
    pub(super) const END_DAY: u8 = 14 | EXTENDED;
    pub(super) const REGISTER: u8 = 15 | EXTENDED;
    pub(super) const CANCEL_GUARDED: u8 = 16 | EXTENDED;
}

/// How far `self_trade` is shifted in its byte.
const SELF_TRADE_SHIFT: u32 = 4;

layout! {
    /// A numbered request. Gateway to venues, and inside every result.
    RequestRecord (64) {
        /// [`REQUEST`].
        schema: u8,
        /// [`VERSION`].
        version: u8,
        /// The total order it belongs to.
        shard: U16,
        /// Who asks.
        member: U32,
        /// [`pares_types::RequestId`] bits: gateway (16) and sequence (48).
        id: U64,
        /// When the gateway took it in, ns since the Unix epoch.
        stamp_ns: U64,
        /// The member's own name for the request.
        client_order_id: U64,
        /// [`OrderId`] bits of the order to amend or cancel, or that rested in the trade to bust; 0 otherwise.
        target: U64,
        /// Price units, of an order, an amend or a trade to bust; 0 otherwise and for market orders.
        price: I64,
        /// Shares, of an order, an amend or a trade to bust; of a change of the register the position as of which its operator knew it; of the time what was drawn; 0 otherwise.
        quantity: U64,
        /// The instrument; 0 = all of the shard, where the command allows it.
        instrument: U32,
        /// 1 enter, 2 amend, 3 cancel, 4 mass cancel, 5 time, 6 set phase, 7 set rule, 8 add instrument, 9 remove
        /// instrument, 10 block, 11 unblock, 12 bust, 13 begin day, 14 end day, 15 register, 16 cancel guarded; plus 128 if an extension follows.
        command: u8,
        /// 1 buy, 2 sell; for a mass cancel 0 means both; 0 for all others.
        side: u8,
        /// 1 limit, 2 market, 3 post-only limit, 4 post-only market, 5 pegged to the best price, 6 pegged to the
        /// middle, 7 and 8 the same post-only; 0 unless entering.
        order_kind: u8,
        /// Bits 0 to 3: 1 day, 2 immediate or cancel, 3 fill or kill, 4 good till cancelled, 5 good till date (in
        /// the extension), 6 at open, 7 at close; 0 unless entering, or if an amend leaves it. Bits 4 to 7:
        /// self-trade prevention: 0 allow, 1 cancel resting, 2 cancel incoming, 3 cancel both, 4 decrement.
        time_in_force: u8,
    }
}

layout! {
    /// The extension of an order or an amend that says more than its 64 bytes hold.
    TermsRecord (40) {
        /// Shares shown at a time; 0 shows everything. For an amend only if bit 1 of `flags` is set.
        display: U64,
        /// Shares that must match at once, 0 for no such wish; of an amend its owner's name for the order, 0 if it is not known.
        minimum: U64,
        /// Price units; only if bit 0 of `flags` is set.
        trigger: I64,
        /// When a good-till-date order expires, ns since the Unix epoch; 0 for others.
        until_ns: U64,
        /// Bit 0: there is a trigger. Bit 1: there is a display (amend only). Bit 2: the amend only reduces.
        flags: u8,
        /// Zero; later fields go here.
        reserved: [u8; 7],
    }
}

layout! {
    /// The extension of a request of the exchange.
    OperandsRecord (40) {
        /// Of a rule its first operand; of the register the first 8 bytes of the value; the business day, days since the Unix epoch; of
        /// guarded orders the last request that may have entered one, its bits.
        first: I64,
        /// Of a rule its second operand; of the register the next 8.
        second: I64,
        /// Of a new instrument its symbol, then zeros; of the register the last 16.
        symbol: [u8; 16],
        /// The member to block or unblock, of the register, or of guarded orders.
        member: U32,
        /// Of the register or of guarded orders the session.
        index: U16,
        /// The phase, the rule, or the entry.
        code: u8,
        /// Zero; later fields go here.
        reserved: u8,
    }
}

layout! {
    /// The extension of a request that declares a trade void: what the trade was, for the owners of its orders.
    BustRecord (48) {
        /// The trade's position.
        position: U64,
        /// [`OrderId`] bits of the incoming order.
        incoming: U64,
        /// The owner's name for the resting order.
        resting_client_order_id: U64,
        /// The owner's name for the incoming order.
        incoming_client_order_id: U64,
        /// The owner of the resting order.
        resting_member: U32,
        /// The owner of the incoming order.
        incoming_member: U32,
        /// Which event of its position the trade was.
        index: U16,
        /// 1 if the resting order bought, 2 if it sold.
        resting_side: u8,
        /// Zero; later fields go here.
        reserved: [u8; 5],
    }
}

const EXTENSION_BYTES: usize = 40;
/// No request record is longer.
pub const REQUEST_BYTES_MAX: usize = size_of::<RequestRecord>() + size_of::<BustRecord>();

/// What follows the first 64 bytes.
enum Extension {
    None,
    Terms(TermsRecord),
    Operands(OperandsRecord),
    Bust(BustRecord),
}

/// Of which shard the request in `bytes` is, without a look at the rest; `None` if it is no request of this version.
#[must_use]
#[inline]
pub fn request_shard(bytes: &[u8]) -> Option<ShardId> {
    let (record, _) = RequestRecord::ref_from_prefix(bytes).ok()?;
    (record.schema == REQUEST && record.version == VERSION).then(|| ShardId(record.shard.get()))
}

/// Bytes of a request's record: 64, 104 with an extension, or 112 to declare a trade void.
#[must_use]
pub fn request_bytes(request: &Request) -> usize {
    let extended = match request.command {
        Command::Enter(order) => is_extended(&order),
        Command::Amend(amendment) => amends_more(&amendment),
        Command::Cancel { .. }
        | Command::MassCancel { .. }
        | Command::Time { .. }
        | Command::RemoveInstrument => false,
        Command::Bust(_) => return REQUEST_BYTES_MAX,
        _ => true,
    };
    size_of::<RequestRecord>() + if extended { EXTENSION_BYTES } else { 0 }
}

/// Writes a request into `out`, which must be exactly [`request_bytes`] long.
///
/// # Panics
/// If `out` has another length.
pub fn write_request(out: &mut [u8], request: &Request) {
    let mut record = RequestRecord {
        schema: REQUEST,
        version: VERSION,
        shard: request.shard.0.into(),
        member: request.member.0.into(),
        id: request.id.to_bits().into(),
        stamp_ns: request.stamp.0.into(),
        client_order_id: request.client_order_id.0.into(),
        instrument: request.instrument.0.into(),
        ..RequestRecord::default()
    };
    let extension = record.set_command(&request.command);
    let extension = match &extension {
        Extension::None => &[],
        Extension::Terms(terms) => terms.as_bytes(),
        Extension::Operands(operands) => operands.as_bytes(),
        Extension::Bust(bust) => bust.as_bytes(),
    };
    assert_eq!(out.len(), size_of::<RequestRecord>() + extension.len(), "a request fills its record exactly");
    let (head, rest) = out.split_at_mut(size_of::<RequestRecord>());
    head.copy_from_slice(record.as_bytes());
    rest.copy_from_slice(extension);
}

impl RequestRecord {
    /// Sets all that the command decides; returns what does not fit.
    fn set_command(&mut self, command: &Command) -> Extension {
        match *command {
            Command::Enter(order) => self.set_order(&order),
            Command::Amend(amendment) => self.set_amendment(&amendment),
            Command::Cancel { target } => {
                self.command = command::CANCEL;
                self.target = target.0.to_bits().into();
                Extension::None
            }
            Command::MassCancel { side } => {
                self.command = command::MASS_CANCEL;
                self.side = side.raw();
                Extension::None
            }
            Command::Time { draw } => {
                self.command = command::TIME;
                self.quantity = draw.into();
                Extension::None
            }
            Command::RemoveInstrument => {
                self.command = command::REMOVE_INSTRUMENT;
                Extension::None
            }
            Command::Bust(trade) => Extension::Bust(self.set_bust(&trade)),
            _ => Extension::Operands(self.set_operands(command)),
        }
    }

    fn set_order(&mut self, order: &NewOrder) -> Extension {
        let (code, price) = order_kind_code(order.kind, order.post_only);
        let (time_in_force, until_ns) = order.time_in_force.code();
        self.command = command::ENTER;
        self.side = order.side as u8;
        self.order_kind = code;
        self.time_in_force = time_in_force | (order.self_trade as u8) << SELF_TRADE_SHIFT;
        self.price = price.into();
        self.quantity = order.quantity.0.into();
        if !is_extended(order) {
            return Extension::None;
        }
        self.command = command::ENTER_MORE;
        Extension::Terms(TermsRecord {
            display: order.display.0.into(),
            minimum: order.minimum.0.into(),
            trigger: order.trigger.unwrap_or_default().0.into(),
            until_ns: until_ns.into(),
            flags: flags_code(order.trigger, None),
            ..TermsRecord::default()
        })
    }

    fn set_amendment(&mut self, amendment: &Amendment) -> Extension {
        let (time_in_force, until_ns) = amendment.time_in_force.map_or((0, 0), TimeInForce::code);
        self.command = command::AMEND;
        self.target = amendment.target.0.to_bits().into();
        self.price = amendment.price.0.into();
        self.quantity = amendment.quantity.0.into();
        self.time_in_force = time_in_force;
        if !amends_more(amendment) {
            return Extension::None;
        }
        self.command = command::AMEND_MORE;
        Extension::Terms(TermsRecord {
            display: amendment.display.unwrap_or_default().0.into(),
            minimum: amendment.target_name.0.into(),
            trigger: amendment.trigger.unwrap_or_default().0.into(),
            until_ns: until_ns.into(),
            flags: flags_code(amendment.trigger, amendment.display)
                | (u8::from(amendment.reduces) * FLAG_REDUCES),
            ..TermsRecord::default()
        })
    }

    fn set_operands(&mut self, command: &Command) -> OperandsRecord {
        let none = OperandsRecord::default();
        let (code, operands) = match *command {
            Command::SetPhase(phase) => (command::SET_PHASE, OperandsRecord { code: phase as u8, ..none }),
            Command::SetRule(rule) => {
                let (code, first, second) = rule_code(rule);
                let (first, second) = (first.into(), second.into());
                (command::SET_RULE, OperandsRecord { code, first, second, ..none })
            }
            Command::AddInstrument(symbol) => {
                (command::ADD_INSTRUMENT, OperandsRecord { symbol: symbol.to_bytes(), ..none })
            }
            Command::Block { member } => (command::BLOCK, OperandsRecord { member: member.0.into(), ..none }),
            Command::Unblock { member } => {
                (command::UNBLOCK, OperandsRecord { member: member.0.into(), ..none })
            }
            Command::BeginDay { day } => {
                (command::BEGIN_DAY, OperandsRecord { first: i64::from(day.0).into(), ..none })
            }
            Command::EndDay { day } => {
                (command::END_DAY, OperandsRecord { first: i64::from(day.0).into(), ..none })
            }
            Command::Register(change) => (command::REGISTER, register_operands(change)),
            Command::CancelGuarded(guarded) => (command::CANCEL_GUARDED, guarded_operands(guarded)),
            _ => unreachable!("{command:?} has no operands"),
        };
        self.command = code;
        operands
    }

    fn set_bust(&mut self, trade: &BustedTrade) -> BustRecord {
        self.command = command::BUST;
        self.target = trade.resting.0.to_bits().into();
        self.price = trade.price.0.into();
        self.quantity = trade.quantity.0.into();
        BustRecord {
            position: trade.position.0.into(),
            incoming: trade.incoming.0.to_bits().into(),
            resting_client_order_id: trade.resting_owner.1.0.into(),
            incoming_client_order_id: trade.incoming_owner.1.0.into(),
            resting_member: trade.resting_owner.0.0.into(),
            incoming_member: trade.incoming_owner.0.0.into(),
            index: trade.index.into(),
            resting_side: trade.resting_side as u8,
            reserved: [0; 5],
        }
    }

    /// Reads a request record, which must be all of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not a whole request of this version.
    pub fn read(bytes: &[u8]) -> Result<Request, WireError> {
        let (record, extension, rest) = Self::split(bytes)?;
        if !rest.is_empty() {
            return Err(WireError::Truncated);
        }
        record.to_request(extension)
    }

    /// The record at the front of `bytes`, its extension (perhaps none), and what follows.
    pub(super) fn split(bytes: &[u8]) -> Result<(&Self, &[u8], &[u8]), WireError> {
        let (record, rest) = Self::ref_from_prefix(bytes).map_err(|_| WireError::Truncated)?;
        check(record.schema, record.version, REQUEST)?;
        let extension = match record.command {
            command::BUST => size_of::<BustRecord>(),
            _ if record.is_extended() => EXTENSION_BYTES,
            _ => 0,
        };
        let (extension, rest) = rest.split_at_checked(extension).ok_or(WireError::Truncated)?;
        Ok((record, extension, rest))
    }

    fn is_extended(&self) -> bool {
        self.command & command::EXTENDED != 0
    }

    pub(super) fn to_request(self, extension: &[u8]) -> Result<Request, WireError> {
        Ok(Request {
            id: Field::read(self.id, "id")?,
            stamp: Timestamp(self.stamp_ns.get()),
            member: MemberId(self.member.get()),
            client_order_id: ClientOrderId(self.client_order_id.get()),
            instrument: InstrumentId(self.instrument.get()),
            shard: ShardId(self.shard.get()),
            command: self.to_command(extension)?,
        })
    }

    fn to_command(self, extension: &[u8]) -> Result<Command, WireError> {
        let operands = || OperandsRecord::read_from_bytes(extension).map_err(|_| WireError::Truncated);
        let member = || operands().map(|operands| MemberId(operands.member.get()));
        Ok(match self.command {
            command::ENTER | command::ENTER_MORE => Command::Enter(self.to_order(&self.terms(extension)?)?),
            command::AMEND | command::AMEND_MORE => {
                Command::Amend(self.to_amendment(&self.terms(extension)?)?)
            }
            command::CANCEL => Command::Cancel { target: self.target()? },
            command::MASS_CANCEL => Command::MassCancel { side: coded(self.side)? },
            command::TIME => Command::Time { draw: self.quantity.get() },
            command::REMOVE_INSTRUMENT => Command::RemoveInstrument,
            command::SET_PHASE => Command::SetPhase(coded(operands()?.code)?),
            command::SET_RULE => {
                let OperandsRecord { code, first, second, .. } = operands()?;
                Command::SetRule(rule(code, first.get(), second.get())?)
            }
            command::ADD_INSTRUMENT => Command::AddInstrument(Field::read(operands()?.symbol, "symbol")?),
            command::BLOCK => Command::Block { member: member()? },
            command::UNBLOCK => Command::Unblock { member: member()? },
            command::BUST => Command::Bust(self.to_bust(extension)?),
            command::BEGIN_DAY => Command::BeginDay { day: business_day(operands()?.first.get())? },
            command::END_DAY => Command::EndDay { day: business_day(operands()?.first.get())? },
            command::REGISTER => Command::Register(self.to_registration(&operands()?)?),
            command::CANCEL_GUARDED => Command::CancelGuarded(to_guarded(&operands()?)?),
            _ => return Err(WireError::InvalidField("command")),
        })
    }

    fn to_registration(self, operands: &OperandsRecord) -> Result<Registration, WireError> {
        // Earlier builds said here as of which position it was to be done.
        if self.quantity.get() != 0 {
            return Err(WireError::InvalidField("quantity"));
        }
        let value = operands.as_bytes().first_chunk().expect("40 bytes");
        let (member, session) = (MemberId(operands.member.get()), operands.index.get());
        Ok(Registration { member, session, entry: entry(operands.code, *value)? })
    }

    fn target(&self) -> Result<OrderId, WireError> {
        Field::read(self.target, "target")
    }

    fn terms(&self, extension: &[u8]) -> Result<TermsRecord, WireError> {
        if !self.is_extended() {
            return Ok(TermsRecord::default());
        }
        TermsRecord::read_from_bytes(extension).map_err(|_| WireError::Truncated)
    }

    fn to_order(self, terms: &TermsRecord) -> Result<NewOrder, WireError> {
        known(terms.flags, FLAG_TRIGGER)?;
        let (kind, post_only) = order_kind(self.order_kind, self.price.get())?;
        let code = self.time_in_force & ((1 << SELF_TRADE_SHIFT) - 1);
        Ok(NewOrder {
            side: coded(self.side)?,
            kind,
            time_in_force: time_in_force(code, terms.until_ns.get())?,
            post_only,
            self_trade: coded(self.time_in_force >> SELF_TRADE_SHIFT)?,
            quantity: Quantity(self.quantity.get()),
            display: Quantity(terms.display.get()),
            minimum: Quantity(terms.minimum.get()),
            trigger: trigger(terms.flags, terms.trigger.get())?,
        })
    }

    fn to_amendment(self, terms: &TermsRecord) -> Result<Amendment, WireError> {
        known(terms.flags, FLAG_TRIGGER | FLAG_DISPLAY | FLAG_REDUCES)?;
        Ok(Amendment {
            target: self.target()?,
            target_name: ClientOrderId(terms.minimum.get()),
            price: Price(self.price.get()),
            quantity: Quantity(self.quantity.get()),
            display: display(terms.flags, terms.display.get())?,
            trigger: trigger(terms.flags, terms.trigger.get())?,
            time_in_force: new_time_in_force(self.time_in_force, terms.until_ns.get())?,
            reduces: terms.flags & FLAG_REDUCES != 0,
        })
    }

    fn to_bust(self, extension: &[u8]) -> Result<BustedTrade, WireError> {
        let bust = BustRecord::read_from_bytes(extension).map_err(|_| WireError::Truncated)?;
        let owner = |member: U32, name: U64| (MemberId(member.get()), ClientOrderId(name.get()));
        Ok(BustedTrade {
            position: Position(bust.position.get()),
            index: bust.index.get(),
            resting: self.target()?,
            incoming: Field::read(bust.incoming, "incoming")?,
            price: Price(self.price.get()),
            quantity: Quantity(self.quantity.get()),
            resting_side: coded(bust.resting_side)?,
            resting_owner: owner(bust.resting_member, bust.resting_client_order_id),
            incoming_owner: owner(bust.incoming_member, bust.incoming_client_order_id),
        })
    }
}

fn register_operands(Registration { member, session, entry }: Registration) -> OperandsRecord {
    let (code, value) = entry_code(entry);
    let mut operands =
        OperandsRecord { member: member.0.into(), index: session.into(), code, ..OperandsRecord::default() };
    operands.as_mut_bytes()[..value.len()].copy_from_slice(&value);
    operands
}

fn guarded_operands(Guarded { member, session, last }: Guarded) -> OperandsRecord {
    OperandsRecord {
        first: last.to_bits().cast_signed().into(),
        member: member.0.into(),
        index: session.into(),
        ..OperandsRecord::default()
    }
}

fn to_guarded(operands: &OperandsRecord) -> Result<Guarded, WireError> {
    let last = RequestId::read(U64::from(operands.first.get().cast_unsigned()), "first")?;
    Ok(Guarded { member: MemberId(operands.member.get()), session: operands.index.get(), last })
}

fn amends_more(amendment: &Amendment) -> bool {
    let dated = matches!(amendment.time_in_force, Some(TimeInForce::Gtd { .. }));
    let named = amendment.target_name != ClientOrderId(0);
    named || dated || amendment.reduces || amendment.display.is_some() || amendment.trigger.is_some()
}
