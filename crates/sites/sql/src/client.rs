//! A client's connection: plain or TLS, read and written in turn by its session's thread.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use pares_tls::{CertificateDer, ServerConfig, ServerConnection};
use rustls::StreamOwned;

use crate::wire::{Message, receive, receive_body, send};

/// Bytes that are gathered before they are sent.
const GATHERED: usize = 16 << 10;

/// The connection.
pub(crate) struct Client {
    reader: BufReader<End>,
    gathered: Vec<u8>,
}

enum End {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Client {
    pub(crate) fn over(socket: TcpStream) -> Self {
        Self { reader: BufReader::new(End::Plain(socket)), gathered: Vec::new() }
    }

    /// The same connection, encrypted from now on; the client begins.
    ///
    /// # Errors
    /// If it has said anything yet, which nobody vouches for; if it is no client of the authority's.
    pub(crate) fn encrypted(self, config: &Arc<ServerConfig>) -> io::Result<Self> {
        let is_early = !self.reader.buffer().is_empty();
        let End::Plain(mut socket) = self.reader.into_inner() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if is_early {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "bytes before TLS began"));
        }
        let mut tls = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        let end = End::Tls(Box::new(StreamOwned::new(tls, socket)));
        Ok(Self { reader: BufReader::new(end), gathered: Vec::new() })
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.reader.get_ref(), End::Tls(_))
    }

    /// The certificate that the client has shown.
    pub(crate) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        let End::Tls(tls) = self.reader.get_ref() else { return None };
        tls.conn.peer_certificates()?.first()
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match self.reader.get_ref() {
            End::Plain(socket) => socket,
            End::Tls(tls) => tls.get_ref(),
        }
    }

    pub(crate) fn receive(&mut self) -> io::Result<Message> {
        receive(&mut self.reader)
    }

    /// The first message, which has no tag.
    pub(crate) fn receive_first(&mut self) -> io::Result<Vec<u8>> {
        receive_body(&mut self.reader)
    }

    /// Writes a message; see [`Client::flush`].
    pub(crate) fn send(&mut self, message: &Message) -> io::Result<()> {
        send(&mut self.gathered, message.tag, &message.body)?;
        if self.gathered.len() >= GATHERED { self.flush() } else { Ok(()) }
    }

    /// Writes a byte that is no message, at once.
    pub(crate) fn say(&mut self, byte: u8) -> io::Result<()> {
        self.gathered.push(byte);
        self.flush()
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let end = self.reader.get_mut();
        end.write_all(&self.gathered)?;
        self.gathered.clear();
        end.flush()
    }
}

impl Read for End {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(into),
            Self::Tls(tls) => tls.read(into),
        }
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}
