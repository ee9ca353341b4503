//! Mirrors: what a source and a receiver say to each other, and what each of them does next.
//!
//! A receiver that asked for the next record of each log would wait for an answer each time, and a source that sent all it has would have to keep what a slow receiver does not
//! take. So the receiver says once where it stands, and the source sends *stretches* of records on, as far as the receiver has credit; what it does not send stays where it is, in the log.
//!
//! ```text
//!   receiver                         source
//!   Hello, Have.., HaveFile.., Go -->
//!                                    <-- Hello, Begins..        where each log continues, or begins again
//!                                    <-- Piece..                notes and settings
//!                                    <-- Stretch..              gateways' logs, then recorders'
//!                                    <-- Piece.., Keep          checkpoints; which files there are
//!                                    <-- Marks.., Round         a whole copy, as of the beginning of the round
//!   Taken.. -->
//! ```
//! The order within a round is what makes each moment's copy one that can be started: a gateway's log has all that recorders' logs say of it, a recorder's all that its
//! checkpoints count on. So the end of a round is looked up in recorders' logs first and in gateways' then, and sent the other way round.
//!
//! No clock, no I/O. The bytes: `docs/protocols/mirror.md`.

mod files;
mod message;
mod receiver;
mod sender;

pub use files::{Class, class_of};
pub use message::{FRAME_MAX, LogName, MirrorMessage, SPEAKS, UNDERSTANDS, agreed};
pub use receiver::ReceiverRules;
pub use sender::{Due, FILE_PIECE_MAX, STRETCH_MAX, Sender};

/// Why a connection ends: what the other end sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MirrorFault {
    /// No message of this version.
    #[error("it sent what is no message of mirrors")]
    Malformed,
    /// There is no version that both understand.
    #[error(
        "it speaks version {theirs} of the mirror protocol, and this build {SPEAKS}: upgrade the older one"
    )]
    Version {
        /// What it speaks.
        theirs: u16,
    },
    /// The other end ends the connection, and says why.
    #[error("the source says: {0}")]
    Ended(String),
    /// A message that has no place there.
    #[error("it sent {0}")]
    OutOfTurn(&'static str),
}
