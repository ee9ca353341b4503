//! What of a system is copied.

use std::collections::BTreeSet;

use pares_config::{NodeId, SystemConfig};
use pares_mirror::{Class, class_of};
use pares_types::HostId;

use super::{LogName, log_of};

/// What of a system is copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All that a start needs.
    #[default]
    Whole,
    /// These logs and the checkpoints beside them, which one host of several writes. What says how a host is run is its own.
    Written(BTreeSet<LogName>),
}

impl Scope {
    /// What the nodes of that host write.
    #[must_use]
    pub fn of_host(config: &SystemConfig, host: HostId) -> Self {
        Self::Written(NodeId::at(config, Some(host)).into_iter().filter_map(log_of).collect())
    }

    /// Whether the log is copied.
    #[must_use]
    pub fn has(&self, log: LogName) -> bool {
        match self {
            Self::Whole => true,
            Self::Written(logs) => logs.contains(&log),
        }
    }

    /// What the file at that path is, if it is copied.
    pub(super) fn class_of(&self, path: &str) -> Option<Class> {
        let class = class_of(path)?;
        match self {
            Self::Whole => Some(class),
            Self::Written(logs) => {
                let of = |log: &LogName| {
                    path.strip_prefix(&log.to_string()).is_some_and(|rest| rest.starts_with('/'))
                };
                logs.iter().any(of).then_some(class)
            }
        }
    }
}
