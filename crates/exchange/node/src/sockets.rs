//! The real sockets of a gateway: a listener, connections, and the node's bell, in one poll.
//!
//! ```text
//!   listener ---+
//!   streams  ---+--> epoll --> Ready, once each time something becomes ready
//!   bell     ---+    (a named pipe: it ends the wait; the duty cycle drains it)
//! ```

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use pares_os::{Bell, BellKind, descriptors};
use pares_roles::config::{Layout, SystemConfig};
use pares_roles::world::{Ready, Sockets};
use pares_types::GatewayId;
use rustix::net::sockopt;

use crate::NodeError;
use crate::world::complain;

/// The kind of bell a gateway sleeps on: one that a poll of sockets can wait for too.
pub const BELL: BellKind = BellKind::Fifo;

const LISTENER: Token = Token(usize::MAX);
const BELL_TOKEN: Token = Token(usize::MAX - 1);
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

/// The configuration with no more sessions than there are descriptors for. Has the system give this process as many as it may
/// have; the operator is told if they are too few.
pub(crate) fn within_limits(config: SystemConfig) -> SystemConfig {
    let wanted = config.sessions_max;
    let limit = descriptors::raise_limit();
    let sessions_max = descriptors::connections_within(limit, RESERVE, wanted);
    if sessions_max < wanted {
        complain(&format_args!(
            "sessions_max is {wanted}, and this process may have {} descriptors only: takes {sessions_max} sessions. Raise the \
             limit (`ulimit -n`, or LimitNOFILE= of the service) to {}",
            limit.unwrap_or(u64::MAX),
            wanted as u64 + RESERVE
        ));
    }
    SystemConfig { sessions_max, ..config }
}

/// A listener and its connections.
pub struct RealSockets {
    poll: Poll,
    events: Events,
    listener: TcpListener,
}

impl RealSockets {
    /// Listens at `address`, and for `bell`, which must be of the kind [`BELL`].
    ///
    /// # Errors
    /// If the address is taken, or descriptors are out.
    ///
    /// # Panics
    /// If the bell is of another kind.
    pub fn listen(address: SocketAddr, bell: &Bell) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(address)?;
        // Before it listens: connections inherit it.
        sockopt::set_socket_recv_buffer_size(&listener, RECEIVE_BYTES)?;
        sockopt::set_socket_keepalive(&listener, true)?;
        sockopt::set_tcp_keepidle(&listener, SILENCE)?;
        sockopt::set_tcp_keepintvl(&listener, ASK_EVERY)?;
        sockopt::set_tcp_keepcnt(&listener, ASKS_MAX)?;
        sockopt::set_tcp_user_timeout(&listener, UNACKNOWLEDGED_MS)?;
        rustix::net::listen(&listener, BACKLOG)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let bell = bell.fd().expect("a gateway's bell is a named pipe");
        poll.registry().register(&mut SourceFd(&bell.as_raw_fd()), BELL_TOKEN, Interest::READABLE)?;
        Ok(Self { poll, events: Events::with_capacity(1024), listener })
    }

    /// Listens where the configuration says and writes the address down; a gateway that starts again, and whose port was the
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
        let path = layout.gateway_address(id);
        let configured = config.gateways[usize::from(id.0)];
        let before = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
        let address = before.filter(|_| configured.port() == 0).unwrap_or(configured);
        let sockets = Self::listen(address, bell).map_err(|source| NodeError::Listen { address, source })?;
        let written = sockets.address();
        let written = written
            .and_then(|address| pares_os::replace_file_unsynced(&path, address.to_string().as_bytes()));
        written.map_err(NodeError::io("writing the gateway's address down"))?;
        Ok(sockets)
    }

    /// The address listened at.
    ///
    /// # Errors
    /// As the system says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Sockets for RealSockets {
    type Stream = TcpStream;

    fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = self.listener.accept()?;
        // Latency matters more than segments; a socket that cannot be told so still works.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    fn register(&mut self, stream: &mut TcpStream, slot: usize) -> io::Result<()> {
        self.poll.registry().register(stream, Token(slot), Interest::READABLE.add(Interest::WRITABLE))
    }

    fn deregister(&mut self, stream: &mut TcpStream) {
        // One that cannot be deregistered leaves the poll when it is dropped.
        let _ = self.poll.registry().deregister(stream);
    }

    fn poll(&mut self, timeout: Duration, ready: &mut Vec<Ready>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        ready.extend(self.events.iter().filter_map(|event| match event.token() {
            LISTENER => Some(Ready::Listener),
            BELL_TOKEN => None,
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
        let bell =
            bells.listen(crate::config::bells::of(crate::NodeId::Gateway(GatewayId(0))), BELL).unwrap();
        let mut sockets = RealSockets::listen("127.0.0.1:0".parse().unwrap(), &bell).unwrap();
        let _client = std::net::TcpStream::connect(sockets.address().unwrap()).unwrap();
        let stream = sockets.accept().unwrap();
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), SILENCE);
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), UNACKNOWLEDGED_MS);
    }
}
