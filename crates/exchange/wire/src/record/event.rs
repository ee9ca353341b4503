//! Events of a result. All kinds share one layout, so that a result's events are an array; what a field
//! means to a kind is in the table of docs/protocols/records.md.

use pares_types::{BusinessDay, Event, InstrumentId, Price};
use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::WireError;
use crate::field::Field;

layout! {
    /// One event of a result. What a kind does not use is zero.
    EventRecord (48) {
        /// [`pares_types::OrderId`] bits: the order concerned; of a fill or a busted trade the resting one.
        order: U64,
        /// Its owner's name for it; of a busted trade the [`pares_types::OrderId`] bits of the incoming order.
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

/// The kinds: name and code, the [`Event`], each of its fields with the field of the record it stands in, and a price that is there if the
/// flag is set.
macro_rules! kinds {
    ($($kind:ident = $code:literal: $name:ident { $($field:ident: $raw:ident),* $(; $price:ident)? })*) => {
        $(const $kind: u8 = $code;)*

        impl From<&Event> for EventRecord {
            fn from(event: &Event) -> Self {
                match *event {
                    $(Event::$name { $($field,)* $($price)? } => Self {
                        kind: $kind,
                        $($raw: $field.raw(),)*
                        $(price: $price.unwrap_or_default().raw(), flag: $price.is_some().into(),)?
                        ..Self::default()
                    },)*
                    Event::Instrument(instrument) => {
                        Self { member: instrument.raw(), kind: INSTRUMENT, ..Self::default() }
                    }
                }
            }
        }

        impl EventRecord {
            pub(super) fn to_event(self) -> Result<Event, WireError> {
                Ok(match self.kind {
                    $($kind => Event::$name {
                        $($field: Field::read(self.$raw, stringify!($raw))?,)*
                        $($price: bool::read(self.flag, "flag")?.then_some(Price(self.price.get())),)?
                    },)*
                    INSTRUMENT => Event::Instrument(InstrumentId(self.member.get())),
                    _ => return Err(WireError::InvalidField("kind")),
                })
            }
        }
    };
}

const INSTRUMENT: u8 = 8;

kinds! {
    FILL = 1: Fill {
        resting: order, resting_member: member, resting_client_order_id: client_order_id, resting_side: side,
        price: price, quantity: quantity, resting_remaining: remaining
    }
    CANCELLED = 2: Cancelled {
        order: order, member: member, client_order_id: client_order_id, side: side, price: price,
        quantity: quantity, cause: cause
    }
    INCOMING = 3: Incoming {
        order: order, member: member, client_order_id: client_order_id, side: side, price: price,
        quantity: quantity, cause: cause
    }
    RESTED = 4: Rested {
        order: order, member: member, client_order_id: client_order_id, side: side, price: price,
        quantity: quantity, shown: remaining, cause: cause
    }
    PHASE = 5: PhaseEntered { phase: cause, until: quantity; reference }
    AUCTION = 6: Auction {
        price: price, quantity: quantity, surplus: remaining, surplus_side: side, firm: flag
    }
    BUSTED = 7: Busted {
        resting: order, incoming: client_order_id, position: remaining, index: member, price: price,
        quantity: quantity
    }
    DAY_PRICES = 9: DayPrices { open: order, high: client_order_id, low: remaining, last: price }
    DAY_VOLUME = 10: DayVolume { quantity: quantity, trades: remaining; closing }
    DAY_ENDED = 11: DayEnded {
        day: member, requests: client_order_id, orders: order, trades: remaining, quantity: quantity,
        state_hash: price
    }
}

impl EventRecord {
    pub(super) fn day_ended(&self) -> Option<BusinessDay> {
        (self.kind == DAY_ENDED).then(|| BusinessDay(self.member.get()))
    }
}
