//! Payloads of frames.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[cfg(doc)]
use super::{CutOff, FROM_NOW, Refusal, WANTS_BOOKS, WANTS_LOCAL};
use crate::item::TraderId;

macro_rules! layouts {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* })*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$field_doc])* pub $field: $ty,)* })*
    };
}

layouts! {
    /// A trader's first frame.
    DeskSignOn {
        /// Who; 0 watches and may not submit.
        trader: U32,
        /// [`WANTS_LOCAL`], [`WANTS_BOOKS`].
        wants: U16,
        /// Zero.
        reserved: U16,
        /// Which stream `next` is a place in; 0: whichever it is.
        stream: U64,
        /// The first position wanted, or [`FROM_NOW`].
        next: U64,
    }
    /// The answer to it.
    DeskSignedOn {
        /// Which server.
        server: U16,
        /// Why this server ended the trader's last session, as [`CutOff`].
        cut_off: u8,
        /// Zero.
        reserved: u8,
        /// Who.
        trader: U32,
        /// The highest number of the trader's that was ordered.
        through: U64,
        /// The first position that follows.
        next: U64,
        /// All below is released to traders.
        told: U64,
        /// Which stream it is.
        stream: U64,
    }
    /// What a trader submits begins with.
    SubmitHead {
        /// The trader's number for it, from 1, rising.
        number: U64,
        /// What the body is, as in an item.
        kind: u8,
        /// Zero.
        reserved: [u8; 7],
    }
    /// What a trader repeats stands there already.
    PlacedBytes {
        /// Its number.
        number: U64,
        /// Its position; the highest number if that is not remembered.
        position: U64,
    }
    /// What a trader submitted was not taken in, and its number is free.
    RefusedBytes {
        /// Its number.
        number: U64,
        /// [`Refusal`].
        refusal: u8,
        /// Zero.
        reserved: [u8; 7],
    }
    /// The last frame on a connection.
    EndedBytes {
        /// [`CutOff`].
        cut_off: u8,
        /// Zero.
        reserved: [u8; 7],
    }
    /// A place in the stream.
    Through {
        /// All below.
        next: U64,
    }
    /// A peer's first frame.
    PeerHello {
        /// Which server it is.
        server: U16,
        /// Zero.
        reserved: U16,
        /// The life of the window it runs in.
        epoch: U32,
        /// Which stream it keeps.
        stream: U64,
    }
}

impl DeskSignOn {
    /// A trader that follows the local stream from `next` on, and books if it `wants` them.
    #[must_use]
    pub fn new(trader: TraderId, wants: u16, stream: u64, next: u64) -> Self {
        let (trader, wants) = (trader.0.into(), wants.into());
        Self { trader, wants, reserved: 0.into(), stream: stream.into(), next: next.into() }
    }
}
