//! Nasdaq TotalView-ITCH 5.0, the messages that are sent here.
//!
//! Fixed layouts, big-endian, without padding. Each message begins with its kind, the stock locate, a tracking number (0 here) and the time
//! of day in 48 bits.

use pares_types::{DAY_NS, InstrumentId, Phase, Price, Quantity, Side, Symbol, Timestamp};
use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What every message begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Head {
    /// Which message it is, an ASCII letter.
    pub kind: u8,
    /// The instrument; 0 of the session.
    pub locate: U16,
    /// 0.
    pub tracking: U16,
    /// Nanoseconds since midnight UTC, 48 bits.
    pub time: [u8; 6],
}

impl Head {
    /// The head of a message of an instrument.
    #[must_use]
    pub fn new(kind: u8, instrument: u16, stamp: Timestamp) -> Self {
        let [_, _, time @ ..] = (stamp.0 % DAY_NS).to_be_bytes();
        Self { kind, locate: instrument.into(), tracking: 0.into(), time }
    }

    /// Nanoseconds since midnight UTC.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        let [a, b, c, d, e, f] = self.time;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
}

macro_rules! messages {
    ($($(#[$of:meta])* $letter:literal $name:ident ($bytes:literal) { $($(#[$about:meta])* $field:ident: $kind:ty,)* })*) => {
        $(
            $(#[$of])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
            #[repr(C)]
            pub struct $name {
                /// Kind, instrument, time.
                pub head: Head,
                $($(#[$about])* pub $field: $kind,)*
            }
            const _: () = assert!(size_of::<$name>() == $bytes);

            impl $name {
                /// Its kind.
                pub const KIND: u8 = $letter;
            }
        )*

        /// One message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FeedMessage<'a> {
            $($(#[$of])* $name(&'a $name),)*
        }

        impl<'a> FeedMessage<'a> {
            /// Reads the message that is all of `bytes`. `None` if it is none of these, or of another length.
            #[must_use]
            pub fn read(bytes: &'a [u8]) -> Option<Self> {
                match *bytes.first()? {
                    $($letter => $name::ref_from_bytes(bytes).ok().map(Self::$name),)*
                    _ => None,
                }
            }

            /// What it begins with.
            #[must_use]
            pub fn head(&self) -> &'a Head {
                match self {
                    $(Self::$name(message) => &message.head,)*
                }
            }
        }
    };
}

messages! {
    /// The session begins (O) or ends (C).
    b'S' SystemEvent (12) {
        /// O or C.
        event: u8,
    }
    /// An instrument.
    b'R' Directory (39) {
        /// Its name, then spaces.
        stock: [u8; 8],
        /// A space.
        market: u8,
        /// A space.
        financial_status: u8,
        /// Shares.
        round_lot: U32,
        /// Y: in round lots only.
        round_lots_only: u8,
        /// C: a common stock.
        class: u8,
        /// Z and a space: none.
        subtype: [u8; 2],
        /// P: it is traded in earnest.
        authenticity: u8,
        /// A space.
        short_sale: u8,
        /// A space.
        ipo: u8,
        /// A space.
        tier: u8,
        /// A space.
        etp: u8,
        /// 0.
        leverage: U32,
        /// N.
        inverse: u8,
    }
    /// An instrument enters a phase.
    b'H' TradingAction (25) {
        /// Its name, then spaces.
        stock: [u8; 8],
        /// H halted or closed, Q a call, T trading.
        state: u8,
        /// A space.
        reserved: u8,
        /// Which of them, then spaces.
        reason: [u8; 4],
    }
    /// An order is displayed.
    b'A' AddOrder (36) {
        /// Its reference.
        reference: U64,
        /// B or S.
        side: u8,
        /// Shares displayed.
        shares: U32,
        /// Its instrument's name, then spaces.
        stock: [u8; 8],
        /// Price units.
        price: U32,
    }
    /// A displayed order traded at its price.
    b'E' Executed (31) {
        /// Its reference.
        reference: U64,
        /// Shares, all of which were displayed.
        shares: U32,
        /// The trade.
        match_number: U64,
    }
    /// A displayed order traded at another price, or in an auction.
    b'C' ExecutedAt (36) {
        /// Its reference.
        reference: U64,
        /// Shares, all of which were displayed.
        shares: U32,
        /// The trade.
        match_number: U64,
        /// Y; N if another message prints the trade.
        printable: u8,
        /// Price units.
        price: U32,
    }
    /// A displayed order displays less.
    b'X' Cancelled (23) {
        /// Its reference.
        reference: U64,
        /// Shares fewer; some are left.
        shares: U32,
    }
    /// An order is displayed no more.
    b'D' Deleted (19) {
        /// Its reference.
        reference: U64,
    }
    /// A displayed order changed, and lost its priority.
    b'U' Replaced (35) {
        /// The reference it had.
        original: U64,
        /// The one it has.
        reference: U64,
        /// Shares displayed.
        shares: U32,
        /// Price units.
        price: U32,
    }
    /// A trade with shares that were not displayed.
    b'P' Trade (44) {
        /// 0.
        reference: U64,
        /// Side of the resting order: B or S.
        side: u8,
        /// Shares.
        shares: U32,
        /// The instrument's name, then spaces.
        stock: [u8; 8],
        /// Price units.
        price: U32,
        /// The trade.
        match_number: U64,
    }
    /// An auction.
    b'Q' Cross (40) {
        /// Shares.
        shares: U64,
        /// The instrument's name, then spaces.
        stock: [u8; 8],
        /// Price units.
        price: U32,
        /// The auction.
        match_number: U64,
        /// O opening, C closing, H another call.
        cross: u8,
    }
    /// A trade or an auction was declared void.
    b'B' Broken (19) {
        /// The trade.
        match_number: U64,
    }
    /// What an auction would do.
    b'I' Imbalance (50) {
        /// Shares that would trade.
        paired: U64,
        /// Shares that would be left.
        imbalance: U64,
        /// B or S: their side; N none; O nothing would trade.
        direction: u8,
        /// The instrument's name, then spaces.
        stock: [u8; 8],
        /// Price units; all three are the price of the auction.
        far: U32,
        /// Price units.
        near: U32,
        /// Price units.
        reference: U32,
        /// O opening, C closing, H another call.
        cross: u8,
        /// A space.
        variation: u8,
    }
}

/// A side's letter.
#[must_use]
pub fn side(side: Side) -> u8 {
    if side == Side::Buy { b'B' } else { b'S' }
}

/// The side of a letter.
#[must_use]
pub fn side_of(letter: u8) -> Option<Side> {
    match letter {
        b'B' => Some(Side::Buy),
        b'S' => Some(Side::Sell),
        _ => None,
    }
}

/// A phase as [`TradingAction`] tells it: state and reason.
#[must_use]
pub(crate) fn phase_letters(phase: Phase) -> (u8, [u8; 4]) {
    match phase {
        Phase::Closed => (b'H', *b"CLSD"),
        Phase::Halted => (b'H', *b"    "),
        Phase::OpeningCall => (b'Q', *b"OPEN"),
        Phase::VolatilityCall => (b'Q', *b"VOLA"),
        Phase::ClosingCall => (b'Q', *b"CLOS"),
        Phase::Continuous => (b'T', *b"    "),
        Phase::PostClose => (b'T', *b"POST"),
    }
}

/// The phase of a [`TradingAction`].
#[must_use]
pub fn phase_of(state: u8, reason: [u8; 4]) -> Option<Phase> {
    Phase::ALL.into_iter().find(|phase| phase_letters(*phase) == (state, reason))
}

/// The instrument that a message is about, if it is about one: that a session ends is about none.
#[must_use]
pub fn about(message: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes([*message.get(1)?, *message.get(2)?])).filter(|locate| *locate > 0)
}

/// A name in its field; `None` if it is too long.
#[must_use]
pub fn stock(symbol: Symbol) -> Option<[u8; 8]> {
    let mut field = [b' '; 8];
    let name = symbol.as_str().as_bytes();
    field.get_mut(..name.len())?.copy_from_slice(name);
    Some(field)
}

/// The locate of an instrument; `None` if its id is too large.
#[must_use]
pub fn locate(instrument: InstrumentId) -> Option<u16> {
    u16::try_from(instrument.0).ok()
}

/// A price in its field. Instruments whose prices do not fit are not published; what a wrong venue had recorded may be anything.
pub(crate) fn price(price: Price) -> U32 {
    u32::try_from(price.0.max(0)).unwrap_or(u32::MAX).into()
}

/// Shares in their field.
pub(crate) fn shares(shares: Quantity) -> U32 {
    u32::try_from(shares.0).unwrap_or(u32::MAX).into()
}
