//! Values of the domain as fields of records and frames, each way once.

use pares_types::{
    BusinessDay, CancelCause, ClientOrderId, IncomingCause, InstrumentId, List, MemberId, OrderChange,
    OrderId, OrderState, Phase, Position, Price, Quantity, Reason, RequestId, RestCause, Rights, Role,
    SelfTrade, ShardId, Side, Status, Symbol, Timestamp,
};
use zerocopy::little_endian::{I64, U16, U32, U64};

use crate::WireError;
use crate::code::business_day;

/// A value that stands as a raw field in a record or a frame.
pub(crate) trait Field<Raw>: Sized {
    /// The value; an error calls the field by that name, unless its type has one of its own.
    fn read(raw: Raw, name: &'static str) -> Result<Self, WireError>;

    /// The raw field.
    fn raw(self) -> Raw;
}

/// The value of a code.
#[inline]
pub(crate) fn coded<T: Field<u8>>(code: u8) -> Result<T, WireError> {
    T::read(code, "code")
}

/// Types of raw field and value: reading, by the field's name, and writing.
macro_rules! fields {
    ($($raw:ty, $value:ty: |$read:ident, $name:pat_param| $from:expr, |$written:ident| $to:expr;)*) => {$(
        impl Field<$raw> for $value {
            #[inline]
            fn read($read: $raw, $name: &'static str) -> Result<Self, WireError> {
                $from
            }

            #[inline]
            fn raw(self) -> $raw {
                let $written = self;
                $to
            }
        }
    )*};
}

fields! {
    U64, u64: |raw, _| Ok(raw.get()), |value| value.into();
    U32, u32: |raw, _| Ok(raw.get()), |value| value.into();
    U16, u16: |raw, _| Ok(raw.get()), |value| value.into();
    u8, u8: |raw, _| Ok(raw), |value| value;
    U32, u16: |raw, name| u16::try_from(raw.get()).map_err(|_| WireError::InvalidField(name)),
        |value| u32::from(value).into();
    I64, u64: |raw, _| Ok(raw.get().cast_unsigned()), |value| value.cast_signed().into();
    U64, Price: |raw, _| Ok(Price(raw.get().cast_signed())), |price| price.0.cast_unsigned().into();
    U64, RequestId: |raw, name| RequestId::from_bits(raw.get()).ok_or(WireError::InvalidField(name)),
        |id| id.to_bits().into();
    U64, OrderId: |raw, name| RequestId::read(raw, name).map(OrderId), |order| order.0.raw();
    U32, BusinessDay: |raw, _| business_day(raw.get().into()), |day| day.0.into();
    U32, Rights: |raw, name| Rights::from_bits(raw.get()).ok_or(WireError::InvalidField(name)),
        |rights| rights.bits().into();
    [u8; 16], Symbol: |raw, name| Symbol::from_bytes(raw).map_err(|_| WireError::InvalidField(name)),
        |symbol| symbol.to_bytes();
    // 0: of all.
    U32, Option<InstrumentId>: |raw, _| Ok(Some(InstrumentId(raw.get())).filter(|id| id.0 != 0)),
        |id| id.map_or(0, |id| id.0).into();
    // 0: both.
    u8, Option<Side>: |raw, _| if raw == 0 { Ok(None) } else { coded(raw).map(Some) },
        |side| side.map_or(0, |side| side as u8);
    u8, bool: |raw, name| if raw < 2 { Ok(raw == 1) } else { Err(WireError::InvalidField(name)) },
        |value| value.into();
}

/// Numbers that are types of their own.
macro_rules! numbers {
    ($($raw:ident: $($name:ident)*;)*) => {$($(
        fields! { $raw, $name: |raw, _| Ok($name(raw.get())), |value| value.0.into(); }
    )*)*};
}

numbers! {
    U64: ClientOrderId Position Quantity Timestamp;
    U32: InstrumentId MemberId;
    U16: ShardId;
    I64: Price;
}

/// Codes, each refused by a name of its own.
macro_rules! codes {
    ($($name:ident $field:literal)*) => {$(
        fields! {
            u8, $name: |code, _| $name::of(code).ok_or(WireError::InvalidField($field)), |value| value as u8;
        }
    )*};
}

codes! {
    Status "status" Reason "reason" CancelCause "cause" IncomingCause "cause" RestCause "cause" Phase "phase"
    Role "role" OrderChange "change" OrderState "state" Side "side" SelfTrade "self_trade" List "list"
}

/// A frame and the type of the domain that it carries: fields that both have, pairs of fields with different names, and what else each has.
macro_rules! carries {
    (
        $frame:ty, $value:ty, |$raw:ident, $it:ident|
        same: $($same:ident)*;
        renamed: $($of_frame:ident $of_value:ident),*;
        frame: $($only_frame:ident = $written:expr),*;
        value: $($only_value:ident = $read:expr),*;
    ) => {
        impl From<&$value> for $frame {
            fn from($it: &$value) -> Self {
                Self {
                    $($same: $it.$same.raw(),)*
                    $($of_frame: $it.$of_value.raw(),)*
                    $($only_frame: $written,)*
                }
            }
        }

        impl TryFrom<&$frame> for $value {
            type Error = WireError;

            fn try_from($raw: &$frame) -> Result<Self, WireError> {
                Ok(Self {
                    $($same: Field::read($raw.$same, stringify!($same))?,)*
                    $($of_value: Field::read($raw.$of_frame, stringify!($of_frame))?,)*
                    $($only_value: $read,)*
                })
            }
        }
    };
}

pub(crate) use carries;
