//! Market data: publishers and replayers among the processes, and those who subscribe.
//!
//! ```text
//!  publishers --lines A, B: lost, doubled, delayed--> subscribers <--UDP, the same faults; TCP, may break--> replayers
//!       |  every message held against                    |
//!       +--> the reference: one publication of each shard, driven by the committed record <-+
//! ```
//! Nothing of this excuses anything of trading: the invariants of trading are held as if there were no market data.

mod checks;
mod connections;
mod lines;
mod reference;
mod subscriber;

use pares_config::NodeId;
use pares_feed::subscription::{FeedEffect, Subscribed};
use pares_flow::Random;
use pares_types::{PublisherId, ReplayerId};

use crate::queue::Action;
use crate::scenario::{MS, Scenario, US};
use crate::{Bug, FeedSeen, Verdict};

use super::{World, shard_id};
use connections::Call;
use reference::Reference;
use subscriber::{Heard, Subscriber};

/// What publishers log and send is what the record gives, byte by byte, in every life.
pub(super) const RECORD: &str = "F1 the feed is the record's";
/// Nothing is published of what may never have happened.
pub(super) const COMMITTED: &str = "F2 nothing is told before it is committed";
/// What replayers tell and subscribers are handed out is the same, once and in order.
pub(super) const AGAIN: &str = "F3 what is told again is what was told";
/// A subscriber marked current has received every announced message, and its books are right.
pub(super) const CURRENT: &str = "F4 what is shown as current is";
/// When faults have stopped.
pub(super) const EVERYBODY: &str = "F5 everybody has the feed in the end";

/// Without anything else to do a subscriber is not told the time before that again.
const WAKE_NS: u64 = 10 * US;

/// Something that happens to market data.
#[derive(Debug)]
pub(crate) enum FeedAction {
    /// A subscriber's program starts.
    Join { subscriber: usize },
    /// A subscriber receives the time.
    Wake { subscriber: usize, plan: u64 },
    /// A packet reaches a subscriber.
    Packet { to: usize, bytes: Vec<u8>, is_forged: bool },
    /// A request for messages reaches a replayer.
    Request { replayer: NodeId, from: usize, bytes: Vec<u8> },
    /// Bytes of a connection reach a subscriber.
    ToSubscriber { connection: usize, bytes: Vec<u8> },
    /// A subscriber learns that its connection is gone.
    Broken { connection: usize },
}

pub(super) struct Feed {
    random: Random,
    reference: Reference,
    subscribers: Vec<Subscriber>,
    /// By connection.
    calls: Vec<Call>,
    replayers: usize,
    lost_permille: u64,
    seen: FeedSeen,
}

pub(super) fn publisher_id(publisher: usize) -> NodeId {
    NodeId::Publisher(PublisherId(u16::try_from(publisher).expect("few publishers")))
}

pub(super) fn replayer_id(replayer: usize) -> NodeId {
    NodeId::Replayer(ReplayerId(u16::try_from(replayer).expect("few replayers")))
}

impl Feed {
    /// The market data of a scenario, if it has any.
    pub(super) fn new(
        scenario: &Scenario,
        instruments: &[Vec<pares_book::Instrument>],
        random: &mut Random,
    ) -> Option<Self> {
        let setting = scenario.feed?;
        let subscriber = |at: usize| {
            // Every third one has no lines.
            let (shard, lines) = (shard_id(at % scenario.shards), at % 3 != 2);
            let of = Subscribed {
                shard,
                lines,
                replayers: setting.replayers as u64,
                replayed_max: 0,
                seed: at as u64,
            };
            Subscriber::new(of, scenario.bug == Some(Bug::ShowGaps))
        };
        Some(Self {
            random: random.fork(),
            reference: Reference::new(instruments),
            subscribers: (0..setting.subscribers).map(subscriber).collect(),
            calls: Vec::new(),
            replayers: setting.replayers,
            lost_permille: setting.lost_permille,
            seen: FeedSeen::default(),
        })
    }

    /// What all subscribers and replayers have seen.
    pub(super) fn seen(&self) -> FeedSeen {
        let seen = FeedSeen { sessions: self.reference.sessions() as u64, ..self.seen };
        self.subscribers.iter().fold(seen, |all, one| all.and(&one.seen))
    }
}

impl World<'_> {
    /// Some subscribers are there from the start, some come while members trade, and one when all is over.
    pub(super) fn plan_subscribers(&mut self) {
        let Some(feed) = &mut self.feed else { return };
        let duration_ns = self.scenario.duration_ns;
        for subscriber in 0..feed.subscribers.len() {
            let latest_ns = if subscriber < 2 { 2 * MS } else { duration_ns * 5 / 4 };
            let at_ns = feed.random.below(latest_ns);
            self.queue.push(at_ns, Action::Feed(FeedAction::Join { subscriber }));
        }
    }

    pub(super) fn on_feed(&mut self, action: FeedAction) -> Verdict {
        match action {
            FeedAction::Join { subscriber } => self.join(subscriber),
            FeedAction::Wake { subscriber, plan } if self.is_planned(subscriber, plan) => {
                self.tell_subscriber(subscriber, &Heard::Time)
            }
            FeedAction::Wake { .. } => Ok(()),
            FeedAction::Packet { to, bytes, is_forged } => self.on_packet(to, &bytes, is_forged),
            FeedAction::Request { replayer, from, bytes } => {
                self.on_request(replayer, from, bytes);
                Ok(())
            }
            FeedAction::ToSubscriber { connection, bytes } => self.on_subscriber_bytes(connection, &bytes),
            FeedAction::Broken { connection } => self.on_call_broken(connection),
        }
    }

    fn is_planned(&self, subscriber: usize, plan: u64) -> bool {
        self.feed.as_ref().is_some_and(|feed| feed.subscribers[subscriber].plan == plan)
    }

    /// A subscriber's program starts, or starts again and knows nothing of before.
    fn join(&mut self, at: usize) -> Verdict {
        self.note("subscriber {} joins", &[at as u64]);
        self.hang_up_call(at);
        if let Some(feed) = &mut self.feed {
            feed.subscribers[at].join();
        }
        self.tell_subscriber(at, &Heard::Time)
    }

    /// One of the subscribers that have joined starts again.
    pub(super) fn restart_subscriber(&mut self) -> Verdict {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        let at = feed.random.index(feed.subscribers.len());
        match feed.subscribers[at].subscription.is_some() {
            true => self.join(at),
            false => Ok(()),
        }
    }

    /// Something reaches a subscriber: it does what it has to do, and must not show what is not.
    fn tell_subscriber(&mut self, at: usize, heard: &Heard<'_>) -> Verdict {
        let now_ns = self.now_ns;
        let Some(Feed { reference, subscribers, .. }) = &mut self.feed else { return Ok(()) };
        subscribers[at].hear(heard, now_ns, reference)?;
        self.carry_out(at)?;
        let Some(Feed { reference, subscribers, .. }) = &mut self.feed else { return Ok(()) };
        subscribers[at].check(now_ns, reference)?;
        let Some(subscription) = &subscribers[at].subscription else { return Ok(()) };
        let at_ns = subscription.deadline_ns(now_ns);
        subscribers[at].plan += 1;
        let plan = subscribers[at].plan;
        if at_ns < u64::MAX {
            let at_ns = at_ns.max(now_ns + WAKE_NS);
            self.queue.push(at_ns, Action::Feed(FeedAction::Wake { subscriber: at, plan }));
        }
        Ok(())
    }

    /// What its program wants done with sockets.
    fn carry_out(&mut self, at: usize) -> Verdict {
        let now_ns = self.now_ns;
        loop {
            let Some(feed) = &mut self.feed else { return Ok(()) };
            let Some(effect) = feed.subscribers[at].effect() else { return Ok(()) };
            match effect {
                FeedEffect::Ask(again) => self.send_request(at, again.turn, &again.packet),
                FeedEffect::Send(bytes) => self.send_on_call(at, &bytes),
                FeedEffect::Disconnect { .. } => self.hang_up_call(at),
                FeedEffect::Connect { turn, login } => {
                    self.hang_up_call(at);
                    if !self.call(at, turn, &login)
                        && let Some(Feed { reference, subscribers, .. }) = &mut self.feed
                    {
                        subscribers[at].hear(&Heard::Disconnected, now_ns, reference)?;
                    }
                }
            }
        }
    }
}
