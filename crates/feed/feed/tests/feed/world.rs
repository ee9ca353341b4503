//! Publishers that die, lines that lose, connections that break, and those who subscribe.

use std::collections::BTreeMap;

use pares_feed::kept::Kept;
use pares_feed::publication::{FeedSink, Session};
use pares_feed::publisher::{Line, Publisher};
use pares_feed::resending::Resending;
use pares_feed::serving::Serving;
use pares_feed::snapshot::SnapshotSource;
use pares_feed::store::SessionStore;
use pares_feed::subscription::{FeedEffect, SubscriptionState};
use pares_random::Random;

use crate::Published;
use crate::client::Client;
use crate::publishers::Keeping;

pub(crate) const MS: u64 = 1_000_000;
/// What a connection takes at once.
const ROOM: usize = 1_500;

/// What is under way, and to whom.
#[derive(Clone)]
enum Datagram {
    Packet(usize, Vec<u8>),
    Ask(usize, usize, Vec<u8>),
    /// To a client, by this connection of its; nothing: it is closed.
    ToClient(usize, u64, Option<Vec<u8>>),
    ToServer(u64, Vec<u8>),
}

/// A network that loses, doubles and delays datagrams, and delays connections.
pub(crate) struct Network {
    pub(crate) random: Random,
    pub(crate) lost_percent: u8,
    pub(crate) now_ns: u64,
    sent: u64,
    under_way: BTreeMap<(u64, u64), Datagram>,
}

impl Network {
    fn put(&mut self, delay_ns: u64, datagram: Datagram) {
        self.sent += 1;
        self.under_way.insert((self.now_ns + delay_ns, self.sent), datagram);
    }

    fn send(&mut self, datagram: &Datagram) {
        let [lot, copies, delay] = self.random.bytes(3)[..] else { unreachable!("three bytes") };
        if lot % 100 >= self.lost_percent {
            for copy in 1..=1 + u64::from(copies > 240) {
                self.put(u64::from(delay) * 20_000 * copy, datagram.clone());
            }
        }
    }

    pub(crate) fn lot(&mut self, below: u8) -> u8 {
        self.random.bytes(1)[0] % below
    }
}

/// A publisher's way out.
struct Out<'a>(&'a mut Network, usize);

impl Line for Out<'_> {
    fn send(&mut self, packet: &[u8]) {
        (0..self.1).for_each(|to| self.0.send(&Datagram::Packet(to, packet.to_vec())));
    }
}

/// A publisher as a process.
pub(crate) struct Server {
    publisher: Publisher,
    resending: Resending<usize, usize>,
    kept: Kept,
    source: SnapshotSource,
    /// Events of the tape that it has read.
    pub(crate) read: usize,
    pub(crate) is_dead: bool,
    /// By connection: to whom.
    calls: BTreeMap<u64, (usize, Serving)>,
}

impl Server {
    fn new() -> Self {
        Self {
            publisher: Publisher::default(),
            resending: Resending::default(),
            kept: Kept::default(),
            source: SnapshotSource::new(0),
            read: 0,
            is_dead: false,
            calls: BTreeMap::new(),
        }
    }
}

/// What a tape is made of.
enum Told {
    Begin(Session),
    Message(Vec<u8>),
    End,
}

pub(crate) struct World {
    pub(crate) network: Network,
    tape: Vec<Told>,
    pub(crate) published: BTreeMap<Session, Published>,
    pub(crate) servers: [Server; 2],
    pub(crate) clients: Vec<Client>,
    connections: u64,
    pub(crate) states: BTreeMap<&'static str, u64>,
}

impl World {
    pub(crate) fn new(tape: &[Published], seed: u64, lost_percent: u8) -> Self {
        let (now_ns, sent, under_way) = (0, 0, BTreeMap::new());
        let network = Network { random: Random::new(seed), lost_percent, now_ns, sent, under_way };
        let mut told = Vec::new();
        for session in tape {
            told.push(Told::Begin(session.session));
            told.extend(session.messages.iter().cloned().map(Told::Message));
            told.extend(session.over.then_some(Told::End));
        }
        let published = tape.iter().map(|one| (one.session, one.clone())).collect();
        let mut servers = [Server::new(), Server::new()];
        servers.iter_mut().for_each(|server| server.publisher.go_live(None));
        let (clients, states) = (Vec::new(), BTreeMap::new());
        Self { network, tape: told, published, servers, clients, connections: 0, states }
    }

    pub(crate) fn join(&mut self, lines: bool) -> usize {
        self.clients.push(Client::new(lines, 2));
        self.clients.len() - 1
    }

    /// One joins that has both lines, asks again for what is missing, and has no replayer to call.
    pub(crate) fn listen(&mut self) {
        self.clients.push(Client::new(true, 0));
    }

    /// What the publisher that is furthest has read.
    pub(crate) fn read_most(&self) -> usize {
        self.servers.iter().map(|server| server.read).max().unwrap_or_default()
    }

    pub(crate) fn is_all_read(&self) -> bool {
        self.read_most() == self.tape.len()
    }

    /// A publisher that lives reads what the other has read; one that is dead comes back once all is read.
    pub(crate) fn catch_up(&mut self, at: usize) {
        if self.servers[at].is_dead && self.is_all_read() {
            self.restart(at);
        }
        let behind = self.read_most() - self.servers[at].read;
        self.read(at, behind);
    }

    /// A publisher reads at most so many events of the tape.
    pub(crate) fn read(&mut self, at: usize, most: usize) {
        let Server { publisher, kept, read, is_dead, .. } = &mut self.servers[at];
        if *is_dead {
            return;
        }
        let now_ns = self.network.now_ns;
        let mut out = Out(&mut self.network, self.clients.len());
        let mut taking = Keeping { publisher, kept, line: &mut out, now_ns };
        for told in self.tape.iter().skip(*read).take(most) {
            *read += 1;
            match told {
                Told::Begin(session) => taking.begin(*session),
                Told::Message(message) => taking.message(message),
                Told::End => taking.end(),
            }
        }
        publisher.flush(now_ns, &mut out);
    }

    pub(crate) fn kill(&mut self, at: usize) {
        let calls = std::mem::take(&mut self.servers[at].calls);
        for (call, (to, _)) in calls {
            self.network.put(MS / 5, Datagram::ToClient(to, call, None));
        }
        let read = self.servers[at].read;
        self.servers[at] = Server { is_dead: true, read, ..Server::new() };
    }

    /// One that knows nothing catches up in its place.
    pub(crate) fn restart(&mut self, at: usize) {
        let (read, sent) = (self.servers[at].read, self.network.sent);
        self.servers[at] = Server::new();
        self.read(at, read);
        assert_eq!(self.network.sent, sent, "what was sent before is not sent once more");
        self.servers[at].publisher.go_live(None);
    }

    /// Nothing reaches a client from now on, or all does again. Its connection breaks.
    pub(crate) fn cut(&mut self, at: usize, is_cut: bool) {
        let client = &mut self.clients[at];
        client.is_cut = is_cut;
        if client.call.take().is_some() {
            client.subscription.on_disconnected(self.network.now_ns);
        }
    }

    pub(crate) fn inject(&mut self, to: usize, packet: &[u8]) {
        self.network.put(0, Datagram::Packet(to, packet.to_vec()));
    }

    /// A step of time.
    pub(crate) fn pass(&mut self, ns: u64) {
        self.network.now_ns += ns;
        let now_ns = self.network.now_ns;
        while let Some(entry) = self.network.under_way.first_entry().filter(|entry| entry.key().0 <= now_ns) {
            let datagram = entry.remove();
            self.deliver(datagram);
        }
        (0..self.servers.len()).for_each(|at| self.serve(at));
        for at in 0..self.clients.len() {
            self.clients[at].subscription.on_time(now_ns);
            self.carry_out(at);
            self.check(at);
        }
    }

    fn deliver(&mut self, datagram: Datagram) {
        let now_ns = self.network.now_ns;
        match datagram {
            Datagram::Ask(server, asker, request) => {
                let Server { resending, kept, .. } = &mut self.servers[server];
                if let Some(packet) = resending.on_request((asker, asker), &request, now_ns, Some(kept)) {
                    self.network.send(&Datagram::Packet(asker, packet));
                }
            }
            Datagram::ToServer(call, bytes) => {
                for server in &mut self.servers {
                    if let Some((_, serving)) = server.calls.get_mut(&call) {
                        serving.on_bytes(&bytes, now_ns);
                    }
                }
            }
            Datagram::Packet(to, _) | Datagram::ToClient(to, ..) if self.clients[to].is_cut => {}
            Datagram::Packet(to, packet) => self.clients[to].hear_packet(&packet, now_ns, &self.published),
            Datagram::ToClient(to, call, bytes) if self.clients[to].call == Some(call) => match bytes {
                Some(bytes) => self.clients[to].hear_call(&bytes, now_ns, &self.published),
                None => {
                    self.clients[to].call = None;
                    self.clients[to].subscription.on_disconnected(now_ns);
                }
            },
            Datagram::ToClient(..) => {}
        }
        (0..self.clients.len()).for_each(|at| self.carry_out(at));
    }

    /// A publisher's turn: heartbeats, connections.
    fn serve(&mut self, at: usize) {
        let (now_ns, clients) = (self.network.now_ns, self.clients.len());
        let Server { publisher, kept, source, calls, is_dead, .. } = &mut self.servers[at];
        if *is_dead {
            return;
        }
        publisher.on_time(now_ns, &mut Out(&mut self.network, clients));
        for (&call, (to, serving)) in calls.iter_mut() {
            match serving.asked() {
                Some(asked) if asked.snapshot => match snapshot(kept, source) {
                    Some(snapshot) => serving.answer_snapshot(snapshot.into()),
                    None => serving.reject(),
                },
                Some(_) => serving.answer(kept.standing()),
                None => {}
            }
            serving.on_time(now_ns);
            let mut out = Vec::new();
            serving.fill(&mut out, ROOM, now_ns, Some(kept));
            serving.on_written(out.len(), 0, now_ns);
            if !out.is_empty() {
                self.network.put(MS / 5, Datagram::ToClient(*to, call, Some(out)));
            }
            if serving.ended().is_some() {
                self.network.put(MS / 5, Datagram::ToClient(*to, call, None));
            }
        }
        calls.retain(|_, (_, serving)| serving.ended().is_none());
    }

    fn carry_out(&mut self, at: usize) {
        let now_ns = self.network.now_ns;
        while let Some(effect) = self.clients[at].subscription.effect() {
            let client = &mut self.clients[at];
            match effect {
                FeedEffect::Ask(_) if client.is_cut || client.no_asking => {}
                FeedEffect::Ask(again) => {
                    let server = (again.turn % 2) as usize;
                    self.network.send(&Datagram::Ask(server, at, again.packet.to_vec()));
                }
                FeedEffect::Connect { turn, login } => {
                    self.connections += 1;
                    let (call, server) = (self.connections, &mut self.servers[(turn % 2) as usize]);
                    client.call = Some(call);
                    if server.is_dead || client.is_cut {
                        client.call = None;
                        client.subscription.on_disconnected(now_ns);
                        continue;
                    }
                    server.calls.insert(call, (at, Serving::new(now_ns)));
                    self.network.put(MS / 5, Datagram::ToServer(call, login.to_vec()));
                }
                FeedEffect::Send(bytes) => {
                    let call = client.call.expect("there is a connection");
                    self.network.put(MS / 5, Datagram::ToServer(call, bytes.to_vec()));
                }
                FeedEffect::Disconnect { .. } => client.call = None,
            }
        }
    }

    /// What is called current is all that any client could know of, and right.
    fn check(&mut self, at: usize) {
        let now_ns = self.network.now_ns;
        let client = &mut self.clients[at];
        let state = client.subscription.state(now_ns);
        let name = match state {
            SubscriptionState::Current => "current",
            SubscriptionState::Gap { .. } => "gap",
            SubscriptionState::Recovering => "recovering",
            SubscriptionState::Stale => "stale",
            SubscriptionState::Over => "over",
        };
        *self.states.entry(name).or_default() += 1;
        if client.replayers == 0 {
            let (next, told) = (client.subscription.next(), client.told);
            match state {
                SubscriptionState::Gap { from, .. } => assert!(Some(from) < told.map(|(_, next)| next)),
                state => assert_eq!(next, told, "client {at}: {state:?}"),
            }
        }
        if matches!(state, SubscriptionState::Current | SubscriptionState::Over) {
            let next = client.subscription.next();
            assert!(next >= client.told, "client {at}: {state:?} at {next:?} of {:?}", client.told);
            if self.network.lot(16) == 0 {
                client.compare(at, &self.published);
            }
        }
    }

    /// So many milliseconds pass; what a client's books are worth then.
    pub(crate) fn state_after(&mut self, ms: u64, at: usize) -> SubscriptionState {
        (0..ms).for_each(|_| self.pass(MS));
        self.clients[at].subscription.state(self.network.now_ns)
    }

    /// Publishers read all that there is, and time passes until all clients have it.
    pub(crate) fn finish(&mut self, what: &str) {
        (0..2).for_each(|at| self.read(at, usize::MAX));
        self.settle(what);
    }

    /// Time passes until all clients have all of the last session.
    pub(crate) fn settle(&mut self, what: &str) {
        let (&session, last) = self.published.last_key_value().unwrap();
        let next = Some((session, last.messages.len() as u64 + 1));
        let end = if last.over { SubscriptionState::Over } else { SubscriptionState::Current };
        for _ in 0..400_000 {
            let now_ns = self.network.now_ns;
            let is_there = |client: &Client| {
                client.subscription.next() == next && client.subscription.state(now_ns) == end
            };
            if self.clients.iter().all(is_there) {
                let clients = self.clients.iter_mut().enumerate();
                return clients.for_each(|(at, client)| client.compare(at, &self.published));
            }
            self.pass(2 * MS);
        }
        let are = self.clients.iter().map(|client| {
            let subscription = &client.subscription;
            (subscription.next(), subscription.state(self.network.now_ns), subscription.counters())
        });
        panic!("{what}: not all came to {next:?} {end:?}: {:#?}", are.collect::<Vec<_>>());
    }
}

/// A snapshot of all that is kept.
fn snapshot(kept: &mut Kept, source: &mut SnapshotSource) -> Option<pares_feed::snapshot::FeedSnapshot> {
    kept.current()?;
    while !source.follow(kept, 100).unwrap() {}
    source.begin();
    loop {
        if let Some(snapshot) = source.piece(10) {
            return Some(snapshot);
        }
    }
}
