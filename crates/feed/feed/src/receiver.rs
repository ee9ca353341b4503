//! Packets of two lines become one sequence: docs/protocols/market-data.md, *Receiving*.
//!
//! Both lines carry the same messages under the same numbers, cut into packets in any way. So a message counts the first time it comes, on
//! whichever line. What comes early waits; while something is missing, nothing that is shown is current.
//!
//! Most gaps are filled by the other line in a moment. What is not there then is asked for again, one packet's worth at a time: the next as soon
//! as one came, and the same after a pause that doubles, of the replayers in turn.

use zerocopy::IntoBytes;

use crate::books::AHEAD;
pub use crate::dropped::Dropped;
pub use crate::early::EARLY_MAX;
use crate::early::Early;
use crate::mold::{Header, Packet, PacketError};
use crate::publication::Session;

/// How long the other line may take to bring what is missing, nanoseconds.
pub const PATIENCE_NS: u64 = 1_000_000;
/// The longest pause between two requests for the same, nanoseconds.
pub const PAUSE_MAX_NS: u64 = 1_000_000_000;
/// Without any packet for so long it is not known how far the session is, nanoseconds: three heartbeats.
const STALE_NS: u64 = 3_000_000_000;
/// What was asked for without an answer for so long is not asked for any more where there is another way, nanoseconds.
const VAIN_NS: u64 = 3_000_000_000;
/// A packet that comes so long after the latest one with an end, and has none, says that there was none, nanoseconds.
const END_DOUBTED_NS: u64 = 3_000_000_000;
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
    /// Nothing was heard for long, or ever: what is missing is not known.
    Stale,
    /// The session is over, and all of it was handed out.
    Over,
}

/// What is missing, and when it is asked for.
#[derive(Clone, Copy, Debug)]
struct Asking {
    from: u64,
    /// Since when it is missing.
    since_ns: u64,
    at_ns: u64,
    pause_ns: u64,
}

/// A request for messages, to be sent to a replayer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// Rises by one with each: which replayer is asked, modulo how many there are.
    pub turn: u64,
    /// The packet.
    pub packet: [u8; size_of::<Header>()],
}

/// The receiver of one session.
#[derive(Debug)]
pub struct Receiver {
    session: Session,
    /// The number of the next message to hand out.
    next: u64,
    /// Whether `next` is known: otherwise all that comes waits, and the oldest is dropped for the newest.
    placed: bool,
    /// The highest number known of, plus 1.
    known: u64,
    /// The same, by what came since [`Receiver::mark`].
    known_since: u64,
    /// After the last message, once that is known, and when it was last announced.
    end: Option<(u64, u64)>,
    early: Early,
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
            placed: true,
            known: next,
            known_since: next,
            end: None,
            early: Early::default(),
            heard_ns: None,
            asking: None,
            requests: 0,
            dropped: Dropped::default(),
        }
    }

    /// A receiver of a session, which keeps what comes until [`Receiver::place`] says from which number on to hand out.
    pub(crate) fn searching(session: Session) -> Self {
        Self { placed: false, ..Self::new(session, 1) }
    }

    /// Hands out messages from number `next` on, and nothing before: what they would have told is known.
    pub fn place(&mut self, next: u64, hand_out: impl FnMut(u64, &[&[u8]])) {
        self.placed = true;
        self.next = next;
        self.known = self.known.max(next);
        self.early.forget_outside(next, next.saturating_add(EARLY_MAX as u64));
        self.hand_out_early(hand_out);
    }

    /// A packet of either line, or one that was asked for. `hand_out` gets each message once, in order: those that are there together come
    /// together, with the number of the first.
    ///
    /// # Errors
    /// If the bytes are no packet; it is counted, and nothing else changed.
    pub fn on_packet(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        hand_out: impl FnMut(u64, &[&[u8]]),
    ) -> Result<(), PacketError> {
        let packet = Packet::read(bytes).inspect_err(|_| self.dropped.malformed += 1)?;
        if packet.session == self.session {
            self.on_read(&packet, now_ns, hand_out);
        } else {
            self.dropped.strange += 1;
        }
        Ok(())
    }

    /// The same, of a packet of the session that was read before.
    pub(crate) fn on_read(
        &mut self,
        packet: &Packet<'_>,
        now_ns: u64,
        mut hand_out: impl FnMut(u64, &[&[u8]]),
    ) {
        self.on_told(packet.next(), now_ns);
        if packet.ends {
            self.end = Some((packet.sequence, now_ns));
        } else {
            // Publishers that know an end tell nothing else.
            self.end = self.end.filter(|&(_, told_ns)| now_ns.saturating_sub(told_ns) < END_DOUBTED_NS);
        }
        if self.placed && packet.sequence <= self.next {
            self.take_together(packet, &mut hand_out);
        } else {
            packet.messages().for_each(|(number, message)| self.keep(number, message));
        }
        self.hand_out_early(hand_out);
    }

    /// A packet that begins with the next message, or with known ones.
    fn take_together(&mut self, packet: &Packet<'_>, hand_out: &mut impl FnMut(u64, &[&[u8]])) {
        let known = self.next.min(packet.next()) - packet.sequence;
        self.dropped.known += known;
        let mut messages = packet.messages().skip(known as usize).peekable();
        while messages.peek().is_some() {
            let (mut together, mut many): ([&[u8]; AHEAD], _) = ([&[]; AHEAD], 0);
            for (place, (_, message)) in together.iter_mut().zip(&mut messages) {
                (*place, many) = (message, many + 1);
            }
            hand_out(self.next, &together[..many]);
            self.next += many as u64;
        }
    }

    /// A message that came in another way than by a packet, as the last one that there is.
    pub fn on_message(
        &mut self,
        number: u64,
        message: &[u8],
        now_ns: u64,
        mut hand_out: impl FnMut(u64, &[&[u8]]),
    ) {
        self.on_told(number.saturating_add(1), now_ns);
        if self.placed && number == self.next && number < u64::MAX {
            hand_out(number, &[message]);
            self.next += 1;
        } else {
            self.keep(number, message);
        }
        self.hand_out_early(hand_out);
    }

    /// A sender says that the next message is this one.
    pub(crate) fn on_told(&mut self, next: u64, now_ns: u64) {
        self.heard_ns = self.heard_ns.max(Some(now_ns));
        self.on_claim(next);
    }

    /// A sender said so some time ago.
    pub(crate) fn on_claim(&mut self, next: u64) {
        self.known = self.known.max(next);
        self.known_since = self.known_since.max(next);
        // Nothing follows the end: what was called the end is none.
        self.end = self.end.filter(|&(end, _)| next <= end);
    }

    /// The session ends with what was handed out.
    pub(crate) fn on_end(&mut self, now_ns: u64) {
        self.on_told(self.next, now_ns);
        self.end = Some((self.next, now_ns));
    }

    /// A message that is not the next one, or that has no place yet.
    fn keep(&mut self, number: u64, message: &[u8]) {
        if !self.placed {
            self.dropped.too_early += self.early.keep_newest(number, message);
        } else if number < self.next || self.early.contains(number) {
            self.dropped.known += 1;
        } else if number - self.next >= EARLY_MAX as u64 || !self.early.keep(number, message) {
            self.dropped.too_early += 1;
        }
    }

    fn hand_out_early(&mut self, mut hand_out: impl FnMut(u64, &[&[u8]])) {
        while self.placed && self.early.first().is_some_and(|first| first <= self.next) {
            let Some((number, message)) = self.early.take_first() else { return };
            // What came by another packet since is known.
            if number == self.next {
                hand_out(number, &[&message]);
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
        let new = |at_ns| Asking { from, since_ns: now_ns, at_ns, pause_ns: PATIENCE_NS };
        let asking = match self.asking {
            Some(asking) if asking.from == from => asking,
            // What was asked for came, and more is missing.
            Some(_) => new(now_ns),
            None => new(now_ns.saturating_add(PATIENCE_NS)),
        };
        if now_ns < asking.at_ns {
            self.asking = Some(asking);
            return None;
        }
        let at_ns = now_ns.saturating_add(asking.pause_ns);
        let pause_ns = PAUSE_MAX_NS.min(asking.pause_ns * 2);
        self.asking = Some(Asking { at_ns, pause_ns, ..asking });
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
        if !self.placed {
            return None;
        }
        let to = self.early.first().unwrap_or(self.known);
        (self.next < to).then_some((self.next, to))
    }

    /// Whether what is missing will not come by asking: it was asked for without an answer, as often as [`Receiver::ask`] was called meanwhile.
    pub(crate) fn is_vain(&self, now_ns: u64) -> bool {
        self.vain_ns().is_some_and(|at| now_ns >= at)
    }

    /// When what is missing was asked for without an answer for long enough.
    pub(crate) fn vain_ns(&self) -> Option<u64> {
        let (from, _) = self.missing()?;
        let asking = self.asking.filter(|asking| asking.from == from)?;
        Some(asking.since_ns.saturating_add(VAIN_NS))
    }

    /// Whether anything is missing.
    pub(crate) fn is_missing(&self) -> bool {
        self.missing().is_some()
    }

    /// Whether more is missing than the messages that could wait for it.
    pub(crate) fn is_beyond(&self) -> bool {
        self.placed && self.known - self.next > EARLY_MAX as u64
    }

    /// From here on it counts apart what it receives: [`Receiver::refute`].
    pub fn mark(&mut self) {
        self.known_since = self.next;
    }

    /// All who could know say that the next message is at most `head`: what was claimed before the mark, of later ones, is not true. Says
    /// whether there was any such claim.
    pub fn refute(&mut self, head: u64) -> bool {
        let was = self.known;
        self.known = was.min(self.next.max(head).max(self.known_since));
        self.early.forget_outside(0, self.known);
        self.end = self.end.filter(|&(end, _)| end <= self.known);
        self.asking = None;
        self.known < was
    }

    /// Whether all is there.
    #[must_use]
    pub fn state(&self, now_ns: u64) -> FeedState {
        match self.missing() {
            Some((from, to)) => FeedState::Gap { from, to },
            None if !self.placed => FeedState::Stale,
            None if self.is_over() => FeedState::Over,
            None if self.stale_ns().is_none_or(|at| now_ns > at) => FeedState::Stale,
            None => FeedState::Current,
        }
    }

    /// Whether all of the session was handed out, and it has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.placed && self.missing().is_none() && self.end.is_some_and(|(end, _)| end <= self.next)
    }

    /// After when it is stale, if nothing comes before.
    pub(crate) fn stale_ns(&self) -> Option<u64> {
        Some(self.heard_ns?.saturating_add(STALE_NS))
    }

    /// Its session.
    #[must_use]
    pub fn session(&self) -> Session {
        self.session
    }

    /// Whether it knows from which number on to hand out.
    pub(crate) fn is_placed(&self) -> bool {
        self.placed
    }

    /// The number of the next message to hand out.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }
}
