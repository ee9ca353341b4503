//! One book of a checkpoint.
//!
//! ```text
//! book        instrument | trading | deadline | statistics | priority_next | orders n | order*
//! trading     phase | until | after | extended | last? | reference? | closing? | time | timetable_done |
//!             next phase, 0 for none | its price? | unfinished | indicated? | shares indicated | busts n | (position, index)*
//! unfinished  1 | order | limit | lowest price | highest price | gathers | begun, or 0
//! order       order id | member | name | codes | price | remaining | executed | priority
//!             and if its codes say so: limit | shown | display | until | trigger?
//! codes       side | kind << 8 | time in force << 16 | self-trade << 24 | has more << 32 | elected << 33 | post-only << 34
//! x?          1 | x, or 0 | 0
//! ```
//! Most orders are plain limit orders that show all they have: theirs is the short form.

use pares_book::{
    Beside, Book, Instrument, Pause, Priority, RestingOrder, Snapshot, Trading, Transition, Unfinished,
};
use pares_types::{
    ClientOrderId, MemberId, OrderId, OrderKind, Phase, Position, Price, Quantity, RequestId, SelfTrade,
    Side, TimeInForce, Timestamp,
};

use super::day::put_statistics;
use super::{CheckpointError, Input, put};

/// Bytes of a book without orders, rows and busts.
pub(super) const BYTES_MIN: usize = 57 * 8;
/// Orders written between two pauses: some 50 us.
const PAUSE_EVERY: usize = 512;
const HAS_MORE: u64 = 1 << 32;
const ELECTED: u64 = 1 << 33;
const POST_ONLY: u64 = 1 << 34;

pub(super) fn encode<B: Book>(out: &mut Vec<u8>, book: &B, beside: Beside, pause: Pause<'_>) {
    book.instrument().write(&mut |word| put(out, word));
    put_trading(out, book.trading());
    put(out, beside.deadline.0);
    put_statistics(out, &beside.statistics);
    put(out, book.priority_next().0);
    put(out, book.orders_len() as u64);
    let mut written = 0_usize;
    let mut put = |order: &RestingOrder| {
        put_order(out, order);
        written += 1;
        if written.is_multiple_of(PAUSE_EVERY) {
            pause();
        }
    };
    book.for_each_order(Side::Buy, &mut put);
    book.for_each_order(Side::Sell, &mut put);
    book.for_each_held(&mut put);
}

/// A book as it lies in a checkpoint.
pub(super) struct Written {
    pub(super) instrument: Instrument,
    pub(super) snapshot: Snapshot,
    beside: Beside,
}

impl Written {
    pub(super) fn restore<B: Book>(self) -> Result<(B, Beside), CheckpointError> {
        let book = B::restore(self.instrument, &self.snapshot)
            .map_err(|error| CheckpointError::Book(self.instrument.id, error))?;
        Ok((book, self.beside))
    }
}

pub(super) fn decode(input: &mut Input<'_>) -> Result<Written, CheckpointError> {
    let instrument = Instrument::read(&mut || input.u64().ok());
    let instrument = instrument.ok_or(CheckpointError::InvalidField("instrument"))?;
    let trading = input.trading()?;
    let beside = Beside { deadline: Timestamp(input.u64()?), statistics: input.statistics()? };
    let priority_next = Priority(input.u64()?);
    let orders = input.list(64, Input::order)?;
    Ok(Written { instrument, snapshot: Snapshot { priority_next, trading, orders }, beside })
}

pub(super) fn put_price(out: &mut Vec<u8>, price: Price) {
    put(out, price.0.cast_unsigned());
}

fn put_optional(out: &mut Vec<u8>, price: Option<Price>) {
    put(out, u64::from(price.is_some()));
    put_price(out, price.unwrap_or_default());
}

fn put_trading(out: &mut Vec<u8>, trading: &Trading) {
    let Trading {
        phase,
        transition,
        unfinished,
        until,
        after,
        extended,
        last,
        reference,
        closing,
        time,
        timetable_done,
        indicated,
        busts,
    } = trading;
    put(out, *phase as u64);
    put(out, until.0);
    put(out, *after as u64);
    put(out, u64::from(*extended));
    for price in [last, reference, closing] {
        put_optional(out, *price);
    }
    put(out, time.0);
    put(out, timetable_done.0);
    put(out, transition.map_or(0, |pending| pending.to as u64));
    put_optional(out, transition.and_then(|pending| pending.price));
    put(out, u64::from(unfinished.is_some()));
    if let Some(Unfinished { order, limit, bands: (low, high), gathers, begun }) = unfinished {
        put_order(out, order);
        [limit, low, high].into_iter().for_each(|price| put_price(out, *price));
        put(out, u64::from(*gathers));
        put(out, begun.0);
    }
    put_optional(out, indicated.map(|(price, _)| price));
    put(out, indicated.map_or(0, |(_, quantity)| quantity.0));
    put(out, busts.len() as u64);
    for (position, index) in busts {
        put(out, position.0);
        put(out, u64::from(*index));
    }
}

fn put_order(out: &mut Vec<u8>, order: &RestingOrder) {
    let ((kind, limit), (stay, until)) = (order.kind.code(), order.time_in_force.code());
    let is_plain = limit == order.price
        && kind == 1
        && order.shown == order.remaining
        && order.display.is_zero()
        && stay != 5
        && order.trigger.is_none();
    let mark = |is: bool, mark: u64| if is { mark } else { 0 };
    let marks = mark(order.elected, ELECTED) | mark(order.post_only, POST_ONLY);
    let [side, own] = [order.side as u8, order.self_trade as u8];
    let codes = u64::from(u32::from_le_bytes([side, kind, stay, own])) | marks;
    let words = [
        order.order.0.to_bits(),
        u64::from(order.member.0),
        order.client_order_id.0,
        if is_plain { codes } else { codes | HAS_MORE },
        order.price.0.cast_unsigned(),
        order.remaining.0,
        order.executed.0,
        order.priority.0,
    ];
    // At once: there are millions of them.
    let mut bytes = [0; size_of::<[u64; 8]>()];
    for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    out.extend_from_slice(&bytes);
    if !is_plain {
        put_price(out, limit);
        put(out, order.shown.0);
        put(out, order.display.0);
        put(out, until);
        put_optional(out, order.trigger);
    }
}

/// The phase of that code, from 1.
pub(super) fn phase(code: u64) -> Result<Phase, CheckpointError> {
    u8::try_from(code).ok().and_then(Phase::of).ok_or(CheckpointError::InvalidField("phase"))
}

impl Input<'_> {
    pub(super) fn price(&mut self) -> Result<Price, CheckpointError> {
        Ok(Price(self.u64()?.cast_signed()))
    }

    fn optional(&mut self) -> Result<Option<Price>, CheckpointError> {
        match (self.u64()?, self.price()?) {
            (0, Price(0)) => Ok(None),
            (1, price) => Ok(Some(price)),
            _ => Err(CheckpointError::InvalidField("optional price")),
        }
    }

    fn trading(&mut self) -> Result<Trading, CheckpointError> {
        let mut trading = Trading::new(phase(self.u64()?)?);
        trading.until = Timestamp(self.u64()?);
        trading.after = phase(self.u64()?)?;
        trading.extended = self.u8("extended")?;
        trading.last = self.optional()?;
        trading.reference = self.optional()?;
        trading.closing = self.optional()?;
        trading.time = Timestamp(self.u64()?);
        trading.timetable_done = Timestamp(self.u64()?);
        trading.transition = match (self.u64()?, self.optional()?) {
            (0, None) => None,
            (0, Some(_)) => return Err(CheckpointError::InvalidField("transition")),
            (to, price) => Some(Transition { to: phase(to)?, price }),
        };
        trading.unfinished = match self.u64()? {
            0 => None,
            1 => {
                let order = self.order()?;
                let (limit, bands) = (self.price()?, (self.price()?, self.price()?));
                let gathers = self.u8("gathers")? == 1;
                Some(Unfinished { order, limit, bands, gathers, begun: Priority(self.u64()?) })
            }
            _ => return Err(CheckpointError::InvalidField("unfinished")),
        };
        trading.indicated = match (self.optional()?, Quantity(self.u64()?)) {
            (None, Quantity::ZERO) => None,
            (None, _) => return Err(CheckpointError::InvalidField("indicated")),
            (Some(price), quantity) => Some((price, quantity)),
        };
        trading.busts = self.list(16, |input| Ok((Position(input.u64()?), input.u16("bust")?)))?;
        Ok(trading)
    }

    fn order(&mut self) -> Result<RestingOrder, CheckpointError> {
        let id = RequestId::from_bits(self.u64()?).ok_or(CheckpointError::InvalidField("order"))?;
        let member = MemberId(self.u32("member")?);
        let client_order_id = ClientOrderId(self.u64()?);
        let codes = self.u64()?;
        let price = self.price()?;
        let (remaining, executed) = (Quantity(self.u64()?), Quantity(self.u64()?));
        let priority = Priority(self.u64()?);
        let has_more = codes & HAS_MORE != 0;
        let (mut limit, mut shown, mut display) = (price, remaining, Quantity::ZERO);
        let (mut until, mut trigger) = (0, None);
        if has_more {
            limit = self.price()?;
            shown = Quantity(self.u64()?);
            display = Quantity(self.u64()?);
            until = self.u64()?;
            trigger = self.optional()?;
        }
        let marks = HAS_MORE | ELECTED | POST_ONLY;
        let [side, kind, stay, own, ..] = (codes & !marks).to_le_bytes();
        if (codes & !marks) >> 32 != 0 {
            return Err(CheckpointError::InvalidField("codes"));
        }
        Ok(RestingOrder {
            order: OrderId(id),
            member,
            client_order_id,
            side: Side::of(side).ok_or(CheckpointError::InvalidField("side"))?,
            kind: OrderKind::of(kind, limit).ok_or(CheckpointError::InvalidField("kind"))?,
            price,
            remaining,
            shown,
            executed,
            display,
            time_in_force: TimeInForce::of(stay, until)
                .ok_or(CheckpointError::InvalidField("time in force"))?,
            self_trade: SelfTrade::of(own).ok_or(CheckpointError::InvalidField("self-trade"))?,
            trigger,
            elected: codes & ELECTED != 0,
            post_only: codes & POST_ONLY != 0,
            priority,
        })
    }
}
