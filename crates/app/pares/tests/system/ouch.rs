//! OUCH at the gateways' ports: a member's stream has the same packets everywhere, and an order is ended at a gateway that did not enter it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use pares_types::GatewayId;

use pares_node::SystemConfig;

use crate::common::PATIENCE;
use crate::common::exchange::small;
use crate::common::process::Up;

fn port(up: &Up, gateway: u16) -> SocketAddr {
    let path = up.layout.ouch_address(GatewayId(gateway));
    std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

fn packet(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len() + 1).unwrap().to_be_bytes();
    [&length[..], &[kind], payload].concat()
}

struct Session(TcpStream);

impl Session {
    /// Member 7's session 1 in shard 0, from a number on.
    fn log_in(address: SocketAddr, first: u64) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut session = Self(stream);
        session.send(b'L', format!("{:<6}{:<10}{:>10}{first:>20}", "7", "", "1-0").as_bytes());
        assert_eq!(session.next(), (b'A', format!("{:>10}{first:>20}", "1-0").into_bytes()));
        session
    }

    fn send(&mut self, kind: u8, payload: &[u8]) {
        self.0.write_all(&packet(kind, payload)).unwrap();
    }

    /// The next packet but for heartbeats, which are answered.
    fn next(&mut self) -> (u8, Vec<u8>) {
        loop {
            let mut head = [0; 3];
            self.0.read_exact(&mut head).unwrap();
            let mut payload = vec![0; usize::from(u16::from_be_bytes([head[0], head[1]])) - 1];
            self.0.read_exact(&mut payload).unwrap();
            if head[2] != b'H' {
                return (head[2], payload);
            }
            self.send(b'R', b"");
        }
    }

    /// The next messages of the stream.
    fn messages(&mut self, count: usize) -> Vec<Vec<u8>> {
        let sequenced = (0..count).map(|_| self.next());
        sequenced.map(|(kind, message)| (kind == b'S').then_some(message).expect("sequenced data")).collect()
    }
}

fn kinds(messages: &[Vec<u8>]) -> String {
    messages.iter().map(|message| char::from(message[0])).collect()
}

#[test]
fn a_session_reads_the_same_packets_at_every_gateway() {
    let config = small(2);
    let up = Up::fresh(&SystemConfig { ouch: config.gateways.clone(), ..config });
    let mut first = Session::log_in(port(&up, 0), 1);
    first.send(b'U', b"O\0\0\0\x05B\0\0\0\x64ALFA    \0\0\0\0\0\0\x27\x100YPNN              \0\0");
    let taken = first.messages(1);
    // It continues with that order at the other gateway, at the number that comes next.
    let mut second = Session::log_in(port(&up, 1), 2);
    second.send(b'U', b"X\0\0\0\x05\0\0\0\0\0\0");
    let ended = second.messages(2);
    assert_eq!(kinds(&[taken.clone(), ended.clone()].concat()), "ACS");
    assert_eq!(first.messages(2), ended);
    second.send(b'U', b"O\0\0\0\x06B\0\0\0\x64NONE    \0\0\0\0\0\0\x27\x100YPNN              \0\0");
    let refused = second.messages(1);
    assert_eq!((kinds(&refused), &refused[0][9..15]), ("J".to_owned(), &b"\0\0\0\x06\0\x17"[..]));
    // A cancel to more shares than the order has adds none.
    second.send(b'U', b"O\0\0\0\x07B\0\0\0\x64ALFA    \0\0\0\0\0\0\x27\x100YPNN              \0\0");
    second.send(b'U', b"X\0\0\0\x07\0\0\x01\x90\0\0");
    second.send(b'U', b"X\0\0\0\x07\0\0\0\x28\0\0");
    second.send(b'U', b"X\0\0\0\x07\0\0\0\0\0\0");
    let cancelled = second.messages(6);
    assert_eq!(
        (kinds(&cancelled), &cancelled[4][13..17]),
        ("AICMCS".to_owned(), &b"\0\0\0\x28"[..]),
        "40 are left"
    );
    let all = [taken, ended, refused, cancelled].concat();
    for gateway in [0, 1] {
        assert_eq!(Session::log_in(port(&up, gateway), 1).messages(10), all, "gateway {gateway}");
    }
    example(&up);
}

/// The client in Python, as its first lines say.
fn example(up: &Up) {
    let client = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../clients/python");
    let mut python = Command::new("python3");
    let python = python.args(["examples/ouch_order.py", &port(up, 0).to_string(), "7"]).current_dir(client);
    let Ok(told) = python.output() else { return eprintln!("skipped: there is no python3") };
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success() && text.ends_with("is cancelled: number 12, 100 shares\n"), "{told:?}");
}
