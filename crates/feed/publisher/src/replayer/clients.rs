//! The connections of those who take the day, or a snapshot, over TCP.
//!
//! A client reads at its own pace: what it has not taken lies in one buffer of bounded size, and the rest in the log.
//!
//! When all places are taken, a client that has not logged in, does not read, or has everything makes room, the one that has been so for longest, if that is a second
//! and its network has as many clients as the newcomer's or more; else the oldest of the network that has most, for one that has at least two fewer: no network keeps late receivers out by staying, or pushes those of others out by coming.

use std::io::{ErrorKind, Read, Write};

use pares_feed::serving::{LoginAsked, Serving, ServingEnded, TURN_BYTES_MAX};
use pares_roles::origins::ConnectionsByOrigin;
use pares_roles::world::{Ready, RejectedConnections, Sockets};
use pares_table::Origin;

/// Connections at a time, if there are descriptors for as many.
pub const CLIENTS_MAX: usize = 1_024;
/// Connections accepted in one turn: those who have one have their turn too.
const ACCEPTED_MAX: usize = 64;
/// While all places are taken a client has so long to log in, to read, or to go once it has everything, nanoseconds.
const FULL_PATIENCE_NS: u64 = 1_000_000_000;
/// Bytes read of a connection in one turn.
const READ_MAX: usize = 4_096;

/// One connection.
pub(super) struct Client<S> {
    stream: S,
    origin: Origin,
    since_ns: u64,
    pub(super) serving: Serving,
    out: Vec<u8>,
    written: usize,
    is_readable: bool,
    is_writable: bool,
    /// Whether the stream holds bytes that the socket has not taken: TLS makes records of them.
    is_holding: bool,
    is_gone: bool,
}

impl<S: Read + Write> Client<S> {
    fn new(stream: S, origin: Origin, now_ns: u64) -> Self {
        let (serving, out) = (Serving::new(now_ns), Vec::new());
        Self {
            stream,
            origin,
            since_ns: now_ns,
            serving,
            out,
            written: 0,
            is_readable: true,
            is_writable: true,
            is_holding: false,
            is_gone: false,
        }
    }

    /// Takes in what came. Says whether anything did.
    pub(super) fn read(&mut self, now_ns: u64) -> bool {
        if !self.is_readable {
            return false;
        }
        let mut bytes = [0; READ_MAX];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.is_gone = true,
            Ok(count) => self.serving.on_bytes(&bytes[..count], now_ns),
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_readable = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => self.is_gone = true,
        }
        self.is_readable
    }

    /// Whether there is room for more.
    pub(super) fn has_room(&self) -> bool {
        self.out.is_empty() && !self.is_holding
    }

    /// Puts what is due into the buffer.
    pub(super) fn fill(&mut self, fill: impl FnOnce(&mut Serving, &mut Vec<u8>)) {
        fill(&mut self.serving, &mut self.out);
    }

    /// Writes what lies in the buffer. Says whether anything went.
    pub(super) fn write(&mut self, now_ns: u64) -> bool {
        if self.has_room() {
            return false;
        }
        let before = self.written;
        while self.is_writable && self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                // It would take nothing the next time either.
                Ok(0) => {
                    self.is_gone = true;
                    break;
                }
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.is_gone = true;
                    break;
                }
            }
        }
        self.flush();
        let (gone, left) = (self.written - before, self.out.len() - self.written);
        self.serving.on_written(gone, left + usize::from(self.is_holding), now_ns);
        if left == 0 {
            self.out.clear();
            // One that was given much once does not keep the room.
            self.out.shrink_to(TURN_BYTES_MAX);
            self.written = 0;
        }
        gone > 0
    }

    /// Has the stream send what it holds, as far as that goes now.
    fn flush(&mut self) {
        if !self.is_writable {
            return;
        }
        self.is_holding = match self.stream.flush() {
            Ok(()) => false,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => true,
            Err(_) => {
                self.is_gone = true;
                false
            }
        };
        self.is_writable = !self.is_holding;
    }

    fn ended(&self) -> Option<ServingEnded> {
        self.serving.ended().or(self.is_gone.then_some(ServingEnded::LoggedOut))
    }
}

/// All connections.
pub(super) struct Clients<S: Sockets> {
    sockets: S,
    /// The most at a time.
    open_max: usize,
    slots: Vec<Option<Client<S::Stream>>>,
    by_origin: ConnectionsByOrigin,
    ready: Vec<Ready>,
    may_accept: bool,
    pub(super) turned_away: u64,
    pub(super) ended: u64,
}

impl<S: Sockets> Clients<S> {
    pub(super) fn new(sockets: S, open_max: usize) -> Self {
        let (slots, ready) = (Vec::new(), Vec::new());
        let by_origin = ConnectionsByOrigin::default();
        Self { sockets, open_max, slots, by_origin, ready, may_accept: true, turned_away: 0, ended: 0 }
    }

    /// Connections open.
    pub(super) fn open(&self) -> usize {
        self.by_origin.count_all()
    }

    /// Waits at most so long for anything to come.
    pub(super) fn poll(&mut self, timeout: std::time::Duration) -> std::io::Result<()> {
        self.sockets.poll(timeout, &mut self.ready)
    }

    /// Notes what became ready, and takes in who wants to connect. Says how many did.
    pub(super) fn take_in(&mut self, now_ns: u64) -> usize {
        for ready in self.ready.drain(..) {
            match ready {
                Ready::Listener => self.may_accept = true,
                Ready::Stream { slot, readable, writable } => {
                    if let Some(Some(client)) = self.slots.get_mut(slot) {
                        client.is_readable |= readable;
                        client.is_writable |= writable;
                    }
                }
            }
        }
        let mut accepted = 0;
        while self.may_accept && accepted < ACCEPTED_MAX {
            match self.sockets.accept() {
                Ok(stream) => {
                    accepted += 1;
                    self.put(stream, now_ns);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.may_accept = false,
                // No descriptors: the next turn tries again.
                Err(_) => break,
            }
        }
        accepted
    }

    fn put(&mut self, mut stream: S::Stream, now_ns: u64) {
        let origin = self.sockets.origin(&mut stream);
        if self.open() >= self.open_max
            && let Some(giver) = self.giver(origin, now_ns)
        {
            self.remove(giver);
            self.ended += 1;
        }
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if free >= self.open_max || self.sockets.register(&mut stream, free).is_err() {
            self.turned_away += 1;
            return;
        }
        if free == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[free] = Some(Client::new(stream, origin, now_ns));
        self.by_origin.insert(origin, now_ns, free);
    }

    /// The slot of the client that makes room for one more of that origin, if any does.
    fn giver(&self, origin: Origin, now_ns: u64) -> Option<usize> {
        let own = self.by_origin.count(origin);
        let gives = |client: &&Client<S::Stream>| self.by_origin.count(client.origin) >= own;
        let idle = |client: &Client<S::Stream>| client.serving.idle_since_ns();
        let all = self.slots.iter().enumerate();
        let all = all.filter_map(|(slot, client)| Some((idle(client.as_ref().filter(gives)?)?, slot)));
        let longest = all.min().filter(|(since_ns, _)| now_ns.saturating_sub(*since_ns) >= FULL_PATIENCE_NS);
        longest.map(|(_, slot)| slot).or_else(|| self.by_origin.giver(origin, 0))
    }

    fn remove(&mut self, slot: usize) {
        let Some(mut client) = self.slots[slot].take() else { return };
        self.sockets.deregister(&mut client.stream);
        let was_there = self.by_origin.remove(client.origin, client.since_ns, slot);
        assert!(was_there, "a client that is connected is counted");
    }

    /// Connections that ended during the TLS handshake.
    pub(super) fn failed_handshakes(&self) -> u64 {
        let RejectedConnections { failed, silent, crowded } = self.sockets.turned_away();
        failed + silent + crowded
    }

    /// All clients that are connected.
    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut Client<S::Stream>> {
        self.slots.iter_mut().flatten()
    }

    /// What clients ask for, of those who are not answered.
    pub(super) fn asking(&mut self) -> impl Iterator<Item = (&mut Serving, LoginAsked)> {
        self.each().filter_map(|client| client.serving.asked().map(|asked| (&mut client.serving, asked)))
    }

    /// Closes those that are to be closed.
    pub(super) fn close(&mut self) {
        for slot in 0..self.slots.len() {
            let Some(ended) = self.slots[slot].as_ref().and_then(Client::ended) else { continue };
            self.remove(slot);
            self.ended += u64::from(!matches!(ended, ServingEnded::LoggedOut | ServingEnded::Finished));
        }
    }

    /// When the first of them has to be looked at, if nothing comes before.
    pub(super) fn deadline_ns(&self) -> u64 {
        let deadlines = self.slots.iter().flatten().map(|client| client.serving.deadline_ns());
        deadlines.min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replayer::tests::{EndlessSockets, Full};
    use pares_feed::soup::{self, LoginRequest};
    use pares_table::Network;
    use zerocopy::IntoBytes;

    const OPEN_MAX: usize = 100;
    const SECOND_NS: u64 = 1_000_000_000;

    /// All places are taken by clients of one network that have logged in and read.
    fn taken(many: Origin) -> Clients<EndlessSockets> {
        let mut clients = Clients::new(EndlessSockets::of(many), OPEN_MAX);
        (0..2).for_each(|_| _ = clients.take_in(0));
        let mut login = Vec::new();
        let asked = LoginRequest {
            username: [b' '; 6],
            password: [b' '; 10],
            session: [b' '; 10],
            sequence: soup::digits(1),
        };
        soup::write(&mut login, b'L', asked.as_bytes());
        clients.each().for_each(|client| client.serving.on_bytes(&login, 0));
        clients.turned_away = 0;
        clients
    }

    #[test]
    fn connection_crowd_is_accepted_gradually_up_to_limit() {
        let mut clients = Clients::new(EndlessSockets::of(None), OPEN_MAX);
        assert_eq!((clients.take_in(0), clients.open(), clients.turned_away), (64, 64, 0));
        assert_eq!((clients.take_in(0), clients.open(), clients.turned_away), (64, 100, 28));
    }

    #[test]
    fn network_that_takes_all_places_makes_room_for_others() {
        let mut clients = taken(Some(Network(1)));
        assert_eq!(
            (clients.take_in(9), clients.turned_away),
            (64, 64),
            "its own further ones are not let in"
        );
        clients.sockets.origin = Some(Network(2));
        assert_eq!((clients.take_in(9), clients.open(), clients.turned_away), (64, 100, 78));
        let of_others = clients.each().filter(|client| client.origin == Some(Network(2))).count();
        assert_eq!((of_others, clients.ended), (50, 50), "half of the places");
    }

    #[test]
    fn clients_that_do_not_log_in_or_read_make_room() {
        let mut clients = Clients::new(EndlessSockets::of(None), OPEN_MAX);
        (0..2).for_each(|_| _ = clients.take_in(0));
        assert_eq!((clients.take_in(SECOND_NS - 1), clients.ended), (64, 0));
        assert_eq!((clients.take_in(SECOND_NS), clients.ended, clients.open()), (64, 64, 100));
        let mut clients = taken(None);
        let deaf = clients.each().last().unwrap();
        deaf.serving.on_written(1, 1, 0);
        assert_eq!((clients.take_in(SECOND_NS), clients.ended, clients.turned_away), (64, 1, 63));
    }

    #[test]
    fn network_with_most_clients_ends_no_stalled_one_of_others() {
        let mut clients = taken(Some(Network(1)));
        clients.sockets.origin = Some(Network(2));
        let stream = clients.sockets.accept().unwrap();
        clients.put(stream, 0);
        clients.sockets.origin = Some(Network(1));
        let of_others = |client: &&mut Client<Full>| client.origin == Some(Network(2));
        let stalled = clients.each().find(of_others).expect("it was let in");
        stalled.serving.on_written(1, 1, 0);
        clients.take_in(2 * SECOND_NS);
        assert_eq!((clients.each().filter(of_others).count(), clients.turned_away), (1, 64));
        let own = clients.each().find(|client| !of_others(client)).unwrap();
        own.serving.on_written(1, 1, 0);
        clients.turned_away = 0;
        clients.take_in(2 * SECOND_NS);
        assert_eq!(
            (clients.each().filter(of_others).count(), clients.turned_away),
            (1, 63),
            "one of its own"
        );
    }

    #[test]
    fn a_stream_that_takes_nothing_is_closed() {
        let mut client = Client::new(Full, None, 0);
        client.fill(|_, out| out.push(b'H'));
        assert!(!client.write(0));
        assert!(client.ended().is_some());
    }
}
