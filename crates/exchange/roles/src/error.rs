//! What can stop a node, with what to do about it.

use std::net::SocketAddr;
use std::path::PathBuf;

use pares_types::{GatewayId, Position, ShardId, VenueId};

/// Why a node cannot start or go on.
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
    /// The configuration is not valid.
    #[error("configuration: {0}")]
    Config(String),
    /// It cannot be done as things are; the text says why, and what to do.
    #[error("{0}")]
    Refused(String),
    /// A shard has no window.
    #[error("shard {0} has no window: the system was not started; start it with `pares up`")]
    NotStarted(ShardId),
    /// A gateway cannot listen.
    #[error(
        "cannot listen at {address}: {source}. `gateways` in pares.toml chooses the address (of a member's server `servers` in member.toml)"
    )]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The nodes of a system die whenever they are started, or take too long.
    #[error("the system did not come up: {0}")]
    NotUp(String),
    /// The start was told to stop.
    #[error("the start was broken off: it was told to stop")]
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
        "{log}: {why}. In no other log either: {missing}. Nothing was changed. Bring back a log that has it, or give up \
         what follows with `pares journal cut`",
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
        "{lost}. Checkpoints or windows show that they were recorded, so members may have been told of them. Nothing was changed. Bring back \
         newer logs, or give up those positions with `pares up --give-up-lost`"
    )]
    RecordLost {
        /// Which positions, and how many.
        lost: String,
    },
    /// Nothing says what a shard's state is.
    #[error(
        "shard {0}: no checkpoint of it can be read, and no recorder keeps its record from the beginning, so it stands still. Stop the \
         system, put a directory recorder-R that has one in the place of that recorder's, log and checkpoints together (of a disk that \
         was replaced, or of a backup), and start again"
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
        "{log} is not the log that gateway-{gateway} had since everything was last started: its log was lost. Bring it back, or \
         stop and start the whole system to have this gateway go on without it; members use other gateways meanwhile",
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
        "venue-{venue} is shut out: it said something else than most venues, and {note} says what; put in a right build, \
         then `pares admin readmit venue-{venue}`"
    )]
    ShutOut {
        /// The venue.
        venue: VenueId,
        /// Who found it, and how.
        note: PathBuf,
    },
    /// The notes about venues that are shut out cannot be listed.
    #[error(
        "{dir} cannot be listed ({source}), so any venue may be shut out and none goes on: make it a directory that the nodes \
         can read",
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
    #[error(
        "the venue's turns were taken over from a thread that did not come back from the matching engine"
    )]
    TakenOver,
    /// A venue leaves a thread behind that does not come back from the matching engine.
    #[error("a thread does not come back from the matching engine; this process ends to be rid of it")]
    Encumbered,
    /// Somebody met damage in this node's log; it is repaired as the node starts again.
    #[error("this node's log is damaged, others say; it ends, and repairs its log as it starts again")]
    RepairAsked,
    /// The window has begun a new life; this process is left over from the old one.
    #[error("the exchange was started anew; this process belongs to an earlier start and ends")]
    EpochOver,
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
