//! Where clients come from: by that, what many of them share is divided.

use std::fmt::{self, Display, Formatter};
// Of `core`: this crate has addresses, and no sockets.
use core::net::{IpAddr, Ipv6Addr};

/// The network of a client: an IPv4 address, or the /64 of an IPv6 one, as the number of an IPv6 address. A customer has a whole /64: who counted addresses
/// would count one client as 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network(pub u128);

impl Network {
    /// Of a connection of which that cannot be said.
    pub const UNKNOWN: Self = Self(0);
}

impl Display for Network {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from_bits(self.0).to_canonical().fmt(f)
    }
}

/// Where a client comes from; `None` is this machine.
pub type Origin = Option<Network>;

/// The origin of a client with that address that came to the address `own`: who connects to an address of its own machine has that one too.
#[must_use]
pub fn origin(address: IpAddr, own: IpAddr) -> Origin {
    // A socket for both kinds shows IPv4 as IPv6, and all of that is one /64.
    let (address, own) = (address.to_canonical(), own.to_canonical());
    let network = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => Ipv6Addr::to_bits(address) >> 64 << 64,
    };
    (!address.is_loopback() && address != own).then_some(Network(network))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Origin {
        origin(text.parse().unwrap(), [10, 0, 0, 5].into())
    }

    #[test]
    fn addresses_of_one_network_are_one_origin() {
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_eq!([of("127.0.0.9"), of("::1"), of("::ffff:127.0.0.1")], [None; 3], "this machine");
        assert_eq!(
            [of("10.0.0.5"), of("::ffff:10.0.0.5")],
            [None; 2],
            "this machine, by the address it came to"
        );
        let mapped = "::ffff:10.0.0.5".parse().unwrap();
        assert_eq!(origin([10, 0, 0, 5].into(), mapped), None);
        assert_ne!(origin([10, 0, 0, 6].into(), mapped), None);
    }

    #[test]
    fn a_network_is_written_as_its_address() {
        let written = |text| of(text).unwrap().to_string();
        assert_eq!(written("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(written("2001:db8::ffff:1"), "2001:db8::");
    }
}
