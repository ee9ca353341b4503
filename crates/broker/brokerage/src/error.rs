//! Why a broker's command was not done.

use std::path::Path;

use pares_operator::OperatorError;

/// An error of `pares broker`: what was tried, and why it failed.
#[derive(Debug, thiserror::Error)]
pub enum BrokerageError {
    /// What was asked cannot be done.
    #[error("{0}")]
    Usage(String),
    /// It was tried and failed, or what was checked does not hold.
    #[error("{0}")]
    Failed(String),
    /// A site cannot run until its operator has repaired what it keeps.
    #[error("{0}")]
    Damaged(String),
    /// A signal has ended it.
    #[error("stopped")]
    Stopped,
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// What a broker's commands return.
pub type BrokerageResult<T = ()> = Result<T, BrokerageError>;

impl BrokerageError {
    /// Wraps an I/O error with what was being done.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing: doing.into(), source }
    }

    /// The same behind what was said before.
    #[must_use]
    pub(crate) fn after(self, said: &[String]) -> Self {
        let text = format!("{}; {self}", said.join("; "));
        match self {
            Self::Damaged(_) => Self::Damaged(text),
            _ => Self::Failed(text),
        }
    }
}

/// How a site has ended.
pub(crate) fn of_site(error: OperatorError) -> BrokerageError {
    match error {
        OperatorError::Damaged(why) => BrokerageError::Damaged(why),
        other => failed(other),
    }
}

/// What was asked cannot be done.
pub(crate) fn usage(why: impl ToString) -> BrokerageError {
    BrokerageError::Usage(why.to_string())
}

/// Only with `--force` is a file overwritten.
pub(crate) fn already_exists(file: &Path) -> BrokerageError {
    usage(format!("{} already exists: name another file, or use --force", file.display()))
}

/// It was tried and failed.
pub(crate) fn failed(why: impl ToString) -> BrokerageError {
    BrokerageError::Failed(why.to_string())
}
