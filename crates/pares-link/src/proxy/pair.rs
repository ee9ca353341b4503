//! One connection through the proxy: two sockets, and what is under way between them.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use mio::net::TcpStream;

use super::engine::PIECE_EXTRA;
use super::line::Line;
use super::{Direction, Traffic};

/// What comes out at the far end.
enum Piece {
    Bytes(Vec<u8>),
    /// The sender sends no more.
    End,
    /// The connection breaks.
    Break,
}

/// One direction.
#[derive(Default)]
pub(super) struct Way {
    under_way: VecDeque<(u64, Piece)>,
    /// Bytes in them, those written already included until all of their piece are.
    pub(super) bytes: usize,
    /// Written of the first piece.
    written: usize,
    /// Bytes that entered so far.
    position: u64,
    last_due_ns: u64,
    /// Whether there may be something to read.
    pub(super) readable: bool,
    /// Whether it is in the list of those to read.
    pub(super) listed: bool,
    /// Nothing more will enter.
    closed: bool,
    /// The end has come out.
    ended: bool,
    /// When its first piece is due, as far as that is waited for.
    pub(super) awaited_ns: Option<u64>,
}

pub(super) struct Pair {
    /// Which connection this is, for the chances it meets.
    name: u64,
    /// Whoever came, and the target.
    streams: [TcpStream; 2],
    /// Whether the target is connected.
    pub(super) connected: bool,
    pub(super) ways: [Way; 2],
}

/// The connection has to go.
pub(super) struct Broken;

/// What is to come of a way after all that is due has come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing, until something enters or the socket takes more.
    Idle,
    /// The next piece, then.
    Due(u64),
    /// Both ways have ended.
    Over,
}

impl Pair {
    pub(super) fn new(name: u64, from: TcpStream, target: TcpStream) -> Self {
        Self { name, streams: [from, target], connected: false, ways: Default::default() }
    }

    pub(super) fn stream(&mut self, end: usize) -> &mut TcpStream {
        &mut self.streams[end]
    }

    /// Reads one piece and sends it on its way.
    pub(super) fn read(
        &mut self,
        direction: Direction,
        line: &mut Line,
        now_ns: u64,
        scratch: &mut [u8],
        traffic: &mut Traffic,
    ) {
        let way = &mut self.ways[direction as usize];
        let wanted = line.piece_bytes().min(scratch.len());
        let piece = match self.streams[direction as usize].read(&mut scratch[..wanted]) {
            Ok(0) => Piece::End,
            Ok(read) => Piece::Bytes(scratch[..read].to_vec()),
            Err(error) if error.kind() == ErrorKind::Interrupted => return,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                way.readable = false;
                return;
            }
            Err(_) => Piece::Break,
        };
        let bytes = if let Piece::Bytes(bytes) = &piece { bytes.len() } else { 0 };
        let passage = line.enter(now_ns, self.name, way.position, bytes);
        way.position += bytes as u64;
        way.bytes += bytes + PIECE_EXTRA;
        // Order is kept: a stall holds up all that comes behind.
        way.last_due_ns = way.last_due_ns.max(passage.due_ns);
        traffic.lost += passage.lost;
        traffic.broken += u64::from(passage.broken);
        way.closed = bytes == 0 || passage.broken;
        way.readable &= !way.closed;
        way.under_way.push_back((way.last_due_ns, piece));
        if passage.broken {
            way.under_way.push_back((way.last_due_ns, Piece::Break));
        }
    }

    /// Writes what is due.
    pub(super) fn deliver(
        &mut self,
        direction: Direction,
        now_ns: u64,
        traffic: &mut Traffic,
    ) -> Result<Next, Broken> {
        if direction == Direction::Forth && !self.connected {
            return Ok(Next::Idle);
        }
        let out = &mut self.streams[1 - direction as usize];
        let way = &mut self.ways[direction as usize];
        while let Some((due_ns, piece)) = way.under_way.front() {
            if *due_ns > now_ns {
                return Ok(Next::Due(*due_ns));
            }
            match piece {
                Piece::Break => return Err(Broken),
                Piece::End => {
                    // It may be gone the other way already.
                    let _ = out.shutdown(Shutdown::Write);
                    way.ended = true;
                }
                Piece::Bytes(bytes) => {
                    if !write(out, bytes, &mut way.written, traffic)? {
                        return Ok(Next::Idle);
                    }
                    way.bytes -= bytes.len() + PIECE_EXTRA;
                    way.written = 0;
                }
            }
            way.under_way.pop_front();
        }
        Ok(if self.ways.iter().all(|way| way.ended) { Next::Over } else { Next::Idle })
    }

    /// Makes both ends see a reset instead of an orderly end.
    pub(super) fn break_off(&self) {
        for stream in &self.streams {
            // Without it they see an end, which also ends it.
            let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }
}

/// Whether all of it is written.
fn write(
    out: &mut TcpStream,
    bytes: &[u8],
    written: &mut usize,
    traffic: &mut Traffic,
) -> Result<bool, Broken> {
    while *written < bytes.len() {
        match out.write(&bytes[*written..]) {
            Ok(0) => return Err(Broken),
            Ok(more) => {
                *written += more;
                traffic.bytes += more as u64;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(Broken),
        }
    }
    Ok(true)
}
