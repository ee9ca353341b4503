//! A trader as a process: it can be stopped and killed. What it has read is counted where others see it, whatever becomes of it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pares_desk::item::TraderId;
use pares_load::{LabError, LabResult, failed, own_program};
use pares_node::leftovers::{PARENT, end_with_parent};
use pares_os::{CountersReader, CountersWriter};
use rustix::process::{Pid, Signal, kill_process};

use super::people::{connect, reads_of};

/// How long it waits for something to read.
const LOOK: Duration = Duration::from_millis(500);
const RECEIVED: &str = "received";

/// The settings of a trader's process.
#[derive(clap::Args, Debug)]
pub struct Args {
    server: SocketAddr,
    #[arg(long)]
    name: u32,
    /// How long it takes for a message
    #[arg(long)]
    takes_us: u64,
    /// Where it counts
    #[arg(long)]
    counters: PathBuf,
}

/// Reads until it is killed.
///
/// # Errors
/// If it is not let in.
pub fn run(args: &Args) -> LabResult {
    end_with_parent()?;
    let counters = CountersWriter::create(&args.counters, &[RECEIVED]);
    let counters = counters.map_err(failed("making a trader's counters"))?;
    let mut client = connect(args.server, TraderId(args.name))?;
    loop {
        client.wait(LOOK);
        reads_of(&mut client, Duration::from_micros(args.takes_us), |_| {
            counters.add(0, 1);
            true
        });
    }
}

/// A trader's process.
pub(super) struct Process {
    child: Child,
    counters: PathBuf,
}

impl Process {
    /// Starts a trader of that name.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn start(
        run: &Path,
        server: SocketAddr,
        name: u32,
        takes: Duration,
    ) -> Result<Self, LabError> {
        let counters = run.join(format!("trader-{name}.counters"));
        let child = Command::new(own_program()?)
            .args(["trader", &server.to_string(), "--name", &name.to_string()])
            .args(["--takes-us", &takes.as_micros().to_string(), "--counters"])
            .arg(&counters)
            .env(PARENT, std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(LabError::io("starting a trader"))?;
        Ok(Self { child, counters })
    }

    /// Messages it has read; none before it counts.
    pub(super) fn received(&self) -> u64 {
        let counters = CountersReader::open(&self.counters).ok();
        counters.and_then(|counters| counters.get(RECEIVED)).unwrap_or(0)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn signal(&self, signal: Signal) -> LabResult {
        kill_process(Pid::from_child(&self.child), signal)
            .map_err(|error| LabError::io("signalling a trader")(error.into()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
