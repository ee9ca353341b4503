//! What a subscription does by TCP: docs/protocols/market-data.md, *Subscriptions*.
//!
//! Any process can send a packet to a line. If a packet's word were enough, one that claims the message 2^60 would leave a receiver behind for
//! ever, and one of a later day would take it there. So what lines bring no proof of is asked of the replayers, one after the other: which
//! session is on, and how far it is. Who is behind that takes a snapshot. If all say that there is no more, the claim is dropped.
//!
//! ```text
//!   needed --> head of replayer t --further--> snapshot of t --> placed, done
//!     ^             |        |  \
//!     |           failed   no further (all of them: the claim is dropped)
//!     +-- pause ----+--------+     \-- without lines --> replay from the next message on, until it breaks
//! ```

mod replay;

use pares_types::BusinessDay;

use crate::books::ReceivedBooks;
use crate::calling::{Call, Purpose, Said, packet};
use crate::publication::Session;
use crate::receiver::{EARLY_MAX, FeedState, Receiver};
use crate::soup;
use crate::subscription::{FeedEffect, FeedEvent, FeedListener, Subscription, hand_out};

/// The pause after a call that failed, the first time, nanoseconds; it doubles.
const PAUSE_MIN_NS: u64 = 50_000_000;
/// The longest pause, nanoseconds.
const PAUSE_MAX_NS: u64 = 8_000_000_000;
/// A claim that no replayer of those who answer confirms for so long is dropped, even if others do not answer, nanoseconds.
const CLAIM_NS: u64 = 10_000_000_000;
/// A snapshot has at most so many messages: a longer one is none.
const SNAPSHOT_MESSAGES_MAX: u64 = 1 << 26;

/// The replayers' answers, and whose turn it is.
#[derive(Debug)]
pub(crate) struct Recovery {
    /// Which replayer is called next.
    turn: u64,
    /// Not before.
    at_ns: u64,
    pause_ns: u64,
    /// Since when answers are gathered about the same claims.
    asked_ns: Option<u64>,
    /// Replayers called in this round, and those that answered.
    called: u64,
    answered: u64,
    /// The furthest of their answers.
    head: Option<(Session, u64)>,
    /// Of which session replayers said that they have no beginning, and how often one after the other did.
    beheaded: Option<(Session, u64)>,
    /// The books of a snapshot that is coming.
    books: ReceivedBooks,
}

impl Recovery {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            turn: 0,
            at_ns: 0,
            pause_ns: 0,
            asked_ns: None,
            called: 0,
            answered: 0,
            head: None,
            beheaded: None,
            books: ReceivedBooks::with_seed(seed),
        }
    }

    /// A replayer has not got the beginning of that session. How often that was said of it.
    fn note_beheaded(&mut self, session: Session) -> u64 {
        let times = 1 + self.beheaded.filter(|(of, _)| *of == session).map_or(0, |(_, times)| times);
        self.beheaded = Some((session, times));
        times
    }

    fn pause(&mut self, now_ns: u64) {
        self.pause_ns = (self.pause_ns * 2).clamp(PAUSE_MIN_NS, PAUSE_MAX_NS);
        self.at_ns = now_ns.saturating_add(self.pause_ns);
    }

    /// A replayer that breaks off at once is not called at once again.
    fn rest(&mut self, now_ns: u64) {
        self.at_ns = self.at_ns.max(now_ns.saturating_add(PAUSE_MIN_NS));
    }
}

impl Subscription {
    /// Whether replayers have to be called.
    fn has_to_call(&self, now_ns: u64) -> bool {
        let Some(receiver) = &self.receiver else { return true };
        let is_lost = !receiver.is_placed() || receiver.is_beyond() || receiver.is_vain(now_ns);
        !self.of.lines || is_lost || !self.is_confirmed || self.claim.is_some()
    }

    /// When something is to be done about calls.
    pub(crate) fn call_deadline_ns(&self, now_ns: u64) -> Option<u64> {
        match &self.call {
            Some(call) => Some(call.beat_ns().min(call.patience_ns())),
            None if self.of.replayers == 0 || !self.has_to_call(now_ns) => None,
            None => Some(self.recovery.at_ns),
        }
    }

    /// Time has passed.
    pub(crate) fn keep_calling(&mut self, now_ns: u64) {
        if let Some(call) = &mut self.call {
            if now_ns >= call.patience_ns() {
                self.hang_up();
                self.call_failed(now_ns);
            } else if now_ns >= call.beat_ns() {
                let beat = call.beat(now_ns);
                self.effects.push_back(FeedEffect::Send(beat));
            }
        } else if !self.has_to_call(now_ns) {
            (self.recovery.pause_ns, self.recovery.asked_ns) = (0, None);
        } else if self.of.replayers > 0 && now_ns >= self.recovery.at_ns {
            self.ask_head(now_ns);
        }
    }

    fn ask_head(&mut self, now_ns: u64) {
        if self.recovery.asked_ns.is_none() {
            self.recovery.asked_ns = Some(now_ns);
            (self.recovery.called, self.recovery.answered, self.recovery.head) = (0, 0, None);
            self.receiver.iter_mut().for_each(Receiver::mark);
            self.is_claimed_since = false;
        }
        self.recovery.called += 1;
        self.start(Purpose::Head(self.of.shard), now_ns);
    }

    fn start(&mut self, purpose: Purpose, now_ns: u64) {
        self.recovery.books = ReceivedBooks::with_seed(self.of.seed);
        let call = Call::new(purpose, now_ns);
        let (turn, login) = (self.recovery.turn, call.login());
        self.call = Some(call);
        self.effects.push_back(FeedEffect::Connect { turn, login });
    }

    fn hang_up(&mut self) {
        self.call = None;
        self.effects.push_back(FeedEffect::Send(packet(b'O')));
        self.effects.push_back(FeedEffect::Disconnect { unauthorized: false });
    }

    /// The replayer did not do what was asked: another one's turn, in a moment.
    pub(crate) fn call_failed(&mut self, now_ns: u64) {
        self.counters.failed_calls += 1;
        self.next_turn(now_ns);
        self.recovery.rest(now_ns);
    }

    /// The next replayer's turn. After a round of all the claims are dropped that none confirmed.
    fn next_turn(&mut self, now_ns: u64) {
        let replayers = self.of.replayers;
        let recovery = &mut self.recovery;
        recovery.turn = recovery.turn.wrapping_add(1);
        if recovery.called < replayers {
            return;
        }
        let is_old = recovery.asked_ns.is_some_and(|asked| now_ns.saturating_sub(asked) >= CLAIM_NS);
        let is_answered = recovery.answered >= replayers || (is_old && recovery.answered > 0);
        (recovery.called, recovery.answered) = (0, 0);
        recovery.pause(now_ns);
        if !is_answered {
            return;
        }
        recovery.asked_ns = None;
        self.drop_claims();
    }

    /// All who could know have answered, and none is further.
    fn drop_claims(&mut self) {
        let Some((session, head)) = self.recovery.head.take() else { return };
        let Some(receiver) = &mut self.receiver else { return };
        self.claim = self.claim.filter(|(claimed, _)| self.is_claimed_since || *claimed <= session);
        if session == receiver.session() {
            self.counters.refuted += u64::from(receiver.refute(head));
        } else if session < receiver.session() {
            // No replayer knows this session: it is found again as at the start.
            self.counters.dropped.add(&receiver.dropped);
            self.receiver = None;
            self.books = ReceivedBooks::with_seed(self.of.seed);
            self.counters.refuted += 1;
        }
    }

    /// Bytes of the connection.
    pub fn on_connection(&mut self, bytes: &[u8], now_ns: u64, each: &mut impl FeedListener) {
        let Some(mut call) = self.call.take() else { return };
        let purpose = call.purpose;
        let mut goes_on = true;
        let read = call.on_bytes(bytes, now_ns, |said| {
            goes_on = match purpose {
                Purpose::Head(_) => self.on_head(said, now_ns, each),
                Purpose::Snapshot(session) => self.on_snapshot(said, session, now_ns, each),
                Purpose::Replay(session, from) => self.on_replay(said, (session, from), now_ns, each),
            };
            goes_on
        });
        match read {
            Ok(()) if goes_on => self.call = Some(call),
            Ok(()) => {}
            Err(_) => {
                self.hang_up();
                self.call_failed(now_ns);
            }
        }
    }

    /// What a replayer says of which session is on, and how far it is. Whether the connection continues.
    fn on_head(&mut self, said: Said<'_>, now_ns: u64, each: &mut impl FeedListener) -> bool {
        match said {
            Said::Accepted(session, head) if session.shard() == Some(self.of.shard) && head > 0 => {
                self.hang_up();
                self.decide(session, head, now_ns, each);
                false
            }
            Said::Heartbeat => true,
            _ => self.refuse(said, now_ns),
        }
    }

    /// It did not say what it should.
    fn refuse(&mut self, said: Said<'_>, now_ns: u64) -> bool {
        self.call = None;
        self.effects.push_back(FeedEffect::Send(packet(b'O')));
        let unauthorized = said == Said::Rejected(soup::NOT_AUTHORIZED);
        self.effects.push_back(FeedEffect::Disconnect { unauthorized });
        self.call_failed(now_ns);
        false
    }

    /// A replayer has said how far it is.
    fn decide(&mut self, session: Session, head: u64, now_ns: u64, each: &mut impl FeedListener) {
        self.recovery.answered += 1;
        self.recovery.head = self.recovery.head.max(Some((session, head)));
        let Some(receiver) = &mut self.receiver else {
            self.begin(session, head == 1, each);
            return self.go_on(session, head, now_ns, each);
        };
        let (ours, is_over) = (receiver.session(), receiver.is_over());
        match session.cmp(&ours) {
            std::cmp::Ordering::Less => self.next_turn(now_ns),
            std::cmp::Ordering::Equal => {
                self.is_confirmed = true;
                self.go_on(session, head, now_ns, each);
            }
            std::cmp::Ordering::Greater if is_over || !receiver.is_placed() => {
                self.begin(session, head == 1, each);
                self.go_on(session, head, now_ns, each);
            }
            std::cmp::Ordering::Greater => {
                // What is left of this one comes first.
                let next = receiver.next();
                self.claim = self.claim.max(Some((session, head)));
                self.start(Purpose::Replay(ours, next), now_ns);
            }
        }
    }

    /// A replayer is at `head` of the session that is listened to.
    fn go_on(&mut self, session: Session, head: u64, now_ns: u64, each: &mut impl FeedListener) {
        let Some(receiver) = &mut self.receiver else { return };
        receiver.on_claim(head);
        if !receiver.is_placed() {
            // Before the first business day a session has no date, and trades of long ago would be taken for those of now.
            let is_undated = session.day().is_none_or(|day| day == BusinessDay::NONE);
            let replayers = self.of.replayers;
            let is_beheaded =
                self.recovery.beheaded.is_some_and(|(of, times)| of == session && times >= replayers);
            if self.of.lines || is_undated || is_beheaded || head > self.of.replayed_max {
                return self.start(Purpose::Snapshot(session), now_ns);
            }
            receiver.place(1, |first, messages| hand_out(&mut self.books, first, messages, each));
        }
        let next = receiver.next();
        if !self.of.lines {
            let is_over = receiver.state(now_ns) == FeedState::Over;
            receiver.on_told(head, now_ns);
            return match head < next || is_over {
                true => self.next_turn(now_ns),
                false => self.start(Purpose::Replay(session, next), now_ns),
            };
        }
        let is_far = head > next.saturating_add(EARLY_MAX as u64 / 2);
        if is_far || (receiver.is_vain(now_ns) && head > next) {
            each(&self.books, FeedEvent::Unfilled { from: next });
            return self.start(Purpose::Snapshot(session), now_ns);
        }
        self.next_turn(now_ns);
    }

    fn on_snapshot(
        &mut self,
        said: Said<'_>,
        session: Session,
        now_ns: u64,
        each: &mut impl FeedListener,
    ) -> bool {
        match said {
            Said::Accepted(accepted, _) if accepted == session => true,
            Said::Message(number, message) => match soup::end_of_snapshot(message) {
                Some(next) if next > 0 => {
                    self.hang_up();
                    self.recovery.rest(now_ns);
                    self.take_snapshot(session, next, each);
                    self.catch_up(now_ns);
                    false
                }
                Some(_) => self.refuse(said, now_ns),
                None if number > SNAPSHOT_MESSAGES_MAX => self.refuse(said, now_ns),
                None => {
                    self.recovery.books.on_message(message);
                    true
                }
            },
            Said::Heartbeat => true,
            _ => self.refuse(said, now_ns),
        }
    }

    /// The snapshot is there: it replaces the books, if they are not further by now.
    fn take_snapshot(&mut self, session: Session, next: u64, each: &mut impl FeedListener) {
        let no_books = ReceivedBooks::with_seed(self.of.seed);
        let snapshot = std::mem::replace(&mut self.recovery.books, no_books);
        (self.recovery.asked_ns, self.recovery.pause_ns) = (None, 0);
        let Some(receiver) = &mut self.receiver else { return };
        if receiver.session() != session || (receiver.is_placed() && receiver.next() >= next) {
            return;
        }
        self.counters.snapshots += 1;
        self.books = snapshot;
        each(&self.books, FeedEvent::Reset { next });
        let books = &mut self.books;
        receiver.place(next, |first, messages| hand_out(books, first, messages, each));
    }
}
