//! Events of a result. All kinds share one layout, so that a result's events are an array; what a field
//! means to a kind is in the table of docs/protocols/records.md.

use pares_types::{
    BusinessDay, ClientOrderId, Event, InstrumentId, MemberId, OrderId, Position, Price, Quantity, Side,
    Timestamp,
};
use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::WireError;
use crate::code::{business_day, cause, incoming_cause, order_id, phase, rest_cause, side};

/// The `kind` byte: which [`Event`] an [`EventRecord`] carries.
mod kind {
    pub(super) const FILL: u8 = 1;
    pub(super) const CANCELLED: u8 = 2;
    pub(super) const INCOMING: u8 = 3;
    pub(super) const RESTED: u8 = 4;
    pub(super) const PHASE: u8 = 5;
    pub(super) const AUCTION: u8 = 6;
    pub(super) const BUSTED: u8 = 7;
    pub(super) const INSTRUMENT: u8 = 8;
    pub(super) const DAY_PRICES: u8 = 9;
    pub(super) const DAY_VOLUME: u8 = 10;
    pub(super) const DAY_ENDED: u8 = 11;
}

layout! {
    /// One event of a result. What a kind does not use is zero.
    EventRecord (48) {
        /// [`OrderId`] bits: the order concerned; of a fill or a busted trade the resting one.
        order: U64,
        /// Its owner's name for it; of a busted trade the [`OrderId`] bits of the incoming order.
        client_order_id: U64,
        /// Price of the trade, of the order, of the auction; the reference price.
        price: I64,
        /// Shares traded, cancelled, left or matched; of a phase, when it ends, ns since the Unix epoch.
        quantity: U64,
        /// Shares left after a fill, shown, or left over in an auction; of a busted trade its position.
        remaining: U64,
        /// The order's owner; of a busted trade its index; the instrument.
        member: U32,
        /// 1 fill, 2 cancelled, 3 incoming, 4 rested, 5 phase entered, 6 auction, 7 busted, 8 instrument, 9 day prices, 10 day volume, 11 day ended.
        kind: u8,
        /// Cause code; of a phase the phase.
        cause: u8,
        /// The order's side (of a fill the resting order's, of an auction the surplus's): 1 buy, 2 sell.
        side: u8,
        /// 1 if a phase has a reference price, or an auction is firm.
        flag: u8,
    }
}

impl From<&Event> for EventRecord {
    fn from(event: &Event) -> Self {
        match *event {
            Event::Fill {
                resting,
                resting_member,
                resting_client_order_id,
                resting_side,
                price,
                quantity,
                resting_remaining,
            } => Self {
                price: price.0.into(),
                quantity: quantity.0.into(),
                remaining: resting_remaining.0.into(),
                side: resting_side as u8,
                ..Self::of(kind::FILL, resting, resting_member, resting_client_order_id)
            },
            Event::Cancelled { order, member, client_order_id, side, price, quantity, cause } => Self {
                price: price.0.into(),
                quantity: quantity.0.into(),
                cause: cause as u8,
                side: side as u8,
                ..Self::of(kind::CANCELLED, order, member, client_order_id)
            },
            Event::Incoming { order, member, client_order_id, side, price, quantity, cause } => Self {
                price: price.0.into(),
                quantity: quantity.0.into(),
                cause: cause as u8,
                side: side as u8,
                ..Self::of(kind::INCOMING, order, member, client_order_id)
            },
            Event::Rested { order, member, client_order_id, side, price, quantity, shown, cause } => Self {
                price: price.0.into(),
                quantity: quantity.0.into(),
                remaining: shown.0.into(),
                cause: cause as u8,
                side: side as u8,
                ..Self::of(kind::RESTED, order, member, client_order_id)
            },
            _ => Self::of_the_book(event),
        }
    }
}

impl EventRecord {
    fn of(kind: u8, order: OrderId, member: MemberId, client_order_id: ClientOrderId) -> Self {
        Self {
            order: order.0.to_bits().into(),
            client_order_id: client_order_id.0.into(),
            member: member.0.into(),
            kind,
            ..Self::default()
        }
    }

    /// Events that concern no order of a member.
    fn of_the_book(event: &Event) -> Self {
        match *event {
            Event::PhaseEntered { phase, until, reference } => Self {
                price: reference.unwrap_or_default().0.into(),
                quantity: until.0.into(),
                kind: kind::PHASE,
                cause: phase as u8,
                flag: reference.is_some().into(),
                ..Self::default()
            },
            Event::Auction { price, quantity, surplus, surplus_side, firm } => Self {
                price: price.0.into(),
                quantity: quantity.0.into(),
                remaining: surplus.0.into(),
                kind: kind::AUCTION,
                side: surplus_side as u8,
                flag: firm.into(),
                ..Self::default()
            },
            Event::Busted { resting, incoming, position, index, price, quantity } => Self {
                order: resting.0.to_bits().into(),
                client_order_id: incoming.0.to_bits().into(),
                price: price.0.into(),
                quantity: quantity.0.into(),
                remaining: position.0.into(),
                member: u32::from(index).into(),
                kind: kind::BUSTED,
                ..Self::default()
            },
            Event::Instrument(instrument) => {
                Self { member: instrument.0.into(), kind: kind::INSTRUMENT, ..Self::default() }
            }
            _ => Self::of_the_day(event),
        }
    }

    /// Events of a business day's end.
    fn of_the_day(event: &Event) -> Self {
        match *event {
            Event::DayPrices { open, high, low, last } => Self {
                order: open.0.cast_unsigned().into(),
                client_order_id: high.0.cast_unsigned().into(),
                price: last.0.into(),
                remaining: low.0.cast_unsigned().into(),
                kind: kind::DAY_PRICES,
                ..Self::default()
            },
            Event::DayVolume { closing, quantity, trades } => Self {
                price: closing.unwrap_or_default().0.into(),
                quantity: quantity.0.into(),
                remaining: trades.into(),
                kind: kind::DAY_VOLUME,
                flag: closing.is_some().into(),
                ..Self::default()
            },
            Event::DayEnded { day, requests, orders, trades, quantity, state_hash } => Self {
                order: orders.into(),
                client_order_id: requests.into(),
                price: state_hash.cast_signed().into(),
                quantity: quantity.0.into(),
                remaining: trades.into(),
                member: day.0.into(),
                kind: kind::DAY_ENDED,
                ..Self::default()
            },
            _ => unreachable!("an order's or a book's event"),
        }
    }

    pub(super) fn day_ended(&self) -> Option<BusinessDay> {
        (self.kind == kind::DAY_ENDED).then(|| BusinessDay(self.member.get()))
    }

    pub(super) fn to_event(self) -> Result<Event, WireError> {
        match self.kind {
            kind::FILL | kind::CANCELLED | kind::INCOMING | kind::RESTED => self.to_order_event(),
            kind::PHASE => Ok(Event::PhaseEntered {
                phase: phase(self.cause)?,
                until: Timestamp(self.quantity.get()),
                reference: self.flag()?.then_some(self.price()),
            }),
            kind::AUCTION => Ok(Event::Auction {
                price: self.price(),
                quantity: self.quantity(),
                surplus: Quantity(self.remaining.get()),
                surplus_side: self.side()?,
                firm: self.flag()?,
            }),
            kind::BUSTED => Ok(Event::Busted {
                resting: order_id(self.order.get(), "order")?,
                incoming: order_id(self.client_order_id.get(), "client_order_id")?,
                position: Position(self.remaining.get()),
                index: u16::try_from(self.member.get()).map_err(|_| WireError::InvalidField("member"))?,
                price: self.price(),
                quantity: self.quantity(),
            }),
            kind::INSTRUMENT => Ok(Event::Instrument(InstrumentId(self.member.get()))),
            kind::DAY_PRICES => Ok(Event::DayPrices {
                open: Price(self.order.get().cast_signed()),
                high: Price(self.client_order_id.get().cast_signed()),
                low: Price(self.remaining.get().cast_signed()),
                last: self.price(),
            }),
            kind::DAY_VOLUME => Ok(Event::DayVolume {
                closing: self.flag()?.then_some(self.price()),
                quantity: self.quantity(),
                trades: self.remaining.get(),
            }),
            kind::DAY_ENDED => Ok(Event::DayEnded {
                day: business_day(self.member.get().into())?,
                requests: self.client_order_id.get(),
                orders: self.order.get(),
                trades: self.remaining.get(),
                quantity: self.quantity(),
                state_hash: self.price.get().cast_unsigned(),
            }),
            _ => Err(WireError::InvalidField("kind")),
        }
    }

    fn to_order_event(self) -> Result<Event, WireError> {
        let order = order_id(self.order.get(), "order")?;
        let member = MemberId(self.member.get());
        let client_order_id = ClientOrderId(self.client_order_id.get());
        let (price, quantity) = (self.price(), self.quantity());
        Ok(match self.kind {
            kind::FILL => Event::Fill {
                resting: order,
                resting_member: member,
                resting_client_order_id: client_order_id,
                resting_side: self.side()?,
                price,
                quantity,
                resting_remaining: Quantity(self.remaining.get()),
            },
            kind::CANCELLED => Event::Cancelled {
                order,
                member,
                client_order_id,
                side: self.side()?,
                price,
                quantity,
                cause: cause(self.cause)?,
            },
            kind::INCOMING => Event::Incoming {
                order,
                member,
                client_order_id,
                side: self.side()?,
                price,
                quantity,
                cause: incoming_cause(self.cause)?,
            },
            _ => Event::Rested {
                order,
                member,
                client_order_id,
                side: self.side()?,
                price,
                quantity,
                shown: Quantity(self.remaining.get()),
                cause: rest_cause(self.cause)?,
            },
        })
    }

    fn price(&self) -> Price {
        Price(self.price.get())
    }

    fn quantity(&self) -> Quantity {
        Quantity(self.quantity.get())
    }

    fn side(&self) -> Result<Side, WireError> {
        side(self.side)
    }

    fn flag(&self) -> Result<bool, WireError> {
        match self.flag {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WireError::InvalidField("flag")),
        }
    }
}
