//! One message of a stream, and its 32 bytes in a file.

use pares_types::Side;

/// What a message asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MessageKind {
    /// A new limit order.
    New = 0,
    /// Cancel what is left of an order.
    Cancel = 1,
    /// A new price and total quantity for an order, which loses its place in the queue.
    Amend = 2,
}

/// One message: what a member asks of a book, in the least that says it.
///
/// ```text
///  0        8             16         20       24           28     29     30      31
/// +--------+-------------+----------+--------+------------+------+------+-------+----+
/// | id     | price_ticks | quantity | member | instrument | kind | side | is ioc| 0  |
/// +--------+-------------+----------+--------+------------+------+------+-------+----+
/// ```
/// Little-endian in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct BookMessage {
    /// The order concerned, from 1.
    pub id: u64,
    /// Its limit; in a cancel the one it had.
    pub price_ticks: i64,
    /// Shares wanted in all; in a cancel what was wanted last.
    pub quantity: u32,
    /// Whose order it is, from 1.
    pub member: u32,
    /// Which book it is for, from 1.
    pub instrument: u32,
    /// What is asked.
    pub kind: MessageKind,
    /// The order's side.
    pub side: Side,
    /// Whether what does not trade at once is cancelled.
    pub ioc: bool,
    /// Makes the length explicit; 0.
    pub reserved: u8,
}

const _: () = assert!(size_of::<BookMessage>() == BookMessage::BYTES);

impl BookMessage {
    /// Bytes of one message.
    pub const BYTES: usize = 32;

    /// The message as it stands in a file.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..8].copy_from_slice(&self.id.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.price_ticks.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.quantity.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.member.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.instrument.to_le_bytes());
        bytes[28..32].copy_from_slice(&[self.kind as u8, self.side as u8, u8::from(self.ioc), 0]);
        bytes
    }

    /// The message of 32 bytes; `None` if they are none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (words, codes) = bytes.split_at(28);
        let u32_at = |at: usize| u32::from_le_bytes(words[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(words[at..at + 8].try_into().expect("eight bytes"));
        let kind = match codes[0] {
            0 => MessageKind::New,
            1 => MessageKind::Cancel,
            2 => MessageKind::Amend,
            _ => return None,
        };
        let side = match codes[1] {
            1 => Side::Buy,
            2 => Side::Sell,
            _ => return None,
        };
        let ioc = match codes[2] {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Self {
            id: u64_at(0),
            price_ticks: u64_at(8).cast_signed(),
            quantity: u32_at(16),
            member: u32_at(20),
            instrument: u32_at(24),
            kind,
            side,
            ioc,
            reserved: codes[3],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_back_from_its_bytes() {
        let message = BookMessage {
            id: 7,
            price_ticks: -3,
            quantity: 900,
            member: 8,
            instrument: 2,
            kind: MessageKind::Amend,
            side: Side::Sell,
            ioc: true,
            reserved: 0,
        };
        assert_eq!(BookMessage::from_bytes(&message.to_bytes()), Some(message));
    }

    #[test]
    fn bytes_that_are_no_message_are_none() {
        assert_eq!(BookMessage::from_bytes(&[0; 32]), None, "there is no side 0");
        assert_eq!(BookMessage::from_bytes(&[9; 32]), None);
    }
}
