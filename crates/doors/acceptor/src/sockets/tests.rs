//! Peers that ask and do not read.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use pares_fix::framing::{Cut, cut};
use pares_fix::writer::FixWriter;

use super::*;

const ORDERS: u64 = 200;
const REQUESTS: u64 = 400;
/// A turn may end with a full room, one message beyond it, and what a read brings of answers.
const HELD_BYTES_MAX: usize = ROOM_BYTES + 16_384;

fn message(number: u64, msg_type: &str, fields: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FixWriter::begin(&mut bytes, "FIX.4.4", msg_type.as_bytes());
    writer.number(34, number);
    writer.text(49, b"TW44");
    writer.time(52, now_ns());
    writer.text(56, b"ISLD");
    writer.fields(fields.replace('|', "\x01").as_bytes());
    writer.finish();
    bytes
}

/// A client, and the acceptor that it calls, in one thread.
struct Rig {
    sockets: AcceptorSockets,
    events: Events,
    client: TcpStream,
    received: Vec<u8>,
    most_held: usize,
}

impl Rig {
    fn new() -> Self {
        let acceptor = EchoAcceptor::default();
        let sockets = AcceptorSockets::listen("127.0.0.1:0".parse().unwrap(), acceptor).unwrap();
        let client = TcpStream::connect(sockets.address().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        let events = Events::with_capacity(16);
        Self { sockets, events, client, received: Vec::new(), most_held: 0 }
    }

    fn turn(&mut self) {
        self.sockets.turn(&mut self.events, Some(Duration::from_millis(1))).unwrap();
        let held = self.sockets.sockets.values().map(|socket| socket.unsent.len()).max();
        self.most_held = self.most_held.max(held.unwrap_or_default());
    }

    /// Sends as much as the acceptor takes.
    fn says(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.client.write(rest) {
                Ok(length) => rest = &rest[length..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            self.turn();
        }
    }

    /// Reads until a message of this type comes: how many came.
    fn reads_until(&mut self, msg_type: &[u8]) -> u64 {
        let (mut count, mut bytes) = (0, vec![0; 1 << 20]);
        loop {
            while let (Cut::Whole(frame), used) = cut(&self.received) {
                let is_last = frame.body[3..].starts_with(msg_type);
                self.received.drain(..used);
                count += 1;
                if is_last {
                    return count;
                }
            }
            self.turn();
            match self.client.read(&mut bytes) {
                Ok(0) => panic!("closed"),
                Ok(length) => self.received.extend_from_slice(&bytes[..length]),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
    }
}

fn order(number: u64) -> Vec<u8> {
    let text = "x".repeat(7_000);
    let fields = format!("11=a{number}|55=X|54=1|60=20260921-12:00:00|40=1|38=1|58={text}|");
    message(number, "D", &fields)
}

#[test]
fn requests_to_resend_of_a_peer_that_does_not_read_fill_no_memory() {
    let mut rig = Rig::new();
    rig.says(&message(1, "A", "98=0|108=0|"));
    rig.reads_until(b"A\x01");
    for number in 2..2 + ORDERS {
        rig.says(&order(number));
        rig.reads_until(b"D\x01");
    }
    let from = 2 + ORDERS;
    let flood: Vec<u8> =
        (from..from + REQUESTS).flat_map(|number| message(number, "2", "7=1|16=0|")).collect();
    rig.says(&flood);
    rig.says(&message(from + REQUESTS, "1", "112=end|"));
    (0..1_000).for_each(|_| rig.turn());
    assert!(rig.most_held >= ROOM_BYTES, "the peer was behind: {}", rig.most_held);
    assert!(rig.most_held <= HELD_BYTES_MAX, "{}", rig.most_held);
    assert!(rig.reads_until(b"0\x01") > ORDERS, "each order comes again");
    assert!(rig.most_held <= HELD_BYTES_MAX, "{}", rig.most_held);
}

#[test]
fn a_closing_connection_does_not_wait_for_ever() {
    let mut rig = Rig::new();
    while rig.sockets.sockets.is_empty() {
        rig.turn();
    }
    let socket = rig.sockets.sockets.values_mut().next().unwrap();
    while socket.unsent.is_empty() {
        socket.put(&[b'x'; 100_000]);
        assert!(!socket.write());
    }
    socket.close();
    rig.turn();
    let socket = rig.sockets.sockets.values_mut().next().expect("its peer may still read");
    assert!(!socket.has_room());
    socket.closes_at = Some(Instant::now());
    rig.turn();
    assert!(rig.sockets.sockets.is_empty());
}

#[test]
fn what_is_beyond_the_bound_is_not_kept() {
    let mut rig = Rig::new();
    while rig.sockets.sockets.is_empty() {
        rig.turn();
    }
    let outlet = &mut Outlet(&mut rig.sockets.sockets);
    (0..100).for_each(|_| outlet.put(1, ConnectionOutput::Bytes(&[b'x'; 100_000])));
    assert!(outlet.0[&1].unsent.len() <= UNSENT_BYTES_MAX && !outlet.has_room(1));
    rig.turn();
    assert!(rig.sockets.sockets.is_empty());
}
