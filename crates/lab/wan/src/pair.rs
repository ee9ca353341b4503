//! One connection through the proxy: two sockets, and what is under way between them.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use mio::net::TcpStream;

use crate::engine::PIECE_EXTRA;
use crate::line::Line;
use crate::{Direction, Meters};

/// What comes out at the far end.
pub(super) enum Piece {
    Bytes(Vec<u8>),
    /// The sender sends no more.
    End,
    /// The connection breaks.
    Break,
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        if let Self::Bytes(bytes) = self { bytes } else { &[] }
    }
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
    /// The side that came, and the target.
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

    /// Reads one piece, if there is one.
    pub(super) fn read(&mut self, direction: Direction, scratch: &mut [u8]) -> Option<Piece> {
        match self.streams[direction as usize].read(scratch) {
            Ok(0) => Some(Piece::End),
            Ok(read) => Some(Piece::Bytes(scratch[..read].to_vec())),
            Err(error) if error.kind() == ErrorKind::Interrupted => None,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.ways[direction as usize].readable = false;
                None
            }
            Err(_) => Some(Piece::Break),
        }
    }

    /// Sends a piece on its way.
    pub(super) fn enter(
        &mut self,
        direction: Direction,
        mut piece: Piece,
        line: &mut Line,
        now_ns: u64,
        meters: &Meters,
    ) {
        let way = &mut self.ways[direction as usize];
        let entered = piece.bytes().len();
        let passage = line.enter(now_ns, self.name, way.position, entered);
        way.position += entered as u64;
        // Order is kept: a stall holds up all that comes behind.
        way.last_due_ns = way.last_due_ns.max(passage.due_ns);
        meters.lost.fetch_add(passage.lost, Relaxed);
        if let (Some(at), Piece::Bytes(bytes)) = (passage.breaks_at, &mut piece) {
            meters.broken.fetch_add(1, Relaxed);
            bytes.truncate(at);
        }
        way.closed = entered == 0 || passage.breaks_at.is_some();
        way.readable &= !way.closed;
        way.bytes += piece.bytes().len() + PIECE_EXTRA;
        way.under_way.push_back((way.last_due_ns, piece));
        if passage.breaks_at.is_some() {
            way.under_way.push_back((way.last_due_ns, Piece::Break));
        }
    }

    /// Writes what is due.
    pub(super) fn deliver(
        &mut self,
        direction: Direction,
        now_ns: u64,
        meters: &Meters,
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
                    if !write(out, bytes, &mut way.written, meters)? {
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
fn write(out: &mut TcpStream, bytes: &[u8], written: &mut usize, meters: &Meters) -> Result<bool, Broken> {
    while *written < bytes.len() {
        match out.write(&bytes[*written..]) {
            Ok(0) => return Err(Broken),
            Ok(more) => {
                *written += more;
                meters.bytes.fetch_add(more as u64, Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(Broken),
        }
    }
    Ok(true)
}
