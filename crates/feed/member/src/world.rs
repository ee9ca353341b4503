//! What a member server touches besides the exchange's [`World`](pares_roles::World): connections that it opens itself.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use mio::net::TcpStream;
use pares_node::sockets::RealSockets;
use pares_roles::config::Layout;
use pares_roles::world::{Ready, Sockets};
use pares_tls::Stream;
use pares_types::GatewayId;

/// Sockets that reach peers.
pub trait Dial: Sockets {
    /// Begins a connection to a server; it may be refused later, when it is read or written.
    ///
    /// # Errors
    /// If nobody knows where that server is, or as the system says.
    fn dial(&mut self, server: u16) -> io::Result<Self::Stream>;
}

/// The sockets of a server on this host, whose peers' addresses lie in `run/`.
pub struct MemberSockets {
    real: RealSockets,
    layout: Layout,
}

impl MemberSockets {
    /// Sockets that listen, of the system in that directory.
    #[must_use]
    pub fn new(real: RealSockets, layout: Layout) -> Self {
        Self { real, layout }
    }
}

impl Sockets for MemberSockets {
    type Stream = Stream<TcpStream>;

    fn accept(&mut self) -> io::Result<Self::Stream> {
        self.real.accept()
    }

    fn register(&mut self, stream: &mut Self::Stream, slot: usize) -> io::Result<()> {
        self.real.register(stream, slot)
    }

    fn deregister(&mut self, stream: &mut Self::Stream) {
        self.real.deregister(stream);
    }

    fn poll(&mut self, timeout: Duration, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.real.poll(timeout, ready)
    }
}

impl Dial for MemberSockets {
    fn dial(&mut self, server: u16) -> io::Result<Self::Stream> {
        let stream = TcpStream::connect(address(&self.layout, server)?)?;
        let _ = stream.set_nodelay(true);
        Ok(Stream::Plain(stream))
    }
}

/// Where the address of a server lies.
#[must_use]
pub fn address_file(layout: &Layout, server: u16) -> PathBuf {
    layout.gateway_address(GatewayId(server))
}

/// Where a server of this host listens.
///
/// # Errors
/// If it has not said so yet.
pub fn address(layout: &Layout, server: u16) -> io::Result<SocketAddr> {
    let text = std::fs::read_to_string(address_file(layout, server))?;
    text.trim().parse().map_err(io::Error::other)
}
