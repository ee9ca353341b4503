//! What an operator decides, as bytes: the kind, and what it is about.

use pares_wice::Command;
use pares_wice::codec::{Coded, DecodeError};

/// A command as a frame has it; the rules' own type has no bytes.
pub(super) fn encode(command: Command, to: &mut Vec<u8>) {
    match command {
        Command::DeclareLost(lost) => (1u8, lost).encode(to),
        Command::Admit(cluster) => (2u8, cluster).encode(to),
        Command::Migrate(cluster) => (3u8, cluster).encode(to),
        Command::Granted(declared) => (4u8, declared).encode(to),
        Command::Unwitnessed(lost) => (5u8, lost).encode(to),
        Command::Renew => 6u8.encode(to),
    }
}

/// From the first of these bytes.
///
/// # Errors
/// If they are none.
pub(super) fn decode(from: &mut &[u8]) -> Result<Command, DecodeError> {
    match u8::decode(from)? {
        1 => Coded::decode(from).map(Command::DeclareLost),
        2 => Coded::decode(from).map(Command::Admit),
        3 => Coded::decode(from).map(Command::Migrate),
        4 => Coded::decode(from).map(Command::Granted),
        5 => Coded::decode(from).map(Command::Unwitnessed),
        6 => Ok(Command::Renew),
        other => Err(DecodeError::Kind(other, "command")),
    }
}
