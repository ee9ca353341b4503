//! The tap: what a gateway's connections said, byte for byte, as entries of a log.
//!
//! A gateway that printed each message as it reads it would know it only after it was understood, and a quarrel is about what was not. So the tap has
//! bytes: what a read of the socket gave and what a write took, with the time, before any code has looked at them. Messages are made of them
//! afterwards, by who asks.
//! An entry's bytes are in `pares-port`: gateways write them.
//!
//! ```text
//!  socket --read--> gateway      entry: in,  bytes 0..180 of the connection
//!  socket <--write- gateway      entry: out, bytes 0..96                     --> connections --> messages --> delays, differences
//! ```
//! | module | what |
//! |---|---|
//! | `blank` | what proves a secret, found in what comes in |
//! | `connections` | entries put together again, connection by connection |
//! | `message` | messages, cut out of the bytes |
//! | `meaning`, `fix`, `ouch` | what they say, as text, and what they do |
//!
//! docs/protocols/tap.md is the page.

mod blank;
mod connections;
mod fix;
mod meaning;
mod message;
mod ouch;

pub use blank::Blank;
pub use connections::{SETTLED_NS, Tape, TapeEnd, TapedConnection, TapedPiece};
pub use meaning::{TapedMeaning, TapedRole, TapedTalk};
pub use message::{TapedMessage, TapedStream};
pub use ouch::is_ouch_change;
