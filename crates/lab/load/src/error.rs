//! Why a command of the laboratory failed. Every message says what to do, or what was wrong with what was asked.

use std::time::{Duration, Instant};

/// Why a command of the laboratory failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A node, the supervisor or the configuration.
    #[error(transparent)]
    Node(#[from] pares_node::NodeError),
    /// The configuration of a system of sites.
    #[error(transparent)]
    Sites(#[from] pares_site::ConfigError),
    /// An operator's command to sites.
    #[error(transparent)]
    Operator(#[from] pares_operator::OperatorError),
    /// A client connection.
    #[error(transparent)]
    Client(#[from] pares_client::ClientError),
    /// A recording cannot be read.
    #[error(transparent)]
    Recording(#[from] pares_flow::SourceError),
    /// What was asked cannot be done.
    #[error("{0}")]
    Usage(String),
    /// The command ran, and what it checks does not hold.
    #[error("{0}")]
    Failed(String),
    /// This machine does not let us do it; nothing is wrong. Ends the program with [`LabError::SKIPPED`].
    #[error("skipped: {0}")]
    Skipped(String),
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl From<pares_config::ConfigError> for LabError {
    fn from(error: pares_config::ConfigError) -> Self {
        Self::Node(error.into())
    }
}

impl LabError {
    /// What the program ends with when what was asked cannot be done on this machine (as automake has it).
    pub const SKIPPED: u8 = 77;

    /// Wraps an I/O error with what was being done.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing: doing.into(), source }
    }
}

/// What the laboratory's commands return.
pub type LabResult = Result<(), LabError>;

/// Makes a failure of `what` the command's failure.
pub fn failed<E: std::fmt::Display>(what: &str) -> impl FnOnce(E) -> LabError {
    move |error| LabError::Failed(format!("{what}: {error}"))
}

/// Whether there is time left.
///
/// # Errors
/// If what `not` says has been so for longer than `patience`.
pub fn check_patience(since: Instant, patience: Duration, not: &str) -> LabResult {
    match since.elapsed() < patience {
        true => Ok(()),
        false => Err(LabError::Failed(format!("{not} for {} seconds", patience.as_secs()))),
    }
}
