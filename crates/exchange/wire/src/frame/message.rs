//! The messages of the order entry protocol, each once: this is their schema. docs/protocols/order-entry.md shows them.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A message that fits a frame.
pub trait Message: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned {
    /// The `kind` byte of its frames.
    const KIND: u8;
}

macro_rules! message {
    ($(#[$doc:meta])* $kind:literal $name:ident ($size:literal) { $($(#[$field_doc:meta])* $field:ident : $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$field_doc])* pub $field: $ty,)* }
        const _: () = assert!(size_of::<$name>() == $size && HEAD_BYTES + $size <= FRAME_MAX);
        impl Message for $name { const KIND: u8 = $kind; }
        impl $name {
            /// The message's fields, in order: name and Rust type. The protocol page is checked against them.
            pub const FIELDS: &'static [(&'static str, &'static str)] = &[$((stringify!($field), stringify!($ty)),)*];
        }
    };
}

mod exchange;
mod orders;
mod questions;
mod sessions;
mod told;

pub use exchange::{
    AddInstrument, BeginDay, BlockMember, BustTrade, ChangeRegister, EndDay, RemoveInstrument, SetPhase,
    SetRule, TellTime, UnblockMember,
};
pub use orders::{AmendOrder, AmendOrderExtended, CancelOrder, EnterOrder, EnterOrderExtended, MassCancel};
pub use questions::{
    InstrumentStatus, LimitsRequest, ListEnd, ListRequest, OrderStatus, OrderStatusRequest, OwnLimits,
    TickRow,
};
pub use sessions::{CancelAfter, Challenge, Ping, Pong, Proof, Resume, Resumed, SignOn, SignedOn};
pub use told::{Answer, Cancelled, Journalled, OrderNews, Rejected, Trade, TradeBusted};
