//! What can go wrong, one enum per kind of operation.

use std::io;

/// Why a journal did not take or give a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Not written, or not made durable.
    #[error("cannot write the cluster's log: {0}")]
    Write(#[from] pares_log::AppendError),
    /// Not opened or not read.
    #[error("cannot read the cluster's log: {what}")]
    Read {
        /// What the log said.
        what: String,
    },
    /// What was written there is not there any more. A log may be cut where nobody counts on what follows; a member's votes and
    /// acknowledgements are counted on.
    #[error(
        "the cluster's log is damaged: {what}. Do not cut it: a member that forgets its votes can corrupt \
         its cluster's log. Move the whole directory of this site away; other sites will refill it \
         (docs/operations/sites.md)"
    )]
    Damaged {
        /// What is wrong, and where.
        what: String,
    },
    /// A write or sync failed while the log was opened after one had failed before. Nothing that was promised is lost.
    #[error("the cluster's log cannot be opened, because its disk fails: {}", io::Error::from_raw_os_error(*errno))]
    Device {
        /// The kernel's error number.
        errno: i32,
    },
    /// The memory that stands for a disk was set to fail.
    #[error("the simulated disk failed")]
    Simulated,
}

impl JournalError {
    /// Whether opening it again fails the same way until an operator has repaired something.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }
}

/// Why a replica cannot be opened. Nothing was changed, but a torn tail may have been cut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicaError {
    /// A setting is not legal.
    #[error("cluster configuration: {what}")]
    Config {
        /// What has to hold.
        what: &'static str,
    },
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The log is another member's, of another life of its disk, or of another database. Using it, a member could vote twice.
    #[error(
        "this log belongs to member {number} of a cluster, not to this member: it comes from another site \
         or database, or mixes two disks. Give each site its own complete directory, or move this one away: \
         other sites will refill the site"
    )]
    Foreign {
        /// The number of the member whose it is.
        number: u8,
    },
    /// A record is intact and means nothing, or does not follow those before it.
    #[error("the cluster's log contains a record that this version never writes: {what}")]
    Record {
        /// What is wrong.
        what: &'static str,
    },
    /// The caller's state ends before the log begins.
    #[error(
        "the site's state ends at index {applied}, but the cluster's log begins after {base}: restore a \
         copy of the state that reaches that index"
    )]
    Behind {
        /// Where the state ends.
        applied: u64,
        /// Where the log begins.
        base: u64,
    },
    /// The caller's state reaches beyond the log's end: this is not the log it was made from, or it has lost its end.
    #[error(
        "the site's state ends at index {applied}, but the cluster's log ends at {last}: the log is another \
         site's, or its disk lost synced data; restore the right log"
    )]
    Short {
        /// Where the state ends.
        applied: u64,
        /// Where the log ends.
        last: u64,
    },
}

impl ReplicaError {
    /// As [`JournalError::is_damage`]; what does not belong together counts as that.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Journal(error) => error.is_damage(),
            Self::Record { .. } | Self::Behind { .. } | Self::Short { .. } | Self::Foreign { .. } => true,
            Self::Config { .. } => false,
        }
    }
}

/// Why a payload will not be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// This member does not lead (yet, or any more).
    #[error("this member is not its cluster's delegate: ask the delegate")]
    NotDelegate {
        /// Who does, as far as known. This member itself while it catches up with what it inherited.
        delegate: Option<u8>,
    },
    /// This member is handing over its office.
    #[error("the delegate is handing over leadership: try again shortly")]
    Resigning,
    /// Empty payloads are the log's own.
    #[error("an entry needs at least one byte")]
    Empty,
    /// Longer than a record of the log may be.
    #[error("an entry of {len} bytes exceeds this log's {max}")]
    TooLarge {
        /// Bytes asked for.
        len: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// Too much is proposed and not committed: a majority is slow or away.
    #[error("{bytes} bytes are already waiting to be committed: try again later")]
    Backlog {
        /// How much waits.
        bytes: usize,
    },
}

/// Why a message was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It is cut short, of another version, or not one that members send.
    #[error("the message is not of this version: {what}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
    },
    /// It says it is from, or for, another member.
    #[error("a message from member {from} to member {to} arrived at another member")]
    Misdirected {
        /// From whom it says it is.
        from: u8,
        /// For whom.
        to: u8,
    },
}

/// Why a replica has stopped for good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The journal failed: what it holds is not known.
    #[error("{0}; this member stops: restart it to read its log again")]
    Journal(#[from] JournalError),
    /// The delegate counts on entries that this member once acknowledged and does not have: its disk has lost them, or was replaced by
    /// an empty one. Going on could undo what is committed.
    #[error(
        "the delegate knows that this member had index {commit}, but its log ends at {last}: the member has \
         lost synced data. Restore the log, or move this site's directory away: it will be refilled under a \
         new identity"
    )]
    Forgotten {
        /// What it must have had.
        commit: u64,
        /// What it has.
        last: u64,
    },
}
