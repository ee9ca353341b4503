//! Messages in packets, as they come from the network: one after the other in memory.

use pares_feed::mold::Packing;
use pares_feed::publication::Session;

/// Packets.
pub(super) struct Packets {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    messages: u64,
}

impl Packets {
    /// Packs messages that lie each behind its length, numbered from `first` on.
    pub(super) fn of(mut blocks: &[u8], first: u64) -> Self {
        let mut packing = Packing::new(Session(*b"0000000000"), first);
        let mut packets = Self { bytes: Vec::with_capacity(blocks.len()), ends: Vec::new(), messages: 0 };
        while let Some((length, rest)) = blocks.split_first_chunk() {
            let (message, rest) = rest.split_at(u16::from_be_bytes(*length).into());
            if !packing.push(message) {
                packets.add(packing.take());
                assert!(packing.push(message), "a message fits an empty packet");
            }
            (blocks, packets.messages) = (rest, packets.messages + 1);
        }
        packets.add(packing.take());
        packets
    }

    fn add(&mut self, packet: &[u8]) {
        self.bytes.extend_from_slice(packet);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[*start..*end])
    }
}
