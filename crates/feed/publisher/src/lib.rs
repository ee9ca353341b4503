//! Market data as processes (docs/protocols/market-data.md): publishers, which send what the record gives, and replayers, which send it again.
//!
//! A feed that is numbered in a process's memory needs a primary, a stand-by, and a moment in which nobody sends. Here each publisher makes the same
//! messages out of the committed record, under the same numbers, and sends them; none leads, and none knows of another. It keeps them in a log of its own,
//! which replayers read: those who ask for what they missed, or read slowly, cannot hold a publisher up, and what a dead one sent stays readable.
//! (Swiss Exchange, paper 2; the log as the bus: design, section 1.)
//!
//! ```text
//!  recorders' logs --> [ publisher ] --> lines A, B (UDP)
//!                           | log
//!                           v
//!                      [ replayer  ] <--> UDP: messages again    TCP: the day, snapshots
//! ```
//! | module | what |
//! |---|---|
//! | [`publisher`] | the role of a publisher |
//! | [`replayer`] | the role of a replayer |
//! | [`logged`] | what a publisher's log holds |
//! | `state` | all that a publisher needs to continue |
//! | `scan` | a publisher's log, read through |
//! | [`lines`] | where packets go |
//! | [`process`] | each role as a process |

pub mod lines;
pub mod logged;
pub mod process;
pub mod publisher;
pub mod replayer;
mod scan;
mod state;
