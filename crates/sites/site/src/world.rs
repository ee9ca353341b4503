//! The world of a site: all that its duty cycle touches.
//!
//! A duty cycle that opens files, reads clocks and starts threads by itself runs only where those are. The simulator would have to write
//! it a second time, and the copy drifts: what is proved is then not what ships. So the cycle is generic over its world.
//! [`Host`](crate::Host) is the real one: a directory, sockets, a thread. `pares-sim` has one in memory, with the same bytes, virtual time
//! and faults by seed.
//!
//! ```text
//!   Cycle --> | cluster log | connections | store | notes | clock | the tasks that write and read the store |
//! ```
//! Calls for each record and frame are static; the store's, for each item read and each batch written, are dynamic.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use pares_cluster::ClusterLog;
use pares_link::{ClientId, LinkSink, Links, SendError};
use pares_sql::Ready;
use pares_store::Store;
use pares_wice::Version;

use crate::applier::StoreWriter;
use crate::error::ProcessError;
use crate::place::loading::{Emptying, StoreLoader};
use crate::reads::StoreReader;
use crate::report::SiteReport;

/// All that a site touches.
pub trait World: Clock {
    /// The site's end of its cluster's log.
    type Log: ClusterLog;
    /// The site's connections.
    type Links: Connections;
    /// The site's notes.
    type Notes: Notes;
    /// What runs the [`StoreWriter`], a [`StoreReader`] or the [`StoreLoader`]. Dropping it waits until that has ended.
    type Task;

    /// The site's notes.
    fn notes(&self) -> &Self::Notes;

    /// Listens, and connects to the other sites.
    ///
    /// # Errors
    /// If the site cannot listen.
    fn open_links(&mut self) -> Result<Self::Links, ProcessError>;

    /// Opens the log, or begins one.
    ///
    /// # Errors
    /// If the log cannot be read, or is another member's.
    fn open_log(&mut self, config: &pares_cluster::ReplicaConfig) -> Result<Self::Log, ProcessError>;

    /// Opens the store, or begins one.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn open_store(&mut self) -> Result<Arc<dyn Store>, ProcessError>;

    /// The next store opened is this one, which was just filled: there is no need to check on the disk what was written a moment ago. A world may open it
    /// again instead.
    fn keep_store(&mut self, _filled: Arc<dyn Store>) {}

    /// What empties the store, and opens it, beside the duty cycle. What was [kept](World::keep_store) of it is let go of.
    fn emptying(&mut self) -> Emptying;

    /// Draws a number, at random: no two are alike.
    fn draw(&mut self) -> u64;

    /// Shows how the site is to `pares site stat`, some times a second.
    fn show(&mut self, _report: &SiteReport) {}

    /// Runs `writer` beside the duty cycle. Each batch written ends the present or the next wait of `links`.
    ///
    /// # Errors
    /// If there is no room for another thread.
    fn start(&mut self, writer: StoreWriter, links: &Self::Links) -> io::Result<Self::Task>;

    /// Runs `reader` beside the duty cycle. Each read answered ends the present or the next wait of `links`.
    ///
    /// # Errors
    /// If there is no room for another thread.
    fn start_reader(&mut self, reader: StoreReader, links: &Self::Links) -> io::Result<Self::Task>;

    /// Runs `loader` beside the duty cycle. Each batch written ends the present or the next wait of `links`.
    ///
    /// # Errors
    /// If there is no room for another thread.
    fn start_loader(&mut self, loader: StoreLoader, links: &Self::Links) -> io::Result<Self::Task>;

    /// Why what is under the store does not answer, or figures are not shown; none if all is well, or there is no such thing.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Transactions that were executed outside, since it was asked last. More may be begun on a store that has `stored`, if that is known to be all that
    /// this site has answered. A world without SQL has none.
    ///
    /// # Errors
    /// If the store has lost what it had.
    fn transactions(&mut self, _stored: Option<Version>) -> Result<Vec<Ready>, ProcessError> {
        Ok(Vec::new())
    }
}

/// A site's connections to other sites and to applications. What is sent may be lost with its connection.
pub trait Connections {
    /// Waits for at most `patience`, and tells `sink` what has come.
    ///
    /// # Errors
    /// If nothing can come any more.
    fn poll(&mut self, patience: Duration, sink: &mut impl LinkSink) -> io::Result<()>;

    /// Sends a frame to another site.
    ///
    /// # Errors
    /// If it will not arrive.
    fn send(&mut self, peer: u16, payload: &[u8]) -> Result<(), SendError>;

    /// Whether another site is connected, and how many bytes wait to be taken by its socket.
    fn backlog(&self, _peer: u16) -> Option<usize> {
        Some(0)
    }

    /// The version that this site speaks.
    fn speaks(&self) -> u16 {
        pares_link::SPEAKS
    }

    /// The version of the connection to another site: nothing newer may be sent there.
    fn version(&self, peer: u16) -> u16;

    /// Sends a frame to an application.
    ///
    /// # Errors
    /// If it will not arrive.
    fn send_client(&mut self, client: ClientId, payload: &[u8]) -> Result<(), SendError>;

    /// Ends an application's connection.
    fn close_client(&mut self, client: ClientId);

    /// Lets go of what was sent.
    fn flush(&mut self);
}

impl Connections for Links {
    fn poll(&mut self, patience: Duration, sink: &mut impl LinkSink) -> io::Result<()> {
        Links::poll(self, Some(patience), sink)
    }

    fn send(&mut self, peer: u16, payload: &[u8]) -> Result<(), SendError> {
        Links::send(self, peer, payload)
    }

    fn backlog(&self, peer: u16) -> Option<usize> {
        Links::is_connected(self, peer).then(|| Links::backlog(self, peer))
    }

    fn speaks(&self) -> u16 {
        Links::speaks(self)
    }

    fn version(&self, peer: u16) -> u16 {
        Links::version(self, peer)
    }

    fn send_client(&mut self, client: ClientId, payload: &[u8]) -> Result<(), SendError> {
        Links::send_client(self, client, payload)
    }

    fn close_client(&mut self, client: ClientId) {
        Links::close_client(self, client);
    }

    fn flush(&mut self) {
        Links::flush(self);
    }
}

/// Small files of a site, by name.
pub trait Notes {
    /// Reads a note; none if there is none.
    ///
    /// # Errors
    /// As the operating system says; `InvalidData` if something else than a file has its name.
    fn read_note(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Replaces a note, whole or not at all. It survives the loss of power from then on.
    ///
    /// # Errors
    /// As the operating system says; the old one may still be there.
    fn write_note(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Removes a note, if there is one. It stays removed from then on.
    ///
    /// # Errors
    /// As the operating system says; it may still be there.
    fn remove_note(&self, name: &str) -> io::Result<()>;
}

/// Time that never goes back.
pub trait Clock {
    /// Time since some moment before the site began.
    fn now(&self) -> Duration;
}
