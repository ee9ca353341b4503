//! A socket that is plain or TLS and never waits.
//!
//! To its user a TLS stream is like a socket that reports readiness once: a read that fills less than it was given has met the end of
//! what came. One that says [`Interrupted`](ErrorKind::Interrupted) must be asked again: it does a bounded amount of work at a time,
//! since a peer may send records without end that hold nothing.
//!
//! ```text
//!  socket --SCRATCH_BYTES at a time--> records --decrypted--> the caller's buffer
//!                                                      \----> kept, if there is no room: read before anything else
//! ```
//! What is written is encrypted at once and sent as far as the socket takes it. What it does not take is kept, up to
//! [`UNSENT_MAX`], and goes first with the next write or flush.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Write};

use rustls::Connection;

/// Taken from a socket at a time.
const SCRATCH_BYTES: usize = 16 << 10;
/// Taken from a socket in one read: what fills 16 KiB, were every frame a record of its own.
const READ_MAX: usize = 2 * SCRATCH_BYTES;
/// Encrypted and not sent.
const UNSENT_MAX: usize = 256 << 10;
/// What another end may send before the handshake is over: certificates, mostly.
const HANDSHAKE_MAX: usize = 16 << 10;

thread_local! {
    /// Records on their way from a socket: read in one go, however small they are.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into());
}

/// A socket, plain or TLS.
#[derive(Debug)]
pub enum Stream<T> {
    /// As it is.
    Plain(T),
    /// Encrypted.
    Tls(Box<TlsStream<T>>),
}

impl<T> Stream<T> {
    /// The socket.
    pub fn socket(&mut self) -> &mut T {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &mut stream.socket,
        }
    }

    /// The socket.
    pub fn socket_ref(&self) -> &T {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &stream.socket,
        }
    }

    /// Whether it holds bytes to read of which the socket's readiness tells nothing.
    pub fn holds_input(&self) -> bool {
        matches!(self, Self::Tls(stream) if !stream.kept.is_empty())
    }

    /// Whether it holds bytes that the socket has not taken.
    pub fn holds_output(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.tls.wants_write())
    }
}

impl<T: Read + Write> Read for Stream<T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }
}

impl<T: Read + Write> Write for Stream<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// A connection in TLS over a socket that does not block. Errors of TLS are of the kind
/// [`InvalidData`](ErrorKind::InvalidData).
#[derive(Debug)]
pub struct TlsStream<T> {
    socket: T,
    tls: Connection,
    /// Decrypted, and not read yet.
    kept: Vec<u8>,
    /// Bytes taken from the socket before the handshake was over.
    shaken: usize,
    /// Nothing more will come.
    ended: bool,
}

/// What taking bytes from the socket came to.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// From the socket.
    records: usize,
    /// Decrypted into the caller's buffer.
    bytes: usize,
    /// There is no more for now.
    drained: bool,
}

impl<T: Read + Write> TlsStream<T> {
    /// TLS over that socket.
    pub fn new(socket: T, tls: impl Into<Connection>) -> Self {
        let mut tls = tls.into();
        tls.set_buffer_limit(Some(UNSENT_MAX));
        Self { socket, tls, kept: Vec::new(), shaken: 0, ended: false }
    }

    /// The socket.
    pub fn socket(&mut self) -> &mut T {
        &mut self.socket
    }

    /// TLS's own end of it.
    pub fn tls(&mut self) -> &mut Connection {
        &mut self.tls
    }

    /// Continues the handshake as far as possible now. Says whether it is over. Bytes that came behind it are kept.
    ///
    /// # Errors
    /// `InvalidData` if the other end does not speak TLS or shows a bad certificate: it was sent the reason. `UnexpectedEof`
    /// if it has gone. Others as the socket says.
    pub fn shake_hands(&mut self) -> io::Result<bool> {
        let mut is_drained = false;
        loop {
            match self.flush() {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ if !self.tls.is_handshaking() => return Ok(true),
                _ if self.ended => return Err(no_tls()),
                _ if is_drained => return Ok(false),
                _ => is_drained = self.take(&mut [])?.drained,
            }
        }
    }

    /// Reads the socket once and decrypts what came: into `into`, and what it has no room for into what is kept.
    fn take(&mut self, into: &mut [u8]) -> io::Result<Taken> {
        SCRATCH.with_borrow_mut(|scratch| {
            let records = match self.socket.read(scratch) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(Taken { drained: true, ..Taken::default() });
                }
                Ok(records) => records,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(Taken { drained: true, ..Taken::default() });
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(Taken::default()),
                Err(error) => return Err(error),
            };
            let bytes = self.decrypt(&scratch[..records], into)?;
            Ok(Taken { records, bytes, drained: records < scratch.len() })
        })
    }

    fn decrypt(&mut self, mut records: &[u8], into: &mut [u8]) -> io::Result<usize> {
        if self.tls.is_handshaking() {
            self.shaken += records.len();
            if self.shaken > HANDSHAKE_MAX {
                return Err(io::Error::new(ErrorKind::InvalidData, "a handshake without end"));
            }
        }
        let mut read = 0;
        while !records.is_empty() && !self.ended {
            self.tls.read_tls(&mut records)?;
            let state = self.tls.process_new_packets().map_err(|error| {
                // The other end receives the reason, if the socket takes it.
                let _ = self.tls.write_tls(&mut self.socket);
                io::Error::new(ErrorKind::InvalidData, error)
            })?;
            self.ended |= state.peer_has_closed();
            let direct = state.plaintext_bytes_to_read().min(into.len() - read);
            let kept = state.plaintext_bytes_to_read() - direct;
            self.tls.reader().read_exact(&mut into[read..read + direct])?;
            read += direct;
            let start = self.kept.len();
            self.kept.resize(start + kept, 0);
            self.tls.reader().read_exact(&mut self.kept[start..])?;
        }
        Ok(read)
    }

    fn take_kept(&mut self, into: &mut [u8]) -> usize {
        let bytes = self.kept.len().min(into.len());
        into[..bytes].copy_from_slice(&self.kept[..bytes]);
        self.kept.drain(..bytes);
        if self.kept.is_empty() {
            // Few ever need it.
            self.kept = Vec::new();
        }
        bytes
    }
}

fn no_tls() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "closed during the TLS handshake: check that the port uses TLS")
}

impl<T: Read + Write> Read for TlsStream<T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut read = self.take_kept(into);
        let mut records = 0;
        while read < into.len() {
            if self.ended {
                let broken_off = read == 0 && self.tls.is_handshaking();
                return if broken_off { Err(no_tls()) } else { Ok(read) };
            }
            let taken = self.take(&mut into[read..])?;
            read += taken.bytes;
            records += taken.records;
            if self.tls.wants_write() {
                // It answers by itself: a handshake, new keys. What the socket does not take goes with the next write.
                match self.flush() {
                    Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                    _ => {}
                }
            }
            if taken.drained && !self.ended {
                return if read == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(read) };
            }
            if records >= READ_MAX && read < into.len() {
                self.kept.extend_from_slice(&into[..read]);
                return Err(ErrorKind::Interrupted.into());
            }
        }
        Ok(read)
    }
}

impl<T: Read + Write> Write for TlsStream<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let written = self.tls.writer().write(bytes)?;
        match self.flush() {
            _ if written == 0 && !bytes.is_empty() => Err(ErrorKind::WouldBlock.into()),
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(written),
        }
    }

    /// Hands the socket what it takes; `WouldBlock` if that is not all.
    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
