//! What is kept when.

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

impl From<DurabilitySetting> for Durability {
    fn from(setting: DurabilitySetting) -> Self {
        match setting {
            DurabilitySetting::Os => Self::Os,
            DurabilitySetting::Disk => Self::Disk,
        }
    }
}
