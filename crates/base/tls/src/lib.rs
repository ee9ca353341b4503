//! TLS 1.3 by a system's own authority.
//!
//! Between members and gateways, and between clusters of sites, lies a network that others own. Here is what both need against it:
//! an [`Authority`] that issues certificates, [`Identity`] and [`Trust`] (which certificate an end shows, and whose it believes), and
//! [`Stream`], a socket that is plain or TLS and never waits.
//!
//! ```text
//!   Authority --issues--> files --load--> Identity --server(), client()--> rustls --> TlsStream over a socket
//!                           ca.pem --load--> Trust ----------------------^
//! ```
//! TLS 1.3 only, nothing resumed: connections last for hours, so a saved handshake is worth nothing, and every certificate
//! is looked at each time.

mod error;
mod identity;
mod issue;
mod stream;

pub use error::{IssueError, TlsError};
pub use identity::{Callers, Identity, TlsFiles, Trust, names, names_in, revoked_file, web_server};
pub use issue::{Authority, Lifetime};
pub use rustls::pki_types::CertificateDer;
pub use rustls::{ClientConfig, ClientConnection, Connection, Error, ServerConfig, ServerConnection};
pub use stream::{Stream, TlsStream};
