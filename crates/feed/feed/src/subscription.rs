//! The feed of one shard, as a program has it: docs/protocols/market-data.md, *Subscriptions*.
//!
//! A receiver of packets knows its session and where to begin, and has no answer to a message that no publisher sends again. A program knows
//! neither, comes late, stays over night, and must never take for the market what is not. So a subscription joins what packets say with what
//! replayers say when they are called by TCP: which session is on, how far it is, what the books are. What was heard on lines counts as a
//! claim, until it is filled, or until replayers say otherwise.
//!
//! It does nothing by itself: bytes and the time come in, [`FeedEvent`]s go to the program, [`FeedEffect`]s to the owner of the sockets.

use std::collections::VecDeque;

use pares_types::ShardId;

use crate::books::ReceivedBooks;
use crate::calling::Call;
use crate::mold::Packet;
use crate::publication::Session;
use crate::receiver::{Again, Dropped, FeedState, Receiver};
use crate::recovery::Recovery;
use crate::soup::{HEAD_BYTES, LOGIN_BYTES};

/// What a subscription is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribed {
    /// The shard.
    pub shard: ShardId,
    /// Whether packets come, on lines; otherwise all messages come by TCP.
    pub lines: bool,
    /// Replayers that can be called by TCP. Without any, a gap that cannot be filled stays.
    pub replayers: u64,
    /// Without lines, a session of a business day that has at most so many messages is replayed from its first one, so that its trades arrive too; a longer one begins with a
    /// snapshot.
    pub replayed_max: u64,
    /// Chosen by chance: it decides where orders lie in the books' tables, and a sender who knows it can have them all lie in one place.
    pub seed: u64,
}

/// What a program receives, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedEvent<'a> {
    /// A session begins, with empty books.
    Session(Session),
    /// The next message. The books may hold the next ones too: those that came with it.
    Message {
        /// Its number.
        number: u64,
        /// The message.
        bytes: &'a [u8],
    },
    /// Messages from this number on were not available. A `Reset` or another `Session` follows, or else they came after all.
    Unfilled {
        /// The first of them.
        from: u64,
    },
    /// The books were replaced by a snapshot. It holds what the messages before this number told, but for trades.
    Reset {
        /// The number of the next message.
        next: u64,
    },
}

/// What is to be done with sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedEffect {
    /// Send a request for messages, by UDP.
    Ask(Again),
    /// Connect to a replayer, in place of any connection there is, and send it this.
    Connect {
        /// Which one, modulo how many there are.
        turn: u64,
        /// The login.
        login: [u8; LOGIN_BYTES],
    },
    /// Send this on the connection.
    Send([u8; HEAD_BYTES]),
    /// Close the connection.
    Disconnect {
        /// The replayer has said that who calls may not, or comes without TLS.
        unauthorized: bool,
    },
}

/// What the books are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionState {
    /// They hold all that was sent, as far as senders said in the last three seconds.
    Current,
    /// Messages from this number up to that one, without it, are missing, and asked for.
    Gap {
        /// The first.
        from: u64,
        /// After the last.
        to: u64,
    },
    /// Replayers are asked what is true: the books are empty, or old.
    Recovering,
    /// No sender was heard for three seconds: what is missing is not known.
    Stale,
    /// They hold all of the session, which has ended.
    Over,
}

/// What came to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionCounters {
    /// Packets and messages, of all sessions.
    pub dropped: Dropped,
    /// Snapshots that replaced the books.
    pub snapshots: u64,
    /// Claims of packets that all replayers said were not true.
    pub refuted: u64,
    /// Calls that failed: refused, broken, silent.
    pub failed_calls: u64,
}

/// The feed of one shard.
#[derive(Debug)]
pub struct Subscription {
    pub(crate) of: Subscribed,
    pub(crate) receiver: Option<Receiver>,
    pub(crate) books: ReceivedBooks,
    /// Whether a replayer said that this session is on: packets may say anything.
    pub(crate) is_confirmed: bool,
    /// A later session that packets were of, while this one is not over, and its next message.
    pub(crate) claim: Option<(Session, u64)>,
    /// Whether such a packet came since replayers began to be asked.
    pub(crate) is_claimed_since: bool,
    pub(crate) recovery: Recovery,
    pub(crate) call: Option<Call>,
    pub(crate) effects: VecDeque<FeedEffect>,
    pub(crate) counters: SubscriptionCounters,
}

/// Receives events, and may look at the books after each.
pub trait FeedListener: FnMut(&ReceivedBooks, FeedEvent<'_>) {}

impl<F: FnMut(&ReceivedBooks, FeedEvent<'_>)> FeedListener for F {}

impl Subscription {
    /// A subscription that knows nothing yet. Tell it the time at once: [`Subscription::on_time`].
    #[must_use]
    pub fn new(of: Subscribed) -> Self {
        Self {
            of,
            receiver: None,
            is_confirmed: of.replayers == 0,
            books: ReceivedBooks::with_seed(of.seed),
            claim: None,
            is_claimed_since: false,
            recovery: Recovery::new(of.seed),
            call: None,
            effects: VecDeque::new(),
            counters: SubscriptionCounters::default(),
        }
    }

    /// A packet, of either line or one that was asked for. What is none, or of another shard, is counted.
    pub fn on_packet(&mut self, bytes: &[u8], now_ns: u64, each: &mut impl FeedListener) {
        let Ok(packet) = Packet::read(bytes) else {
            self.counters.dropped.malformed += 1;
            return;
        };
        let ours = self.receiver.as_ref().map(Receiver::session);
        if ours != Some(packet.session) && !self.turns_to(&packet, now_ns, each) {
            self.counters.dropped.strange += 1;
            return;
        }
        let Self { receiver: Some(receiver), books, .. } = self else { return };
        if !receiver.is_placed() && packet.sequence == 1 {
            receiver.place(1, |first, messages| hand_out(books, first, messages, each));
        }
        let hand_out = |first, messages: &[&[u8]]| hand_out(books, first, messages, each);
        receiver.on_read(&packet, now_ns, hand_out);
    }

    /// A packet of another session than ours. Whether it begins that one.
    fn turns_to(&mut self, packet: &Packet<'_>, now_ns: u64, each: &mut impl FeedListener) -> bool {
        let session = packet.session;
        let is_later = self.receiver.as_ref().is_none_or(|receiver| receiver.session() < session);
        if session.shard() != Some(self.of.shard) || !is_later {
            return false;
        }
        let is_on = |receiver: &Receiver| receiver.state(now_ns) != FeedState::Over;
        if self.of.replayers > 0 && self.receiver.as_ref().is_some_and(is_on) {
            self.claim = self.claim.max(Some((session, packet.next())));
            self.is_claimed_since = true;
            return false;
        }
        self.begin(session, packet.sequence == 1, each);
        self.is_confirmed = self.of.replayers == 0;
        true
    }

    /// A session begins, which a replayer said; all of it comes, or else a snapshot is needed.
    pub(crate) fn begin(&mut self, session: Session, from_the_first: bool, each: &mut impl FeedListener) {
        let is_whole = from_the_first || self.of.replayers == 0;
        let mut receiver = if is_whole { Receiver::new(session, 1) } else { Receiver::searching(session) };
        self.claim = self.claim.filter(|(claimed, _)| *claimed >= session);
        if let Some((_, next)) = self.claim.take_if(|(claimed, _)| *claimed == session) {
            receiver.on_claim(next);
        }
        if let Some(before) = self.receiver.replace(receiver) {
            self.counters.dropped.add(&before.dropped);
            if before.is_placed() && !before.is_over() {
                each(&self.books, FeedEvent::Unfilled { from: before.next() });
            }
        }
        self.is_confirmed = true;
        self.books = ReceivedBooks::with_seed(self.of.seed);
        each(&self.books, FeedEvent::Session(session));
    }

    /// The connection was closed, or could not be made.
    pub fn on_disconnected(&mut self, now_ns: u64) {
        if self.call.take().is_some() {
            self.call_failed(now_ns);
        }
    }

    /// Time has passed: asks and calls what is to be asked and called. To be told the time when packets came, and when
    /// [`Subscription::deadline_ns`] has come.
    pub fn on_time(&mut self, now_ns: u64) {
        if self.of.lines
            && let Some(again) = self.receiver.as_mut().and_then(|receiver| receiver.ask(now_ns))
        {
            self.effects.push_back(FeedEffect::Ask(again));
        }
        self.keep_calling(now_ns);
    }

    /// The next thing to be done with sockets. Take all, each time after anything was passed to it.
    pub fn effect(&mut self) -> Option<FeedEffect> {
        self.effects.pop_front()
    }

    /// When it wants to be told the time, if nothing comes before.
    #[must_use]
    pub fn deadline_ns(&self, now_ns: u64) -> u64 {
        let receiver = self.receiver.as_ref();
        let asking = receiver.filter(|_| self.of.lines).and_then(Receiver::deadline_ns);
        let stale = receiver.and_then(Receiver::stale_ns).map(|at| at.saturating_add(1));
        let call = self.call_deadline_ns(now_ns);
        let vain = receiver.and_then(Receiver::vain_ns).filter(|_| self.call.is_none());
        let later = [stale, vain].into_iter().flatten().filter(|&at| at > now_ns);
        later.chain(asking).chain(call).min().unwrap_or(u64::MAX)
    }

    /// What the books are worth.
    #[must_use]
    pub fn state(&self, now_ns: u64) -> SubscriptionState {
        let Some(receiver) = &self.receiver else {
            return if self.call.is_some() {
                SubscriptionState::Recovering
            } else {
                SubscriptionState::Stale
            };
        };
        let is_called = self.call.is_some() && self.of.lines;
        match receiver.state(now_ns) {
            _ if !receiver.is_placed() || !self.is_confirmed || self.claim.is_some() => {
                SubscriptionState::Recovering
            }
            FeedState::Gap { .. } if is_called => SubscriptionState::Recovering,
            FeedState::Gap { from, to } => SubscriptionState::Gap { from, to },
            FeedState::Current => SubscriptionState::Current,
            FeedState::Stale => SubscriptionState::Stale,
            FeedState::Over => SubscriptionState::Over,
        }
    }

    /// The books, which are worth what the state says.
    #[must_use]
    pub fn books(&self) -> &ReceivedBooks {
        &self.books
    }

    /// The shard.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        self.of.shard
    }

    /// The session, and the number of its next message, once they are known.
    #[must_use]
    pub fn next(&self) -> Option<(Session, u64)> {
        let receiver = self.receiver.as_ref().filter(|receiver| receiver.is_placed())?;
        Some((receiver.session(), receiver.next()))
    }

    /// What came to nothing.
    #[must_use]
    pub fn counters(&self) -> SubscriptionCounters {
        let mut counters = self.counters;
        if let Some(receiver) = &self.receiver {
            counters.dropped.add(&receiver.dropped);
        }
        counters
    }
}

/// The next messages go to the books, and then to the program.
pub(crate) fn hand_out(
    books: &mut ReceivedBooks,
    first: u64,
    messages: &[&[u8]],
    each: &mut impl FeedListener,
) {
    books.on_messages(messages);
    for (number, bytes) in (first..).zip(messages) {
        each(books, FeedEvent::Message { number, bytes });
    }
}
