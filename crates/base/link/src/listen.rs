//! Listening, and letting in.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Poll, Token};

use crate::sink::LinksError;

/// After accepting failed for want of something, it is tried again after this.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) fn listen(poll: &Poll, address: SocketAddr, token: Token) -> Result<TcpListener, LinksError> {
    let mut listener = TcpListener::bind(address).map_err(|source| LinksError::Listen { address, source })?;
    poll.registry().register(&mut listener, token, Interest::READABLE)?;
    Ok(listener)
}

/// The next connection that wants to come in.
pub(crate) fn accept(listener: &TcpListener, again: &mut Option<Instant>) -> Option<(TcpStream, SocketAddr)> {
    loop {
        match listener.accept() {
            Ok((stream, address)) => {
                // Latency matters more than segments; a socket that cannot be told so still works.
                let _ = stream.set_nodelay(true);
                return Some((stream, address));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => {
                // Out of files, say. No further event reports those already waiting.
                *again = Some(Instant::now() + ACCEPT_PAUSE);
                return None;
            }
        }
    }
}
