//! A UDP socket, of a line or of answers, that never waits.

use std::io;
use std::net::SocketAddr;

use mio::net::UdpSocket;
use mio::{Interest, Poll, Token};

use crate::config::ReceiverError;
use crate::connection::is_for_later;

/// Packets taken of one line before the other one's turn.
const PACKETS_AT_ONCE: usize = 64;

/// A UDP socket.
pub(crate) struct Ear {
    pub(crate) socket: UdpSocket,
    /// Whether there may be something to read.
    pub(crate) is_ready: bool,
}

impl Ear {
    /// Hands out at most a turn's packets.
    pub(crate) fn take(&mut self, buffer: &mut [u8], mut each: impl FnMut(&[u8], SocketAddr)) {
        if !self.is_ready {
            return;
        }
        for _ in 0..PACKETS_AT_ONCE {
            match self.socket.recv_from(buffer) {
                Ok((length, from)) => each(&buffer[..length], from),
                Err(error) if is_for_later(&error) => {
                    self.is_ready = error.kind() == io::ErrorKind::Interrupted;
                    return;
                }
                // A request that nobody took: the next one asked answers.
                Err(_) => {}
            }
        }
    }
}

/// Listens on that socket.
pub(crate) fn listen(
    poll: &Poll,
    token: Token,
    address: SocketAddr,
    socket: io::Result<std::net::UdpSocket>,
) -> Result<Ear, ReceiverError> {
    let failed = |error| ReceiverError::Socket { address, error };
    let mut socket = UdpSocket::from_std(socket.map_err(failed)?);
    poll.registry().register(&mut socket, token, Interest::READABLE).map_err(failed)?;
    Ok(Ear { socket, is_ready: true })
}
