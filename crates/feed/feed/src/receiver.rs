//! Packets of two lines become one sequence: docs/protocols/market-data.md, *Receiving*.
//!
//! Both lines carry the same messages under the same numbers, cut into packets in any way. So a message counts the first time it comes, on
//! whichever line. What comes early waits; while something is missing, nothing that is shown is current.
//!
//! Most gaps are filled by the other line in a moment. What is not there then is asked for again, one packet's worth at a time: the next as soon
//! as one came, and the same after a pause that doubles, of the publishers in turn.

use std::collections::BTreeMap;

use zerocopy::IntoBytes;

use crate::mold::{Header, Packet, PacketError};
use crate::publication::Session;

/// Messages that wait for earlier ones.
pub const EARLY_MAX: usize = 65_536;
/// How long the other line may take to bring what is missing, nanoseconds.
pub const PATIENCE_NS: u64 = 1_000_000;
/// The longest pause between two requests for the same, nanoseconds.
pub const PAUSE_MAX_NS: u64 = 1_000_000_000;
/// Without any packet for so long nobody knows how far the session is, nanoseconds: three heartbeats.
pub const STALE_NS: u64 = 3_000_000_000;
/// Messages asked for at once: what one packet holds of the shortest.
const ASKED_MAX: u64 = 128;

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
    /// Nothing was heard for long, or ever: nobody knows what is missing.
    Stale,
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

/// What is missing, and when it is asked for.
#[derive(Clone, Copy, Debug)]
struct Asking {
    from: u64,
    at_ns: u64,
    pause_ns: u64,
}

/// A request for messages, to be sent to a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// Rises by one with each: which publisher is asked, modulo how many there are.
    pub turn: u64,
    /// The packet.
    pub packet: [u8; size_of::<Header>()],
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
    /// When the last packet of the session came.
    heard_ns: Option<u64>,
    asking: Option<Asking>,
    /// Requests made: whose turn it is.
    requests: u64,
    /// What came to nothing.
    pub dropped: Dropped,
}

impl Receiver {
    /// A receiver of a session, which hands out messages from number `next` on.
    #[must_use]
    pub fn new(session: Session, next: u64) -> Self {
        Self {
            session,
            next,
            known: next,
            end: None,
            early: BTreeMap::new(),
            heard_ns: None,
            asking: None,
            requests: 0,
            dropped: Dropped::default(),
        }
    }

    /// A packet of either line, or one that was asked for. `hand_out` gets each message once, in order.
    ///
    /// # Errors
    /// If the bytes are no packet; it is counted, and nothing else changed.
    pub fn on_packet(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        mut hand_out: impl FnMut(u64, &[u8]),
    ) -> Result<(), PacketError> {
        let packet = Packet::read(bytes).inspect_err(|_| self.dropped.malformed += 1)?;
        if packet.session != self.session {
            self.dropped.strange += 1;
            return Ok(());
        }
        self.heard_ns = self.heard_ns.max(Some(now_ns));
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

    /// What is to be asked for again now, if anything is. Call it when packets came, and when [`Receiver::deadline_ns`] has.
    pub fn ask(&mut self, now_ns: u64) -> Option<Again> {
        let Some((from, to)) = self.missing() else {
            self.asking = None;
            return None;
        };
        let asking = match self.asking {
            Some(asking) if asking.from == from => asking,
            // What was asked for came, and more is missing.
            Some(_) => Asking { from, at_ns: now_ns, pause_ns: PATIENCE_NS },
            None => Asking { from, at_ns: now_ns.saturating_add(PATIENCE_NS), pause_ns: PATIENCE_NS },
        };
        if now_ns < asking.at_ns {
            self.asking = Some(asking);
            return None;
        }
        let at_ns = now_ns.saturating_add(asking.pause_ns);
        let pause_ns = PAUSE_MAX_NS.min(asking.pause_ns * 2);
        self.asking = Some(Asking { from, at_ns, pause_ns });
        self.requests += 1;
        let count = u16::try_from((to - from).min(ASKED_MAX)).expect("it is small");
        let header = Header { session: self.session.0, sequence: from.into(), count: count.into() };
        let packet = header.as_bytes().try_into().expect("it has the size of a header");
        Some(Again { turn: self.requests, packet })
    }

    /// When [`Receiver::ask`] has something to ask, if nothing comes before; `None` if nothing is missing.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        self.missing()?;
        Some(self.asking.map_or(0, |asking| asking.at_ns))
    }

    /// The first numbers that are missing, if any are: from, and to without it.
    fn missing(&self) -> Option<(u64, u64)> {
        let to = self.early.first_key_value().map_or(self.known, |(&first, _)| first);
        (self.next < to).then_some((self.next, to))
    }

    /// Whether all is there.
    #[must_use]
    pub fn state(&self, now_ns: u64) -> FeedState {
        match self.missing() {
            Some((from, to)) => FeedState::Gap { from, to },
            None if self.end.is_some_and(|end| end <= self.next) => FeedState::Over,
            None if self.heard_ns.is_none_or(|heard| now_ns.saturating_sub(heard) > STALE_NS) => {
                FeedState::Stale
            }
            None => FeedState::Current,
        }
    }

    /// The number of the next message to hand out.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }
}
