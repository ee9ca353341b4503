//! A server's sockets: its ends of connections in memory.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use pares_config::NodeId;
use pares_member::world::Dial;
use pares_port::DoorPort;
use pares_roles::world::{Ready, Sockets};

use super::host::Host;
use crate::bug::Bug;
use crate::defects;

/// Bytes that the kernel takes of what its peer has not read.
const SEND_BYTES: usize = 64 << 10;
/// The kernel's number of *too many open files*.
const EMFILE: i32 = 24;

/// A server's listener and poll.
#[derive(Debug)]
pub(crate) struct MemorySockets {
    host: Host,
    server: NodeId,
}

impl MemorySockets {
    /// Of the host's process.
    pub(crate) fn new(host: &Host) -> Self {
        Self { host: host.clone(), server: host.node() }
    }
}

/// A server's end of a connection.
#[derive(Debug)]
pub(crate) struct Stream {
    host: Host,
    number: usize,
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.host.passes();
        let seldom = self.host.with_seam(|seam, node| {
            self.number == 0 && matches!(node, NodeId::Gateway(_)) && seam.has(Bug::ReadSeldom)
        });
        self.host.with_net(|net| {
            let is_taped = net.is_taped;
            let one = &mut net.connections[self.number];
            if seldom && defects::is_passed_over(&mut net.first_reads) {
                // Else it is polled no more before more has come.
                one.became_readable = true;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let read = one.to_server.len().min(bytes.len());
            if read == 0 {
                return if one.is_gone { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
            }
            bytes.iter_mut().zip(one.to_server.drain(..read)).for_each(|(to, from)| *to = from);
            if is_taped {
                one.passed[0].extend_from_slice(&bytes[..read]);
            }
            Ok(read)
        })
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.host.passes();
        let said = bytes.len();
        let mut bytes = bytes.to_vec();
        if self.host.with_seam(|seam, node| node.only_tells() && seam.has(Bug::SkipAfterSnapshot)) {
            defects::skip_after_snapshot(&mut bytes);
        }
        let leaves_out = self.host.with_seam(|seam, _| seam.has(Bug::LeavePacketOut));
        self.host.with_net(|net| {
            let is_taped = net.is_taped;
            let one = &mut net.connections[self.number];
            if one.is_gone {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if leaves_out && one.port == Some(DoorPort::Ouch) && one.to_client.len() + said <= SEND_BYTES {
                defects::leave_packet_out(&mut bytes);
                one.to_client.extend(&bytes);
                return Ok(said);
            }
            let taken = bytes.len().min(SEND_BYTES - one.to_client.len().min(SEND_BYTES));
            if taken == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            one.to_client.extend(&bytes[..taken]);
            if is_taped {
                one.passed[1].extend_from_slice(&bytes[..taken]);
            }
            Ok(taken)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.host.with_net(|net| net.connections[self.number].is_closed = true);
    }
}

/// Whatever is sent to the group is lost: what a member's traders follow comes over their connections.
impl Dial for MemorySockets {
    fn dial(&mut self, server: u16) -> io::Result<Stream> {
        self.host.passes();
        let to = pares_member::config::submissions(server);
        let to_life = self.host.listening(to).ok_or(io::ErrorKind::ConnectionRefused)?;
        let (host, from) = (self.host.clone(), (self.server, self.host.life()));
        self.host.with_net(|net| Ok(Stream { host, number: net.dial(from, (to, to_life)) }))
    }

    fn cast(&mut self, _: &[u8]) {}
}

impl MemorySockets {
    fn accept_at(&mut self, port: Option<DoorPort>) -> io::Result<Stream> {
        self.host.passes();
        let (host, server) = (self.host.clone(), self.server);
        self.host.with_net(|net| {
            if net.waiting.get(&(server, port)).is_none_or(VecDeque::is_empty) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            if net.descriptors_max.is_some_and(|most| net.open_of(server) >= most) {
                return Err(io::Error::from_raw_os_error(EMFILE));
            }
            let waiting = net.waiting.get_mut(&(server, port)).and_then(VecDeque::pop_front);
            Ok(Stream { host, number: waiting.expect("looked at above") })
        })
    }
}

impl Sockets for MemorySockets {
    type Stream = Stream;

    fn accept(&mut self) -> io::Result<Stream> {
        self.accept_at(None)
    }

    fn accept_by(&mut self, protocol: DoorPort) -> io::Result<Stream> {
        self.accept_at(Some(protocol))
    }

    /// The peer's port and host are the connection's number.
    fn ends(&self, stream: &mut Stream) -> Option<[SocketAddr; 2]> {
        let number = u32::try_from(stream.number).ok()?;
        Some([SocketAddr::from((Ipv4Addr::from(number), 1)), SocketAddr::from((Ipv4Addr::LOCALHOST, 1))])
    }

    fn register(&mut self, stream: &mut Stream, slot: usize) -> io::Result<()> {
        self.host.with_net(|net| {
            let one = &mut net.connections[stream.number];
            (one.slot, one.became_writable) = (Some(slot), true);
        });
        Ok(())
    }

    fn deregister(&mut self, stream: &mut Stream) {
        self.host.with_net(|net| net.connections[stream.number].slot = None);
    }

    fn poll(&mut self, _: Duration, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.host.passes();
        let (server, life) = (self.server, self.host.life());
        self.host.with_net(|net| {
            if net.became_waiting.insert(server, false) == Some(true) {
                ready.push(Ready::Listener);
            }
            for one in net.connections.iter_mut().filter(|one| one.server == server && one.life == life) {
                let Some(slot) = one.slot.filter(|_| !one.is_closed) else { continue };
                let readable = std::mem::take(&mut one.became_readable);
                let writable = std::mem::take(&mut one.became_writable);
                if readable || writable {
                    ready.push(Ready::Stream { slot, readable, writable });
                }
            }
        });
        Ok(())
    }
}
