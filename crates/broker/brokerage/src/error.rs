//! Why a broker's command was not done.

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
    /// A site cannot run until somebody has repaired what it keeps.
    #[error("{0}")]
    Damaged(String),
    /// Somebody has ended it with a signal.
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
pub type BrokerageResult = Result<(), BrokerageError>;

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

/// It was tried and failed.
pub(crate) fn failed(why: impl ToString) -> BrokerageError {
    BrokerageError::Failed(why.to_string())
}
