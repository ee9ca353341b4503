//! Identifiers. Each is a newtype so that a member can never be passed for an instrument.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

pub(crate) use id;

id! {
    /// A gateway; part of every [`RequestId`] it issues. Stable over restarts.
    GatewayId(u16)
}
id! {
    /// An execution venue (paper 1: EV).
    VenueId(u16)
}
id! {
    /// A history recorder (paper 1: HR).
    RecorderId(u16)
}
id! {
    /// A publisher of market data.
    PublisherId(u16)
}
id! {
    /// A replayer of market data: it tells again what publishers told.
    ReplayerId(u16)
}
id! {
    /// A host of a system of several: its place in the list of hosts, and its member in the groups that decide the order.
    HostId(u8)
}
id! {
    /// The unit of total order: one or more instruments (design section 2).
    ShardId(u16)
}
id! {
    /// A trading member: a firm, as the exchange knows it. 0 is the exchange itself.
    MemberId(u32)
}
id! {
    /// A tradable instrument. 0 means "all" where a message allows that.
    InstrumentId(u32)
}
id! {
    /// Chosen by the member for each request, unique per member for life: repeating one is harmless
    /// and returns the first answer.
    ///
    /// ```text
    ///  63            48 47                                   0
    /// +----------------+--------------------------------------+
    /// | series         | number, rising in its series         |
    /// +----------------+--------------------------------------+
    /// ```
    ClientOrderId(u64)
}
id! {
    /// One life of the window. A full restart of everything starts the next one, so that a decision
    /// nobody recorded can never be mistaken for a decision of the present (design section 5).
    Epoch(u32)
}
id! {
    /// A place in a shard's total order: 0, 1, 2, ...
    Position(u64)
}
id! {
    /// An order on the book: the id of the request that entered it. Known the moment a gateway numbers
    /// the request, so a cancel can follow its order without waiting for the order's outcome.
    OrderId(RequestId)
}

impl InstrumentId {
    /// The highest that an instrument may have. Those above are of none: a door names one of them for a symbol that is not there, and the shard refuses it.
    pub const LISTED_MAX: Self = Self(u32::MAX - 65_536);

    /// Whether an instrument may have it.
    #[must_use]
    pub fn may_be_listed(self) -> bool {
        (Self(1)..=Self::LISTED_MAX).contains(&self)
    }
}

impl ClientOrderId {
    const NUMBER_BITS: u32 = 48;
    /// Set in the names that gateways give requests of their own in the name of the exchange, and in no other name of it.
    const OF_GATEWAYS: u64 = 1 << 63;

    /// The name of a request that a gateway makes by itself, in the name of the exchange. Gateway ids are far below 2^15, so no two
    /// gateways make the same name.
    #[must_use]
    pub fn of_gateway(request: RequestId) -> Self {
        Self(request.to_bits() | Self::OF_GATEWAYS)
    }

    /// Whether it is such a name, if the exchange's.
    #[must_use]
    pub fn is_of_gateways(self) -> bool {
        self.0 & Self::OF_GATEWAYS != 0
    }

    /// The name of that number in the guarded series of a session: what is entered under it is cancelled when the session ends.
    #[must_use]
    pub fn guarded(session: u16, number: u64) -> Self {
        Self(number | u64::from(session) << Self::NUMBER_BITS | Self::OF_GATEWAYS)
    }

    /// The session that guards what is entered under the name, if it is of a guarded series, and not the exchange's.
    #[must_use]
    #[inline]
    pub fn guard(self) -> Option<u16> {
        (self.0 & Self::OF_GATEWAYS != 0).then_some(self.series() & 0x7fff)
    }

    /// The series it is numbered in. A member has 65,536 of them, for programs that count for themselves.
    #[must_use]
    #[inline]
    pub fn series(self) -> u16 {
        (self.0 >> Self::NUMBER_BITS) as u16
    }

    /// Its number in the series. Of two names of a series the later one has the higher number; gaps are free.
    #[must_use]
    #[inline]
    pub fn number(self) -> u64 {
        self.0 & ((1 << Self::NUMBER_BITS) - 1)
    }
}

impl Position {
    /// The position after this one.
    ///
    /// # Panics
    /// At `u64::MAX`, which a shard deciding a billion requests a second reaches in 584 years.
    #[must_use]
    #[inline]
    pub fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("positions never run out"))
    }
}

/// `[gateway id, gateway sequence]` in one word (paper 1, section 3), so that a decision fits one
/// compare-and-swap and "has it been ordered?" is one comparison per gateway.
///
/// ```text
///  63            48 47                                   0
/// +----------------+--------------------------------------+
/// | gateway id     | gateway sequence, from 1             |
/// +----------------+--------------------------------------+
/// ```
/// 48 bits of sequence last a gateway 8.9 years at a million requests a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

impl RequestId {
    const SEQUENCE_BITS: u32 = 48;
    /// The highest sequence a gateway can issue.
    pub const SEQUENCE_MAX: u64 = (1 << Self::SEQUENCE_BITS) - 1;
    /// No request. Sequences start at 1, so no gateway issues it.
    pub const NONE: Self = Self(0);

    /// The id of a gateway's `sequence`-th request.
    ///
    /// # Panics
    /// If `sequence` is 0 or above [`RequestId::SEQUENCE_MAX`].
    #[must_use]
    #[inline]
    pub fn new(gateway: GatewayId, sequence: u64) -> Self {
        assert!((1..=Self::SEQUENCE_MAX).contains(&sequence), "gateway sequence {sequence} out of range");
        Self(u64::from(gateway.0) << Self::SEQUENCE_BITS | sequence)
    }

    /// The gateway that issued it.
    #[must_use]
    #[inline]
    pub fn gateway(self) -> GatewayId {
        GatewayId((self.0 >> Self::SEQUENCE_BITS) as u16)
    }

    /// Its place among that gateway's requests, from 1.
    #[must_use]
    #[inline]
    pub fn sequence(self) -> u64 {
        self.0 & Self::SEQUENCE_MAX
    }

    /// The packed word, for slots and records.
    #[must_use]
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// Rebuilds an id from its packed word; `None` if no gateway could have issued it.
    #[must_use]
    #[inline]
    pub fn from_bits(bits: u64) -> Option<Self> {
        (bits & Self::SEQUENCE_MAX != 0).then_some(Self(bits))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.gateway(), self.sequence())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_id_keeps_gateway_and_sequence_apart() {
        let id = RequestId::new(GatewayId(65_535), RequestId::SEQUENCE_MAX);
        assert_eq!(id.gateway(), GatewayId(65_535));
        assert_eq!(id.sequence(), RequestId::SEQUENCE_MAX);
        assert_eq!(RequestId::from_bits(id.to_bits()), Some(id));
    }

    #[test]
    fn a_name_is_a_series_and_a_number() {
        let name = ClientOrderId(7 << 48 | 9);
        assert_eq!((name.series(), name.number()), (7, 9));
        assert_eq!(ClientOrderId(u64::MAX).number(), (1 << 48) - 1);
    }

    #[test]
    fn request_ids_of_one_gateway_sort_by_sequence() {
        assert!(RequestId::new(GatewayId(3), 9) < RequestId::new(GatewayId(3), 10));
    }

    #[test]
    fn zero_is_no_request() {
        assert_eq!(RequestId::from_bits(RequestId::NONE.to_bits()), None);
        assert_eq!(RequestId::from_bits(7 << 48), None);
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn sequence_zero_is_refused() {
        let _ = RequestId::new(GatewayId(1), 0);
    }
}
