//! One who subscribes in the world of publishers, and what must be true of it.

use std::collections::BTreeMap;

use pares_feed::books::ReceivedBooks;
use pares_feed::mold::Packet;
use pares_feed::publication::Session;
use pares_feed::soup::{FromServer, Pieces, SERVER_BYTES_MAX};
use pares_feed::subscription::{FeedEvent, Subscribed, Subscription};

use crate::{Published, SHARD};

/// One who subscribes, and what must be true of it.
pub(crate) struct Client {
    pub(crate) subscription: Subscription,
    /// The connection it has.
    pub(crate) call: Option<u64>,
    /// The furthest it was told of.
    pub(crate) told: Option<(Session, u64)>,
    /// What is right: all messages up to those handed out.
    pub(crate) right: (Option<Session>, u64, ReceivedBooks),
    /// The session, and the number of the message that its program waits for.
    at: Option<(Session, u64)>,
    pub(crate) no_asking: bool,
    /// Nothing reaches it.
    pub(crate) is_cut: bool,
    pub(crate) resets: u64,
    pub(crate) unfilled: u64,
    pub(crate) handed_out: u64,
}

impl Client {
    pub(crate) fn new(lines: bool) -> Self {
        Self {
            subscription: Subscription::new(Subscribed {
                shard: SHARD,
                lines,
                replayers: 2,
                replayed_max: 0,
                seed: 0,
            }),
            call: None,
            told: None,
            right: (None, 1, ReceivedBooks::with_seed(0)),
            at: None,
            no_asking: false,
            is_cut: false,
            resets: 0,
            unfilled: 0,
            handed_out: 0,
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
        let told = &mut (&mut self.resets, &mut self.unfilled, &mut self.handed_out);
        let at = &mut self.at;
        self.subscription.on_packet(bytes, now_ns, &mut |_: &ReceivedBooks, event: FeedEvent<'_>| {
            follow(event, at, published, told)
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
        let told = &mut (&mut self.resets, &mut self.unfilled, &mut self.handed_out);
        let at = &mut self.at;
        self.subscription.on_connection(bytes, now_ns, &mut |_: &ReceivedBooks, event: FeedEvent<'_>| {
            follow(event, at, published, told)
        });
    }
}

/// Each message comes once, in order, and as it was published.
fn follow(
    event: FeedEvent<'_>,
    at: &mut Option<(Session, u64)>,
    published: &BTreeMap<Session, Published>,
    (resets, unfilled, handed_out): &mut (&mut u64, &mut u64, &mut u64),
) {
    match event {
        FeedEvent::Session(session) => *at = Some((session, 1)),
        FeedEvent::Reset { next } => {
            **resets += 1;
            at.as_mut().expect("a session has begun").1 = next;
        }
        FeedEvent::Unfilled { .. } => **unfilled += 1,
        FeedEvent::Message { number, bytes } => {
            let (session, next) = at.as_mut().expect("a session has begun");
            assert_eq!((number, bytes), (*next, &published[session].messages[number as usize - 1][..]));
            *next += 1;
            **handed_out += 1;
        }
    }
}
