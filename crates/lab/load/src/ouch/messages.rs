//! Requests as messages, and what is read of the answers.

use pares_types::{ClientOrderId, ClientRequest, MemberId, NewOrder, OrderKind, Price, Side, TimeInForce};

/// The shard whose instruments are traded.
pub(super) const SHARD: u16 = 0;
/// At market.
const AT_MARKET: u64 = 0x7fff_ffff;
/// The cause of a cancel that was asked for, in tag 213.
const REQUESTED: u64 = pares_types::CancelCause::Requested as u64;

/// Writes a packet.
pub(super) fn packet(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let length = u16::try_from(payload.len() + 1).expect("packets are short");
    out.extend_from_slice(&length.to_be_bytes());
    out.push(kind);
    out.extend_from_slice(payload);
}

/// Writes a login to a member's session 1, with the number of the packet that is wanted first.
pub(super) fn log_in(out: &mut Vec<u8>, member: MemberId, password: &str, next: u64) {
    let session = format!("1-{SHARD}");
    packet(out, b'L', format!("{:<6}{password:10}{session:>10}{next:>20}", member.0).as_bytes());
}

/// A request as a message; none for what no load sends over OUCH.
pub(super) fn message(request: &ClientRequest) -> Option<Vec<u8>> {
    Some(match request {
        ClientRequest::Enter { client_order_id, instrument, order } => {
            let (price, time) = (limit(order)?, in_force(order)?);
            let side = if order.side == Side::Buy { b'B' } else { b'S' };
            let symbol = format!("#{:<7}", instrument.0);
            let mut message = Vec::with_capacity(48);
            message.push(b'O');
            message.extend_from_slice(&number(*client_order_id)?.to_be_bytes());
            message.push(side);
            message.extend_from_slice(&u32::try_from(order.quantity.0).ok()?.to_be_bytes());
            message.extend_from_slice(symbol.as_bytes());
            message.extend_from_slice(&price.to_be_bytes());
            message.extend_from_slice(&[time, b'Y', b'P', b'N', b'N']);
            message.extend_from_slice(b"              \0\0");
            message
        }
        ClientRequest::Amend { client_order_id, target, terms } => {
            let mut message = Vec::with_capacity(48);
            message.push(b'U');
            message.extend_from_slice(&number(*target)?.to_be_bytes());
            message.extend_from_slice(&number(*client_order_id)?.to_be_bytes());
            message.extend_from_slice(&u32::try_from(terms.quantity.0).ok()?.to_be_bytes());
            message.extend_from_slice(&units(terms.price)?.to_be_bytes());
            message.extend_from_slice(b" YN              \0\0");
            message
        }
        ClientRequest::Cancel { target, .. } => {
            [&b"X"[..], &number(*target)?.to_be_bytes(), &[0; 4]].concat()
        }
        ClientRequest::MassCancel { .. } | ClientRequest::Exchange { .. } => return None,
    })
}

/// The UserRefNum of a name.
pub(super) fn number(name: ClientOrderId) -> Option<u32> {
    u32::try_from(name.0).ok()
}

fn limit(order: &NewOrder) -> Option<u64> {
    match order.kind {
        OrderKind::Limit { price } => units(price),
        OrderKind::Market => Some(AT_MARKET),
        OrderKind::Pegged { .. } => None,
    }
}

fn units(price: Price) -> Option<u64> {
    u64::try_from(price.0).ok().filter(|units| *units < AT_MARKET)
}

fn in_force(order: &NewOrder) -> Option<u8> {
    match order.time_in_force {
        TimeInForce::Day => Some(b'0'),
        TimeInForce::Ioc => Some(b'3'),
        TimeInForce::Fok => Some(b'4'),
        _ => None,
    }
}

/// What is read of a message of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) kind: u8,
    pub(super) number: u32,
    /// Whether an incoming order traded.
    pub(super) is_incoming: bool,
    /// Which event at its position, of a trade.
    pub(super) index: u64,
    /// Of the appendage: name, position, code.
    pub(super) name: u64,
    pub(super) position: u64,
    code: u64,
}

impl Told {
    /// Reads a message; none that the page does not know.
    pub(super) fn read(message: &[u8]) -> Option<Self> {
        let kind = *message.first()?;
        let fields = match kind {
            b'A' => 62,
            b'U' => 66,
            b'M' | b'C' => 18,
            b'E' => 34,
            b'D' => 32,
            b'B' => 36,
            b'J' => 29,
            b'I' => 13,
            b'T' => 30,
            b'R' => 14,
            b'X' => 25,
            b'S' => 10,
            _ => return None,
        };
        let at = if kind == b'U' { 13 } else { 9 };
        let four = |at: usize| Some(u32::from_be_bytes(message.get(at..at + 4)?.try_into().ok()?));
        let eight = |at: usize| Some(u64::from_be_bytes(message.get(at..at + 8)?.try_into().ok()?));
        let is_trade = kind == b'E';
        let mut told = Self {
            kind,
            number: if kind == b'S' { 0 } else { four(at)? },
            is_incoming: is_trade && message.get(25) == Some(&b'R'),
            index: if is_trade { eight(26)? & 0xffff } else { 0 },
            name: 0,
            position: 0,
            code: 0,
        };
        let mut rest = message.get(fields + 2..).unwrap_or_default();
        while let [length, tag, after @ ..] = rest {
            let (value, after) = after.split_at_checked(usize::from(*length).checked_sub(1)?)?;
            let value = value.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
            match tag {
                210 => told.name = value,
                211 => told.position = value,
                213 => told.code = value,
                _ => {}
            }
            rest = after;
        }
        Some(told)
    }

    /// Its place in the record of a shard, if it is one that members are held to have been told of.
    pub(super) fn place(&self, shard: u16) -> Option<String> {
        let Self { kind, position, index, name, code, .. } = *self;
        let is_answer = matches!(kind, b'A' | b'U' | b'M' | b'J' | b'I' | b'X');
        // The answer to a cancel has none: what it has cancelled stands before it.
        let is_cancel = kind == b'C' && code == REQUESTED;
        match kind {
            b'E' => Some(format!("{shard}-{position}-{index}-{name}")),
            _ if is_answer || is_cancel => Some(format!("{shard}-{position}-A")),
            _ => None,
        }
    }
}
