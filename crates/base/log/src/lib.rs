//! The mapped log: journal and bus in one (design sections 1 and 4, paper 5).
//!
//! A sender that keeps a journal *and* sends messages stores everything twice, and a transport that waits for
//! its subscribers lets one stopped reader freeze the sender. Here the journal is the transport: one
//! append-only log in mapped files with a single writer, which those who want the messages tail. A reader costs
//! the writer nothing, a stopped one resumes where it was, a late one starts anywhere, and what a dead writer
//! published stays readable.
//!
//! ```text
//!   directory   marks                       written, durable, synced, released, poisoned; latency histograms
//!               00000000000000000000.seg    records, segment by segment; the name is the first offset
//!               00000000000067108864.seg
//!               lock                        held by the one writer
//!
//!   offsets     0 ......... released ......... synced .... written ... tail
//!               unlinked    |  readable                    |  appended, not yet published
//! ```
//!
//! Paper 5 found two costs at the write call: the kernel growing the file, and rolling to the next one (300 us). A
//! segment is therefore allocated, zeroed and faulted in by another thread before it is needed ([`Writer`] only
//! changes a pointer when it rolls), and appending is a copy, a checksum and two readings of the clock, recorded in a
//! histogram that any process may read meanwhile, as the paper does.
//!
//! The byte layout, recovery and failure table: `docs/protocols/log.md`.
//!
//! ```
//! use pares_log::{Config, Offset, Reader, Writer};
//! # let dir = tempfile::tempdir().unwrap();
//! let (mut writer, _recovery) = Writer::open(dir.path(), Config::default().segment_bytes(1 << 20)).unwrap();
//! writer.append(b"first").unwrap();
//! writer.publish();
//!
//! let mut reader = Reader::open(dir.path(), Offset::START).unwrap();
//! assert_eq!(reader.next().unwrap().unwrap().payload, b"first");
//! assert!(reader.next().unwrap().is_none());
//! ```

mod config;
mod device;
mod error;
pub mod inspect;
mod interface;
mod keeping;
mod marks;
mod mirror;
mod offset;
mod prepare;
mod reader;
pub mod record;
mod recover;
mod replace;
mod salvage;
mod segment;
mod shared;
mod writer;

pub use config::{Config, Durability, payload_bytes_max};
pub use device::{Device, Plain};
pub use error::{AppendError, MirrorError, OpenError, ReadError};
pub use inspect::{Damage, Inspection, Verification, cut, inspect, verify};
pub use interface::{LogMirror, LogReader, LogReplacement, LogSalvage, LogSyncer, LogWriter};
pub use marks::{LogStats, MarksReader};
pub use mirror::{Mirror, check_stretch, next_place, take_over};
pub use offset::Offset;
pub use reader::{RawStretch, Reader, Record};
pub use recover::{Recovery, adopt, writing_process};
pub use replace::{DAMAGED, Replacement};
pub use salvage::Salvage;
pub use shared::Syncer;
pub use writer::Writer;
