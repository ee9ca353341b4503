//! The world of the simulator: logs, files, windows, counters, sockets and tasks in memory, with the real bytes.
//!
//! ```text
//!   role --World--> Host (one process, one life) ---> Machine: everything there is, under one lock
//!                     |                                  |
//!                     +-- killed at any call             +-- effects, taken by the simulator's clock: rings, syncs, tasks
//! ```
//! | module | what |
//! |---|---|
//! | `log`, `writer`, `reader`, `replace` | logs, with what a crash and a loss of power leave of them |
//! | `files`, `file` | files, with the same; one that a process has open |
//! | `net`, `sockets`, `datagrams` | connections; a server's ends of them; packets without one |
//! | `window` | a venue's window of a shard |
//! | `machine` | all of it |
//! | `host`, `world` | one process's handle on all of it, at each call of which it may be killed; what its role sees |
//! | `seam`, `lens` | defects put in on purpose, and logs read wrongly |

pub(crate) mod datagrams;
pub(crate) mod file;
pub(crate) mod files;
pub(crate) mod host;
pub(crate) mod lens;
pub(crate) mod log;
pub(crate) mod machine;
pub(crate) mod mirror;
pub(crate) mod net;
pub(crate) mod reader;
pub(crate) mod replace;
pub(crate) mod seam;
pub(crate) mod sockets;
pub(crate) mod window;
pub(crate) mod world;
pub(crate) mod writer;
