//! One who subscribes in the world of publishers, and what must be true of it.

use std::collections::BTreeMap;

use pares_feed::books::ReceivedBooks;
use pares_feed::mold::Packet;
use pares_feed::publication::Session;
use pares_feed::soup::{FromServer, Pieces, SERVER_BYTES_MAX};
use pares_feed::subscription::{FeedEvent, Subscribed, Subscription};

use crate::serving::assert_same_books;
use crate::{Published, SHARD};

/// One who subscribes, and what must be true of it.
pub(crate) struct Client {
    pub(crate) subscription: Subscription,
    /// Those that it can call.
    pub(crate) replayers: u64,
    /// The connection it has.
    pub(crate) call: Option<u64>,
    /// The furthest that a publisher has announced to it.
    pub(crate) told: Option<(Session, u64)>,
    /// What is right: all messages up to those handed out.
    right: (Option<Session>, u64, ReceivedBooks),
    pub(crate) no_asking: bool,
    /// Nothing reaches it.
    pub(crate) is_cut: bool,
    pub(crate) program: Program,
}

/// What its program received.
#[derive(Default)]
pub(crate) struct Program {
    /// The session, and the number of the message that it waits for.
    at: Option<(Session, u64)>,
    pub(crate) resets: u64,
    pub(crate) unfilled: u64,
}

impl Client {
    pub(crate) fn new(lines: bool, replayers: u64) -> Self {
        let of = Subscribed { shard: SHARD, lines, replayers, replayed_max: 0, seed: 0 };
        Self {
            subscription: Subscription::new(of),
            replayers,
            call: None,
            told: None,
            right: (None, 1, ReceivedBooks::with_seed(0)),
            no_asking: false,
            is_cut: false,
            program: Program::default(),
        }
    }

    pub(crate) fn hear_packet(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        published: &BTreeMap<Session, Published>,
    ) {
        if let Ok(packet) = Packet::read(bytes)
            && let Some(session) = published.get(&packet.session)
            && packet.next() <= session.messages.len() as u64 + 1
        {
            self.told = self.told.max(Some((packet.session, packet.next())));
        }
        let Self { subscription, program, .. } = self;
        subscription.on_packet(bytes, now_ns, &mut |_: &ReceivedBooks, event: FeedEvent<'_>| {
            program.follow(event, published);
        });
    }

    pub(crate) fn hear_call(&mut self, bytes: &[u8], now_ns: u64, published: &BTreeMap<Session, Published>) {
        let mut pieces = Pieces::new(SERVER_BYTES_MAX);
        pieces.push(bytes);
        while let Some(packet) = pieces.take().unwrap() {
            if let FromServer::Accepted(session, next) = FromServer::read(packet).unwrap() {
                // Of the session before it may be the rest.
                let is_latest = self.told.is_none_or(|(told, _)| told <= session);
                self.told = if is_latest { self.told.max(Some((session, next))) } else { self.told };
            }
        }
        let Self { subscription, program, .. } = self;
        subscription.on_connection(bytes, now_ns, &mut |_: &ReceivedBooks, event: FeedEvent<'_>| {
            program.follow(event, published);
        });
    }

    /// The books are those that all messages make.
    pub(crate) fn compare(&mut self, at: usize, published: &BTreeMap<Session, Published>) {
        let Self { subscription, right, .. } = self;
        let Some((session, next)) = subscription.next() else { return };
        if right.0 != Some(session) {
            *right = (Some(session), 1, ReceivedBooks::with_seed(0));
        }
        let messages = &published[&session].messages[right.1 as usize - 1..next as usize - 1];
        messages.iter().for_each(|message| right.2.on_message(message));
        right.1 = next;
        assert_same_books(&right.2, subscription.books(), &format!("client {at} at {session} {next}"));
    }
}

impl Program {
    /// Each message comes once, in order, and as it was published.
    fn follow(&mut self, event: FeedEvent<'_>, published: &BTreeMap<Session, Published>) {
        match event {
            FeedEvent::Session(session) => self.at = Some((session, 1)),
            FeedEvent::Reset { next } => {
                self.resets += 1;
                self.at.as_mut().expect("a session has begun").1 = next;
            }
            FeedEvent::Unfilled { .. } => self.unfilled += 1,
            FeedEvent::Message { number, bytes } => {
                let (session, next) = self.at.as_mut().expect("a session has begun");
                assert_eq!((number, bytes), (*next, &published[session].messages[number as usize - 1][..]));
                *next += 1;
            }
        }
    }
}
