//! Bytes to the port of a front over a site of this process, and what it says to them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::{Events, Poll};
use pares_broker::AccountSummary;
use pares_site::config::Promise;
use tempfile::TempDir;

use super::*;
use crate::dump;
use crate::link::SocketOwner;
use crate::quote_server::{Behaviour, QuoteServer};

const OWNER: SocketOwner = SocketOwner(2);

/// A front, and where it listens.
struct At {
    floor: Floor,
    loaders: Loaders,
    poll: Poll,
    events: Events,
    address: SocketAddr,
    _quotes: QuoteServer,
    _dir: TempDir,
}

impl At {
    fn new() -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (dir, poll) = (tempfile::tempdir().unwrap(), Poll::new().unwrap());
        let behaviour = Behaviour { seed: 1, instant: true, bad_per_mille: 0 };
        let quotes = QuoteServer::start(any, behaviour.settings()).unwrap();
        let floor = Floor::alone(dir.path(), Promise::Os, None, quotes.address(), None).unwrap();
        let port = Port::bind(any, poll.registry(), OWNER, 10).unwrap();
        let address = port.address().unwrap();
        let events = Events::with_capacity(16);
        Self { floor, loaders: Loaders::at(port), poll, events, address, _quotes: quotes, _dir: dir }
    }

    fn turn(&mut self) {
        self.poll.poll(&mut self.events, Some(Duration::from_millis(1))).unwrap();
        for event in &self.events {
            self.loaders.port.wake(SocketOwner::of(event.token()).1);
        }
        self.loaders.turn(&mut self.floor);
        for told in self.floor.turn().unwrap() {
            self.loaders.tell(&told);
        }
        self.loaders.flush();
    }

    /// What a client that says these bytes, and no more, is told until its connection ends; without the greeting.
    fn says(&mut self, bytes: &[u8]) -> String {
        let said = self.say(bytes);
        self.told(said)
    }

    fn say(&self, bytes: &[u8]) -> JoinHandle<String> {
        let mut client = TcpStream::connect(self.address).unwrap();
        client.write_all(bytes).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        std::thread::spawn(move || {
            let mut told = Vec::new();
            // What a connection has said is there, however it ends.
            let _ = client.read_to_end(&mut told);
            String::from_utf8(told).unwrap()
        })
    }

    fn told(&mut self, reading: JoinHandle<String>) -> String {
        while !reading.is_finished() {
            self.turn();
        }
        let told = reading.join().unwrap();
        let (greeting, told) = told.split_once('\n').unwrap();
        assert!(greeting.starts_with("SESSION "), "{greeting}");
        told.to_owned()
    }

    fn account(&mut self, user: &str) -> Option<AccountSummary> {
        let (site, user) = (self.floor.address().unwrap().into(), UserName::new(user).unwrap());
        let reading = std::thread::spawn(move || dump::summaries(vec![site], vec![user]));
        while !reading.is_finished() {
            self.turn();
        }
        reading.join().unwrap().unwrap().into_values().next()
    }
}

#[test]
fn the_body_of_a_web_pages_request_is_not_executed() {
    let mut at = At::new();
    let request =
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1:4600\r\nConnection: keep-alive\r\nContent-Length: 17\r\n\
        Content-Type: text/plain;charset=UTF-8\r\nOrigin: http://example.org\r\n\r\n[1] ADD,eve,1.00\n";
    assert_eq!(at.says(request), "[0] LOST this is no line of a loader\n");
    assert_eq!(at.account("eve"), None);
    assert_eq!(at.says(b"\n [1] ADD,jo,1.00 \r\n[x] ADD,jo,1.00\n").lines().count(), 2, "goes on");
    assert!(at.account("jo").is_some());
}

#[test]
fn a_session_that_was_given_out_to_nobody_ends_its_connection_and_not_the_front() {
    let mut at = At::new();
    let own = at.floor.front.number().unwrap() << 18;
    for session in [0, 5, own, own + 1_000, 1 << 39, 1 << 40, u64::MAX] {
        let told = at.says(format!("SESSION {session}\n[1] ADD,eve,1.00\n").as_bytes());
        assert_eq!(told, format!("[0] LOST session {session} was given out to nobody\n"));
    }
    assert_eq!(at.account("eve"), None);
    assert_eq!(at.says(b"[1] ADD,jo,1.00\n"), "[1] OK cash 1.00\n");
    let other = (own + (1 << 18)) + 1;
    assert_eq!(at.says(format!("SESSION {other}\n[1] ADD,jo,1.00\n").as_bytes()), "[1] OK cash 2.00\n");
}

#[test]
fn what_was_never_executed_is_not_answered_ok() {
    let mut at = At::new();
    let told = at.says(b"[5] ADD,jo,1.00\n[3>0] ADD,jo,1.00\n[7>3] ADD,jo,1.00\n[5>0] ADD,jo,1.00\n");
    let mut told: Vec<&str> = told.lines().collect();
    told.sort_unstable();
    assert_eq!(told, ["[3] LOST overtaken", "[5] OK cash 1.00", "[5] OK cash 1.00", "[7] LOST overtaken"]);
}

#[test]
fn a_line_that_is_not_taken_is_not_the_one_before_the_next() {
    let mut at = At::new();
    let told = at.says(b"[1] ADD,jo,1.00\n[16777216] ADD,jo,1.00\n[2] ADD,jo,1.00\n");
    assert!(told.contains("[16777216] REFUSED 2 ") && told.contains("[2] OK cash 2.00\n"), "{told}");
}

#[test]
fn a_connection_has_no_more_users_than_it_may() {
    let mut at = At::new();
    at.loaders.users_max = 2;
    let told = at.says(b"[1] ADD,a,1.00\n[2] ADD,b,1.00\n[3] ADD,a,1.00\n[4] ADD,c,1.00\n");
    assert!(told.ends_with("[0] LOST too many users on one connection\n"), "{told}");
    assert_eq!(at.account("c"), None);
}

#[test]
fn a_dump_beyond_those_that_may_wait_holds_up_its_own_connection_only() {
    let mut at = At::new();
    at.floor.dumps_max = 0;
    let held = at.say(b"[1] DUMPLOG,jo,log\n[2] ADD,jo,1.00\n");
    while !at.loaders.loaders.values().any(|loader| loader.held.is_some()) {
        at.turn();
    }
    assert_eq!(at.says(b"[1] ADD,al,1.00\n"), "[1] OK cash 1.00\n");
    assert_eq!((at.account("jo"), held.is_finished()), (None, false));
    at.floor.dumps_max = 1;
    assert_eq!(at.told(held), "[1] OK\n[2] OK cash 1.00\n");
}

#[test]
fn a_user_who_waits_for_a_quote_holds_up_no_other_user_of_his_connection_nor_others() {
    let mut at = At::new();
    // It takes connections, and says nothing.
    let silent = std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let dir = tempfile::tempdir().unwrap();
    at.floor = Floor::alone(dir.path(), Promise::Os, None, silent.local_addr().unwrap(), None).unwrap();
    let mut lines = "[1] QUOTE,jo,S\n".to_owned();
    (2..=6_000).for_each(|number| lines.push_str(&format!("[{number}] ADD,jo,1.00\n")));
    lines.push_str("[6001] ADD,al,1.00\n");
    let both = at.say(lines.as_bytes());
    while at.account("al").is_none() {
        at.turn();
    }
    assert_eq!(at.says(b"[1] ADD,bo,1.00\n"), "[1] OK cash 1.00\n");
    let told = at.told(both);
    assert!(told.starts_with("[6001] OK cash 1.00\n[1] REFUSED 10 "), "{}", &told[..80]);
    assert_eq!(told.lines().count(), 6_001);
}
