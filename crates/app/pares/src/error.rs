//! Why a command failed. Every message says what to do, or what was wrong with what was asked.

#[cfg(feature = "sites")]
use pares_brokerage::BrokerageError;
use pares_client::ClientError;
#[cfg(feature = "sites")]
use pares_operator::OperatorError;
use pares_types::Reason;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A node, the supervisor or the configuration.
    #[error(transparent)]
    Node(#[from] pares_node::NodeError),
    /// A command to sites.
    #[cfg(feature = "sites")]
    #[error(transparent)]
    Sites(#[from] OperatorError),
    /// A broker's command.
    #[cfg(feature = "sites")]
    #[error(transparent)]
    Broker(#[from] BrokerageError),
    /// The index of a recorder's log.
    #[error(transparent)]
    History(#[from] pares_history::HistoryError),
    /// A client connection.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// What was asked cannot be done.
    #[error("{0}")]
    Usage(String),
    /// An operator asked, and nobody answered: it may be done or not. Ends the program with [`CommandError::NO_ANSWER`].
    #[error("{0}")]
    NoAnswer(String),
    /// The exchange refused what was asked of it.
    #[error("refused: {0}: {meaning}", meaning = .0.meaning())]
    Refused(Reason),
    /// The command ran, and what it checks does not hold.
    #[error("{0}")]
    Failed(String),
    /// What was looked at does not run. Ends the program with [`CommandError::NOT_RUNNING`].
    #[error("{0}")]
    NotRunning(String),
    /// What was looked at runs, and something is wrong. Ends the program with [`CommandError::UNHEALTHY`].
    #[error("{0}")]
    Unhealthy(String),
    /// Recorders do not say the same. Ends the program with [`CommandError::DISAGREE`].
    #[error("{0}")]
    Disagree(String),
    /// Days, archives, backups.
    #[error(transparent)]
    Archive(#[from] pares_archive::ArchiveError),
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl From<pares_config::ConfigError> for CommandError {
    fn from(error: pares_config::ConfigError) -> Self {
        Self::Node(error.into())
    }
}

impl CommandError {
    /// What the program ends with when a system that was looked at is down (as `systemctl status` has it).
    pub const NOT_RUNNING: u8 = 3;
    /// The same when it runs, and something is wrong.
    pub const UNHEALTHY: u8 = 4;

    /// The same when nobody has answered: what was asked may be done or not.
    pub const NO_ANSWER: u8 = 5;

    /// The same when recorders do not say the same.
    pub const DISAGREE: u8 = 7;

    /// What the program ends with.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::NotRunning(_) => Self::NOT_RUNNING,
            Self::Unhealthy(_) => Self::UNHEALTHY,
            Self::NoAnswer(_) => Self::NO_ANSWER,
            Self::Disagree(_) => Self::DISAGREE,
            #[cfg(feature = "sites")]
            Self::Sites(error) => Self::status_of_sites(error),
            #[cfg(feature = "sites")]
            Self::Broker(BrokerageError::Damaged(_)) => OperatorError::DAMAGED,
            _ => 1,
        }
    }

    #[cfg(feature = "sites")]
    fn status_of_sites(error: &OperatorError) -> u8 {
        match error {
            OperatorError::NotRunning(_) => Self::NOT_RUNNING,
            OperatorError::Unhealthy(_) => Self::UNHEALTHY,
            OperatorError::NoAnswer(_) => Self::NO_ANSWER,
            OperatorError::Damaged(_) => OperatorError::DAMAGED,
            _ => 1,
        }
    }

    /// The same, and what that means for what was asked.
    #[must_use]
    pub fn and(self, more: &str) -> Self {
        let text = format!("{self}{more}");
        if self.is_certain() { Self::Failed(text) } else { Self::NoAnswer(text) }
    }

    /// Whether what an operator asked for is surely not done, and never will be.
    pub fn is_certain(&self) -> bool {
        !matches!(self, Self::NoAnswer(_))
    }

    /// Wraps an I/O error with what was being done.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing: doing.into(), source }
    }
}

/// What commands return.
pub type CommandResult = Result<(), CommandError>;
