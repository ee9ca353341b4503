//! A publisher of one shard's feed: what it sends, and sends again (docs/protocols/market-data.md, *Sending*).
//!
//! A primary that dies takes with it what it had numbered and nobody had heard. Here every publisher sends the same messages under the same
//! numbers, so that there is nothing to take over: another one's packet, or its answer, is as good.
//!
//! ```text
//!               keeps, sends nothing            sends
//!   start ---> [   catching up     ] -----> [  live  ] --quiet--> heartbeats
//!                                              | end
//!                                              v
//!                                           end of session, told for a minute; sent again on request until two sessions later
//! ```

use std::ops::Range;

use zerocopy::FromBytes;

use crate::mold::{Header, Packing};
use crate::pace::{Pace, Rate};
use crate::publication::Session;
use crate::store::{SessionStanding, SessionStore, StoreError, find};

/// After so long without a packet comes one without messages, nanoseconds.
pub const HEARTBEAT_NS: u64 = 1_000_000_000;
/// How long the end of a session is told, nanoseconds.
pub const END_TOLD_NS: u64 = 60_000_000_000;
/// One who asks gets 2,000 packets a second, 200 at once.
const EACH: Rate = Rate { every_ns: 500_000, at_once: 200 };
/// All who ask together get 20,000 a second.
const ALL: Rate = Rate { every_ns: 50_000, at_once: 2_000 };
/// Those who asked lately.
const ASKERS_MAX: usize = 1_024;

/// Where a publisher's packets go. `A` is the address of one who asks.
pub trait Line<A> {
    /// To all who listen.
    fn send(&mut self, packet: &[u8]);

    /// To one who asked.
    fn answer(&mut self, asker: A, packet: &[u8]);
}

/// What became of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Answered with a packet.
    pub answered: u64,
    /// No requests.
    pub malformed: u64,
    /// Of a session that is not kept.
    pub strange: u64,
    /// For messages that are not sent yet, or were never.
    pub not_there: u64,
    /// Not answered, since too many came.
    pub too_many: u64,
    /// Not answered, since the messages could not be read.
    pub unreadable: u64,
}

/// A publisher of one shard. The messages are kept elsewhere, in a [`SessionStore`]: each is put there, and then told to the publisher.
#[derive(Debug)]
pub struct Publisher<A> {
    /// The session that is on, or was last.
    standing: Option<SessionStanding>,
    /// What waits to be sent.
    packing: Option<Packing>,
    /// Whether it sends what it is told.
    is_live: bool,
    /// When the last packet was sent.
    sent_ns: u64,
    /// When the session ended.
    ended_ns: Option<u64>,
    pace: Pace<A>,
    /// What became of requests.
    pub asked: Asked,
}

impl<A: Copy + Ord> Default for Publisher<A> {
    fn default() -> Self {
        Self {
            standing: None,
            packing: None,
            is_live: false,
            sent_ns: 0,
            ended_ns: None,
            pace: Pace::new(EACH, ALL, ASKERS_MAX),
            asked: Asked::default(),
        }
    }
}

impl<A: Copy + Ord> Publisher<A> {
    /// It has caught up with the record: from now on it sends what it is told, from the next message on.
    pub fn go_live(&mut self) {
        self.is_live = true;
    }

    /// The session that was on when it began is kept up to here; it goes on with that.
    pub fn resume(&mut self, standing: SessionStanding) {
        self.standing = Some(standing);
    }

    /// A session begins: what follows is numbered from 1.
    pub fn begin(&mut self, session: Session, now_ns: u64, line: &mut impl Line<A>) {
        self.flush(now_ns, line);
        self.standing = Some(SessionStanding { session, next: 1, over: false });
        self.ended_ns = None;
    }

    /// The next message of the session, which is in the store by now; it goes to `line` if the publisher is live.
    ///
    /// # Panics
    /// If it is not the next one of the session that is on: numbers would be wrong from here on.
    pub fn message(
        &mut self,
        session: Session,
        number: u64,
        bytes: &[u8],
        now_ns: u64,
        line: &mut impl Line<A>,
    ) {
        let standing = self.standing.as_mut().expect("a session has begun");
        assert!(*standing == SessionStanding { session, next: number, over: false }, "a gap in the session");
        standing.next += 1;
        if !self.is_live {
            return;
        }
        let packing = self.packing.get_or_insert_with(|| Packing::new(session, number));
        if !packing.push(bytes) {
            line.send(&packing.take());
            self.sent_ns = now_ns;
            assert!(packing.push(bytes), "an empty packet has room");
        }
    }

    /// The session is over.
    ///
    /// # Panics
    /// If none is on.
    pub fn end(&mut self, now_ns: u64, line: &mut impl Line<A>) {
        self.flush(now_ns, line);
        let standing = self.standing.as_mut().expect("a session has begun");
        standing.over = true;
        self.ended_ns = Some(now_ns);
        if self.is_live {
            line.send(&Packing::new(standing.session, standing.next).end());
            self.sent_ns = now_ns;
        }
    }

    /// Sends what is there: there is nothing more to put beside it now.
    pub fn flush(&mut self, now_ns: u64, line: &mut impl Line<A>) {
        if let Some(mut packing) = self.packing.take() {
            line.send(&packing.take());
            self.sent_ns = now_ns;
        }
    }

    /// When [`Publisher::on_time`] has something to do, nanoseconds; `None` if never.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        let beat_ns = self.sent_ns.saturating_add(HEARTBEAT_NS);
        let is_told = self.ended_ns.is_none_or(|ended| beat_ns <= ended.saturating_add(END_TOLD_NS));
        (self.is_live && is_told && self.standing.is_some()).then_some(beat_ns)
    }

    /// Tells those who listen that it is there, and how far it is, if it was quiet for long.
    pub fn on_time(&mut self, now_ns: u64, line: &mut impl Line<A>) {
        if self.deadline_ns().is_none_or(|at| now_ns < at) {
            return;
        }
        let Some(standing) = self.standing else { return };
        let mut packing = Packing::new(standing.session, standing.next);
        line.send(&if standing.over { packing.end() } else { packing.take() });
        self.sent_ns = now_ns;
    }

    /// Somebody asks for messages again: a packet's header, with the session, the first number and how many. He gets those that go into one packet.
    pub fn on_request(
        &mut self,
        store: &mut dyn SessionStore,
        asker: A,
        request: &[u8],
        now_ns: u64,
        line: &mut impl Line<A>,
    ) {
        let counter = match wanted(store.standing(), request) {
            Ok(_) if !self.pace.allows(asker, now_ns) => &mut self.asked.too_many,
            Ok((session, numbers)) => match packed(store, session, numbers) {
                Ok(packet) => {
                    line.answer(asker, &packet);
                    &mut self.asked.answered
                }
                Err(_) => &mut self.asked.unreadable,
            },
            Err(Refusal::Malformed) => &mut self.asked.malformed,
            Err(Refusal::Strange) => &mut self.asked.strange,
            Err(Refusal::NotThere) => &mut self.asked.not_there,
        };
        *counter += 1;
    }
}

/// The session and the numbers that a request asks for, the first of which is there.
fn wanted(standing: &[SessionStanding], request: &[u8]) -> Result<(Session, Range<u64>), Refusal> {
    let header = Header::read_from_bytes(request).map_err(|_| Refusal::Malformed)?;
    let session = Session(header.session);
    let standing = find(standing, session).ok_or(Refusal::Strange)?;
    let first = header.sequence.get();
    let end = first.saturating_add(header.count.get().into()).min(standing.next);
    if first == 0 || first >= end {
        return Err(Refusal::NotThere);
    }
    Ok((session, first..end))
}

/// As many of the messages as go into a packet.
fn packed(
    store: &mut dyn SessionStore,
    session: Session,
    numbers: Range<u64>,
) -> Result<Vec<u8>, StoreError> {
    let mut packing = Packing::new(session, numbers.start);
    let mut left = numbers.end - numbers.start;
    store.read(session, numbers.start, &mut |message| {
        let is_taken = left > 0 && packing.push(message);
        left -= u64::from(is_taken);
        is_taken
    })?;
    if packing.is_empty() { Err(StoreError::Unreadable) } else { Ok(packing.take()) }
}

/// Why a request is not answered: as the protocol has it, with silence.
enum Refusal {
    Malformed,
    Strange,
    NotThere,
}
