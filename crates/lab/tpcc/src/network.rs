//! Two switched local networks and the link between them, or one local network (paper section 4.1, figure 4).

use crate::pipe::Pipe;
use crate::queue::{MICROSECOND, Nanos};
use crate::setting::{SITES, SITES_PER_SIDE};

/// 1 Gbps.
const PORT_BYTES_PER_SECOND: u64 = 125_000_000;
/// From port to port.
const SWITCH: Nanos = 100 * MICROSECOND;
/// T3, 45 Mbps each way.
const LINK_BYTES_PER_SECOND: u64 = 5_625_000;
/// What TCP, IP and Ethernet put around a message, and what names it: bytes.
pub(crate) const HEADER_BYTES: u64 = 96;

/// A server, 0 to 5; 0 to 2 are C_A.
pub(crate) type Site = usize;

/// What the link has carried one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
    /// For how long, ns.
    pub(crate) busy: Nanos,
}

/// C_A is 0, C_B is 1, also where all stand together.
pub(crate) fn side(site: Site) -> usize {
    site / SITES_PER_SIDE
}

/// What carries messages.
pub(crate) struct Network {
    ports: Vec<Pipe>,
    /// From C_A, and from C_B.
    links: [Pipe; 2],
    distance: Option<Nanos>,
}

impl Network {
    /// One local network if there is no distance.
    pub(crate) fn new(distance: Option<Nanos>) -> Self {
        let link = Pipe::new(LINK_BYTES_PER_SECOND);
        Self { ports: vec![Pipe::new(PORT_BYTES_PER_SECOND); SITES], links: [link.clone(), link], distance }
    }

    /// Sends one message; says when it arrives.
    pub(crate) fn send(&mut self, now: Nanos, from: Site, to: Site, bytes: u64) -> Nanos {
        let out = self.ports[from].take(now, bytes + HEADER_BYTES) + SWITCH;
        match self.distance {
            Some(distance) if side(from) != side(to) => self.over(out, side(from), bytes) + distance,
            _ => out,
        }
    }

    /// Sends one message to all others; over the link it goes once and is copied there.
    pub(crate) fn multicast(&mut self, now: Nanos, from: Site, bytes: u64) -> [Nanos; SITES] {
        let out = self.ports[from].take(now, bytes + HEADER_BYTES) + SWITCH;
        let far = match self.distance {
            Some(distance) => self.over(out, side(from), bytes) + distance + SWITCH,
            None => out,
        };
        core::array::from_fn(|to| if side(to) == side(from) { out } else { far })
    }

    /// What has left a side over the link.
    pub(crate) fn carried(&self, side: usize) -> Carried {
        let (bytes, messages) = self.links[side].taken();
        Carried { bytes, messages, busy: self.links[side].busy() }
    }

    fn over(&mut self, now: Nanos, side: usize, bytes: u64) -> Nanos {
        self.links[side].take(now, bytes + HEADER_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::MILLISECOND;

    #[test]
    fn near_is_a_tenth_of_a_millisecond_and_far_two_hundred() {
        let mut network = Network::new(Some(200 * MILLISECOND));
        let near = network.send(0, 0, 1, 4_000);
        assert!((100_000..150_000).contains(&near), "{near}");
        let far = network.send(0, 2, 3, 4_000);
        // 4,096 bytes at 45 Mbps take 0.73 ms.
        assert!((200_800_000..201_000_000).contains(&far), "{far}");
        assert_eq!((network.carried(0).bytes, network.carried(0).messages), (4_096, 1));
        assert_eq!(network.carried(1), Carried::default());
    }

    #[test]
    fn the_link_is_shared_by_all_who_send_the_same_way() {
        let mut network = Network::new(Some(200 * MILLISECOND));
        let first = network.send(0, 0, 3, 4_000);
        let second = network.send(0, 1, 3, 4_000);
        assert!(second > first + 700_000);
        let back = network.send(0, 3, 0, 4_000);
        assert_eq!(back, first);
    }
}
