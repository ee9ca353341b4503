//! UDP sockets: of a line, and for requests.
//!
//! `recvmmsg` would take many packets in one call; it takes unsafe code, which has no place here, and rustix has no safe form of it. What counts
//! more is that the system keeps packets while the program does something else: a large buffer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// A socket that hears packets to a line's address, in company with other programs of this host if it is a group's; reading it never waits.
///
/// # Errors
/// As the system says: another program has the address, or no interface has that one.
pub fn line_socket(address: SocketAddr, interface: Ipv4Addr, bytes: usize) -> io::Result<UdpSocket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    if address.ip().is_multicast() {
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    // More than the system's limit takes a right that most programs have not.
    if sockopt::set_socket_recv_buffer_size_force(&socket, bytes).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    }
    bind(&socket, &address)?;
    let socket = UdpSocket::from(socket);
    match address.ip() {
        IpAddr::V4(group) if group.is_multicast() => socket.join_multicast_v4(&group, &interface)?,
        IpAddr::V6(group) if group.is_multicast() => socket.join_multicast_v6(&group, 0)?,
        _ => {}
    }
    Ok(socket)
}

/// A socket that sends requests to addresses of such a kind, and hears the answers.
pub(crate) fn requests(like: SocketAddr, bytes: usize) -> io::Result<UdpSocket> {
    let any: IpAddr =
        if like.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    line_socket(SocketAddr::new(any, 0), Ipv4Addr::UNSPECIFIED, bytes)
}
