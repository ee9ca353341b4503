//! A trader as a process: it can be stopped and killed. What it has read is counted where others see it, whatever becomes of it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pares_desk::item::TraderId;
use pares_load::{LabError, LabResult, failed};
use pares_os::{CountersReader, CountersWriter};
use rustix::process::Signal;

use super::people::{connect, reads_of};
use crate::bench::peer::{PeerProcess, ready};

/// How long it waits for something to read.
const LOOK: Duration = Duration::from_millis(500);
const RECEIVED: &str = "received";

/// Receives messages until killed, taking so long for each, and counts them in a file.
///
/// # Errors
/// If it is not let in.
pub(crate) fn serve(server: SocketAddr, name: u32, takes: Duration, counters: &Path) -> LabResult {
    let counters = CountersWriter::create(counters, &[RECEIVED]);
    let counters = counters.map_err(failed("making a trader's counters"))?;
    let mut client = connect(server, TraderId(name))?;
    ready()?;
    loop {
        client.wait(LOOK);
        reads_of(&mut client, takes, |_| {
            counters.add(0, 1);
            true
        });
    }
}

/// A trader's process.
pub(super) struct Process {
    peer: PeerProcess,
    counters: PathBuf,
}

impl Process {
    /// Starts a trader of that name, and waits until it is signed on.
    ///
    /// # Errors
    /// If it does not come to that.
    pub(super) fn start(
        run: &Path,
        server: SocketAddr,
        name: u32,
        takes: Duration,
    ) -> Result<Self, LabError> {
        let counters = run.join(format!("trader-{name}.counters"));
        let (server, name, takes) = (server.to_string(), name.to_string(), takes.as_micros().to_string());
        let file = counters.to_string_lossy();
        let peer = PeerProcess::start(&["trader", &server, &name, &takes, &file])?;
        Ok(Self { peer, counters })
    }

    /// Messages it has read.
    pub(super) fn received(&self) -> u64 {
        let counters = CountersReader::open(&self.counters).ok();
        counters.and_then(|counters| counters.get(RECEIVED)).unwrap_or(0)
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, signal: Signal) {
        self.peer.signal(signal);
    }
}
