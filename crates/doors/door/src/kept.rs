//! Messages of this connection, kept for a peer that asks for them again, within a bound.

use std::collections::VecDeque;

/// Bytes of them that are kept; the oldest make room.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// An application message as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) number: u64,
    pub(crate) sent_ns: u64,
    pub(crate) msg_type: &'static [u8],
    /// Its fields, behind the header that every message has.
    pub(crate) fields: Vec<u8>,
}

/// The newest of them.
#[derive(Debug, Default)]
pub(crate) struct Keeping {
    messages: VecDeque<Kept>,
    bytes: usize,
    /// Up to this number messages had to make room.
    dropped: u64,
}

impl Keeping {
    pub(crate) fn keep(&mut self, message: Kept) {
        self.bytes += size(&message);
        self.messages.push_back(message);
        while let Some(oldest) = self.messages.pop_front_if(|_| self.bytes > KEPT_BYTES_MAX) {
            self.bytes -= size(&oldest);
            self.dropped = oldest.number;
        }
    }

    /// Those with numbers from `from` to `to`, in order.
    pub(crate) fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &Kept> {
        let first = self.messages.partition_point(|message| message.number < from);
        self.messages.range(first..).take_while(move |message| message.number <= to)
    }

    /// Whether a message from that number on is not kept any more.
    pub(crate) fn lacks(&self, from: u64) -> bool {
        from <= self.dropped
    }
}

fn size(message: &Kept) -> usize {
    message.fields.len() + size_of::<Kept>()
}
