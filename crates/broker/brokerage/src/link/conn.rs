//! A connection that never waits: what has come, and what is to go, in frames or in lines.
//!
//! Readiness is reported once, so it is remembered until a read finds nothing more; who has enough to do for now leaves the rest in the socket, and the other end
//! is slowed down by that.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use pares_link::{Door, frame};
use pares_tls::{Stream, TlsStream};

/// Taken from a socket at a time.
const READ_BYTES: usize = 64 << 10;

/// See the [module](self).
pub struct Conn {
    stream: Stream<TcpStream>,
    /// Something may have come.
    is_ready: bool,
    has_ended: bool,
    input: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
    sent: usize,
    /// Since when the socket has taken nothing of what is to go.
    stuck: Option<Instant>,
}

impl Conn {
    /// A connection that was accepted.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn accepted(stream: TcpStream, registry: &Registry, token: Token) -> io::Result<Self> {
        Self::over(Stream::Plain(stream), registry, token)
    }

    /// Begins to connect; whether a server answers shows with the first read.
    ///
    /// # Errors
    /// If there is no socket for it.
    pub fn connect(door: &Door, registry: &Registry, token: Token) -> io::Result<Self> {
        let tls = door.tls().map_err(io::Error::other)?;
        let stream = TcpStream::connect(door.address())?;
        let stream = match tls {
            None => Stream::Plain(stream),
            Some(tls) => Stream::Tls(Box::new(TlsStream::new(stream, tls))),
        };
        Self::over(stream, registry, token)
    }

    /// The same without TLS.
    ///
    /// # Errors
    /// If there is no socket for it.
    pub fn dial(address: SocketAddr, registry: &Registry, token: Token) -> io::Result<Self> {
        Self::connect(&Door::from(address), registry, token)
    }

    fn over(mut stream: Stream<TcpStream>, registry: &Registry, token: Token) -> io::Result<Self> {
        registry.register(stream.socket(), token, Interest::READABLE | Interest::WRITABLE)?;
        // Of a connection that is not there yet some systems refuse it: then its frames are a little late.
        let _ = stream.socket().set_nodelay(true);
        let (input, output) = (Vec::new(), Vec::new());
        Ok(Self { stream, is_ready: true, has_ended: false, input, taken: 0, output, sent: 0, stuck: None })
    }

    /// Something has happened to it.
    pub fn wake(&mut self) {
        self.is_ready = true;
    }

    /// Takes what has come, until it holds `enough` bytes that nobody took.
    ///
    /// # Errors
    /// If the other end is gone, and all that came before was taken.
    pub fn fill(&mut self, enough: usize) -> io::Result<()> {
        self.input.drain(..std::mem::take(&mut self.taken));
        while (self.is_ready || self.stream.holds_input()) && !self.has_ended && self.input.len() < enough {
            let start = self.input.len();
            self.input.resize(start + READ_BYTES, 0);
            let read = self.stream.read(&mut self.input[start..]);
            self.input.truncate(start + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => self.has_ended = true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_early(&error) => self.is_ready = false,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether nothing more will come, and all that came was taken, or is half of something.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether the socket may have more.
    pub fn may_have_more(&self) -> bool {
        (self.is_ready || self.stream.holds_input()) && !self.has_ended
    }

    /// The next frame, of `max` bytes at most.
    ///
    /// # Errors
    /// If one is announced that is longer.
    pub fn frame(&mut self, max: usize) -> io::Result<Option<Vec<u8>>> {
        let too_long = |frame::TooLong { bytes }| io::Error::other(format!("a frame of {bytes} bytes"));
        let found = frame::split(self.rest(), max).map_err(too_long)?;
        let payload = found.map(|(payload, _)| payload.to_vec());
        self.taken += payload.as_ref().map_or(0, |payload| frame::HEAD_BYTES + payload.len());
        Ok(payload)
    }

    /// The next line without its end, of `max` bytes at most.
    ///
    /// # Errors
    /// If it is longer.
    pub fn line(&mut self, max: usize) -> io::Result<Option<Vec<u8>>> {
        let rest = self.rest();
        let Some(end) = rest.iter().take(max + 1).position(|byte| *byte == b'\n') else {
            return if rest.len() > max { Err(io::Error::other("a line without end")) } else { Ok(None) };
        };
        let line = rest[..end].to_vec();
        self.taken += end + 1;
        Ok(Some(line))
    }

    /// What has come, and was not taken.
    pub fn rest(&self) -> &[u8] {
        &self.input[self.taken..]
    }

    /// Whether something has come that is no whole line, or frame.
    pub fn holds_half(&self) -> bool {
        !self.rest().is_empty()
    }

    /// Appends a frame to what is to go.
    pub fn push_frame(&mut self, payload: &[u8]) {
        frame::append(&mut self.output, payload);
    }

    /// Appends bytes to what is to go.
    pub fn push(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    /// Bytes that the socket has not taken.
    pub fn backlog(&self) -> usize {
        self.output.len() - self.sent
    }

    /// For how long the other end has taken nothing, though something is to go.
    pub fn stuck_for(&self) -> Option<Duration> {
        self.stuck.map(|since| since.elapsed())
    }

    /// Hands the socket what it takes; whether it took anything.
    ///
    /// # Errors
    /// If the other end is gone.
    pub fn flush(&mut self) -> io::Result<bool> {
        let before = self.backlog();
        self.write()?;
        let left = self.backlog();
        if left == 0 {
            self.stuck = None;
        } else if left < before || self.stuck.is_none() {
            self.stuck = Some(Instant::now());
        }
        Ok(left < before)
    }

    fn write(&mut self) -> io::Result<()> {
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_early(&error) => break,
                Err(error) => return Err(error),
            }
        }
        self.output.drain(..std::mem::take(&mut self.sent));
        match self.stream.flush() {
            Err(error) if !is_early(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// There is nothing to read, no room to write, or no connection yet.
fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected)
}
