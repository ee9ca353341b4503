//! What one host gives its processes: mapped memory, bells, counters, clocks, scheduling.
//!
//! Every process of a Pares system is a primary and none may wait for another, so nothing here waits for a
//! lock that a stopped process could hold. All that is shared is single-writer words and bytes, inside files that
//! outlive the process which wrote them:
//!
//! | module | shared thing | who writes |
//! |---|---|---|
//! | [`mapping`] | a file as memory | decided by what lies in it |
//! | [`bell`] | "a listener sleeps here" words | listener sets, ringer clears |
//! | [`counters`] | named numbers of one node | that node |
//! | [`histogram`] | a latency distribution | one thread of that node |
//!
//! [`scheduling`] says how nodes take their turns on the processor. [`clock`] reads the two clocks that stamps on shared memory are taken from.
//! [`descriptors`] says how many files and connections a process may have.
//! [`terminal`] waits for a key. [`process`] keeps a second supervisor off a directory, and tells a process to end. [`open_file`] opens a file and [`read_file`] reads one, and they wait for no pipe in its place. [`replace_file`], [`replace_shared_file`] and [`replace_file_unsynced`] put a file there whole or not at all; [`sync_file_system`] makes many files durable at once.

pub mod bell;
pub mod clock;
pub mod counters;
pub mod descriptors;
mod error;
pub mod histogram;
pub mod mapping;
pub mod process;
mod read_file;
mod replace_file;
pub mod scheduling;
pub mod terminal;

pub use bell::{Bell, BellKind, Bells, Ringer};
pub use counters::{CountersReader, CountersWriter};
pub use histogram::{HISTOGRAM_BYTES, HistogramReader, HistogramWriter, Quantiles};
pub use mapping::{MapError, Mapping};
pub use read_file::{open_file, read_file};
pub use replace_file::{replace_file, replace_file_unsynced, replace_shared_file, sync_file_system};
