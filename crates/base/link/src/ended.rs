//! Why a connection ended, or did not come about.

use std::io;

use crate::hello::HelloError;

/// Why a connection ended, or an attempt at one failed. Attempts are repeated in any case; what has to be put right
/// by people says so.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// No connection came about.
    #[error("cannot be reached ({0}); tried again")]
    Unreachable(io::Error),
    /// The other end closed it.
    #[error("the other end closed the connection")]
    Gone,
    /// Reading or writing failed.
    #[error("the connection failed ({0})")]
    Broken(io::Error),
    /// Connecting, the TLS handshake and the hello together took too long.
    #[error("no hello within the time for it")]
    Silent,
    /// A frame longer than agreed.
    #[error("a frame of {bytes} bytes, {max} at most are allowed: check that both ends speak this protocol")]
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
    #[error("TLS: {0}: are both certificates issued by this system's own authority (ca.pem)?")]
    Tls(rustls::Error),
    /// A site that must use TLS came without.
    #[error("site {0} is configured to use TLS and came without: refused")]
    PlainRefused(u16),
    /// TLS where none is configured.
    #[error("TLS came where none is configured: give this site its certificate, or set both ends to plain")]
    TlsRefused,
    /// The certificate belongs to somebody else.
    #[error("its certificate does not name {0}: refused. Issue it one in that name")]
    WrongName(String),
    /// Certificates were revoked, perhaps this one.
    #[error("certificates were revoked: closed, so that everybody proves anew who it is")]
    Revised,
    /// The list of revoked certificates cannot be read.
    #[error("{0}; until it can be, what was read before holds")]
    Unreadable(pares_tls::TlsError),
    /// It does not read what it is sent.
    #[error("{0} bytes wait to be read by the other end: closed, so that both begin anew")]
    Slow(usize),
    /// The same site connected again, so this connection is dead.
    #[error("the same site connected anew")]
    Replaced,
    /// More came than there is room for.
    #[error("too many connections: closed")]
    Crowded,
    /// The caller asked for it.
    #[error("closed by this site")]
    Closed,
}

impl Ended {
    /// Whether the other end was refused for what it is or says, rather than lost. Somebody has to look into it.
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
