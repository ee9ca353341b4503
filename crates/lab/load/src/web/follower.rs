//! A member's streams over WebSocket.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::http::{HttpConnection, first_frame, number_of, text_frame, text_of};

/// The number that comes next, by shard: what outlives connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Next(pub(super) BTreeMap<u16, u64>);

/// How a message stands to the number that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is that.
    Next,
    /// Something is missing before it.
    BehindGap,
    /// It was there before.
    Low,
}

/// A socket that follows.
pub(super) struct Follower {
    stream: TcpStream,
    input: Vec<u8>,
    live: BTreeSet<u16>,
}

impl Next {
    /// Takes the number that a shard has come to: the first one, where none is known.
    fn take(&mut self, shard: u16, number: u64) -> Standing {
        let next = self.0.entry(shard).or_insert(number);
        let standing = match number.cmp(next) {
            std::cmp::Ordering::Less => Standing::Low,
            std::cmp::Ordering::Equal => Standing::Next,
            std::cmp::Ordering::Greater => Standing::BehindGap,
        };
        *next = number.max(*next);
        standing
    }
}

impl Follower {
    /// Subscribes to the member's stream of each shard, from the number that comes next, or from now on.
    pub(super) fn open(
        server: SocketAddr,
        token: &str,
        shards: &[u16],
        next: &Next,
    ) -> std::io::Result<Self> {
        let mut connection = HttpConnection::connect(server)?;
        connection.set_token(token);
        let (mut stream, input) = connection.open_socket("/v1/socket")?;
        let from = |shard: &u16| format!("\"{shard}\":\"{}\"", next.0.get(shard).unwrap_or(&0));
        let from: Vec<String> = shards.iter().map(from).collect();
        let text = format!("{{\"op\":\"subscribe\",\"channel\":\"orders\",\"from\":{{{}}}}}", from.join(","));
        for part in text_frames(&text) {
            stream.write_all(&part)?;
        }
        stream.set_nonblocking(true)?;
        Ok(Self { stream, input, live: BTreeSet::new() })
    }

    /// In how many shards the server has sent all of the past.
    pub(super) fn live(&self) -> usize {
        self.live.len()
    }

    /// Takes in what has come: of each message its shard, its number and how that stands.
    pub(super) fn read(
        &mut self,
        next: &mut Next,
        on: &mut dyn FnMut(u16, u64, Standing),
    ) -> std::io::Result<()> {
        let mut bytes = [0; 16 << 10];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.input.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let mut at = 0;
        while let Some((kind, payload, length)) = first_frame(&self.input[at..]) {
            let text = if kind == 1 { String::from_utf8_lossy(payload).into_owned() } else { String::new() };
            at += length;
            self.hear(&text, next, on)?;
        }
        self.input.drain(..at);
        Ok(())
    }

    fn hear(
        &mut self,
        text: &str,
        next: &mut Next,
        on: &mut dyn FnMut(u16, u64, Standing),
    ) -> std::io::Result<()> {
        let shard = number_of(text, "shard").and_then(|shard| u16::try_from(shard).ok()).unwrap_or_default();
        match text_of(text, "channel") {
            Some("orders") => {
                let number = number_of(text, "number").unwrap_or_default();
                let standing = next.take(shard, number);
                if standing != Standing::Low {
                    next.0.insert(shard, number + 1);
                }
                on(shard, number, standing);
            }
            Some("orders_live") => {
                let number = number_of(text, "next").unwrap_or_default();
                self.live.insert(shard);
                // All before it must have been told.
                if next.take(shard, number) == Standing::BehindGap {
                    on(shard, number, Standing::BehindGap);
                }
            }
            // A gateway that is behind: another one is not.
            Some("orders_not") => return Err(std::io::Error::other(text.to_owned())),
            _ => {}
        }
        Ok(())
    }
}

/// A text as frames of at most 125 bytes each.
fn text_frames(text: &str) -> Vec<Vec<u8>> {
    let chunks: Vec<&[u8]> = text.as_bytes().chunks(125).collect();
    let count = chunks.len();
    let frame = |(place, chunk): (usize, &&[u8])| {
        let part = std::str::from_utf8(chunk).expect("it is ASCII");
        let mut frame = text_frame(part);
        frame[0] = if place == 0 { 0x01 } else { 0x00 } | if place + 1 == count { 0x80 } else { 0 };
        frame
    };
    chunks.iter().enumerate().map(frame).collect()
}
