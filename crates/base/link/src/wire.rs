//! One connection's bytes: a socket, TLS on it or not, and what waits on either side of it.
//!
//! Input grows with what came, never with what a head announces. Output is a plain buffer: a frame sent costs a copy,
//! and all that piled up leaves in one write.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::pki_types::CertificateDer;
use rustls::{Connection, ServerConfig, ServerConnection};

use crate::ended::Ended;
use crate::frame;

/// Read from a socket at a time; the next connection's turn comes after that.
pub(crate) const SCRATCH_BYTES: usize = 64 << 10;
/// Buffers larger than this are given back once they are empty.
const KEPT_BYTES: usize = 256 << 10;
/// What TLS may hold encrypted and unsent. Beyond it the bytes wait unencrypted, where they are counted.
const TLS_BUFFER_BYTES: usize = 256 << 10;
/// The first byte of a TLS connection, and the second. A hello's length has 0 as second byte.
const TLS_FIRST: [u8; 2] = [0x16, 0x03];

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Nothing more for now.
    Drained,
    /// There may be more.
    More,
}

enum Security {
    Plain,
    /// The first bytes will tell; if TLS, then with this.
    Undecided(Option<Arc<ServerConfig>>),
    Tls(Box<Connection>),
}

pub(crate) struct Wire {
    stream: TcpStream,
    security: Security,
    input: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
    sent: usize,
    end_of_input: bool,
}

impl Wire {
    pub(crate) fn plain(stream: TcpStream) -> Self {
        Self::new(stream, Security::Plain)
    }

    /// Plain or TLS, as its first bytes say.
    pub(crate) fn undecided(stream: TcpStream, tls: Option<Arc<ServerConfig>>) -> Self {
        Self::new(stream, Security::Undecided(tls))
    }

    pub(crate) fn tls(stream: TcpStream, tls: impl Into<Connection>) -> Self {
        Self::new(stream, Security::tls(tls.into()))
    }

    fn new(stream: TcpStream, security: Security) -> Self {
        Self {
            stream,
            security,
            input: Vec::new(),
            taken: 0,
            output: Vec::new(),
            sent: 0,
            end_of_input: false,
        }
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.security, Security::Tls(_))
    }

    /// Whether a TLS handshake, if there is to be one, is not over yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        match &self.security {
            Security::Plain => false,
            Security::Undecided(_) => true,
            Security::Tls(tls) => tls.is_handshaking(),
        }
    }

    /// The certificate the other end proved to own.
    pub(crate) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        match &self.security {
            Security::Tls(tls) => tls.peer_certificates()?.first(),
            Security::Plain | Security::Undecided(_) => None,
        }
    }

    /// Reads once, at most `scratch`. Bytes that came before the end are there as frames first.
    pub(crate) fn fill(&mut self, scratch: &mut [u8]) -> Result<Filled, Ended> {
        if self.end_of_input {
            return Err(Ended::Gone);
        }
        if matches!(self.security, Security::Undecided(_)) && !self.decide()? {
            return Ok(Filled::Drained);
        }
        let read = match self.stream.read(scratch) {
            Ok(0) => return Err(Ended::Gone),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Filled::Drained),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(Filled::More),
            Err(error) => return Err(broken(error)),
        };
        match &mut self.security {
            Security::Tls(tls) => match decrypt(tls, &scratch[..read], &mut self.input) {
                Ok(closed) => self.end_of_input |= closed,
                Err(error) => {
                    // The other end receives the reason, if the socket takes it.
                    let _ = tls.write_tls(&mut self.stream);
                    return Err(Ended::Tls(error));
                }
            },
            Security::Plain | Security::Undecided(_) => self.input.extend_from_slice(&scratch[..read]),
        }
        // Readiness is reported once: only "would block" says that there is no more, and a short read nearly says it,
        // except for the end of the stream, of which there might be no further word.
        Ok(Filled::More)
    }

    /// Whether the first bytes are there; then it is known what they are.
    fn decide(&mut self) -> Result<bool, Ended> {
        let mut first = [0; 2];
        match self.stream.peek(&mut first) {
            Ok(0) => return Err(Ended::Gone),
            Ok(1) if first[0] == TLS_FIRST[0] => return Ok(false),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(false);
            }
            Err(error) => return Err(broken(error)),
        }
        let Security::Undecided(tls) = &mut self.security else { return Ok(true) };
        self.security = match (first == TLS_FIRST, tls.take()) {
            (false, _) => Security::Plain,
            (true, None) => return Err(Ended::TlsRefused),
            (true, Some(config)) => Security::tls(ServerConnection::new(config).map_err(Ended::Tls)?.into()),
        };
        Ok(true)
    }

    /// The next whole frame's payload.
    pub(crate) fn next_frame(&mut self, max: usize) -> Result<Option<&[u8]>, Ended> {
        match frame::split(&self.input[self.taken..], max) {
            Ok(Some((payload, _))) => {
                self.taken += frame::HEAD_BYTES + payload.len();
                Ok(Some(payload))
            }
            Ok(None) => Ok(None),
            Err(frame::TooLong { bytes }) => Err(Ended::TooLong { bytes, max }),
        }
    }

    /// Gives back the room of frames that were taken.
    pub(crate) fn tidy_input(&mut self) {
        give_back(&mut self.input, &mut self.taken);
    }

    pub(crate) fn push(&mut self, payload: &[u8]) {
        frame::append(&mut self.output, payload);
    }

    /// Bytes of frames not handed to the socket (or to TLS, which holds little) yet.
    pub(crate) fn backlog(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Bytes in its buffers: of frames that are not whole, and of what waits to be sent.
    pub(crate) fn held(&self) -> usize {
        self.input.len() - self.taken + self.backlog()
    }

    /// Hands the socket what it takes, all that is pending in one write.
    pub(crate) fn flush(&mut self) -> Result<(), Ended> {
        let result = match &mut self.security {
            Security::Plain => write_all(&self.output, &mut self.sent, |bytes| self.stream.write(bytes)),
            Security::Undecided(_) => Ok(()),
            Security::Tls(tls) => encrypt(tls, &mut self.stream, &self.output, &mut self.sent),
        };
        give_back(&mut self.output, &mut self.sent);
        match result {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(broken(error)),
            Ok(()) => Ok(()),
        }
    }

    /// Whether TLS has something to say by itself, or frames are waiting.
    pub(crate) fn wants_flush(&self) -> bool {
        match &self.security {
            Security::Tls(tls) => tls.wants_write() || self.backlog() > 0 && !tls.is_handshaking(),
            Security::Plain => self.backlog() > 0,
            Security::Undecided(_) => false,
        }
    }

    /// Says goodbye as far as the socket takes it.
    pub(crate) fn close(&mut self) {
        if let Security::Tls(tls) = &mut self.security
            && !tls.is_handshaking()
        {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.stream);
        }
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

impl Security {
    fn tls(mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(TLS_BUFFER_BYTES));
        Self::Tls(Box::new(connection))
    }
}

fn broken(error: io::Error) -> Ended {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => Ended::Gone,
        _ => Ended::Broken(error),
    }
}

/// Decrypts `bytes` into `input`. Says whether the other end has closed.
fn decrypt(tls: &mut Connection, mut bytes: &[u8], input: &mut Vec<u8>) -> Result<bool, rustls::Error> {
    let mut closed = false;
    while !bytes.is_empty() && !closed {
        tls.read_tls(&mut bytes).map_err(|error| rustls::Error::General(error.to_string()))?;
        let state = tls.process_new_packets()?;
        closed = state.peer_has_closed();
        let start = input.len();
        input.resize(start + state.plaintext_bytes_to_read(), 0);
        tls.reader().read_exact(&mut input[start..]).expect("as many as it says there are");
    }
    Ok(closed)
}

fn encrypt(tls: &mut Connection, stream: &mut TcpStream, output: &[u8], sent: &mut usize) -> io::Result<()> {
    loop {
        while tls.wants_write() {
            match tls.write_tls(stream) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        if *sent == output.len() || tls.is_handshaking() {
            return Ok(());
        }
        *sent += tls.writer().write(&output[*sent..])?;
    }
}

fn write_all(
    output: &[u8],
    sent: &mut usize,
    mut write: impl FnMut(&[u8]) -> io::Result<usize>,
) -> io::Result<()> {
    while *sent < output.len() {
        match write(&output[*sent..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => *sent += written,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What is done takes no more room than what is not.
fn give_back(buffer: &mut Vec<u8>, done: &mut usize) {
    if *done == buffer.len() {
        buffer.clear();
        buffer.shrink_to(KEPT_BYTES);
        *done = 0;
    } else if *done > buffer.len() / 2 {
        buffer.drain(..*done);
        buffer.shrink_to(KEPT_BYTES.max(2 * buffer.len()));
        *done = 0;
    }
}
