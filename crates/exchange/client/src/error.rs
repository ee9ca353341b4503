//! What can go wrong between a client and its gateway.

use std::io;

use pares_types::Reason;
use pares_wire::WireError;

/// Why a client's call failed. Unless it says that the connection is intact, the client best connects again,
/// to this gateway or another, and repeats what is unanswered.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No connection came about.
    #[error(
        "cannot reach a gateway at {address} ({source}): check that the exchange is up (`pares up`), and the port"
    )]
    Connect {
        /// Where to.
        address: String,
        /// What the operating system says.
        source: io::Error,
    },
    /// The gateway closed the connection.
    #[error("the gateway closed the connection: reconnect and repeat unanswered requests")]
    Closed,
    /// Nothing came from the gateway for three heartbeats.
    #[error("the gateway is silent: connect to another one and repeat unanswered requests")]
    Silent,
    /// Reading or writing failed.
    #[error("the connection failed ({0}): reconnect and repeat unanswered requests")]
    Io(#[from] io::Error),
    /// The other end does not speak the protocol.
    #[error("the other end does not speak this order entry protocol ({0}): check the port and both versions")]
    Protocol(#[from] WireError),
    /// TLS failed: one end does not believe the other's certificate, or the gateway's port is not TLS.
    #[error(
        "TLS: {0}: check that ca.pem is this exchange's, that the port speaks TLS, and whether it requires a certificate"
    )]
    Handshake(io::Error),
    /// The certificates to use are no good.
    #[error(transparent)]
    Certificates(#[from] pares_tls::TlsError),
    /// Nothing came in time. The connection is intact; the request may still be answered.
    #[error("no answer in time: keep waiting, or connect to another gateway and repeat the request")]
    TimedOut,
    /// The gateway reads slower than the client writes. The connection is intact and nothing was buffered.
    #[error("the send buffer is full: call flush until it returns true, then submit again")]
    Backlogged,
    /// The gateway wants a proof, and there is no key to prove.
    #[error(
        "the gateway requires a key: pass the key file of one of the member's sessions (`pares admin member key` makes one)"
    )]
    NoKey,
    /// The gateway did not take the request in. The connection is intact and the name still free.
    #[error("the gateway rejected the request: {0}: {meaning}", meaning = .0.meaning())]
    Rejected(Reason),
}
