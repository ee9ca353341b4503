//! A TCP connection to a replayer that never waits.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use pares_tls::{Stream, TlsStream, Trust};
use pares_wire::REPLAYERS_NAME;

/// A connection, made or being made.
pub(crate) struct Connection {
    stream: Stream<TcpStream>,
    /// To be sent: a login, heartbeats.
    unsent: Vec<u8>,
    /// Whether there may be something to read.
    pub(crate) is_ready: bool,
}

impl Connection {
    /// Begins to connect; `first` is sent once it is made, in TLS once the other end has proved to be a replayer.
    pub(crate) fn open(
        to: SocketAddr,
        tls: Option<&Trust>,
        first: &[u8],
        (registry, token): (&Registry, Token),
    ) -> io::Result<Self> {
        let dialled = tls.map(|trust| trust.dial(REPLAYERS_NAME).map_err(io::Error::other)).transpose()?;
        let mut socket = TcpStream::connect(to)?;
        registry.register(&mut socket, token, Interest::READABLE | Interest::WRITABLE)?;
        let stream = match dialled {
            Some(tls) => Stream::Tls(Box::new(TlsStream::new(socket, tls))),
            None => Stream::Plain(socket),
        };
        Ok(Self { stream, unsent: first.to_vec(), is_ready: false })
    }

    /// Sends these, and what has waited, as far as it goes now.
    ///
    /// # Errors
    /// If the connection is broken, or was refused.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unsent.extend_from_slice(bytes);
        send(&mut self.stream, &mut self.unsent)
    }

    /// Reads what has come; `None` if nothing has.
    ///
    /// # Errors
    /// If the connection is broken or closed.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match self.stream.read(into) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => Ok(Some(length)),
            Err(error) if is_for_later(&error) => {
                self.is_ready = error.kind() == io::ErrorKind::Interrupted;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Sends as much as goes now.
fn send(stream: &mut impl Write, unsent: &mut Vec<u8>) -> io::Result<()> {
    while !unsent.is_empty() {
        match stream.write(unsent) {
            // It would take nothing the next time either.
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(gone) => drop(unsent.drain(..gone)),
            Err(error) if is_for_later(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    // What TLS holds of it.
    match stream.flush() {
        Err(error) if !is_for_later(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Whether an error says: not now.
pub(crate) fn is_for_later(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, NotConnected, WouldBlock};
    matches!(error.kind(), WouldBlock | NotConnected | Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_takes_nothing_is_broken() {
        let mut full: &mut [u8] = &mut [0; 3];
        let mut unsent = b"hello".to_vec();
        assert_eq!(send(&mut full, &mut unsent).unwrap_err().kind(), io::ErrorKind::WriteZero);
        assert_eq!(unsent, b"lo");
    }
}
