//! A publisher of one shard, on the test's own thread.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Instant;

use pares_feed::itch::{self, AddOrder, Deleted, Directory, Head, TradingAction};
use pares_feed::kept::Kept;
use pares_feed::publication::{FeedSink, Session};
use pares_feed::publisher::{Line, Publisher};
use pares_feed::resending::Resending;
use pares_feed::serving::Serving;
use pares_feed::snapshot::SnapshotSource;
use pares_feed::store::SessionStore;
use pares_types::{ShardId, Side, Symbol, Timestamp};
use zerocopy::{FromZeros, IntoBytes};

/// Its shard.
pub const SHARD: ShardId = ShardId(1);
const SESSION: Session = Session(*b"0001004e20");
/// What waits for a client.
const BUFFER_BYTES: usize = 100_000;

/// A session's first messages: one instrument, orders that come and go.
pub fn messages(many: usize) -> Vec<Vec<u8>> {
    let stock = itch::stock(Symbol::new("PARES").unwrap()).unwrap();
    let mut directory = Directory::new_zeroed();
    (directory.head, directory.stock) = (Head::new(Directory::KIND, 1, Timestamp(0)), stock);
    let mut action = TradingAction::new_zeroed();
    (action.head, action.stock, action.state) =
        (Head::new(TradingAction::KIND, 1, Timestamp(0)), stock, b'T');
    let first = [directory.as_bytes().to_vec(), action.as_bytes().to_vec()];
    let rest = (1..).map(|at: u64| {
        let stamp = Timestamp(at * 1_000);
        if at.is_multiple_of(3) {
            let head = Head::new(Deleted::KIND, 1, stamp);
            return Deleted { head, reference: (at - 2).into() }.as_bytes().to_vec();
        }
        let (is_buy, level) = (at.is_multiple_of(2), u32::try_from(at % 50).unwrap());
        let side = itch::side(if is_buy { Side::Buy } else { Side::Sell });
        let price = if is_buy { 1_000_000 - level } else { 1_000_100 + level };
        let head = Head::new(AddOrder::KIND, 1, stamp);
        let (reference, shares, price) = (at.into(), 100.into(), price.into());
        AddOrder { head, reference, side, shares, stock, price }.as_bytes().to_vec()
    });
    first.into_iter().chain(rest).take(many).collect()
}

/// Its way out. Of each so many packets on lines one is lost; 0: none.
struct Out {
    socket: UdpSocket,
    lines: Vec<SocketAddr>,
    lost_of: u64,
    sent: u64,
}

impl Line for Out {
    fn send(&mut self, packet: &[u8]) {
        self.sent += 1;
        if self.sent.checked_rem(self.lost_of) != Some(0) {
            self.lines.iter().for_each(|line| drop(self.socket.send_to(packet, line)));
        }
    }
}

/// A publisher with sockets.
pub struct Outlet {
    started: Instant,
    publisher: Publisher,
    resending: Resending<IpAddr, SocketAddr>,
    kept: Kept,
    source: SnapshotSource,
    out: Out,
    listener: TcpListener,
    clients: Vec<(TcpStream, Serving, Vec<u8>)>,
}

impl Outlet {
    /// Sends to these lines, and loses one of `lost_of` packets on each; none if it is 0.
    pub fn open(lines: &[SocketAddr], lost_of: u64) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut publisher = Publisher::default();
        let mut out = Out { socket, lines: lines.to_vec(), lost_of, sent: 0 };
        publisher.go_live(None);
        publisher.begin(SESSION, 0, &mut out);
        let mut kept = Kept::default();
        kept.begin(SESSION);
        let (started, source, clients) = (Instant::now(), SnapshotSource::new(0), Vec::new());
        Self { started, publisher, resending: Resending::default(), kept, source, out, listener, clients }
    }

    /// Where it is asked to send again, by UDP.
    pub fn requests(&self) -> SocketAddr {
        self.out.socket.local_addr().unwrap()
    }

    /// Where it is asked to send from a number on, by TCP.
    pub fn tcp(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// Requests answered so far.
    pub fn answered(&self) -> u64 {
        self.resending.resent.answered
    }

    /// Clients connected by TCP.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap()
    }

    /// Publishes messages, in packets.
    pub fn publish(&mut self, messages: &[Vec<u8>]) {
        let now_ns = self.now_ns();
        for message in messages {
            let number = self.kept.current().unwrap().next;
            self.kept.message(message);
            self.publisher.message(SESSION, number, message, now_ns, &mut self.out);
        }
        self.publisher.flush(now_ns, &mut self.out);
    }

    /// The session ends.
    pub fn end(&mut self) {
        self.kept.end();
        let now_ns = self.now_ns();
        self.publisher.end(now_ns, &mut self.out);
    }

    /// Heartbeats, requests, connections.
    pub fn turn(&mut self) {
        let now_ns = self.now_ns();
        self.publisher.on_time(now_ns, &mut self.out);
        let mut request = [0; 100];
        while let Ok((length, from)) = self.out.socket.recv_from(&mut request) {
            let asker = (from.ip(), from);
            let answer = self.resending.on_request(asker, &request[..length], now_ns, Some(&mut self.kept));
            if let Some(packet) = answer {
                drop(self.out.socket.send_to(&packet, from));
            }
        }
        while let Ok((client, _)) = self.listener.accept() {
            client.set_nonblocking(true).unwrap();
            self.clients.push((client, Serving::new(now_ns), Vec::new()));
        }
        let mut clients = std::mem::take(&mut self.clients);
        clients.retain_mut(|(client, serving, buffer)| self.serve(client, serving, buffer, now_ns));
        self.clients = clients;
    }

    /// Whether the connection stays.
    fn serve(
        &mut self,
        client: &mut TcpStream,
        serving: &mut Serving,
        buffer: &mut Vec<u8>,
        now_ns: u64,
    ) -> bool {
        let mut bytes = [0; 4_096];
        match client.read(&mut bytes) {
            Ok(0) => return false,
            Ok(length) => serving.on_bytes(&bytes[..length], now_ns),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        match serving.asked() {
            Some(asked) if asked.shard() != Some(SHARD) => serving.reject(),
            Some(asked) if asked.snapshot => {
                while !self.source.follow(&mut self.kept, 1_000).unwrap() {}
                self.source.begin();
                let mut pieces = std::iter::repeat_with(|| self.source.piece(100));
                serving.answer_snapshot(pieces.find_map(|piece| piece).unwrap().into());
            }
            Some(_) => serving.answer(self.kept.standing()),
            None => {}
        }
        serving.on_time(now_ns);
        serving.fill(buffer, BUFFER_BYTES - buffer.len(), now_ns, Some(&mut self.kept));
        let gone = client.write(buffer).unwrap_or(0);
        buffer.drain(..gone);
        serving.on_written(gone, buffer.len(), now_ns);
        serving.ended().is_none()
    }
}
