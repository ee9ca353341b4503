//! The messages of the order entry protocol, each once: this is their schema. docs/protocols/order-entry.md shows them.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A message that fits a frame.
pub trait Message: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned {
    /// The `kind` byte of its frames.
    const KIND: u8;
}

macro_rules! message {
    ($(#[$doc:meta])* $kind:literal $name:ident ($size:literal) $fields:tt) => {
        layout! { $(#[$doc])* $name ($size) $fields }
        const _: () = assert!(HEAD_BYTES + $size <= FRAME_MAX);
        impl Message for $name { const KIND: u8 = $kind; }
    };
}

mod exchange;
mod orders;
mod outcomes;
mod questions;
mod sessions;

pub use exchange::{
    AddInstrument, BeginDay, BlockMember, BustTrade, ChangeRegister, EndDay, RemoveInstrument, SetPhase,
    SetRule, TellTime, UnblockMember,
};
pub use orders::{AmendOrder, AmendOrderExtended, CancelOrder, EnterOrder, EnterOrderExtended, MassCancel};
pub use outcomes::{Answer, Cancelled, Journalled, OrderNews, Rejected, Trade, TradeBusted};
pub use questions::{
    InstrumentStatus, LimitsRequest, ListEnd, ListRequest, OrderStatus, OrderStatusRequest, OwnLimits,
    TickRow,
};
pub use sessions::{CancelAfter, Challenge, Ping, Pong, Proof, Resume, Resumed, SignOn, SignedOn};
