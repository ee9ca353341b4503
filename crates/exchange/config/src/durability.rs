//! What an answer promises.

use pares_log::Durability;
use serde::{Deserialize, Serialize};

/// What "durable" means in this system (design section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DurabilitySetting {
    /// In the page cache: survives the death of any process.
    Os,
    /// On the device: survives the loss of power.
    Disk,
}

impl DurabilitySetting {
    /// What a file means that does not say: an exchange keeps what it acknowledges.
    pub(crate) const fn unsaid() -> Self {
        Self::Disk
    }
}

impl From<DurabilitySetting> for Durability {
    fn from(setting: DurabilitySetting) -> Self {
        match setting {
            DurabilitySetting::Os => Self::Os,
            DurabilitySetting::Disk => Self::Disk,
        }
    }
}
