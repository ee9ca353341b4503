//! The stream encoded once for all who follow it.
//!
//! A queue for each trader costs memory by its slowest and a copy for each. Here what traders receive within some milliseconds is encoded once, as frames
//! that hold packets, and kept for a while; a trader is a place in it. One that is up to date sends the same bytes as all others; one that is
//! behind is read for from the log until it meets them. So no trader waits for another, and a slow one costs what it reads.
//!
//! ```text
//!        log                                   ring: the last batches
//!  0 .................................... [ 90..97 ][ 97..104 ][ 104..105 ]  next: 105
//!        ^ behind: from the log                        ^ the same bytes for all
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use pares_feed::mold::{Header, PACKET_BYTES_MAX};
use pares_feed::publication::Session;
use zerocopy::IntoBytes;

use crate::frame::{self, HEAD_BYTES};

/// Bytes of batches that are kept.
pub const RING_BYTES_MAX: usize = 8 << 20;
/// Messages in one packet, at most.
const COUNT_MAX: u16 = u16::MAX - 1;

/// Messages from one number up to another, as frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamBatch {
    /// The number of the first.
    pub first: u64,
    /// The number after the last.
    pub next: u64,
    /// The frames.
    pub frames: Arc<[u8]>,
}

impl StreamBatch {
    /// The packets in it.
    pub fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.frames[..];
        std::iter::from_fn(move || {
            let packet;
            (_, packet, rest) = frame::split(rest, usize::MAX).ok()??;
            Some(packet)
        })
    }
}

/// A batch being filled.
#[derive(Debug)]
pub struct BatchBuilder {
    session: Session,
    kind: u8,
    packet_bytes_max: usize,
    first: u64,
    next: u64,
    frames: Vec<u8>,
    /// Where the last frame begins, and how many messages are in it.
    open: Option<(usize, u16)>,
}

impl BatchBuilder {
    /// An empty batch of frames of that kind, whose first message has that number. A packet fits one frame of an Ethernet unless a single message
    /// does not.
    #[must_use]
    pub fn new(session: Session, kind: u8, first: u64) -> Self {
        let frames = Vec::new();
        Self { session, kind, packet_bytes_max: PACKET_BYTES_MAX, first, next: first, frames, open: None }
    }

    /// The same, in packets of at most that many bytes.
    #[must_use]
    pub fn packets_of(self, packet_bytes_max: usize) -> Self {
        Self { packet_bytes_max, ..self }
    }

    /// Bytes so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.frames.len()
    }

    /// The number of the next message.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first == self.next
    }

    /// Takes in the next message.
    ///
    /// # Panics
    /// If it is longer than 65,535 bytes.
    pub fn push(&mut self, message: &[u8]) {
        let length = u16::try_from(message.len()).expect("messages are short");
        if let Some((begin, count)) = self.open {
            let packet = self.frames.len() - begin - HEAD_BYTES;
            if count == COUNT_MAX || packet + 2 + message.len() > self.packet_bytes_max {
                self.close();
            }
        }
        let (_, count) = self.open.get_or_insert_with(|| {
            let begin = self.frames.len();
            self.frames.resize(begin + HEAD_BYTES + size_of::<Header>(), 0);
            (begin, 0)
        });
        *count += 1;
        self.frames.extend_from_slice(&length.to_be_bytes());
        self.frames.extend_from_slice(message);
        self.next += 1;
    }

    fn close(&mut self) {
        let Some((begin, count)) = self.open.take() else { return };
        let sequence = self.next - u64::from(count);
        let header = Header { session: self.session.0, sequence: sequence.into(), count: count.into() };
        let packet = begin + HEAD_BYTES;
        self.frames[packet..packet + size_of::<Header>()].copy_from_slice(header.as_bytes());
        frame::write_head(&mut self.frames[begin..], self.kind);
    }

    /// The batch.
    #[must_use]
    pub fn finish(mut self) -> StreamBatch {
        self.close();
        StreamBatch { first: self.first, next: self.next, frames: self.frames.into() }
    }
}

/// Where the next bytes for a trader that follows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows<'a> {
    /// This batch.
    Batch(&'a StreamBatch),
    /// The log, up to that number, where it meets a batch.
    Log(u64),
    /// Nowhere: it has all.
    Nothing,
}

/// The last batches.
#[derive(Clone, Debug)]
pub struct BatchRing {
    batches: VecDeque<StreamBatch>,
    bytes: usize,
    bytes_max: usize,
    next: u64,
}

impl BatchRing {
    /// An empty ring whose next message has that number.
    #[must_use]
    pub fn new(next: u64, bytes_max: usize) -> Self {
        Self { batches: VecDeque::new(), bytes: 0, bytes_max, next }
    }

    /// The number of the next message.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Takes the next batch in; the oldest ones go.
    ///
    /// # Panics
    /// If it does not follow the last.
    pub fn push(&mut self, batch: StreamBatch) {
        assert_eq!(batch.first, self.next, "batches follow each other");
        self.next = batch.next;
        self.bytes += batch.frames.len();
        self.batches.push_back(batch);
        while self.bytes > self.bytes_max && self.batches.len() > 1 {
            self.bytes -= self.batches.pop_front().map_or(0, |oldest| oldest.frames.len());
        }
    }

    /// What comes from number `next` on.
    #[must_use]
    pub fn follows(&self, next: u64) -> Follows<'_> {
        if next >= self.next {
            return Follows::Nothing;
        }
        let index = self.batches.partition_point(|batch| batch.next <= next);
        match self.batches.get(index) {
            None => Follows::Log(self.next),
            Some(batch) if batch.first == next => Follows::Batch(batch),
            Some(batch) if batch.first < next => Follows::Log(batch.next),
            Some(batch) => Follows::Log(batch.first),
        }
    }
}

/// A place in the stream, perhaps in the middle of a batch's bytes.
#[derive(Clone, Debug)]
pub struct StreamCursor {
    next: u64,
    part: Option<Arc<[u8]>>,
    sent: usize,
}

impl StreamCursor {
    /// Before the message of that number.
    #[must_use]
    pub fn new(next: u64) -> Self {
        Self { next, part: None, sent: 0 }
    }

    /// The number of the next message that is not in what is being sent.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// What is being sent.
    #[must_use]
    pub fn unsent(&self) -> &[u8] {
        self.part.as_deref().map_or(&[], |part| &part[self.sent..])
    }

    /// Whether a frame is sent in part, so that nothing else may come between.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.sent > 0
    }

    /// Sends that batch next.
    ///
    /// # Panics
    /// If it is not the next, or another is being sent.
    pub fn load(&mut self, batch: &StreamBatch) {
        assert!(self.part.is_none() && batch.first == self.next, "batches are sent in order");
        self.next = batch.next;
        self.part = Some(Arc::clone(&batch.frames));
    }

    /// So many bytes were sent.
    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.part.as_ref().is_some_and(|part| part.len() <= self.sent) {
            (self.part, self.sent) = (None, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use pares_feed::mold::Packet;

    use super::*;
    use crate::frame::kind;

    const SESSION: Session = Session(*b"0000000001");

    fn batch(first: u64, count: u64) -> StreamBatch {
        let mut builder = BatchBuilder::new(SESSION, kind::BLOCK, first);
        (0..count).for_each(|number| builder.push(&[number as u8; 600]));
        builder.finish()
    }

    #[test]
    fn batch_packets_fit_ethernet_and_are_consecutive() {
        let batch = batch(7, 5);
        let packets: Vec<_> = batch.packets().map(|packet| Packet::read(packet).unwrap()).collect();
        let numbers: Vec<_> = packets.iter().map(|packet| (packet.sequence, packet.next())).collect();
        assert_eq!(numbers, [(7, 9), (9, 11), (11, 12)]);
        assert!(batch.packets().all(|packet| packet.len() <= PACKET_BYTES_MAX));
        assert_eq!((batch.first, batch.next), (7, 12));
    }

    #[test]
    fn overlong_message_gets_its_own_packet() {
        let mut builder = BatchBuilder::new(SESSION, kind::BLOCK, 0);
        [10, 8_000, 10].iter().for_each(|&length| builder.push(&vec![1; length]));
        let lengths: Vec<_> = builder.finish().packets().map(<[u8]>::len).collect();
        assert_eq!(lengths, [32, 8_022, 32]);
    }

    #[test]
    fn who_is_behind_reads_the_log_until_it_meets_a_batch() {
        let mut ring = BatchRing::new(10, 3_000);
        assert_eq!(ring.follows(3), Follows::Log(10), "nothing was told since the start");
        [batch(10, 2), batch(12, 2), batch(14, 2)].into_iter().for_each(|batch| ring.push(batch));
        assert_eq!(ring.follows(3), Follows::Log(12), "the oldest is gone");
        assert_eq!(ring.follows(13), Follows::Log(14));
        assert!(matches!(ring.follows(14), Follows::Batch(batch) if batch.next == 16));
        assert_eq!(ring.follows(16), Follows::Nothing);
    }

    #[test]
    fn a_cursor_sends_a_batch_in_parts_and_then_the_next() {
        let (one, two) = (batch(0, 1), batch(1, 1));
        let mut cursor = StreamCursor::new(0);
        cursor.load(&one);
        assert!(!cursor.is_inside());
        cursor.sent(10);
        assert!(cursor.is_inside());
        assert_eq!(cursor.unsent(), &one.frames[10..]);
        cursor.sent(one.frames.len() - 10);
        assert_eq!((cursor.unsent(), cursor.next(), cursor.is_inside()), (&[][..], 1, false));
        cursor.load(&two);
        assert_eq!(cursor.next(), 2);
    }
}
