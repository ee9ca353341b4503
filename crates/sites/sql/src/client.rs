//! A client's connection: plain or TLS, read and written in turn by its session's thread.
//!
//! Until its session begins a client is a stranger, and has one of a few places. A limit for each read is none for one who sends a byte now and then, or asks
//! for TLS again and again. So each step towards it has one deadline, whatever comes meanwhile, and short messages only.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pares_tls::{CertificateDer, ServerConfig, ServerConnection};
use rustls::StreamOwned;

use crate::wire::{MESSAGE_MAX, Message, receive, receive_body, send};

/// Bytes that are gathered before they are sent.
const GATHERED: usize = 16 << 10;
/// Longest message of who has not begun, bytes: what he says of himself, or a step of his proof.
const STRANGE_MAX: usize = 65_536;

/// The connection.
pub(crate) struct Client {
    reader: BufReader<End>,
    gathered: Vec<u8>,
    message_max: usize,
}

enum End {
    Plain(Timed),
    Tls(Box<StreamOwned<ServerConnection, Timed>>),
}

/// A socket that is used until a moment only, or without end.
struct Timed {
    socket: TcpStream,
    until: Option<Instant>,
}

impl Client {
    /// One who must have taken the next step, or [begun](Client::begun), by then.
    pub(crate) fn over(socket: TcpStream, until: Instant) -> Self {
        Self::at(End::Plain(Timed { socket, until: Some(until) }))
    }

    fn at(end: End) -> Self {
        Self { reader: BufReader::new(end), gathered: Vec::new(), message_max: STRANGE_MAX }
    }

    /// It has taken a step, and must have taken the next one by then.
    pub(crate) fn has_until(&mut self, until: Instant) {
        self.timed().until = Some(until);
    }

    fn timed(&mut self) -> &mut Timed {
        match self.reader.get_mut() {
            End::Plain(timed) => timed,
            End::Tls(tls) => &mut tls.sock,
        }
    }

    /// From now on it takes the time that it takes.
    pub(crate) fn begun(&mut self) -> io::Result<()> {
        self.message_max = MESSAGE_MAX;
        let timed = self.timed();
        timed.until = None;
        timed.socket.set_read_timeout(None)?;
        timed.socket.set_write_timeout(None)
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
        Ok(Self::at(End::Tls(Box::new(StreamOwned::new(tls, socket)))))
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.reader.get_ref(), End::Tls(_))
    }

    /// The certificate that the client has shown.
    pub(crate) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        let End::Tls(tls) = self.reader.get_ref() else { return None };
        tls.conn.peer_certificates()?.first()
    }

    pub(crate) fn receive(&mut self) -> io::Result<Message> {
        receive(&mut self.reader, self.message_max)
    }

    /// The first message, which has no tag.
    pub(crate) fn receive_first(&mut self) -> io::Result<Vec<u8>> {
        receive_body(&mut self.reader, self.message_max)
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

impl Timed {
    /// What is left.
    fn left(&self) -> io::Result<Option<Duration>> {
        let Some(until) = self.until else { return Ok(None) };
        match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let left @ Some(_) = self.left()? {
            self.socket.set_read_timeout(left)?;
        }
        self.socket.read(into)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let left @ Some(_) = self.left()? {
            self.socket.set_write_timeout(left)?;
        }
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl Read for End {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(timed) => timed.read(into),
            Self::Tls(tls) => tls.read(into),
        }
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(timed) => timed.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(timed) => timed.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

    /// A client that has asked for TLS twice, and must have begun by then.
    fn stranger(until: Instant) -> (Client, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        peer.write_all(&[SSL_REQUEST, SSL_REQUEST].concat()).unwrap();
        (Client::over(listener.accept().unwrap().0, until), peer)
    }

    #[test]
    fn late_handshake_is_ignored_whatever_it_sends() {
        let (mut late, mut peer) = stranger(Instant::now());
        assert_eq!(late.receive_first().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(late.say(b'N').unwrap_err().kind(), io::ErrorKind::TimedOut);
        late.begun().unwrap();
        assert_eq!(late.receive_first().unwrap(), SSL_REQUEST[4..]);
        late.flush().unwrap();
        peer.read_exact(&mut [0]).unwrap();
    }

    #[test]
    fn one_who_has_not_begun_sends_short_messages_only() {
        let (mut client, mut peer) = stranger(Instant::now() + Duration::from_secs(3_600));
        client.receive_first().unwrap();
        client.receive_first().unwrap();
        peer.write_all(&[0, 16, 0, 0]).unwrap();
        assert_eq!(client.receive_first().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
