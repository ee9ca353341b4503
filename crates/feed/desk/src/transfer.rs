//! How fast a server fills another (paper 2, section 5).
//!
//! The paper found that a state of 20 MB sent in one block, or in chunks without pauses, blacks the system out, and that chunks of 32 KiB with
//! pauses of 50 ms do not. Numbers like these fit one network and one load. Here the pause follows from what is measured: one chunk is
//! on its way at a time. The peer answers once the chunk is on its disk, so the time until then is what link, peer and disk need just now, and the
//! server rests in proportion. So a transfer takes a share of whatever there is, and backs off by itself when that becomes less. While the server
//! has work of its own it sends nothing.

/// The part of the time in which a chunk is on its way, per cent.
pub const SHARE: u64 = 50;
/// The smallest and the largest chunk, bytes.
const CHUNK_BYTES: (usize, usize) = (16 << 10, 256 << 10);
/// A chunk that takes less may grow, one that takes longer shrinks, nanoseconds.
const TAKES_NS: (u64, u64) = (1_000_000, 8_000_000);
/// The longest pause, nanoseconds.
const PAUSE_MAX_NS: u64 = 50_000_000;
/// A server that is never idle still sends a chunk now and then, nanoseconds: the peer must come up some day.
const BUSY_MAX_NS: u64 = 200_000_000;

/// When the next chunk goes out, and how large it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferPace {
    chunk_bytes: usize,
    /// When the chunk that is on its way left.
    sent_ns: Option<u64>,
    /// When the next one may leave, and when it has to in spite of other work.
    ready_ns: u64,
}

impl TransferPace {
    /// A transfer that begins.
    #[must_use]
    pub fn new(now_ns: u64) -> Self {
        Self { chunk_bytes: 32 << 10, sent_ns: None, ready_ns: now_ns }
    }

    /// How large the next chunk may be, bytes, if it may leave now. `is_busy`: the server has other work.
    #[must_use]
    pub fn may_send(&self, now_ns: u64, is_busy: bool) -> Option<usize> {
        let wait_ns = if is_busy { BUSY_MAX_NS } else { 0 };
        let due = self.sent_ns.is_none() && now_ns >= self.ready_ns.saturating_add(wait_ns);
        due.then_some(self.chunk_bytes)
    }

    /// When to look again, if no chunk is on its way.
    #[must_use]
    pub fn ready_ns(&self) -> Option<u64> {
        self.sent_ns.is_none().then_some(self.ready_ns)
    }

    /// A chunk has left.
    pub fn on_sent(&mut self, now_ns: u64) {
        self.sent_ns = Some(now_ns);
    }

    /// The peer has the chunk on its disk.
    pub fn on_took(&mut self, now_ns: u64) {
        let Some(sent_ns) = self.sent_ns.take() else { return };
        let took_ns = now_ns.saturating_sub(sent_ns);
        let pause_ns = PAUSE_MAX_NS.min(took_ns.saturating_mul(100 - SHARE) / SHARE);
        self.ready_ns = now_ns.saturating_add(pause_ns);
        let (least, most) = CHUNK_BYTES;
        let (short_ns, long_ns) = TAKES_NS;
        if took_ns < short_ns {
            self.chunk_bytes = most.min(self.chunk_bytes * 2);
        } else if took_ns > long_ns {
            self.chunk_bytes = least.max(self.chunk_bytes / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn one_chunk_is_on_its_way_and_the_pause_is_as_long_as_it_took() {
        let mut pace = TransferPace::new(0);
        assert_eq!(pace.may_send(0, false), Some(32 << 10));
        pace.on_sent(0);
        assert_eq!((pace.may_send(9 * MS, false), pace.ready_ns()), (None, None));
        pace.on_took(4 * MS);
        assert_eq!((pace.may_send(7 * MS, false), pace.ready_ns()), (None, Some(8 * MS)));
        assert_eq!(pace.may_send(8 * MS, false), Some(32 << 10));
    }

    #[test]
    fn chunks_grow_when_quick_and_shrink_when_slow() {
        let mut pace = TransferPace::new(0);
        let mut take = |took_ns| {
            pace.on_sent(0);
            pace.on_took(took_ns);
            pace.may_send(u64::MAX, false).unwrap()
        };
        assert_eq!([take(1), take(1), take(1), take(1)].map(|bytes| bytes >> 10), [64, 128, 256, 256]);
        assert_eq!([take(9 * MS), take(9 * MS), take(2 * MS)].map(|bytes| bytes >> 10), [128, 64, 64]);
        (0..9).for_each(|_| assert!(take(1_000 * MS) > 0));
        assert_eq!(take(1_000 * MS) >> 10, 16);
    }

    #[test]
    fn a_server_with_work_of_its_own_holds_back_but_not_for_ever() {
        let pace = TransferPace::new(0);
        assert_eq!(pace.may_send(199 * MS, true), None);
        assert!(pace.may_send(200 * MS, true).is_some());
    }
}
