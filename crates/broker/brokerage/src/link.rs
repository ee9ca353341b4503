//! Sockets of a process of the broker, all on its one thread.

use std::io::{self, ErrorKind};
use std::time::Duration;

use mio::{Events, Poll};

mod conn;
mod hearing;
mod port;
mod retry;

pub use conn::Conn;
pub use hearing::Hearing;
pub use port::{Port, SocketOwner};
pub use retry::Retry;

/// Waits until something happens, for `most` at most; a signal ends it too.
///
/// # Errors
/// If the operating system refuses.
pub fn wait(poll: &mut Poll, events: &mut Events, most: Option<Duration>) -> io::Result<()> {
    match poll.poll(events, most) {
        Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}
