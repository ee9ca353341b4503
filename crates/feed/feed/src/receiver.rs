//! Packets of two lines become one sequence: docs/protocols/market-data.md, *Receiving*.
//!
//! Both lines carry the same messages under the same numbers, cut into packets in any way. So a message counts the first time it comes, on
//! whichever line. What comes early waits; while something is missing, nothing that is shown is current.

use std::collections::BTreeMap;

use crate::mold::{Packet, PacketError};
use crate::publication::Session;

/// Messages that wait for earlier ones.
pub const EARLY_MAX: usize = 65_536;

/// Whether what a receiver has handed out is all that it could know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedState {
    /// It is.
    Current,
    /// Messages from this number up to that one, without it, are missing.
    Gap {
        /// The first.
        from: u64,
        /// After the last.
        to: u64,
    },
    /// The session is over, and all of it was handed out.
    Over,
}

/// What packets came to nothing, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Packets that are none.
    pub malformed: u64,
    /// Packets of another session.
    pub strange: u64,
    /// Messages that had come already.
    pub known: u64,
    /// Messages that came too early to be kept.
    pub too_early: u64,
}

/// The receiver of one session.
pub struct Receiver {
    session: Session,
    /// The number of the next message to hand out.
    next: u64,
    /// The highest number known of, plus 1.
    known: u64,
    /// After the last message, once that is known.
    end: Option<u64>,
    early: BTreeMap<u64, Box<[u8]>>,
    /// What came to nothing.
    pub dropped: Dropped,
}

impl Receiver {
    /// A receiver of a session, which hands out messages from number `next` on.
    #[must_use]
    pub fn new(session: Session, next: u64) -> Self {
        let (early, dropped) = (BTreeMap::new(), Dropped::default());
        Self { session, next, known: next, end: None, early, dropped }
    }

    /// A packet of either line, or one that was asked for. `hand_out` gets each message once, in order.
    ///
    /// # Errors
    /// If the bytes are no packet; it is counted, and nothing else changed.
    pub fn on_packet(
        &mut self,
        bytes: &[u8],
        mut hand_out: impl FnMut(u64, &[u8]),
    ) -> Result<(), PacketError> {
        let packet = Packet::read(bytes).inspect_err(|_| self.dropped.malformed += 1)?;
        if packet.session != self.session {
            self.dropped.strange += 1;
            return Ok(());
        }
        self.known = self.known.max(packet.next());
        if packet.ends {
            self.end = Some(packet.sequence);
        }
        for (number, message) in packet.messages() {
            match number {
                _ if number == self.next => {
                    hand_out(number, message);
                    self.next += 1;
                }
                _ if number < self.next || self.early.contains_key(&number) => self.dropped.known += 1,
                _ if self.early.len() < EARLY_MAX => {
                    self.early.insert(number, message.into());
                }
                _ => self.dropped.too_early += 1,
            }
        }
        self.hand_out_early(hand_out);
        Ok(())
    }

    fn hand_out_early(&mut self, mut hand_out: impl FnMut(u64, &[u8])) {
        while let Some(entry) = self.early.first_entry() {
            if *entry.key() > self.next {
                return;
            }
            let (number, message) = entry.remove_entry();
            // What came by another packet since is known.
            if number == self.next {
                hand_out(number, &message);
                self.next += 1;
            }
        }
    }

    /// Whether all is there.
    #[must_use]
    pub fn state(&self) -> FeedState {
        match self.early.first_key_value() {
            Some((&first, _)) => FeedState::Gap { from: self.next, to: first },
            None if self.next < self.known => FeedState::Gap { from: self.next, to: self.known },
            None if self.end.is_some_and(|end| end <= self.next) => FeedState::Over,
            None => FeedState::Current,
        }
    }

    /// The number of the next message to hand out.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }
}
