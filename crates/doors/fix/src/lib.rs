//! FIX 4.2 and 4.4: dictionaries, a codec, and the session layer as a state machine.
//!
//! A FIX engine usually keeps a store of what it sent, reads its clock and owns its sockets. Then nobody else can take one of its sessions
//! over, and its faults cannot be repeated. Here a session is a few numbers. Events come in with their time, actions go to a sink of the
//! caller's, and the next deadline can be asked. What was sent is made again by the caller, who has the record.
//!
//! | module | what |
//! |---|---|
//! | [`dictionary`] | which fields and messages there are: tables made at build time from `dictionary/` |
//! | [`framing`] | one message out of the bytes of a connection; garbled ones are skipped |
//! | [`parser`] | fields of a message, found and checked in one pass |
//! | [`message`] | a parsed message: look up a field |
//! | [`fault`] | why a message is rejected |
//! | [`writer`] | a message, written in one pass |
//! | [`time`] | times as FIX writes them |
//! | [`session`] | sequence numbers, heartbeats, gaps, resends |

pub mod dictionary;
pub mod fault;
pub mod framing;
pub mod message;
pub mod parser;
pub mod session;
pub mod time;
mod values;
pub mod writer;

/// Ends each field.
pub const SOH: u8 = 1;
