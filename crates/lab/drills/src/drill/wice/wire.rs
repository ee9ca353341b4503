//! A client's connection that does not wait where nothing has come: asking and being answered go on side by side on one thread.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pares_link::frame;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longest reply, bytes.
const FRAME_MAX: usize = 8 << 20;
/// A site that does not read for so long is as good as gone.
const WRITE_PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Wire {
    stream: TcpStream,
    output: Vec<u8>,
    input: Vec<u8>,
    taken: usize,
    readable: bool,
}

impl Wire {
    pub(super) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, WRITE_PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_PATIENCE))?;
        Ok(Self { stream, output: Vec::new(), input: Vec::new(), taken: 0, readable: false })
    }

    /// Adds to what the next flush writes.
    pub(super) fn send(&mut self, payload: &[u8]) {
        frame::append(&mut self.output, payload);
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        let written = self.stream.write_all(&self.output);
        self.output.clear();
        written
    }

    /// Waits until something has come, or the time is over.
    pub(super) fn wait(&mut self, patience: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(patience).map_err(io::Error::other)?;
        let mut fds = [PollFd::new(&self.stream, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => self.readable = ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
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
            if !std::mem::take(&mut self.readable) {
                return Ok(None);
            }
            self.input.drain(..self.taken);
            self.taken = 0;
            let mut bytes = [0; 64 << 10];
            match self.stream.read(&mut bytes)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.input.extend_from_slice(&bytes[..read]),
            }
        }
    }
}
