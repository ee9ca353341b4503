//! All sockets in turn, on the caller's thread.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use pares_feed::books::ReceivedBooks;
use pares_feed::publication::Session;
use pares_feed::subscription::{
    FeedEffect, FeedEvent, Subscribed, Subscription, SubscriptionCounters, SubscriptionState,
};
use pares_tls::Trust;
use pares_types::ShardId;

use crate::config::{ReceiverConfig, ReceiverError};
use crate::connection::Connection;
use crate::ear::{Ear, listen};
use crate::sockets;

/// Turns of all sockets in one call of `poll`.
const TURNS_MAX: usize = 64;
/// Read of a connection at once.
const READ_BYTES: usize = 65_536;
/// The socket of requests; those of lines and connections follow.
const REQUESTS: usize = 0;
/// Why a replayer that wants TLS hung up.
const UNAUTHORIZED: &str =
    "it requires TLS: give the exchange's ca.pem (--feed-ca; `authority` in member.toml)";

/// What comes to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// Of the feed.
    Event(FeedEvent<'a>),
    /// The books are worth this now.
    State(SubscriptionState),
}

/// Something that came, and the books after it.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedFrom<'a> {
    /// Of this shard.
    pub shard: ShardId,
    /// All books of the shard.
    pub books: &'a ReceivedBooks,
    /// What it is.
    pub received: Received<'a>,
}

/// One shard.
struct Shard {
    subscription: Subscription,
    /// What was reported last.
    state: SubscriptionState,
    lines: Vec<Ear>,
    connection: Option<Connection>,
    /// Which replayer was called last.
    called: Option<SocketAddr>,
    /// Why the last connection broke, or could not be made; none once another one speaks.
    failure: Option<String>,
    /// Its place.
    index: usize,
}

/// What all shards share.
struct Common {
    poll: Poll,
    started: Instant,
    requests: Option<Ear>,
    request_addresses: Vec<SocketAddr>,
    tcp: Vec<SocketAddr>,
    tls: Option<Trust>,
    buffer: Vec<u8>,
}

/// Receives the feed of some shards.
pub struct FeedReceiver {
    common: Common,
    shards: Vec<Shard>,
    events: Events,
}

/// The names of a shard's sockets: lines A and B, its connection.
fn token(index: usize, which: usize) -> Token {
    Token(1 + index * 3 + which)
}

impl FeedReceiver {
    /// Opens the sockets. Nothing is received before [`FeedReceiver::poll`].
    ///
    /// # Errors
    /// If there is nothing to receive from, or a socket cannot be opened.
    pub fn open(config: &ReceiverConfig) -> Result<Self, ReceiverError> {
        let poll = Poll::new()?;
        let requests = match config.requests.first() {
            Some(&like) => {
                Some(listen(&poll, Token(REQUESTS), like, sockets::requests(like, config.socket_bytes))?)
            }
            None => None,
        };
        // Senders must not know where orders lie in the books' tables.
        let [seed, ..] = pares_keys::random().as_chunks().0[..] else { unreachable!("32 bytes") };
        let seed = u64::from_le_bytes(seed);
        let open = |index| open_shard(&poll, config, (index, seed));
        let shards = (0..config.shards.len()).map(open).collect::<Result<Vec<_>, _>>()?;
        let common = Common {
            poll,
            started: Instant::now(),
            requests,
            request_addresses: config.requests.clone(),
            tcp: config.tcp.clone(),
            tls: config.tls.clone(),
            buffer: vec![0; READ_BYTES],
        };
        Ok(Self { common, shards, events: Events::with_capacity(256) })
    }

    /// Waits until something comes or is to be done, at most for `timeout`, and hands out what came.
    ///
    /// # Errors
    /// If the system does not say which sockets are ready.
    pub fn poll(
        &mut self,
        timeout: Duration,
        mut each: impl FnMut(ReceivedFrom<'_>),
    ) -> Result<(), ReceiverError> {
        let mut is_quiet = true;
        self.take_turn(&mut |from: ReceivedFrom<'_>| {
            is_quiet = false;
            each(from);
        });
        is_quiet &= !self.is_ready();
        let wait = if is_quiet { timeout.min(self.until_deadline()) } else { Duration::ZERO };
        match self.common.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error.into()),
            _ => {}
        }
        for event in &self.events {
            match event.token() {
                Token(REQUESTS) => self.common.requests.iter_mut().for_each(|ear| ear.is_ready = true),
                Token(name) => self.shards[(name - 1) / 3].on_ready((name - 1) % 3),
            }
        }
        for _ in 0..TURNS_MAX {
            self.take_turn(&mut each);
            if !self.is_ready() {
                break;
            }
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.common.requests.as_ref().is_some_and(|ear| ear.is_ready)
            || self.shards.iter().any(Shard::is_ready)
    }

    fn until_deadline(&self) -> Duration {
        let now_ns = self.common.now_ns();
        let deadlines = self.shards.iter().map(|shard| shard.subscription.deadline_ns(now_ns));
        Duration::from_nanos(deadlines.min().unwrap_or(u64::MAX).saturating_sub(now_ns))
    }

    /// Each socket's turn.
    fn take_turn(&mut self, each: &mut impl FnMut(ReceivedFrom<'_>)) {
        self.hear_answers(each);
        for shard in &mut self.shards {
            shard.hear_lines(&mut self.common, each);
            shard.hear_connection(&mut self.common, each);
            shard.subscription.on_time(self.common.now_ns());
            shard.carry_out(&mut self.common);
            shard.tell_state(self.common.now_ns(), each);
        }
    }

    /// Packets that were asked for: the session says of which shard.
    fn hear_answers(&mut self, each: &mut impl FnMut(ReceivedFrom<'_>)) {
        let now_ns = self.common.now_ns();
        let Common { requests: Some(ear), request_addresses, buffer, .. } = &mut self.common else { return };
        ear.take(buffer, |packet, from| {
            let shard = packet.first_chunk().and_then(|name| Session(*name).shard());
            let of_shard = |one: &&mut Shard| Some(one.subscription.shard()) == shard;
            let shard = self.shards.iter_mut().find(of_shard);
            if let Some(shard) = shard.filter(|_| request_addresses.contains(&from)) {
                shard.on_packet(packet, now_ns, each);
            }
        });
    }

    /// What the books of a shard are worth now.
    #[must_use]
    pub fn state(&self, shard: ShardId) -> Option<SubscriptionState> {
        Some(self.find(shard)?.state(self.common.now_ns()))
    }

    /// The books of a shard, which are worth what its state says.
    #[must_use]
    pub fn books(&self, shard: ShardId) -> Option<&ReceivedBooks> {
        Some(self.find(shard)?.books())
    }

    /// What came to nothing of a shard.
    #[must_use]
    pub fn counters(&self, shard: ShardId) -> Option<SubscriptionCounters> {
        Some(self.find(shard)?.counters())
    }

    /// Which replayer the last connection for a shard was to that broke or could not be made, and why, while its data are not current.
    #[must_use]
    pub fn failure(&self, shard: ShardId) -> Option<&str> {
        let one = self.shards.iter().find(|one| one.subscription.shard() == shard)?;
        let state = one.subscription.state(self.common.now_ns());
        let is_good = matches!(state, SubscriptionState::Current | SubscriptionState::Over);
        one.failure.as_deref().filter(|_| !is_good)
    }

    fn find(&self, shard: ShardId) -> Option<&Subscription> {
        self.shards.iter().map(|one| &one.subscription).find(|one| one.shard() == shard)
    }
}

impl Common {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

fn open_shard(
    poll: &Poll,
    config: &ReceiverConfig,
    (index, seed): (usize, u64),
) -> Result<Shard, ReceiverError> {
    let addresses = config.lines_of(index)?;
    if addresses.is_none() && config.tcp.is_empty() {
        return Err(ReceiverError::Nowhere);
    }
    let replayers = config.tcp.len() as u64;
    let of = Subscribed {
        shard: config.shards[index],
        lines: addresses.is_some(),
        replayers,
        replayed_max: config.replayed_max,
        seed,
    };
    let mut lines = Vec::new();
    for (which, address) in addresses.into_iter().flatten().enumerate() {
        let socket = sockets::line_socket(address, config.interface, config.socket_bytes);
        lines.push(listen(poll, token(index, which), address, socket)?);
    }
    let (subscription, state) = (Subscription::new(of), SubscriptionState::Stale);
    Ok(Shard { subscription, state, lines, connection: None, called: None, failure: None, index })
}

impl Shard {
    fn is_ready(&self) -> bool {
        self.lines.iter().any(|ear| ear.is_ready) || self.connection.as_ref().is_some_and(|one| one.is_ready)
    }

    fn on_ready(&mut self, which: usize) {
        match self.lines.get_mut(which) {
            Some(ear) if which < 2 => ear.is_ready = true,
            _ => self.connection.iter_mut().for_each(|connection| connection.is_ready = true),
        }
    }

    fn on_packet(&mut self, packet: &[u8], now_ns: u64, each: &mut impl FnMut(ReceivedFrom<'_>)) {
        let shard = self.subscription.shard();
        self.subscription.on_packet(packet, now_ns, &mut |books: &ReceivedBooks, event: FeedEvent<'_>| {
            each(ReceivedFrom { shard, books, received: Received::Event(event) });
        });
    }

    fn hear_lines(&mut self, common: &mut Common, each: &mut impl FnMut(ReceivedFrom<'_>)) {
        let now_ns = common.now_ns();
        let mut lines = std::mem::take(&mut self.lines);
        for ear in &mut lines {
            ear.take(&mut common.buffer, |packet, _| self.on_packet(packet, now_ns, each));
        }
        self.lines = lines;
    }

    fn hear_connection(&mut self, common: &mut Common, each: &mut impl FnMut(ReceivedFrom<'_>)) {
        let Some(connection) = self.connection.as_mut().filter(|connection| connection.is_ready) else {
            return;
        };
        let now_ns = common.now_ns();
        let sent = connection.send(&[]);
        match sent.and_then(|()| connection.read(&mut common.buffer)) {
            Ok(None) => {}
            Ok(Some(length)) => {
                self.failure = None;
                let shard = self.subscription.shard();
                let told = &mut |books: &ReceivedBooks, event: FeedEvent<'_>| {
                    each(ReceivedFrom { shard, books, received: Received::Event(event) });
                };
                self.subscription.on_connection(&common.buffer[..length], now_ns, told);
            }
            Err(error) => self.lose(&error, now_ns),
        }
        self.carry_out(common);
    }

    fn lose(&mut self, why: &io::Error, now_ns: u64) {
        self.connection = None;
        self.blame(why);
        self.subscription.on_disconnected(now_ns);
    }

    fn blame(&mut self, why: &dyn Display) {
        self.failure =
            self.called.map(|replayer| format!("the connection to replayer {replayer} broke: {why}"));
    }

    /// What the rules want to be done with sockets.
    fn carry_out(&mut self, common: &mut Common) {
        while let Some(effect) = self.subscription.effect() {
            match effect {
                FeedEffect::Ask(again) => {
                    let to = in_turn(&common.request_addresses, again.turn);
                    if let Some((ear, to)) = common.requests.as_ref().zip(to) {
                        // A lost request is sent again.
                        let _ = ear.socket.send_to(&again.packet, to);
                    }
                }
                FeedEffect::Connect { turn, login } => {
                    let to = in_turn(&common.tcp, turn).expect("only replayers are called");
                    (self.connection, self.called) = (None, Some(to));
                    let place = (common.poll.registry(), token(self.index, 2));
                    match Connection::open(to, common.tls.as_ref(), &login, place) {
                        Ok(connection) => self.connection = Some(connection),
                        Err(error) => self.lose(&error, common.now_ns()),
                    }
                }
                FeedEffect::Send(bytes) => {
                    let sent = self.connection.as_mut().map(|connection| connection.send(&bytes));
                    if let Some(Err(error)) = sent {
                        self.lose(&error, common.now_ns());
                    }
                }
                FeedEffect::Disconnect { unauthorized } => {
                    self.connection = None;
                    if unauthorized && common.tls.is_none() {
                        self.blame(&UNAUTHORIZED);
                    }
                }
            }
        }
    }

    fn tell_state(&mut self, now_ns: u64, each: &mut impl FnMut(ReceivedFrom<'_>)) {
        let state = self.subscription.state(now_ns);
        if state != self.state {
            self.state = state;
            let (shard, books) = (self.subscription.shard(), self.subscription.books());
            each(ReceivedFrom { shard, books, received: Received::State(state) });
        }
    }
}

fn in_turn(addresses: &[SocketAddr], turn: u64) -> Option<SocketAddr> {
    let at = turn.checked_rem(addresses.len() as u64)?;
    addresses.get(usize::try_from(at).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_receivers_have_a_seed_in_common() {
        let tcp = vec![SocketAddr::from(([127, 0, 0, 1], 9))];
        let open = || FeedReceiver::open(&ReceiverConfig { tcp: tcp.clone(), ..ReceiverConfig::default() });
        let [one, other] =
            [open(), open()].map(|receiver| format!("{:?}", receiver.unwrap().shards[0].subscription));
        assert_ne!(one, other);
    }
}
