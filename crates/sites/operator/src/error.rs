//! Why an operator's wish was not done. Every message says what to do, or what was wrong with what was asked.

/// Why an operator's wish was not done.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// `sites.toml`.
    #[error(transparent)]
    Config(#[from] pares_site::ConfigError),
    /// A backup.
    #[error(transparent)]
    Backup(#[from] pares_site::backup::BackupError),
    /// What was asked cannot be done.
    #[error("{0}")]
    Usage(String),
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
    /// No site runs.
    #[error("{0}")]
    NotRunning(String),
    /// No site has answered: what was asked may be done or not.
    #[error("{0}")]
    NoAnswer(String),
    /// Sites run, and something is wrong.
    #[error("{0}")]
    Unhealthy(String),
    /// A site cannot run until an operator has repaired what it keeps.
    #[error("{0}")]
    Damaged(String),
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl OperatorError {
    /// What a site ends with that nobody need start again before it is repaired.
    pub const DAMAGED: u8 = 6;

    /// Wraps an I/O error with what was being done.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing: doing.into(), source }
    }
}

/// What an operator's commands return.
pub type OperatorResult = Result<(), OperatorError>;

/// What was asked cannot be done.
pub fn usage(why: impl ToString) -> OperatorError {
    OperatorError::Usage(why.to_string())
}
