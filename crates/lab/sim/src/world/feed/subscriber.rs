//! A subscriber, and what must be true of what it receives.

use pares_feed::books::ReceivedBooks;
use pares_feed::publication::Session;
use pares_feed::subscription::{FeedEffect, FeedEvent, Subscribed, Subscription, SubscriptionState};
use pares_types::{ShardId, Side};

use super::CURRENT;
use super::reference::Reference;
use crate::{Broken, FeedSeen, Verdict, must};

pub(super) enum Heard<'a> {
    /// Nothing but that time has passed.
    Time,
    Packet(&'a [u8]),
    Connection(&'a [u8]),
    Disconnected,
}

/// A subscriber: its program, and what the simulator knows of it.
pub(super) struct Subscriber {
    of: Subscribed,
    /// Whether it calls a gap current.
    shows_gaps: bool,
    /// `None` before it joins.
    pub(super) subscription: Option<Subscription>,
    pub(super) connection: Option<usize>,
    /// The wake-up that counts.
    pub(super) plan: u64,
    /// The furthest that true packets told of.
    told: Option<(Session, u64)>,
    /// The session, and the number that its program waits for.
    at: Option<(Session, u64)>,
    /// What is right: the books of all messages up to a number.
    right: (Option<Session>, u64, ReceivedBooks),
    pub(super) seen: FeedSeen,
}

impl Subscriber {
    pub(super) fn new(of: Subscribed, shows_gaps: bool) -> Self {
        Self {
            of,
            shows_gaps,
            subscription: None,
            connection: None,
            plan: 0,
            told: None,
            at: None,
            right: (None, 1, ReceivedBooks::with_seed(0)),
            seen: FeedSeen::default(),
        }
    }

    pub(super) fn shard(&self) -> ShardId {
        self.of.shard
    }

    pub(super) fn listens(&self) -> bool {
        self.of.lines && self.subscription.is_some()
    }

    /// Its program starts, or starts again.
    pub(super) fn join(&mut self) {
        self.note_counters();
        self.subscription = Some(Subscription::new(self.of));
        (self.told, self.at) = (None, None);
    }

    /// What its program counted.
    pub(super) fn note_counters(&mut self) {
        if let Some(subscription) = self.subscription.take() {
            self.seen.refuted += subscription.counters().refuted;
            self.seen.failed_calls += subscription.counters().failed_calls;
        }
    }

    /// A true packet tells so much.
    pub(super) fn note_told(&mut self, session: Session, next: u64) {
        self.told = self.told.max(Some((session, next)));
    }

    pub(super) fn effect(&mut self) -> Option<FeedEffect> {
        self.subscription.as_mut()?.effect()
    }

    /// Something reaches it.
    pub(super) fn hear(&mut self, heard: &Heard<'_>, now_ns: u64, reference: &Reference) -> Verdict {
        let Self { subscription: Some(subscription), at, seen, .. } = self else { return Ok(()) };
        let mut found = Ok(());
        let mut each = |_: &ReceivedBooks, event: FeedEvent<'_>| {
            let followed = follow(event, at, seen, reference);
            if found.is_ok() {
                found = followed;
            }
        };
        match *heard {
            Heard::Time => {}
            Heard::Packet(bytes) => subscription.on_packet(bytes, now_ns, &mut each),
            Heard::Connection(bytes) => subscription.on_connection(bytes, now_ns, &mut each),
            Heard::Disconnected => subscription.on_disconnected(now_ns),
        }
        subscription.on_time(now_ns);
        found
    }

    pub(super) fn state(&self, now_ns: u64) -> Option<SubscriptionState> {
        let state = self.subscription.as_ref()?.state(now_ns);
        match state {
            SubscriptionState::Gap { .. } if self.shows_gaps => Some(SubscriptionState::Current),
            state => Some(state),
        }
    }

    /// F4: what is shown as current is all that it knows of, and right.
    pub(super) fn check(&mut self, now_ns: u64, reference: &Reference) -> Verdict {
        let (Some(state), Some(subscription)) = (self.state(now_ns), &self.subscription) else {
            return Ok(());
        };
        match state {
            SubscriptionState::Current => self.seen.current += 1,
            SubscriptionState::Over => self.seen.over += 1,
            SubscriptionState::Gap { .. } => self.seen.gap += 1,
            SubscriptionState::Recovering => self.seen.recovering += 1,
            SubscriptionState::Stale => self.seen.stale += 1,
        }
        if !matches!(state, SubscriptionState::Current | SubscriptionState::Over) {
            return Ok(());
        }
        let next = subscription.next();
        must(next >= self.told, CURRENT, || {
            format!("a subscriber is {state:?} at {next:?} and was told of {:?}", self.told)
        })?;
        let Some((session, next)) = next else { return Ok(()) };
        self.compare(session, next, reference)
    }

    /// The books are those that all messages make.
    fn compare(&mut self, session: Session, next: u64, reference: &Reference) -> Verdict {
        let broken = |what| Err(Broken { invariant: CURRENT, what });
        let Some(told) = reference.session(session).filter(|told| next <= told.next()) else {
            return broken(format!("{next} of {session} is shown as current, and there is no such yet"));
        };
        let (of, from, books) = &mut self.right;
        if *of != Some(session) || *from > next {
            (*of, *from, *books) = (Some(session), 1, ReceivedBooks::with_seed(0));
        }
        let missing = &told.messages[*from as usize - 1..next as usize - 1];
        missing.iter().for_each(|message| books.on_message(message));
        *from = next;
        let Some(subscription) = &self.subscription else { return Ok(()) };
        match differ(books, subscription.books()) {
            Some(what) => broken(format!("at {next} of {session}: {what}")),
            None => Ok(()),
        }
    }

    /// Whether it has all of the shard's last session, and says so.
    pub(super) fn has_all(&self, now_ns: u64, reference: &Reference) -> bool {
        let Some(subscription) = &self.subscription else { return false };
        let Some((session, told)) = reference.last(self.of.shard) else { return true };
        let wanted = if told.is_over { SubscriptionState::Over } else { SubscriptionState::Current };
        subscription.next() == Some((session, told.next())) && self.state(now_ns) == Some(wanted)
    }
}

/// Each message comes once, in order, and as the record gives it.
fn follow(
    event: FeedEvent<'_>,
    at: &mut Option<(Session, u64)>,
    seen: &mut FeedSeen,
    reference: &Reference,
) -> Verdict {
    let broken = |what| Err(Broken { invariant: super::AGAIN, what });
    match (event, at.as_mut()) {
        (FeedEvent::Session(session), _) => *at = Some((session, 1)),
        (FeedEvent::Unfilled { .. }, _) => seen.unfilled += 1,
        (FeedEvent::Reset { next }, Some(at)) => {
            seen.resets += 1;
            at.1 = next;
        }
        (FeedEvent::Message { number, bytes }, Some((session, next))) if number == *next => {
            seen.handed_out += 1;
            *next += 1;
            return reference.check_again(*session, number, bytes);
        }
        (event, at) => return broken(format!("{event:?} is handed out where {at:?} is next")),
    }
    Ok(())
}

/// What two books differ in, but for the last trade, which no snapshot has.
pub(super) fn differ(right: &ReceivedBooks, shown: &ReceivedBooks) -> Option<String> {
    let (ours, theirs): (Vec<_>, Vec<_>) = (right.all().collect(), shown.all().collect());
    if ours.len() != theirs.len() {
        return Some(format!("{} books are shown, of {}", theirs.len(), ours.len()));
    }
    for ((locate, ours), (other, theirs)) in ours.iter().zip(&theirs) {
        let known = |of: &pares_feed::books::ReceivedBook<'_>| (of.state, of.reason, of.indicative);
        let orders = |of: &pares_feed::books::ReceivedBook<'_>| {
            [Side::Buy, Side::Sell].map(|side| of.orders(side).collect::<Vec<_>>())
        };
        let alike = (locate, ours.symbol) == (other, theirs.symbol) && known(ours) == known(theirs);
        if !alike || orders(ours) != orders(theirs) {
            return Some(format!("shown {other} {theirs:?}\nright {locate} {ours:?}"));
        }
    }
    None
}
