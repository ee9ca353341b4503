//! The world of a process: all that a role touches.
//!
//! A role that opens files, reads clocks and starts threads by itself can be run only where those are, and the simulator
//! would have to write it a second time; the copy then drifts, and what is proved is not what ships. So roles are generic over
//! the world. `pares-node` has the real one: mapped files, sockets, threads, clocks. `pares-sim` has one in memory, with the same bytes
//! and checksums, virtual time and faults by seed. Drills wrap the real one to fail on purpose. (TigerBeetle's replica is
//! generic over its storage and message bus for the same reason.)
//!
//! ```text
//!            +------------------------------------------------------------+
//!   role --> | logs | windows | counters | bells | clocks | files | tasks | sockets |
//!            +------------------------------------------------------------+
//!              per record: static calls        per batch or turn: may be dynamic
//! ```

mod host_file;

use std::fmt::{Debug, Display};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pares_config::NodeId;
use pares_log::{
    Config, LogMirror, LogReader, LogReplacement, LogSalvage, LogWriter, Offset, OpenError, ReadError,
};
use pares_port::{DoorPort, MarketView};
use pares_sequencer::Sequencer;
use pares_table::{Network, Origin, origin};
use pares_types::{Epoch, GatewayId, Position, Request, ShardId};

/// All that a role touches. Clones are further handles on the same world, for the tasks of a process. What returns an
/// [`io::Result`], here and in the traits below, fails as the system says; a method says where there is more to it.
pub trait World: Clone + Send + Sync + 'static {
    /// The one writer of a log.
    type Writer: LogWriter;
    /// A reader of a log.
    type Reader: LogReader;
    /// Reads what is whole of a log.
    type Salvage: LogSalvage;
    /// A log that is to take the place of a damaged one.
    type Replacement: LogReplacement<Salvage = Self::Salvage>;
    /// The one writer of a mirror.
    type Mirror: LogMirror;
    /// A shard's window.
    type Window: Sequencer + Send + 'static;
    /// Numbers of this process that others may read.
    type Counters: Counters;
    /// What wakes other nodes.
    type Ringer: Ring;
    /// A file.
    type File: File;
    /// How many names a shard remembers: equal for all venues, for ever.
    const SHARD_NAMES_MAX: usize = pares_venue::names::NAMES_MAX;

    /// Opens a node's log for writing; makes it if there is none.
    ///
    /// # Errors
    /// As [`pares_log::Writer::open`].
    fn write_log(&self, log: NodeId, config: Config) -> Result<Self::Writer, OpenError>;

    /// Opens the log of a gateway's tap for writing; makes it if there is none.
    ///
    /// # Errors
    /// As [`World::write_log`].
    fn write_tap(&self, gateway: GatewayId, config: Config) -> Result<Self::Writer, OpenError>;

    /// Opens a node's log to read from `from`.
    ///
    /// # Errors
    /// As [`pares_log::Reader::open`].
    fn read_log(&self, log: NodeId, from: Offset) -> Result<Self::Reader, ReadError>;

    /// Opens a node's log at the first record that is not released.
    ///
    /// # Errors
    /// As [`pares_log::Reader::at_start`].
    fn read_log_from_start(&self, log: NodeId) -> Result<Self::Reader, ReadError>;

    /// Reads what is whole of the published part of a node's log.
    ///
    /// # Errors
    /// As [`pares_log::Salvage::published`].
    fn salvage_log(&self, log: NodeId) -> Result<Self::Salvage, ReadError>;

    /// Begins a log that is to take the place of a node's damaged one.
    ///
    /// # Errors
    /// As [`pares_log::Replacement::begin`].
    fn replace_log(&self, log: NodeId, config: Config) -> Result<Self::Replacement, OpenError>;

    /// Opens the mirror of a node's log for writing, or makes it. With `afresh` what is there is set aside, and another begins.
    ///
    /// # Errors
    /// As [`pares_log::Mirror::open`].
    fn mirror_log(&self, log: NodeId, config: Config, afresh: bool) -> Result<Self::Mirror, OpenError>;

    /// Opens a shard's window. `None` while there is none.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open_window(&self, shard: ShardId) -> io::Result<Option<Self::Window>>;

    /// Makes the window of a new epoch in the place of the one that is there, whose venues learn that it is over.
    ///
    /// # Errors
    /// If it cannot be made, or the one there is of that epoch or a later one.
    fn create_window(&self, shard: ShardId, capacity: usize, epoch: Epoch, first: Position)
    -> io::Result<()>;

    /// Makes the counters called `name`, all zero, in the place of those of an earlier process.
    ///
    /// # Errors
    /// If they cannot be made.
    fn create_counters(&self, name: &str, counters: &[&str]) -> io::Result<Self::Counters>;

    /// One of the counters called `name`, of any process, dead or alive. They outlive their process, and even the epoch.
    fn counter(&self, name: &str, counter: &str) -> Option<u64>;

    /// What wakes the other nodes.
    fn ringer(&self) -> Self::Ringer;

    /// Nanoseconds since 1970. May jump.
    fn now_ns(&self) -> u64;

    /// Nanoseconds since some moment. Never goes back.
    fn mono_ns(&self) -> u64;

    /// Another number each time the machine was started, with or without power in between; 0 if that cannot be known.
    fn boot_id(&self) -> u128;

    /// Bytes that nobody can guess, others each time.
    fn random(&self) -> [u8; 32];

    /// Creates a file to write and read, or empties the one that is there. Makes its directory if need be.
    /// All paths are relative to the system's directory.
    fn create_file(&self, path: &Path) -> io::Result<Self::File>;

    /// Opens a file to read.
    fn open_file(&self, path: &Path) -> io::Result<Self::File>;

    /// Renames a file or directory. What has the new name is replaced, if it is a file.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, in order; none if there is no such directory.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Makes the names in a directory survive the loss of power.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Has `task` done beside the duty cycle, again and again as it says, until it is over. It ends with the process at the latest.
    ///
    /// # Errors
    /// If there is no room for another thread.
    fn spawn(&self, name: &'static str, task: Task) -> io::Result<Waker>;

    /// Takes a step that may bring the matching engine down. `None` if it panicked.
    fn attempt<T>(&self, step: impl FnOnce() -> T) -> Option<T>;

    /// A request is about to be executed.
    #[inline]
    fn executing(&self, _shard: ShardId, _position: Position, _request: &Request) {}

    /// Lets others have the processor for a moment.
    fn give_way(&self);

    /// The process has caught up: it takes its full share of the processor from now on.
    fn leave_background(&self);

    /// The market, for who asks a gateway of it; `None` if the exchange tells none, or this process does not follow it.
    fn market(&self) -> Option<Arc<dyn MarketFeed>> {
        None
    }

    /// Says something to the operator.
    fn complain(&self, what: &dyn Display);
}

/// The market, followed beside the duty cycle.
pub trait MarketFeed: MarketView + Debug + Send + Sync {
    /// Follows it from now on, or not any more.
    fn follow(&self, is_wanted: bool);

    /// Another number whenever something changed. The gateway's bell rings then, too.
    fn version(&self) -> u64;
}

/// Something done beside the duty cycle, a piece at a time.
pub type Task = Box<dyn FnMut() -> Next + Send>;

/// Has a [`Task`] that sleeps continue.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// When a task continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At once; others may have the processor first.
    Again,
    /// After that time, or when it is woken.
    After(Duration),
    /// When it is woken.
    Sleep,
    /// It is over.
    Done,
}

/// Numbers of one process that all others may read. One thread writes a counter.
pub trait Counters: Send + Sync + 'static {
    /// Sets one.
    fn set(&self, counter: impl Into<usize>, value: u64);
    /// Adds to one.
    fn add(&self, counter: impl Into<usize>, increment: u64);
    /// Reads one back.
    fn get(&self, counter: impl Into<usize>) -> u64;
}

/// Wakes other nodes.
pub trait Ring: Send + 'static {
    /// Wakes a node if it sleeps; call after publishing. Never waits.
    fn ring(&mut self, node: NodeId);
}

/// A file, open.
pub trait File: Send + 'static {
    /// Writes behind what is there.
    ///
    /// # Errors
    /// As the system says; some of it may be written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Writes over what is there.
    ///
    /// # Errors
    /// As the system says; some of it may be written.
    fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Reads at most `bytes.len()` bytes; 0 at the end.
    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize>;
    /// Reads as many bytes as there is room for, from `at` on.
    ///
    /// # Errors
    /// As the system says; `UnexpectedEof` if it has fewer.
    fn fill(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let mut read = 0;
        while read < bytes.len() {
            match self.read_at(&mut bytes[read..], at + read as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => read += more,
            }
        }
        assert_eq!(read, bytes.len(), "a file gives no more bytes than there is room for");
        Ok(())
    }
    /// Bytes in it.
    fn bytes(&self) -> io::Result<u64>;
    /// Makes what was written survive the loss of power.
    ///
    /// # Errors
    /// As the system says; then nothing is known of what was written.
    fn sync(&mut self) -> io::Result<()>;
}

/// The sockets of a gateway. Nothing here waits, but for [`Sockets::poll`].
pub trait Sockets: Send + 'static {
    /// A connection: reading and writing return `WouldBlock` where they would have to wait.
    type Stream: io::Read + io::Write + Send;

    /// Takes the next connection that waits; `WouldBlock` if none does.
    ///
    /// # Errors
    /// As the system says; most often that there are no descriptors left.
    fn accept(&mut self) -> io::Result<Self::Stream>;

    /// The same at the port of another protocol, if there is one.
    ///
    /// # Errors
    /// As [`Sockets::accept`].
    fn accept_by(&mut self, _: DoorPort) -> io::Result<Self::Stream> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// The same at the operators' socket, which is for the owner of the system's directory alone, if there is one.
    ///
    /// # Errors
    /// As [`Sockets::accept`].
    fn accept_operator(&mut self) -> io::Result<Self::Stream> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Where a connection's peer is and where it came to, if that can be said.
    fn ends(&self, _: &mut Self::Stream) -> Option<[SocketAddr; 2]> {
        None
    }

    /// The network that a connection comes from.
    fn origin(&self, stream: &mut Self::Stream) -> Origin {
        self.ends(stream).map_or(Some(Network::UNKNOWN), |[peer, own]| origin(peer.ip(), own.ip()))
    }

    /// Tells of the stream's readiness from now on, once each time it becomes ready, under the name `slot`.
    fn register(&mut self, stream: &mut Self::Stream, slot: usize) -> io::Result<()>;

    /// Tells of it no more.
    fn deregister(&mut self, stream: &mut Self::Stream);

    /// Waits at most `timeout` for anything to become ready, the node's bell included, and appends what did.
    fn poll(&mut self, timeout: Duration, ready: &mut Vec<Ready>) -> io::Result<()>;

    /// Connections that ended before they were handed out, so far.
    fn turned_away(&self) -> RejectedConnections {
        RejectedConnections::default()
    }
}

/// Connections that ended in their handshake, before a gateway saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectedConnections {
    /// Because of what they sent, or the certificate they showed or did not.
    pub failed: u64,
    /// Because nothing useful came for too long.
    pub silent: u64,
    /// Because there were too many.
    pub crowded: u64,
}

/// What became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A client wants to connect, at whichever port.
    Listener,
    /// A connection can be read or written.
    Stream {
        /// Under which name it was registered.
        slot: usize,
        /// It can be read.
        readable: bool,
        /// It can be written.
        writable: bool,
    },
}
