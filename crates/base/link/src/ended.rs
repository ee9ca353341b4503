//! Why a connection ended, or did not come about.

use std::io;

use crate::hello::HelloError;

/// Why a connection ended, or an attempt at one failed. Attempts are repeated in any case; what has to be put right
/// by people says so.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// No connection came about.
    #[error("cannot be reached ({0}); trying again")]
    Unreachable(io::Error),
    /// The other end closed it.
    #[error("the other end closed the connection")]
    Gone,
    /// Reading or writing failed.
    #[error("the connection failed ({0})")]
    Broken(io::Error),
    /// Connecting, the TLS handshake and the hello together took too long.
    #[error("no hello arrived in time")]
    Silent,
    /// A frame longer than agreed.
    #[error(
        "a frame has {bytes} bytes, but at most {max} are allowed: check that both ends speak this protocol"
    )]
    TooLong {
        /// What its head says.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// A bad hello.
    #[error(transparent)]
    Hello(#[from] HelloError),
    /// TLS failed, or the other end's certificate is not of this system.
    #[error("TLS: {0}: check that both certificates are from this system's authority (ca.pem)")]
    Tls(rustls::Error),
    /// A site that must use TLS came without.
    #[error("site {0} must use TLS but connected without it: refused")]
    PlainRefused(u16),
    /// TLS where none is configured.
    #[error(
        "the other end uses TLS, but this site is not configured for it: give this site its certificate, or set both ends to plain"
    )]
    TlsRefused,
    /// The certificate belongs to another peer.
    #[error("its certificate does not name {0}: refused. Issue one in that name")]
    WrongName(String),
    /// Certificates were revoked, perhaps this one.
    #[error("certificates were revoked: closed, so that every client must authenticate again")]
    Revised,
    /// The list of revoked certificates cannot be read.
    #[error("{0}; the list read before stays in use")]
    Unreadable(pares_tls::TlsError),
    /// It does not read what it is sent.
    #[error("the other end has left {0} bytes unread: closed, so that both ends reconnect")]
    Slow(usize),
    /// The same site connected again, so this connection is dead.
    #[error("the same site connected again")]
    Replaced,
    /// More came than there is room for.
    #[error("too many connections: closed")]
    Crowded,
    /// The caller asked for it.
    #[error("closed by this site")]
    Closed,
}

impl Ended {
    /// Whether the other end was refused for what it is or says, rather than lost. An operator has to look into it.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Hello(_)
                | Self::Tls(_)
                | Self::PlainRefused(_)
                | Self::TlsRefused
                | Self::WrongName(_)
                | Self::Unreadable(_)
                | Self::TooLong { .. }
        )
    }
}
