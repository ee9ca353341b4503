//! What a member server touches besides the exchange's [`World`](pares_roles::World): connections that it opens itself.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use mio::net::TcpStream;
use pares_config::Layout;
use pares_node::sockets::{RealSockets, RealStream};
use pares_node::world::complain;
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

    /// Sends a packet to all who listen to this server's group, if it has one. It may be lost.
    fn cast(&mut self, packet: &[u8]);
}

/// The sockets of a server on this host, whose peers' addresses lie in `run/`.
pub struct MemberSockets {
    real: RealSockets,
    layout: Layout,
    group: Option<Group>,
}

/// Where the stream is sent to besides.
struct Group {
    socket: UdpSocket,
    address: SocketAddr,
    /// Whether it was reported to the operator that packets do not go.
    told: bool,
}

impl Group {
    fn send(&mut self, packet: &[u8]) {
        // What is lost is asked for over TCP; what never goes is the operator's to repair.
        let Err(error) = self.socket.send_to(packet, self.address) else { return };
        if error.kind() != io::ErrorKind::WouldBlock && !self.told {
            self.told = true;
            complain(&format_args!(
                "cannot send the stream to the group {}: {error}. Check the route to it, or take it out of `groups`",
                self.address
            ));
        }
    }
}

impl MemberSockets {
    /// Sockets that listen, of the system in that directory, and send to that group by that interface.
    ///
    /// # Errors
    /// If there is no socket for the group.
    pub fn new(
        real: RealSockets,
        layout: Layout,
        (group, interface): (Option<SocketAddr>, Ipv4Addr),
    ) -> io::Result<Self> {
        let open = |address| Ok::<_, io::Error>(Group { socket: caster(interface)?, address, told: false });
        Ok(Self { real, layout, group: group.map(open).transpose()? })
    }
}

impl Sockets for MemberSockets {
    type Stream = RealStream;

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
        Ok(RealStream::Tcp(Stream::Plain(stream)))
    }

    fn cast(&mut self, packet: &[u8]) {
        self.group.iter_mut().for_each(|group| group.send(packet));
    }
}

/// A socket to send to a group, or an address: by loopback on this host only, otherwise no further than the next network.
fn caster(interface: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((interface, 0))?;
    socket.set_nonblocking(true)?;
    socket.set_multicast_ttl_v4(if interface.is_loopback() { 0 } else { 1 })?;
    rustix::net::sockopt::set_ip_multicast_if(&socket, &interface)?;
    Ok(socket)
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
