//! A client's requests as frames, and back. What a plain frame cannot say goes into its extended form.

use pares_types::{
    BustedTrade, ClientOrderId, ClientRequest, Command, InstrumentId, MemberId, NewOrder, NewTerms, Position,
    Price, Quantity, Registration, TimeInForce,
};
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

use super::{
    AddInstrument, AmendOrder, AmendOrderExtended, BeginDay, BlockMember, BustTrade, CancelOrder,
    ChangeRegister, EndDay, EnterOrder, EnterOrderExtended, MassCancel, Message, RemoveInstrument, SetPhase,
    SetRule, TellTime, UnblockMember, VERSION, body, write,
};
use crate::WireError;
use crate::code::{
    FLAG_DISPLAY, FLAG_REDUCES, FLAG_TRIGGER, GOOD_TILL_DATE, display, flags_code, is_extended, known,
    new_time_in_force, order_kind, order_kind_code, rule, rule_code, time_in_force, trigger,
};
use crate::field::{Field, coded};
use crate::register::{entry, entry_code};

/// Appends a request to `out` as a frame.
///
/// # Panics
/// If a [`ClientRequest::Exchange`] carries a command that has a request of its own.
pub fn write_request(out: &mut Vec<u8>, request: &ClientRequest) {
    match *request {
        ClientRequest::Enter { client_order_id, instrument, order } => {
            write_order(out, client_order_id, instrument, &order);
        }
        ClientRequest::Amend { client_order_id, target, terms } => {
            write_terms(out, client_order_id, target, &terms);
        }
        ClientRequest::Cancel { client_order_id, target } => {
            let (client_order_id, target) = (client_order_id.0.into(), target.0.into());
            write(out, &CancelOrder { client_order_id, target_client_order_id: target });
        }
        ClientRequest::MassCancel { client_order_id, instrument, side } => {
            let (client_order_id, instrument) = (client_order_id.0.into(), instrument.0.into());
            write(out, &MassCancel { client_order_id, instrument, side: side.raw(), reserved: [0; 3] });
        }
        ClientRequest::Exchange { client_order_id, instrument, command } => {
            write_exchange(out, client_order_id, instrument, &command);
        }
    }
}

fn write_order(
    out: &mut Vec<u8>,
    client_order_id: ClientOrderId,
    instrument: InstrumentId,
    order: &NewOrder,
) {
    let (order_kind, price) = order_kind_code(order.kind, order.post_only);
    let (time_in_force, until_ns) = order.time_in_force.code();
    let plain = EnterOrder {
        client_order_id: client_order_id.0.into(),
        price: price.into(),
        quantity: order.quantity.0.into(),
        instrument: instrument.0.into(),
        side: order.side as u8,
        order_kind,
        time_in_force,
        self_trade: order.self_trade as u8,
    };
    if !is_extended(order) {
        return write(out, &plain);
    }
    let extended = EnterOrderExtended {
        display: order.display.0.into(),
        minimum: order.minimum.0.into(),
        trigger: order.trigger.unwrap_or_default().0.into(),
        until_ns: until_ns.into(),
        flags: flags_code(order.trigger, None),
        ..widened(&plain)
    };
    write(out, &extended);
}

/// The extended frame that says what the plain one does.
fn widened(plain: &EnterOrder) -> EnterOrderExtended {
    let EnterOrder { client_order_id, price, quantity, instrument, side, .. } = *plain;
    let EnterOrder { order_kind, time_in_force, self_trade, .. } = *plain;
    EnterOrderExtended {
        client_order_id,
        price,
        quantity,
        instrument,
        side,
        order_kind,
        time_in_force,
        self_trade,
        ..EnterOrderExtended::default()
    }
}

fn write_terms(out: &mut Vec<u8>, name: ClientOrderId, target: ClientOrderId, terms: &NewTerms) {
    let plain = AmendOrder {
        client_order_id: name.0.into(),
        target_client_order_id: target.0.into(),
        price: terms.price.0.into(),
        quantity: terms.quantity.0.into(),
    };
    if *terms == NewTerms::new(terms.price, terms.quantity) {
        return write(out, &plain);
    }
    let (time_in_force, until_ns) = terms.time_in_force.map_or((0, 0), TimeInForce::code);
    let extended = AmendOrderExtended {
        client_order_id: plain.client_order_id,
        target_client_order_id: plain.target_client_order_id,
        price: plain.price,
        quantity: plain.quantity,
        display: terms.display.unwrap_or_default().0.into(),
        trigger: terms.trigger.unwrap_or_default().0.into(),
        until_ns: until_ns.into(),
        time_in_force,
        flags: flags_code(terms.trigger, terms.display) | (u8::from(terms.reduces) * FLAG_REDUCES),
        reserved: [0; 6],
    };
    write(out, &extended);
}

fn write_exchange(out: &mut Vec<u8>, name: ClientOrderId, instrument: InstrumentId, command: &Command) {
    let (client_order_id, instrument) = (name.0.into(), instrument.0.into());
    match *command {
        Command::SetPhase(phase) => {
            write(out, &SetPhase { client_order_id, instrument, phase: phase as u8, reserved: [0; 3] });
        }
        Command::SetRule(rule) => {
            let (rule, first, second) = rule_code(rule);
            let (first, second) = (first.into(), second.into());
            write(out, &SetRule { client_order_id, first, second, instrument, rule, reserved: [0; 3] });
        }
        Command::AddInstrument(symbol) => {
            let symbol = symbol.to_bytes();
            write(out, &AddInstrument { client_order_id, symbol, instrument, reserved: 0.into() });
        }
        Command::RemoveInstrument => {
            write(out, &RemoveInstrument { client_order_id, instrument, reserved: 0.into() });
        }
        Command::Block { member } => {
            write(out, &BlockMember { client_order_id, member: member.0.into(), reserved: 0.into() });
        }
        Command::Unblock { member } => {
            write(out, &UnblockMember { client_order_id, member: member.0.into(), reserved: 0.into() });
        }
        Command::Bust(trade) => {
            let frame = BustTrade {
                client_order_id,
                position: trade.position.0.into(),
                resting_order_id: trade.resting.0.to_bits().into(),
                incoming_order_id: trade.incoming.0.to_bits().into(),
                price: trade.price.0.into(),
                quantity: trade.quantity.0.into(),
                instrument,
                index: trade.index.into(),
                resting_side: trade.resting_side as u8,
                reserved: 0,
                resting_client_order_id: trade.resting_owner.1.0.into(),
                incoming_client_order_id: trade.incoming_owner.1.0.into(),
                resting_member: trade.resting_owner.0.0.into(),
                incoming_member: trade.incoming_owner.0.0.into(),
            };
            write(out, &frame);
        }
        Command::Register(Registration { member, session, entry }) => {
            let (entry, value) = entry_code(entry);
            let (member, session) = (member.0.into(), session.into());
            let frame = ChangeRegister { client_order_id, value, member, session, entry, reserved: 0 };
            write(out, &frame);
        }
        Command::Time { .. } => write(out, &TellTime { client_order_id, instrument, reserved: 0.into() }),
        Command::BeginDay { day } => {
            write(out, &BeginDay { client_order_id, day: day.0.into(), reserved: 0.into() });
        }
        Command::EndDay { day } => {
            write(out, &EndDay { client_order_id, day: day.0.into(), reserved: 0.into() });
        }
        Command::Enter(_)
        | Command::Amend(_)
        | Command::Cancel { .. }
        | Command::MassCancel { .. }
        | Command::CancelGuarded(_) => panic!("{command:?} is no request of an operator"),
    }
}

/// Reads the body of a request's frame.
pub(super) fn decode(kind: u8, bytes: &[u8]) -> Result<ClientRequest, WireError> {
    match kind {
        EnterOrder::KIND => enter(&body(bytes)?),
        AmendOrder::KIND => Ok(amend(&body(bytes)?)),
        CancelOrder::KIND => Ok(cancel(&body(bytes)?)),
        MassCancel::KIND => mass_cancel(&body(bytes)?),
        EnterOrderExtended::KIND => enter_extended(&body(bytes)?),
        AmendOrderExtended::KIND => amend_extended(&body(bytes)?),
        _ => decode_exchange(kind, bytes),
    }
}

fn enter(frame: &EnterOrder) -> Result<ClientRequest, WireError> {
    if frame.time_in_force == GOOD_TILL_DATE {
        return Err(WireError::InvalidField("time_in_force"));
    }
    enter_extended(&widened(frame))
}

fn enter_extended(frame: &EnterOrderExtended) -> Result<ClientRequest, WireError> {
    known(frame.flags, FLAG_TRIGGER)?;
    zero(&frame.reserved)?;
    let (kind, post_only) = order_kind(frame.order_kind, frame.price.get())?;
    let order = NewOrder {
        side: coded(frame.side)?,
        kind,
        time_in_force: time_in_force(frame.time_in_force, frame.until_ns.get())?,
        post_only,
        self_trade: coded(frame.self_trade)?,
        quantity: Quantity(frame.quantity.get()),
        display: Quantity(frame.display.get()),
        minimum: Quantity(frame.minimum.get()),
        trigger: trigger(frame.flags, frame.trigger.get())?,
    };
    Ok(ClientRequest::Enter {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        instrument: InstrumentId(frame.instrument.get()),
        order,
    })
}

fn amend(frame: &AmendOrder) -> ClientRequest {
    ClientRequest::Amend {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        target: ClientOrderId(frame.target_client_order_id.get()),
        terms: NewTerms::new(Price(frame.price.get()), Quantity(frame.quantity.get())),
    }
}

fn amend_extended(frame: &AmendOrderExtended) -> Result<ClientRequest, WireError> {
    known(frame.flags, FLAG_TRIGGER | FLAG_DISPLAY | FLAG_REDUCES)?;
    zero(&frame.reserved)?;
    let terms = NewTerms {
        price: Price(frame.price.get()),
        quantity: Quantity(frame.quantity.get()),
        display: display(frame.flags, frame.display.get())?,
        trigger: trigger(frame.flags, frame.trigger.get())?,
        time_in_force: new_time_in_force(frame.time_in_force, frame.until_ns.get())?,
        reduces: frame.flags & FLAG_REDUCES != 0,
    };
    Ok(ClientRequest::Amend {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        target: ClientOrderId(frame.target_client_order_id.get()),
        terms,
    })
}

fn cancel(frame: &CancelOrder) -> ClientRequest {
    ClientRequest::Cancel {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        target: ClientOrderId(frame.target_client_order_id.get()),
    }
}

fn mass_cancel(frame: &MassCancel) -> Result<ClientRequest, WireError> {
    zero(&frame.reserved)?;
    Ok(ClientRequest::MassCancel {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        instrument: InstrumentId(frame.instrument.get()),
        side: coded(frame.side)?,
    })
}

/// Decodes the frames of the exchange: of each the instrument of its request, and the command.
macro_rules! decode_exchange {
    ($kind:ident, $bytes:ident: $($name:ident, $instrument:expr, |$frame:ident| $command:expr;)*) => {
        match $kind {
            $($name::KIND => {
                let $frame: $name = body($bytes)?;
                zero($frame.reserved.as_bytes())?;
                let instrument: fn(&$name) -> U32 = $instrument;
                ($frame.client_order_id, instrument(&$frame), $command)
            })*
            _ => return Err(WireError::UnknownSchema { schema: $kind, version: VERSION }),
        }
    };
}

fn decode_exchange(kind: u8, bytes: &[u8]) -> Result<ClientRequest, WireError> {
    let (client_order_id, instrument, command) = decode_exchange! {
        kind, bytes:
        SetPhase, |frame| frame.instrument, |frame| Command::SetPhase(coded(frame.phase)?);
        SetRule, |frame| frame.instrument, |frame| {
            Command::SetRule(rule(frame.rule, frame.first.get(), frame.second.get())?)
        };
        AddInstrument, |frame| frame.instrument, |frame| {
            Command::AddInstrument(Field::read(frame.symbol, "symbol")?)
        };
        RemoveInstrument, |frame| frame.instrument, |frame| Command::RemoveInstrument;
        BlockMember, |_| 0.into(), |frame| Command::Block { member: MemberId(frame.member.get()) };
        UnblockMember, |_| 0.into(), |frame| Command::Unblock { member: MemberId(frame.member.get()) };
        BustTrade, |frame| frame.instrument, |frame| Command::Bust(busted_trade(&frame)?);
        ChangeRegister, |_| 0.into(), |frame| {
            let (member, session) = (MemberId(frame.member.get()), frame.session.get());
            Command::Register(Registration { member, session, entry: entry(frame.entry, frame.value)? })
        };
        TellTime, |frame| frame.instrument, |frame| Command::TIME;
        BeginDay, |_| 0.into(), |frame| Command::BeginDay { day: Field::read(frame.day, "day")? };
        EndDay, |_| 0.into(), |frame| Command::EndDay { day: Field::read(frame.day, "day")? };
    };
    let (client_order_id, instrument) =
        (ClientOrderId(client_order_id.get()), InstrumentId(instrument.get()));
    Ok(ClientRequest::Exchange { client_order_id, instrument, command })
}

fn busted_trade(frame: &BustTrade) -> Result<BustedTrade, WireError> {
    Ok(BustedTrade {
        position: Position(frame.position.get()),
        index: frame.index.get(),
        resting: Field::read(frame.resting_order_id, "resting_order_id")?,
        incoming: Field::read(frame.incoming_order_id, "incoming_order_id")?,
        price: Price(frame.price.get()),
        quantity: Quantity(frame.quantity.get()),
        resting_side: coded(frame.resting_side)?,
        resting_owner: owner(frame.resting_member, frame.resting_client_order_id),
        incoming_owner: owner(frame.incoming_member, frame.incoming_client_order_id),
    })
}

fn owner(member: U32, name: U64) -> (MemberId, ClientOrderId) {
    (MemberId(member.get()), ClientOrderId(name.get()))
}

/// A reserved field may mean something to a later build: what this one does not know it must not ignore.
pub(super) fn zero(reserved: &[u8]) -> Result<(), WireError> {
    if reserved.iter().all(|&byte| byte == 0) { Ok(()) } else { Err(WireError::InvalidField("reserved")) }
}
