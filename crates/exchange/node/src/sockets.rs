//! The real sockets of a gateway or a replayer: a listener, connections, and the node's bell, in one poll.
//!
//! ```text
//!   listener ---+    (with TLS the thread of `handshakes` has the listener, and wakes this poll)
//!   operators --+    (see [`crate::operators`])
//!   streams  ---+--> epoll --> Ready, once each time something becomes ready
//!   bell     ---+    (a named pipe: it ends the wait; the duty cycle drains it)
//! ```

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use pares_config::{Layout, SystemConfig, TlsSetting};
use pares_gateway_role::{OPERATORS_MAX, strangers_max};
use pares_os::{Bell, BellKind, descriptors};
use pares_port::DoorPort;
use pares_roles::world::{Ready, RejectedConnections, Sockets};
use pares_tls::{ServerConfig, Stream};
use pares_types::{ClientOrderId, GatewayId, Reason, Reply};
use pares_wire::frame;
use rustix::net::sockopt;

use crate::handshakes::Handshakes;
use crate::world::complain;
use crate::{NodeError, keys, operators};

/// The kind of bell a gateway sleeps on: one that a poll of sockets can wait for too.
pub const BELL: BellKind = BellKind::Fifo;

const LISTENER: Token = Token(usize::MAX);
const BELL_TOKEN: Token = Token(usize::MAX - 1);
/// What else ends a poll, and is not told.
const WATCHED: Token = Token(usize::MAX - 2);
/// Connections that may wait to be accepted. When there are more the kernel drops the attempt and the client's tries
/// again after a second; the usual 128 come in within the few milliseconds a busy machine takes to run this process.
const BACKLOG: i32 = 4_096;
/// What the kernel buffers of a connection's input, about twice this: what a cancel behind a flood waits for is bounded by
/// it, and so is the kernel's memory.
const RECEIVE_BYTES: usize = 64 << 10;

/// Descriptors for all but clients: logs, windows, bells, notes, and one to tell a client that there is no room.
const RESERVE: u64 = 128;
/// A client whose host vanished sends no end of its connection. After this much silence the kernel asks for a sign of life.
const SILENCE: Duration = Duration::from_secs(30);
/// Between two such questions, and how many of them before the connection ends.
const ASK_EVERY: Duration = Duration::from_secs(10);
const ASKS_MAX: u32 = 3;
/// What such a client was sent and never acknowledged is sent again for this long.
const UNACKNOWLEDGED_MS: u32 = 60_000;

/// The configuration with no more sessions than there are descriptors for.
pub(crate) fn within_limits(config: SystemConfig) -> SystemConfig {
    // Those that shake hands have descriptors, and are no sessions yet.
    let shaking = if config.tls == TlsSetting::On { strangers_max(config.sessions_max) } else { 0 };
    let besides = shaking + OPERATORS_MAX;
    let sessions_max = connections_within_limits(config.sessions_max, besides, "sessions_max");
    SystemConfig { sessions_max, ..config }
}

/// How many of `wanted` connections there are descriptors for, beside `besides` that the process has for other things than its files. Has the
/// system give this process as many as it may have; the operator is informed, by `name`, if they are too few.
#[must_use]
pub fn connections_within_limits(wanted: usize, besides: usize, name: &str) -> usize {
    let limit = descriptors::raise_limit();
    let reserve = RESERVE + besides as u64;
    let taken = descriptors::connections_within(limit, reserve, wanted);
    if taken < wanted {
        complain(&format_args!(
            "{name} is {wanted}, but this process is limited to {} file descriptors, so it uses {taken}. \
             Raise the limit (`ulimit -n`, or LimitNOFILE= of the service) to {}",
            limit.unwrap_or(u64::MAX),
            wanted as u64 + reserve
        ));
    }
    taken
}

/// A listener and its connections.
pub struct RealSockets {
    poll: Poll,
    events: Events,
    door: Door,
    operators: Option<UnixListener>,
    /// Where it listens, by what protocol; first of all by the system's own.
    ports: Vec<(Option<DoorPort>, SocketAddr)>,
    /// Registered while they held input: no readiness will tell of it.
    holding: Vec<usize>,
}

/// A connection.
pub enum RealStream {
    /// To a port.
    Tcp(Stream<TcpStream>),
    /// To the operators' socket.
    Operator(UnixStream),
}

impl RealStream {
    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream.socket(),
            Self::Operator(stream) => stream,
        }
    }
}

impl Read for RealStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Operator(stream) => stream.read(into),
        }
    }
}

impl Write for RealStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Operator(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Operator(_) => Ok(()),
        }
    }
}

/// How a node whose port is TLS shakes hands.
pub struct Handshaking {
    /// What it shows, and what it asks for.
    pub tls: Arc<ServerConfig>,
    /// How many at a time.
    pub count_max: usize,
    /// What a client receives that connects without TLS, in the protocol of the first port.
    pub refusal: Vec<u8>,
}

/// Where connections come from.
enum Door {
    Plain(Vec<TcpListener>),
    Tls(Handshakes),
}

impl RealSockets {
    /// Listens at `address`, and for `bell`, which must be of the kind [`BELL`].
    ///
    /// # Errors
    /// If the address is taken, or descriptors are out.
    ///
    /// # Panics
    /// If the bell is of another kind.
    pub fn listen(address: SocketAddr, bell: &Bell, tls: Option<Handshaking>) -> io::Result<Self> {
        Self::listen_at(vec![(None, listener(address)?)], bell, tls)
    }

    /// The same at several ports, of which the first is the system's own protocol's. All are TLS or none.
    fn listen_at(
        listeners: Vec<(Option<DoorPort>, TcpListener)>,
        bell: &Bell,
        tls: Option<Handshaking>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let (protocols, mut listeners): (Vec<_>, Vec<_>) = listeners.into_iter().unzip();
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
        let bell = bell.fd().expect("a gateway's bell is a named pipe");
        poll.registry().register(&mut SourceFd(&bell.as_raw_fd()), BELL_TOKEN, Interest::READABLE)?;
        let door = match tls {
            None => {
                for listener in &mut listeners {
                    poll.registry().register(listener, LISTENER, Interest::READABLE)?;
                }
                Door::Plain(listeners)
            }
            Some(handshaking) => {
                let waker = Waker::new(poll.registry(), LISTENER)?;
                Door::Tls(Handshakes::start(listeners, handshaking, waker)?)
            }
        };
        Ok(Self {
            poll,
            events: Events::with_capacity(1024),
            door,
            operators: None,
            ports: protocols.into_iter().zip(addresses).collect(),
            holding: Vec::new(),
        })
    }

    /// Listens at the operators' socket of that gateway too. Members are served also if it cannot be made: operators come to the port then.
    #[must_use]
    pub fn with_operators(mut self, id: GatewayId, layout: &Layout) -> Self {
        let path = layout.operators_socket(id);
        let listening = || -> io::Result<UnixListener> {
            let mut listener = operators::listen_at(&path)?;
            self.poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
            Ok(listener)
        };
        match listening() {
            Ok(listener) => self.operators = Some(listener),
            Err(error) => {
                let path = path.display();
                complain(&format_args!("{path}: {error}; operators reach this gateway at its port only"));
            }
        }
        self
    }

    /// Has what can be read from `socket` end a poll too. Its owner looks for himself what there is.
    pub fn watch(&mut self, socket: &impl AsRawFd) -> io::Result<()> {
        self.poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), WATCHED, Interest::READABLE)
    }

    /// Where it listens for the system's own protocol.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.ports[0].1
    }

    fn accept_at(&self, port: usize) -> io::Result<RealStream> {
        let accepted = match &self.door {
            Door::Plain(listeners) => accept_plain(&listeners[port]),
            Door::Tls(handshakes) => handshakes.accept(port),
        };
        accepted.map(RealStream::Tcp)
    }

    /// Listens where the configuration says and writes the addresses down; a gateway that starts again, and whose port was the
    /// system's choice, takes the same one again.
    ///
    /// # Errors
    /// If the address is taken, or it cannot be written down.
    pub fn open(
        id: GatewayId,
        config: &SystemConfig,
        layout: &Layout,
        bell: &Bell,
    ) -> Result<Self, NodeError> {
        let count_max = strangers_max(config.sessions_max);
        let mut refusal = Vec::new();
        let (client_order_id, reason) = (ClientOrderId(0), Reason::TlsRequired);
        frame::write_reply(&mut refusal, &Reply::Rejected { client_order_id, reason });
        let tls = keys::server(layout, id, config)?;
        let tls = tls.map(|tls| Handshaking { tls, count_max, refusal });
        let ports = [
            ("gateways", None, &config.gateways, layout.gateway_address(id)),
            ("fix", Some(DoorPort::Fix), &config.fix, layout.fix_address(id)),
            ("ouch", Some(DoorPort::Ouch), &config.ouch, layout.ouch_address(id)),
        ];
        let (mut listeners, mut paths) = (Vec::new(), Vec::new());
        for (setting, protocol, configured, path) in ports {
            let Some(&configured) = configured.get(usize::from(id.0)) else { continue };
            let address = address_again(&path, configured);
            let bound = listener(address).map_err(|source| NodeError::Listen { setting, address, source })?;
            listeners.push((protocol, bound));
            paths.push(path);
        }
        let sockets = Self::listen_at(listeners, bell, tls).map_err(NodeError::io("listening"))?;
        // The system's own is said last: who reads it finds the others too.
        for (path, (_, address)) in paths.iter().zip(&sockets.ports).rev() {
            write_down(path, *address)?;
        }
        Ok(sockets)
    }
}

/// Where to listen: where it did before, if the port is the system's choice.
fn address_again(path: &Path, configured: SocketAddr) -> SocketAddr {
    let before = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
    before.filter(|_| configured.port() == 0).unwrap_or(configured)
}

fn write_down(path: &Path, address: SocketAddr) -> Result<(), NodeError> {
    pares_os::replace_file_unsynced(path, address.to_string().as_bytes())
        .map_err(NodeError::io("writing the gateway's address down"))
}

/// A socket that listens. What is set before, its connections inherit.
fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    sockopt::set_socket_recv_buffer_size(&listener, RECEIVE_BYTES)?;
    sockopt::set_socket_keepalive(&listener, true)?;
    sockopt::set_tcp_keepidle(&listener, SILENCE)?;
    sockopt::set_tcp_keepintvl(&listener, ASK_EVERY)?;
    sockopt::set_tcp_keepcnt(&listener, ASKS_MAX)?;
    sockopt::set_tcp_user_timeout(&listener, UNACKNOWLEDGED_MS)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

fn accept_plain(listener: &TcpListener) -> io::Result<Stream<TcpStream>> {
    let (stream, _) = listener.accept()?;
    // Latency matters more than segments; a socket that cannot be told so still works.
    let _ = stream.set_nodelay(true);
    Ok(Stream::Plain(stream))
}

impl Sockets for RealSockets {
    type Stream = RealStream;

    fn accept(&mut self) -> io::Result<Self::Stream> {
        self.accept_at(0)
    }

    fn accept_by(&mut self, protocol: DoorPort) -> io::Result<Self::Stream> {
        let port = self.ports.iter().position(|(of, _)| *of == Some(protocol));
        self.accept_at(port.ok_or(io::ErrorKind::WouldBlock)?)
    }

    fn accept_operator(&mut self) -> io::Result<Self::Stream> {
        let listener = self.operators.as_ref().ok_or(io::ErrorKind::WouldBlock)?;
        listener.accept().map(|(stream, _)| RealStream::Operator(stream))
    }

    fn ends(&self, stream: &mut Self::Stream) -> Option<[SocketAddr; 2]> {
        let RealStream::Tcp(stream) = stream else { return None };
        let socket = stream.socket();
        Some([socket.peer_addr().ok()?, socket.local_addr().ok()?])
    }

    fn register(&mut self, stream: &mut Self::Stream, slot: usize) -> io::Result<()> {
        if matches!(stream, RealStream::Tcp(stream) if stream.holds_input()) {
            self.holding.push(slot);
        }
        let interest = Interest::READABLE.add(Interest::WRITABLE);
        self.poll.registry().register(stream.source(), Token(slot), interest)
    }

    fn deregister(&mut self, stream: &mut Self::Stream) {
        // One that cannot be deregistered leaves the poll when it is dropped.
        let _ = self.poll.registry().deregister(stream.source());
    }

    fn turned_away(&self) -> RejectedConnections {
        match &self.door {
            Door::Plain(_) => RejectedConnections::default(),
            Door::Tls(handshakes) => handshakes.turned_away(),
        }
    }

    fn poll(&mut self, timeout: Duration, ready: &mut Vec<Ready>) -> io::Result<()> {
        let timeout = if self.holding.is_empty() { timeout } else { Duration::ZERO };
        let held = self.holding.drain(..);
        ready.extend(held.map(|slot| Ready::Stream { slot, readable: true, writable: false }));
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        ready.extend(self.events.iter().filter_map(|event| match event.token() {
            LISTENER => Some(Ready::Listener),
            BELL_TOKEN | WATCHED => None,
            Token(slot) => {
                let (readable, writable) = (event.is_readable(), event.is_writable());
                Some(Ready::Stream { slot, readable, writable })
            }
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_asks_accepted_connections_for_a_sign_of_life() {
        let dir = tempfile::tempdir().unwrap();
        let bells = pares_os::Bells::create(dir.path()).unwrap();
        let bell = bells.listen(pares_config::bells::of(crate::NodeId::Gateway(GatewayId(0))), BELL).unwrap();
        let mut sockets = RealSockets::listen("127.0.0.1:0".parse().unwrap(), &bell, None).unwrap();
        let _client = std::net::TcpStream::connect(sockets.address()).unwrap();
        let RealStream::Tcp(mut stream) = sockets.accept().unwrap() else { panic!("it came to the port") };
        let stream = stream.socket();
        assert!(sockopt::socket_keepalive(&*stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&*stream).unwrap(), SILENCE);
        assert_eq!(sockopt::tcp_user_timeout(&*stream).unwrap(), UNACKNOWLEDGED_MS);
    }
}
