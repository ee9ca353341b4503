//! Connections between sites and from their applications.
//!
//! The protocols of replication between clusters (paper 3) take frames in and give frames out and know no network. Here is the
//! network: [`Links`], all connections of one site on one thread that never blocks; [`ClientStream`], an application's end
//! of one; and [`issue()`], the certificates that let clusters talk over a network that others own.
//!
//! The bytes are in `docs/protocols/link.md`.

mod clients;
mod config;
mod ended;
pub mod frame;
pub mod hello;
mod links;
mod listen;
mod remote;
mod revoked;
mod sink;
mod table;
mod tls;
mod turn;
mod wire;

pub use clients::{ClientId, ClientStream, Door};
pub use config::{ClientsConfig, FRAME_MAX, LinksConfig, Peer, check_system};
pub use ended::Ended;
pub use hello::{Agreed, HelloError, SPEAKS, UNDERSTANDS};
pub use links::Links;
pub use pares_tls::{Identity, IssueError, TlsError, TlsFiles, Trust};
pub use sink::{Counts, LinkSink, LinksError, SendError, Waker};
pub use tls::{MIRROR, SiteIdentity, WITNESS, caller, issue, issue_named, revoke, site_files, site_name};
