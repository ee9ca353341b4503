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

use std::collections::VecDeque;
use std::ops::Range;

use zerocopy::FromBytes;

use crate::kept::Kept;
use crate::mold::{Header, Packing};
use crate::pace::{Pace, Rate};
use crate::publication::{FeedSink, Session};

/// After so long without a packet comes one without messages, nanoseconds.
pub const HEARTBEAT_NS: u64 = 1_000_000_000;
/// How long the end of a session is told, nanoseconds.
pub const END_TOLD_NS: u64 = 60_000_000_000;
/// Sessions whose messages are sent again: the one that is on, and the one before.
const SESSIONS_KEPT: usize = 2;
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
}

/// A publisher of one shard.
#[derive(Debug)]
pub struct Publisher<A> {
    /// Oldest first.
    kept: VecDeque<Kept>,
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
            kept: VecDeque::new(),
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

    /// Takes in messages, which go to `line` if it is live.
    pub fn taking<'a, L: Line<A>>(&'a mut self, line: &'a mut L, now_ns: u64) -> Taking<'a, A, L> {
        Taking { publisher: self, line, now_ns }
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
        (self.is_live && is_told && !self.kept.is_empty()).then_some(beat_ns)
    }

    /// Tells those who listen that it is there, and how far it is, if it was quiet for long.
    pub fn on_time(&mut self, now_ns: u64, line: &mut impl Line<A>) {
        if self.deadline_ns().is_none_or(|at| now_ns < at) {
            return;
        }
        let Some(kept) = self.kept.back() else { return };
        let mut packing = Packing::new(kept.session, kept.next());
        line.send(&if kept.over { packing.end() } else { packing.take() });
        self.sent_ns = now_ns;
    }

    /// Somebody asks for messages again: a packet's header, with the session, the first number and how many. He gets those that go into one packet.
    pub fn on_request(&mut self, asker: A, request: &[u8], now_ns: u64, line: &mut impl Line<A>) {
        match wanted(&self.kept, request) {
            Ok((kept, numbers)) if self.pace.allows(asker, now_ns) => {
                line.answer(asker, &packed(kept, numbers));
                self.asked.answered += 1;
            }
            Ok(_) => self.asked.too_many += 1,
            Err(Refusal::Malformed) => self.asked.malformed += 1,
            Err(Refusal::Strange) => self.asked.strange += 1,
            Err(Refusal::NotThere) => self.asked.not_there += 1,
        }
    }
}

/// The session and the numbers that a request asks for, the first of which is there.
fn wanted<'a>(all: &'a VecDeque<Kept>, request: &[u8]) -> Result<(&'a Kept, Range<u64>), Refusal> {
    let header = Header::read_from_bytes(request).map_err(|_| Refusal::Malformed)?;
    let kept = all.iter().find(|kept| kept.session == Session(header.session)).ok_or(Refusal::Strange)?;
    let first = header.sequence.get();
    let numbers = first..first.saturating_add(header.count.get().into());
    if numbers.is_empty() || kept.message(first).is_none() {
        return Err(Refusal::NotThere);
    }
    Ok((kept, numbers))
}

/// As many of the messages as there are, and go into a packet.
fn packed(kept: &Kept, numbers: Range<u64>) -> Vec<u8> {
    let mut packing = Packing::new(kept.session, numbers.start);
    for message in numbers.map_while(|number| kept.message(number)) {
        if !packing.push(message) {
            break;
        }
    }
    packing.take()
}

/// Why a request is not answered: as the protocol has it, with silence.
enum Refusal {
    Malformed,
    Strange,
    NotThere,
}

/// A publisher that takes in messages.
pub struct Taking<'a, A, L> {
    publisher: &'a mut Publisher<A>,
    line: &'a mut L,
    now_ns: u64,
}

impl<A: Copy + Ord, L: Line<A>> FeedSink for Taking<'_, A, L> {
    fn begin(&mut self, session: Session) {
        self.publisher.flush(self.now_ns, self.line);
        let kept = &mut self.publisher.kept;
        if kept.len() >= SESSIONS_KEPT {
            kept.pop_front();
        }
        kept.push_back(Kept::new(session));
        self.publisher.ended_ns = None;
    }

    fn message(&mut self, bytes: &[u8]) {
        let Self { publisher, line, now_ns } = self;
        let kept = publisher.kept.back_mut().expect("a session has begun");
        let number = kept.next();
        kept.push(bytes);
        if !publisher.is_live {
            return;
        }
        let session = kept.session;
        let packing = publisher.packing.get_or_insert_with(|| Packing::new(session, number));
        if !packing.push(bytes) {
            line.send(&packing.take());
            publisher.sent_ns = *now_ns;
            assert!(packing.push(bytes), "an empty packet has room");
        }
    }

    fn end(&mut self) {
        let Self { publisher, line, now_ns } = self;
        publisher.flush(*now_ns, *line);
        let kept = publisher.kept.back_mut().expect("a session has begun");
        kept.over = true;
        publisher.ended_ns = Some(*now_ns);
        if publisher.is_live {
            line.send(&Packing::new(kept.session, kept.next()).end());
            publisher.sent_ns = *now_ns;
        }
    }
}
