//! A client's connection: plain or TLS, read and written in turn by its session's thread.
//!
//! The thread also waits for the site's server, which may say something while its client is silent: that it has ended the session, or that a row of a COPY is
//! none. So it waits for both connections.
//!
//! Until its session begins a client is a stranger, and has one of a few places. A limit for each read is none for one who sends a byte now and then, or asks
//! for TLS again and again. So each step towards it has one deadline, whatever comes meanwhile, and short messages only.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pares_tls::{CertificateDer, ServerConfig, ServerConnection};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustls::StreamOwned;

use crate::wire::{MESSAGE_MAX, Message, receive, receive_body, send};

/// Bytes that are gathered before they are sent.
const GATHERED: usize = 16 << 10;
/// Longest message of who has not begun, bytes: what he says of himself, or a step of his proof.
const STRANGE_MAX: usize = 65_536;
/// The server has said something, or ended.
const SAID: PollFlags = PollFlags::IN.union(ENDED);
/// The server has ended the session. What it said before can be read.
const ENDED: PollFlags = PollFlags::RDHUP;

/// The connection.
pub(crate) struct Client {
    reader: BufReader<End>,
    gathered: Vec<u8>,
    message_max: usize,
    /// The server's parameters by name, as the client knows them.
    reported: HashMap<Vec<u8>, Vec<u8>>,
}

enum End {
    Plain(Timed),
    Tls(Box<StreamOwned<ServerConnection, Timed>>),
}

/// A socket that is used until a moment only, or without end.
struct Timed {
    /// Does not block.
    socket: TcpStream,
    until: Option<Instant>,
    /// The session's connection to the server, and what on it ends the wait for the client.
    server: Option<TcpStream>,
    heeds: PollFlags,
    /// Time to take what is left, when the server has ended.
    last: Duration,
}

impl Client {
    /// One who must have taken the next step, or [begun](Client::begun), by then.
    pub(crate) fn over(socket: TcpStream, until: Instant) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (until, last) = (Some(until), Duration::ZERO);
        Ok(Self::at(End::Plain(Timed { socket, until, server: None, heeds: ENDED, last })))
    }

    fn at(end: End) -> Self {
        let reader = BufReader::new(end);
        Self { reader, gathered: Vec::new(), message_max: STRANGE_MAX, reported: HashMap::new() }
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

    /// From now on it takes the time that it takes, while its session at the server lasts. Then it has so much more to take what is left.
    pub(crate) fn begun(&mut self, server: TcpStream, last: Duration) {
        self.message_max = MESSAGE_MAX;
        let timed = self.timed();
        (timed.until, timed.server, timed.last) = (None, Some(server), last);
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

    /// The next message; none if the server says something before it, or ends in the middle of it.
    pub(crate) fn receive(&mut self) -> io::Result<Option<Message>> {
        self.timed().heeds = SAID;
        let begins = self.reader.fill_buf().map(drop);
        self.timed().heeds = ENDED;
        match begins.and_then(|()| receive(&mut self.reader, self.message_max)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            received => received.map(Some),
        }
    }

    /// Whether some of its next message is here.
    pub(crate) fn has_more(&self) -> bool {
        !self.reader.buffer().is_empty()
    }

    /// The first message, which has no tag.
    pub(crate) fn receive_first(&mut self) -> io::Result<Vec<u8>> {
        receive_body(&mut self.reader, self.message_max)
    }

    /// Writes a message, unless the client knows it; see [`Client::flush`].
    pub(crate) fn send(&mut self, message: &Message) -> io::Result<()> {
        if let Some((name, value)) = message.parameter()
            && self.reported.insert(name.to_vec(), value.to_vec()).is_some_and(|known| known == value)
        {
            return Ok(());
        }
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

    /// Waits until the socket is ready, or seems to be.
    ///
    /// # Errors
    /// `TimedOut`; and `WouldBlock` if the server does first what is heeded.
    fn wait(&self, ready: PollFlags, heeds: PollFlags) -> io::Result<()> {
        let left = self.left()?.and_then(|left| Timespec::try_from(left).ok());
        let (server, events) = match &self.server {
            Some(server) => (server, heeds),
            None => (&self.socket, PollFlags::empty()),
        };
        let heeds_more = self.server.is_some() && heeds == SAID;
        let mut ends = [PollFd::new(&self.socket, ready), PollFd::new(server, events)];
        match poll(&mut ends, left.as_ref()) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) if ends[0].revents().is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            Ok(_) if heeds_more && !ends[1].revents().is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn would_block<T>(done: &io::Result<T>) -> bool {
    done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            self.wait(PollFlags::IN, self.heeds)?;
            let read = self.socket.read(into);
            if !would_block(&read) {
                return read;
            }
        }
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let ready = self.wait(PollFlags::OUT, ENDED);
            if would_block(&ready) {
                (self.until, self.server) = (Some(Instant::now() + self.last), None);
                continue;
            }
            ready?;
            let written = self.socket.write(bytes);
            if !would_block(&written) {
                return written;
            }
        }
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

    use pares_tls::{Authority, Callers, Identity, Lifetime, TlsFiles};

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (ours, listener.accept().unwrap().0)
    }

    /// A client whose session has begun, and its end; a session at the server, and its end.
    fn begun() -> (Client, TcpStream, TcpStream) {
        let ((client, peer), (session, server)) = (pair(), pair());
        let mut client = Client::over(client, Instant::now() + Duration::from_secs(3_600)).unwrap();
        client.begun(session, Duration::from_millis(50));
        (client, peer, server)
    }

    /// Another session of that client; its end at the server.
    fn begins_again(client: &mut Client) -> TcpStream {
        let (session, server) = pair();
        client.begun(session, Duration::ZERO);
        server
    }

    #[test]
    fn what_the_server_says_ends_the_wait() {
        let (mut client, mut peer, mut server) = begun();
        server.write_all(b"E").unwrap();
        assert_eq!(client.receive().unwrap(), None);
        server = begins_again(&mut client);
        peer.write_all(b"S\0\0\0\x04Q\0\0").unwrap();
        assert_eq!(client.receive().unwrap(), Some(Message::new(b'S', [])));
        drop(server);
        assert_eq!(client.receive().unwrap(), None, "in the middle of a message");
    }

    #[test]
    fn what_the_server_says_ends_the_wait_behind_tls() {
        let dir = tempfile::tempdir().unwrap();
        let files = TlsFiles::named(dir.path(), "site");
        let authority = Authority::in_dir(dir.path(), "test").unwrap();
        authority.issue(&files, &["site".into()], Lifetime::Endless).unwrap();
        let identity = Identity::load(&files).unwrap();
        let (client, peer) = pair();
        let mut peer = StreamOwned::new(identity.trust().unwrap().dial("site").unwrap(), peer);
        let said = std::thread::spawn(move || {
            peer.write_all(b"S\0\0\0\x04Q\0\0").unwrap();
            peer
        });
        let client = Client::over(client, Instant::now() + Duration::from_secs(3_600)).unwrap();
        let mut client = client.encrypted(&identity.server(Callers::Anybody).unwrap()).unwrap();
        let server = begins_again(&mut client);
        let _peer = said.join().unwrap();
        assert_eq!(client.receive().unwrap(), Some(Message::new(b'S', [])));
        drop(server);
        assert_eq!(client.receive().unwrap(), None, "in the middle of a message");
        begins_again(&mut client).write_all(b"E").unwrap();
        assert_eq!(client.receive().unwrap(), None, "before the next one");
    }

    #[test]
    fn client_that_reads_nothing_outlives_no_session() {
        let (mut client, _peer, server) = begun();
        drop(server);
        let long = Message::new(b'D', vec![0; 1 << 20]);
        let failed = (0..1_000).find_map(|_| client.send(&long).err()).unwrap();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn parameter_known_to_client_is_not_repeated() {
        let (mut client, mut peer, _server) = begun();
        for zone in ["UTC", "UTC", "CET", "UTC"] {
            client.send(&Message::new(b'S', format!("TimeZone\0{zone}\0"))).unwrap();
        }
        client.flush().unwrap();
        for zone in ["UTC", "CET", "UTC"] {
            assert_eq!(
                receive(&mut peer, MESSAGE_MAX).unwrap().body,
                format!("TimeZone\0{zone}\0").as_bytes()
            );
        }
    }

    const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

    /// A client that has asked for TLS twice, and must have begun by then.
    fn stranger(until: Instant) -> (Client, TcpStream) {
        let (mut peer, client) = pair();
        peer.write_all(&[SSL_REQUEST, SSL_REQUEST].concat()).unwrap();
        (Client::over(client, until).unwrap(), peer)
    }

    #[test]
    fn late_handshake_is_ignored_whatever_it_sends() {
        let (mut late, mut peer) = stranger(Instant::now());
        assert_eq!(late.receive_first().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(late.say(b'N').unwrap_err().kind(), io::ErrorKind::TimedOut);
        late.begun(peer.try_clone().unwrap(), Duration::ZERO);
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
