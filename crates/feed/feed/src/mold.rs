//! MoldUDP64: messages in packets.
//!
//! ```text
//!  0         10           18       20
//!  | session | sequence   | count  | length, message | length, message | ...
//! ```

use zerocopy::big_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::publication::Session;

/// The longest packet: one frame of an Ethernet.
pub const PACKET_BYTES_MAX: usize = 1_472;
/// The count of the packet that ends a session.
pub const END_OF_SESSION: u16 = u16::MAX;

/// What a packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Whose messages they are.
    pub session: [u8; 10],
    /// The number of the first one, or of the next one if there is none.
    pub sequence: U64,
    /// How many; 0 in a heartbeat, [`END_OF_SESSION`] at the end.
    pub count: U16,
}

/// Why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Shorter than its header, or than its messages.
    #[error("the packet is shorter than its length field")]
    Truncated,
    /// A message would have a number above the highest one.
    #[error("the packet's numbers go beyond the highest")]
    Beyond,
    /// Something follows its messages.
    #[error("the packet is longer than its length field")]
    Overlong,
}

/// A packet that was read.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Whose messages they are.
    pub session: Session,
    /// The number of the first one.
    pub sequence: u64,
    /// Whether the session ends before that number.
    pub ends: bool,
    count: u16,
    blocks: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a packet that is all of `bytes`.
    ///
    /// # Errors
    /// If its count does not fit its bytes, or its numbers end above all numbers.
    pub fn read(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let (header, blocks) = Header::ref_from_prefix(bytes).map_err(|_| PacketError::Truncated)?;
        let ends = header.count == END_OF_SESSION;
        let count = if ends { 0 } else { header.count.get() };
        let (session, sequence) = (Session(header.session), header.sequence.get());
        // The number after its last message is one, and has a next one.
        if sequence.checked_add(u64::from(count) + 1).is_none() {
            return Err(PacketError::Beyond);
        }
        let mut rest = blocks;
        for _ in 0..count {
            (_, rest) = split(rest).ok_or(PacketError::Truncated)?;
        }
        if !rest.is_empty() {
            return Err(PacketError::Overlong);
        }
        Ok(Self { session, sequence, ends, count, blocks })
    }

    /// The number of the message after its last one.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.sequence + u64::from(self.count)
    }

    /// Its messages, each with its number.
    pub fn messages(&self) -> impl Iterator<Item = (u64, &'a [u8])> + 'a {
        let mut rest = self.blocks;
        let messages = std::iter::from_fn(move || {
            let message;
            (message, rest) = split(rest)?;
            Some(message)
        });
        (self.sequence..).zip(messages)
    }
}

/// The first message of some, and the rest.
fn split(blocks: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = U16::ref_from_prefix(blocks).ok()?;
    rest.split_at_checked(usize::from(length.get()))
}

/// A packet to be filled.
#[derive(Debug)]
pub struct Packing {
    session: Session,
    sequence: u64,
    count: u16,
    bytes: Vec<u8>,
    /// The packet that was taken last: its memory is the next but one's.
    taken: Vec<u8>,
}

impl Packing {
    /// An empty packet whose first message has that number.
    #[must_use]
    pub fn new(session: Session, sequence: u64) -> Self {
        let [mut bytes, taken] = [(); 2].map(|()| Vec::with_capacity(PACKET_BYTES_MAX));
        bytes.resize(size_of::<Header>(), 0);
        Self { session, sequence, count: 0, bytes, taken }
    }

    /// Takes in the next message. Says whether it had room; otherwise nothing changed.
    pub fn push(&mut self, message: &[u8]) -> bool {
        let length = u16::try_from(message.len()).expect("messages are short");
        if self.bytes.len() + size_of::<U16>() + message.len() > PACKET_BYTES_MAX {
            return false;
        }
        self.bytes.extend_from_slice(U16::new(length).as_bytes());
        self.bytes.extend_from_slice(message);
        self.count += 1;
        true
    }

    /// Whether no message is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The packet as it is; a heartbeat if nothing is in it. What is pushed next comes after it.
    pub fn take(&mut self) -> &[u8] {
        self.finish(self.count)
    }

    /// The packet that ends the session, in place of an empty one.
    pub fn end(&mut self) -> &[u8] {
        assert!(self.count == 0, "messages are sent before the end");
        self.finish(END_OF_SESSION)
    }

    fn finish(&mut self, count: u16) -> &[u8] {
        let header = Header { session: self.session.0, sequence: self.sequence.into(), count: count.into() };
        self.bytes[..size_of::<Header>()].copy_from_slice(header.as_bytes());
        std::mem::swap(&mut self.bytes, &mut self.taken);
        self.bytes.clear();
        self.bytes.resize(size_of::<Header>(), 0);
        (self.sequence, self.count) = (self.sequence + u64::from(self.count), 0);
        &self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: Session = Session(*b"0000000000");

    #[test]
    fn what_is_packed_is_read() {
        let mut packing = Packing::new(SESSION, 7);
        assert!(packing.push(b"one") && packing.push(b""));
        let packet = packing.take().to_vec();
        let read = Packet::read(&packet).unwrap();
        assert_eq!((read.sequence, read.next(), read.ends), (7, 9, false));
        assert_eq!(read.messages().collect::<Vec<_>>(), [(7, &b"one"[..]), (8, b"")]);
        let heartbeat = packing.take().to_vec();
        assert_eq!(Packet::read(&heartbeat).unwrap().next(), 9);
        let end = packing.end().to_vec();
        let read = Packet::read(&end).unwrap();
        assert!(read.ends && read.next() == 9, "the end counts no message");
    }

    #[test]
    fn a_packet_fits_its_frame() {
        let mut packing = Packing::new(SESSION, 1);
        let mut pushed = 0;
        while packing.push(&[0; 36]) {
            pushed += 1;
        }
        assert_eq!((pushed, packing.take().len()), (38, 20 + 38 * 38));
    }

    #[test]
    fn a_count_that_does_not_fit_the_bytes_is_refused() {
        let mut packing = Packing::new(SESSION, 1);
        packing.push(b"one");
        let packet = packing.take().to_vec();
        for length in 0..packet.len() {
            assert_eq!(Packet::read(&packet[..length]).unwrap_err(), PacketError::Truncated);
        }
        let longer = [&packet[..], b"x"].concat();
        assert_eq!(Packet::read(&longer).unwrap_err(), PacketError::Overlong);
    }

    #[test]
    fn numbers_end_before_the_highest() {
        for (sequence, is_read) in [(u64::MAX - 2, true), (u64::MAX - 1, false), (u64::MAX, false)] {
            let header = Header { session: SESSION.0, sequence: sequence.into(), count: 1.into() };
            let bytes = [header.as_bytes(), &[0, 1, b'x'][..]].concat();
            assert_eq!(Packet::read(&bytes).is_ok_and(|packet| packet.messages().count() == 1), is_read);
        }
        let heartbeat = Header { session: SESSION.0, sequence: u64::MAX.into(), count: 0.into() };
        assert_eq!(Packet::read(heartbeat.as_bytes()).unwrap_err(), PacketError::Beyond);
    }
}
