//! Where clients come from.

/// The network of a client: an IPv4 address, or the /64 of an IPv6 one, as the number of an IPv6 address. A customer has a whole /64: who counted addresses
/// would count one client as 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network(pub u128);

impl Network {
    /// Of a connection of which that cannot be said.
    pub const UNKNOWN: Self = Self(0);
}
