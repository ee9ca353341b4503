//! What a caller receives: events, counts, and why a call failed.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::clients::ClientId;
use crate::ended::Ended;
use pares_tls::TlsError;

/// Receives what happens on the connections. Called from within [`Links::poll`](crate::Links::poll) only.
pub trait LinkSink {
    /// A site is connected: what is sent from now on reaches it, unless the connection ends.
    fn connected(&mut self, peer: u16);
    /// A connected site is so no longer; what it was sent may have reached it or not.
    fn disconnected(&mut self, peer: u16, why: &Ended);
    /// A frame of a connected site.
    fn frame(&mut self, peer: u16, payload: &[u8]);
    /// A connection that never came to be one: to a site dialled (`peer`), or from a caller who was refused.
    fn failed(&mut self, _peer: Option<u16>, _address: SocketAddr, _why: &Ended) {}
    /// An application is connected.
    fn client_connected(&mut self, _client: ClientId) {}
    /// A frame of an application, and what its certificate calls it (the name there, without the system's); nothing where they show none.
    fn client_frame(&mut self, _client: ClientId, _caller: Option<&str>, _payload: &[u8]) {}
    /// An application is gone, and its id will not be used again.
    fn client_gone(&mut self, _client: ClientId, _why: &Ended) {}
}

/// Why the connections could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    /// The configuration contradicts itself.
    #[error("{0}: correct the configuration")]
    Config(String),
    /// The site's own certificate is unfit.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A port cannot be listened on.
    #[error(
        "cannot listen on {address} ({source}): check that the port is free and the address is this machine's"
    )]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
    /// The operating system refuses something else.
    #[error("cannot wait for sockets: {0}")]
    Io(#[from] io::Error),
}

/// Why a frame was not taken. It is not kept and not sent later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// There is no connection.
    #[error("not connected")]
    NotConnected,
    /// The other end reads too slowly; the connection has been ended, so that both ends begin again.
    #[error("the other end reads too slowly: the connection ends")]
    Full,
    /// Longer than the other end would accept.
    #[error("longer than a frame may be")]
    TooLong,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sites connected.
    pub connected: u64,
    /// Connections of sites that ended.
    pub disconnected: u64,
    /// Attempts, from here or from elsewhere, that came to nothing; those refused included.
    pub failed: u64,
    /// Those among the failed and the disconnected that were refused for what they are or say.
    pub refused: u64,
    /// Applications closed because they did not read.
    pub clients_slow: u64,
    /// Applications closed because there were too many.
    pub clients_crowded: u64,
}

/// Wakes the thread that waits in [`Links::poll`](crate::Links::poll), from any other.
#[derive(Clone, Debug)]
pub struct Waker(pub(crate) Arc<mio::Waker>);

impl Waker {
    /// Makes the present or the next poll return at once.
    ///
    /// # Errors
    /// If the operating system refuses, which it has no reason to.
    pub fn wake(&self) -> io::Result<()> {
        self.0.wake()
    }
}
