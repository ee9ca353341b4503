//! Mirrors: the logs of one host at another, where they would lie. Both ends, without a network.
//!
//! A [`MirrorSource`] reads logs as any other node does: their writers know nothing of it, and a receiver that is slow, stopped or dead costs them nothing.
//! A [`MirrorReceiver`] stores what comes, after it was verified. Frames come in and go out; who carries them, and whether they arrive, is the caller's. A connection that ended took
//! nothing with it that is not in the source's logs: the next one begins where the receiver stands.
//!
//! The rules are in `pares-mirror`, the bytes in `docs/protocols/mirror.md`.

mod files;
mod receiver;
mod scope;
mod source;
mod standing;

pub use pares_mirror::{FRAME_MAX, LogName};
pub use receiver::{MirrorProgress, MirrorReceiver};
pub use scope::Scope;
pub use source::{MirrorSource, There};

use pares_config::NodeId;
use pares_types::{GatewayId, RecorderId};

use crate::NodeError;

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub enum MirrorEnded {
    /// The next one may do better.
    #[error("{0}")]
    Broken(String),
    /// Nothing here can be mirrored as things are.
    #[error(transparent)]
    Hopeless(#[from] NodeError),
}

impl MirrorEnded {
    fn broken(why: impl std::fmt::Display) -> Self {
        Self::Broken(why.to_string())
    }
}

impl From<pares_mirror::MirrorFault> for MirrorEnded {
    fn from(fault: pares_mirror::MirrorFault) -> Self {
        Self::broken(fault)
    }
}

/// The node that writes that log.
#[must_use]
pub fn node_of(log: LogName) -> NodeId {
    match log {
        LogName::Gateway(id) => NodeId::Gateway(GatewayId(id)),
        LogName::Recorder(id) => NodeId::Recorder(RecorderId(id)),
    }
}

/// The log that a node writes, if it is mirrored.
#[must_use]
pub fn log_of(node: NodeId) -> Option<LogName> {
    match node {
        NodeId::Gateway(id) => Some(LogName::Gateway(id.0)),
        NodeId::Recorder(id) => Some(LogName::Recorder(id.0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
