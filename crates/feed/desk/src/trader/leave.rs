//! When a trader leaves a server.

use crate::frame::{CutOff, FrameError};
use crate::item::ItemError;

/// Why a connection is to be left for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Leave {
    /// The server ended it.
    #[error("the server ended the connection: {0:?}")]
    Ended(CutOff),
    /// What came makes no sense here.
    #[error("the server sent an unexpected frame")]
    Nonsense,
}

impl From<FrameError> for Leave {
    fn from(_: FrameError) -> Self {
        Self::Nonsense
    }
}

impl From<ItemError> for Leave {
    fn from(_: ItemError) -> Self {
        Self::Nonsense
    }
}
