//! What can stop a node, with what to do about it.

use std::net::SocketAddr;
use std::path::PathBuf;

use pares_config::ConfigError;
use pares_types::{GatewayId, Position, ShardId, VenueId};

/// Why a node cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A file of the system (its configuration, a note) cannot be read, or says nothing that this build understands.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A note of what does not count of a recorder's log is damaged.
    #[error(
        "{0} is damaged, so it is unknown what of the recorder's log counts: stop the system, move this file and the recorder's log away, \
         and start it again; the other recorders fill it (docs/operations/failures.md, Replacing a recorder's disk)"
    )]
    DamagedNote(PathBuf),
    /// The configuration is not valid.
    #[error("configuration: {0}")]
    Config(String),
    /// It cannot be done as things are; the text says why, and what to do.
    #[error("{0}")]
    Refused(String),
    /// A shard has no window.
    #[error("shard {0} has no window, because the system is not started: start it with `pares up`")]
    NotStarted(ShardId),
    /// A gateway cannot listen.
    #[error("cannot listen at {address}: {source}. Change the address: `{setting}` in pares.toml")]
    Listen {
        /// The setting that has the address.
        setting: &'static str,
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The nodes of a system die whenever they are started, or take too long.
    #[error("the system did not come up: {0}")]
    NotUp(String),
    /// The start received a signal to stop.
    #[error("the start was stopped")]
    BrokenOff,
    /// A log cannot be opened for writing.
    #[error("log: {0}")]
    Open(#[from] pares_log::OpenError),
    /// A log cannot be read.
    #[error("reading a log: {0}")]
    Log(#[from] pares_log::ReadError),
    /// A log cannot be written.
    #[error("writing a log: {0}")]
    Append(#[from] pares_log::AppendError),
    /// A log holds a record this build does not understand.
    #[error("a log holds a record this build does not understand ({0}); was it written by a newer version?")]
    Wire(#[from] pares_wire::WireError),
    /// Anything else the operating system refuses.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A recorder's log is damaged, and what it lacks is nowhere.
    #[error(
        "{log}: {why}. No other log has {missing}. Nothing was changed. Restore a log that has it, or \
         discard everything after it with `pares journal cut`",
        log = log.display()
    )]
    Irreparable {
        /// The damaged log.
        log: PathBuf,
        /// What is wrong with it.
        why: String,
        /// The positions, by shard.
        missing: String,
    },
    /// With `disk`: more was recorded than any recorder's log holds.
    #[error(
        "{lost}. Checkpoints or windows show that they were recorded, so members may have received answers \
         for them. Nothing was changed. Restore newer logs, or give up those positions with `pares up \
         --give-up-lost`"
    )]
    RecordLost {
        /// Which positions, and how many.
        lost: String,
    },
    /// Nothing says what a shard's state is.
    #[error(
        "shard {0} cannot start: no checkpoint of it is readable, and no recorder keeps its record from the \
         beginning. Stop the system, replace a recorder's directory by a recorder-R that has a checkpoint \
         (log and checkpoints together, from a replaced disk or a backup), and start again"
    )]
    StateLost(ShardId),
    /// The committed stream has a gap; only a restart from a checkpoint leads over it.
    #[error("shard {shard}: record {met} came where {next} was expected; restart from a checkpoint")]
    Gap {
        /// The shard.
        shard: ShardId,
        /// The position expected.
        next: Position,
        /// The position met.
        met: Position,
    },
    /// A gateway's log was taken away while the system ran: what the venues have read of it and nobody has recorded yet is not
    /// known here, and its numbers would be given to other requests.
    #[error(
        "{log} is not the log that gateway-{gateway} used since the last start of the system: that log was \
         lost. Restore it, or stop and start the whole system so that this gateway continues without it; \
         members use other gateways meanwhile",
        log = log.display()
    )]
    LogLost {
        /// The gateway.
        gateway: GatewayId,
        /// Its log.
        log: PathBuf,
    },
    /// The venue computed something else than most of them.
    #[error(
        "venue-{venue} is shut out: its results differ from those of most venues (see {note}). Install a \
         correct build, then run `pares admin readmit venue-{venue}`"
    )]
    ShutOut {
        /// The venue.
        venue: VenueId,
        /// Who found it, and how.
        note: PathBuf,
    },
    /// The notes about venues that are shut out cannot be listed.
    #[error(
        "{dir} cannot be listed ({source}), so no venue can run, as any could be shut out: make it a \
         directory that the nodes can read",
        dir = dir.display()
    )]
    MaybeShutOut {
        /// Where the notes lie.
        dir: PathBuf,
        /// Why they cannot be listed.
        source: std::io::Error,
    },
    /// A thread of the node panicked, and not in the matching engine.
    #[error("a thread of this node panicked; its message is above")]
    Panicked,
    /// Another thread has taken a venue's turns over; this one ends.
    #[error("another thread took over the venue's work from one that was stuck in the matching engine")]
    TakenOver,
    /// A venue leaves a thread behind that does not come back from the matching engine.
    #[error("a thread is stuck in the matching engine; this process ends, and its supervisor restarts it")]
    Encumbered,
    /// Another node met damage in this node's log; it is repaired as the node starts again.
    #[error(
        "other nodes found this node's log damaged; this process ends, and repairs its log at the next start"
    )]
    RepairAsked,
    /// The window has begun a new life; this process is left over from the old one.
    #[error("the exchange was restarted; this process belongs to an earlier start and ends")]
    EpochOver,
}

impl From<ConfigError> for NodeError {
    fn from(ConfigError(what): ConfigError) -> Self {
        Self::Config(what)
    }
}

impl NodeError {
    /// Whether another log in the place of the one that was opened or read helps.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Open(error) => error.is_damage(),
            Self::Log(error) => error.is_damage(),
            _ => false,
        }
    }

    /// Wraps an I/O error with what was being done.
    pub fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}
