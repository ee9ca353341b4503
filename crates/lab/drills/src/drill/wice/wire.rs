//! A client's connection that does not wait where nothing has come: one thread sends questions and receives answers side by side.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use pares_link::{Door, frame};
use pares_tls::{Stream, TlsStream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longest reply, bytes.
const FRAME_MAX: usize = 8 << 20;
/// A site that does not read for so long is as good as gone.
const WRITE_PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Wire {
    stream: Stream<TcpStream>,
    output: Vec<u8>,
    input: Vec<u8>,
    taken: usize,
}

impl Wire {
    pub(super) fn connect(door: &Door) -> io::Result<Self> {
        let tls = door.tls().map_err(io::Error::other)?;
        let stream = TcpStream::connect_timeout(&door.address(), WRITE_PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let stream = match tls {
            None => Stream::Plain(stream),
            Some(tls) => Stream::Tls(Box::new(TlsStream::new(stream, tls))),
        };
        let mut wire = Self { stream, output: Vec::new(), input: Vec::new(), taken: 0 };
        wire.shake_hands()?;
        Ok(wire)
    }

    fn shake_hands(&mut self) -> io::Result<()> {
        let began = Instant::now();
        while let Stream::Tls(tls) = &mut self.stream
            && !tls.shake_hands()?
        {
            self.wait_for(PollFlags::IN, WRITE_PATIENCE.saturating_sub(began.elapsed()))?;
        }
        Ok(())
    }

    /// Adds to what the next flush writes.
    pub(super) fn send(&mut self, payload: &[u8]) {
        frame::append(&mut self.output, payload);
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        let (began, mut sent) = (Instant::now(), 0);
        while sent < self.output.len() || self.stream.holds_output() {
            let written = match self.output.get(sent..) {
                Some(rest) if !rest.is_empty() => self.stream.write(rest),
                _ => self.stream.flush().map(|()| 0),
            };
            match written {
                Ok(written) => sent += written,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait_for(PollFlags::OUT, WRITE_PATIENCE.saturating_sub(began.elapsed()))?;
                }
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        Ok(())
    }

    /// Waits for a socket that must be ready in time.
    fn wait_for(&mut self, what: PollFlags, patience: Duration) -> io::Result<()> {
        if patience.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.poll(what, patience)
    }

    /// Waits until something has come, or the time is over.
    pub(super) fn wait(&mut self, patience: Duration) -> io::Result<()> {
        if self.stream.holds_input() { Ok(()) } else { self.poll(PollFlags::IN, patience) }
    }

    fn poll(&mut self, what: PollFlags, patience: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(patience).map_err(io::Error::other)?;
        let mut fds = [PollFd::new(self.stream.socket(), what)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The next frame that has come.
    pub(super) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let rest = &self.input[self.taken..];
            let split =
                frame::split(rest, FRAME_MAX).map_err(|error| io::Error::other(format!("{error:?}")))?;
            if let Some((payload, _)) = split {
                let payload = payload.to_vec();
                self.taken += frame::HEAD_BYTES + payload.len();
                return Ok(Some(payload));
            }
            self.input.drain(..self.taken);
            self.taken = 0;
            let mut bytes = [0; 64 << 10];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.input.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
