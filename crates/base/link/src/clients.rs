//! Applications that talk to a site: who they are there, and the plain blocking end of it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pares_tls::{ClientConnection, TlsError, Trust};
use rustls::StreamOwned;

use crate::frame;
use crate::tls::site_name;

/// What TLS answers to what is none begins with; to a frame it would be a length.
const TLS_ALERT: [u8; 2] = [0x15, 0x03];

/// An application's connection. Never used again, not even for the same application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

impl ClientId {
    pub(crate) fn new(slot: usize, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | slot as u64)
    }

    pub(crate) fn slot(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Where a site lets applications in, and what they show there.
#[derive(Clone, Debug)]
pub struct Door {
    address: SocketAddr,
    /// The certificate that is shown, and the name that the site's must bear; nothing without TLS.
    proof: Option<(Trust, String)>,
}

impl From<SocketAddr> for Door {
    /// Without TLS.
    fn from(address: SocketAddr) -> Self {
        Self { address, proof: None }
    }
}

impl Door {
    /// With TLS: site `number` of `system`, which is shown the certificate of `trust`.
    #[must_use]
    pub fn with_tls(address: SocketAddr, trust: Trust, number: u16, system: &str) -> Self {
        Self { address, proof: Some((trust, site_name(number, system))) }
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The TLS of a connection, if it has any.
    ///
    /// # Errors
    /// If the site's name cannot be one.
    pub fn tls(&self) -> Result<Option<ClientConnection>, TlsError> {
        self.proof.as_ref().map(|(trust, name)| trust.dial(name)).transpose()
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// Read at once: so much at first, and more while that is not enough.
const READ_BYTES: usize = 16 << 10;
const READ_BYTES_MAX: usize = 512 << 10;

/// An application's end of a connection to a site: blocking, one frame at a time.
pub struct ClientStream {
    stream: Stream,
    input: Vec<u8>,
    /// Of the input: frames that were given out end there, and what has come.
    taken: usize,
    filled: usize,
    read_bytes: usize,
    frame_max: usize,
}

impl ClientStream {
    /// Connects.
    ///
    /// # Errors
    /// If no process listens at that address. A wrong process, or one that refuses that certificate, shows with the first frames.
    pub fn connect(door: &Door, frame_max: usize) -> io::Result<Self> {
        let tls = door.tls().map_err(io::Error::other)?;
        let stream = TcpStream::connect(door.address)?;
        stream.set_nodelay(true)?;
        let stream = match tls {
            None => Stream::Plain(stream),
            Some(tls) => Stream::Tls(Box::new(StreamOwned::new(tls, stream))),
        };
        Ok(Self { stream, input: Vec::new(), taken: 0, filled: 0, read_bytes: READ_BYTES, frame_max })
    }

    /// How long a receive waits, and a send for the TLS handshake; for ever if `None`.
    ///
    /// # Errors
    /// If the time is zero.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.stream {
            Stream::Plain(stream) => stream.set_read_timeout(timeout),
            Stream::Tls(stream) => stream.sock.set_read_timeout(timeout),
        }
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// If the connection fails. `InvalidData` if TLS refuses: with the first frame sent or received.
    pub fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::new();
        frame::append(&mut bytes, payload);
        match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(&bytes),
            Stream::Tls(stream) => {
                let sent = stream.write_all(&bytes).and_then(|()| stream.flush());
                sent.map_err(|error| why_closed(stream, error))
            }
        }
    }

    /// The next frame; waits for it.
    ///
    /// # Errors
    /// `UnexpectedEof` if the site closed the connection, `WouldBlock` or `TimedOut` if nothing came in time, after
    /// which it may be asked again. `InvalidData` if TLS refuses.
    pub fn receive(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(payload) = self.receive_part()? {
                return Ok(payload.to_vec());
            }
        }
    }

    /// The next frame, where it lies, if it has come as a whole; otherwise waits for some more of it.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn receive_part(&mut self) -> io::Result<Option<&[u8]>> {
        let too_long = |frame::TooLong { bytes }| io::Error::other(format!("a frame of {bytes} bytes"));
        let has = frame::split(&self.input[self.taken..self.filled], self.frame_max).map_err(too_long)?;
        let Some(len) = has.map(|(payload, _)| payload.len()) else { return self.fill().map(|()| None) };
        let from = self.taken + frame::HEAD_BYTES;
        self.taken = from + len;
        Ok(Some(&self.input[from..self.taken]))
    }

    fn fill(&mut self) -> io::Result<()> {
        self.input.copy_within(self.taken..self.filled, 0);
        (self.filled, self.taken) = (self.filled - self.taken, 0);
        let end = self.filled + self.read_bytes;
        self.input.resize(end.max(self.input.len()), 0);
        let room = &mut self.input[self.filled..end];
        let read = match &mut self.stream {
            Stream::Plain(stream) => stream.read(room)?,
            Stream::Tls(stream) => stream.read(room)?,
        };
        if read == 0 {
            return Err(if self.input[..self.filled].starts_with(&TLS_ALERT) {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the site's port requires TLS, but this client uses none: give it a certificate",
                )
            } else {
                io::ErrorKind::UnexpectedEof.into()
            });
        }
        self.filled += read;
        if read == self.read_bytes {
            self.read_bytes = (2 * read).min(READ_BYTES_MAX);
        }
        Ok(())
    }
}

/// A site that refuses a certificate says so and closes: what it said is there to be read, though nothing can be written any more.
fn why_closed(stream: &mut StreamOwned<ClientConnection, TcpStream>, error: io::Error) -> io::Error {
    if !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
        return error;
    }
    while stream.conn.read_tls(&mut stream.sock).is_ok_and(|read| read > 0) {
        if let Err(why) = stream.conn.process_new_packets() {
            return io::Error::new(io::ErrorKind::InvalidData, why);
        }
    }
    error
}
