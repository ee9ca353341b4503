//! Runs the lines of a file against an acceptor.

use std::collections::BTreeMap;

use pares_acceptor::acceptor::{EchoAcceptor, EchoConnection};
use pares_fix::framing::{Cut, cut};
use pares_fix::time::{STAMP_BYTES, stamp};

use crate::compare::{compare, framed, readable};

const S: u64 = 1_000_000_000;
/// Between two lines.
const STEP_NS: u64 = 1_000_000;
/// How long a tester waits.
const PATIENCE_NS: u64 = 60 * S;

/// A tester, and the acceptor that it speaks to.
pub(crate) struct Tester {
    acceptor: &'static EchoAcceptor,
    now_ns: u64,
    /// Each open connection and what it has received, by the tester's number for it.
    connections: BTreeMap<u64, (EchoConnection<'static>, Vec<u8>)>,
}

impl Default for Tester {
    fn default() -> Self {
        let now_ns = 1_790_000_000 * S + S / 4;
        let acceptor = Box::leak(Box::default());
        Self { acceptor, now_ns, connections: BTreeMap::new() }
    }
}

impl Tester {
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<(), String> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.now_ns += STEP_NS;
        let (&operation, rest) = match line.split_first() {
            None | Some((b'#' | b' ', _)) => return Ok(()),
            Some(split) => split,
        };
        let (connection, body) = match rest {
            [digit @ b'0'..=b'9', b',', body @ ..] => (u64::from(digit - b'0'), body),
            body => (1, body),
        };
        match (operation, body) {
            (b'i', b"CONNECT") => self.connect(connection),
            (b'i', b"DISCONNECT") => return self.disconnect(connection),
            (b'e', b"DISCONNECT") => return self.expect_end(connection),
            (b'I', message) => self.send(connection, &framed(&self.timed(message))),
            (b'E', message) => return self.expect(connection, &framed(&self.timed(message))),
            _ => return Err(format!("not a line: {}", readable(line))),
        }
        Ok(())
    }

    /// Nothing may be left that no line expected.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        let open: Vec<u64> = self.connections.keys().copied().collect();
        open.into_iter().try_for_each(|connection| self.disconnect(connection))
    }

    fn connect(&mut self, connection: u64) {
        self.connections.insert(connection, (self.acceptor.connect(self.now_ns), Vec::new()));
    }

    fn disconnect(&mut self, connection: u64) -> Result<(), String> {
        match self.connections.remove(&connection) {
            None => Err("no such connection".into()),
            Some((_, received)) if received.is_empty() => Ok(()),
            Some((_, received)) => Err(format!("nobody expected {}", readable(&received))),
        }
    }

    fn send(&mut self, connection: u64, bytes: &[u8]) {
        let (open, received) = self.connections.get_mut(&connection).unwrap();
        open.receive(self.now_ns, bytes, &mut |bytes| received.extend_from_slice(bytes));
    }

    fn expect(&mut self, connection: u64, expected: &[u8]) -> Result<(), String> {
        let until_ns = self.now_ns + PATIENCE_NS;
        loop {
            let received = &mut self.connections.get_mut(&connection).unwrap().1;
            if let (Cut::Whole(frame), length) = cut(received) {
                compare(expected, frame.bytes)?;
                received.drain(..length);
                return Ok(());
            }
            if !self.wait(until_ns) {
                return Err(format!("nothing came, expected {}", readable(expected)));
            }
        }
    }

    fn expect_end(&mut self, connection: u64) -> Result<(), String> {
        let until_ns = self.now_ns + PATIENCE_NS;
        while !self.connections[&connection].0.is_closed() {
            if !self.wait(until_ns) {
                return Err("the connection stays open".into());
            }
        }
        self.disconnect(connection)
    }

    /// Lets time pass up to the next deadline, if there is one before `until_ns`.
    fn wait(&mut self, until_ns: u64) -> bool {
        let open = self.connections.values().filter(|(open, _)| !open.is_closed());
        let deadline_ns = open.filter_map(|(open, _)| open.next_deadline()).min();
        let Some(deadline_ns) = deadline_ns.filter(|at| *at <= until_ns) else { return false };
        self.now_ns = self.now_ns.max(deadline_ns);
        for (open, received) in self.connections.values_mut().filter(|(open, _)| !open.is_closed()) {
            open.tick(self.now_ns, &mut |bytes| received.extend_from_slice(bytes));
        }
        true
    }

    /// A message with its times: `<TIME>`, `<TIME+10>`, `<TIME-121>`, in seconds.
    fn timed(&self, message: &[u8]) -> Vec<u8> {
        let text: String = message.iter().map(|byte| char::from(*byte)).collect();
        let mut parts = text.split("<TIME");
        let mut timed: String = parts.next().unwrap().into();
        for part in parts {
            let (seconds, rest) = part.split_once('>').unwrap();
            let seconds: i64 = if seconds.is_empty() { 0 } else { seconds.parse().unwrap() };
            let at_ns = self.now_ns.checked_add_signed(seconds * 1_000_000_000).unwrap();
            timed += std::str::from_utf8(&stamp(at_ns)[..STAMP_BYTES - 4]).unwrap();
            timed += rest;
        }
        timed.chars().map(|letter| letter as u8).collect()
    }
}
