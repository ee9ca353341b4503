//! The other process of a benchmark: this program again, as a contending venue, a log's reader or an echo.
//!
//! What is claimed of processes must be measured with processes: threads share page tables, caches of the kernel and a fate.
//! A peer says on standard output that it is ready, and is killed when its part is over, as all processes here are.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Subcommand;
use pares_load::{LabError, LabResult, own_program};
use pares_log::Reader;
use rustix::process::{Pid, Signal, kill_process};

/// What the other process does.
#[derive(Subcommand)]
pub(crate) enum Peer {
    /// Proposes on the window in DIR, BATCH requests at a time; without BATCH swaps words
    Contend {
        /// Where the window lies.
        dir: PathBuf,
        /// Requests at a time.
        batch: Option<usize>,
    },
    /// Reads a log from its end, yielding
    Read {
        /// The log.
        log: PathBuf,
    },
    /// Answers each record of DIR/ping with one in DIR/pong, spinning
    Echo {
        /// Where both logs lie.
        dir: PathBuf,
    },
    /// Hands deltas of books to all who connect
    Broadcast {
        /// Where to listen.
        port: u16,
        /// How many books.
        books: u32,
    },
    /// Receives a member's messages
    Trader {
        /// Where the member's server is.
        server: SocketAddr,
        /// Who it is.
        name: u32,
        /// How long it takes for a message.
        takes_us: u64,
        /// Where it counts.
        counters: PathBuf,
    },
    /// Sends FIX orders back
    FixEcho {
        /// Where to listen.
        port: u16,
        /// How many sessions: `M1-1` and so on.
        sessions: u32,
    },
}

/// Plays a peer until killed.
///
/// # Errors
/// If what it works on cannot be opened.
pub(crate) fn run(peer: &Peer) -> LabResult {
    pares_node::leftovers::end_with_parent()?;
    match peer {
        Peer::Contend { dir, batch } => super::sequencer::contend(dir, *batch),
        Peer::Read { log } => read(log),
        Peer::Broadcast { port, books } => super::entry::serve_broadcast(*port, *books),
        Peer::Trader { server, name, takes_us, counters } => {
            crate::experiment::serve_trader(*server, *name, Duration::from_micros(*takes_us), counters)
        }
        Peer::FixEcho { port, sessions } => super::entry::serve_echo(*port, *sessions),
        Peer::Echo { dir } => {
            ready()?;
            crate::experiment::echo(dir, &AtomicBool::new(false)).map_err(pares_load::failed("the echo"))
        }
    }
}

fn read(log: &Path) -> LabResult {
    let mut reader = Reader::at_end(log).map_err(pares_load::failed("the reader"))?;
    ready()?;
    loop {
        match reader.next().map_err(pares_load::failed("the reader"))? {
            Some(record) => _ = std::hint::black_box(record.payload.len()),
            // As nodes do: one that spins takes the processor from the sync it waits for.
            None => std::thread::yield_now(),
        }
    }
}

/// Tells the process that started this one that it may continue.
///
/// # Errors
/// If nobody listens.
pub fn ready() -> LabResult {
    let mut out = std::io::stdout();
    writeln!(out, "ready").and_then(|()| out.flush()).map_err(LabError::io("saying ready"))
}

/// An address of this machine at which nobody listens.
///
/// # Errors
/// If there is none.
pub fn free_address() -> Result<SocketAddr, LabError> {
    let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    free.map_err(LabError::io("looking for a free port"))
}

/// A process started by this one and asked by lines; it is killed when this is dropped.
pub struct PeerProcess {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl PeerProcess {
    /// Starts `pares bench peer ARGUMENTS` and waits until it is ready.
    ///
    /// # Errors
    /// If it ends before that.
    pub fn start(arguments: &[&str]) -> Result<Self, LabError> {
        Self::ready(Command::new(own_program()?).args(["bench", "peer"]).args(arguments))
    }

    /// Starts another program as a peer and waits until it is ready.
    ///
    /// # Errors
    /// If it ends before that.
    pub fn ready(command: &mut Command) -> Result<Self, LabError> {
        let mut peer = Self::spawn(command)?;
        match peer.answer()?.trim() {
            "ready" => Ok(peer),
            _ => Err(LabError::Failed("the other process of the benchmark did not start".into())),
        }
    }

    /// Starts a program that answers lines.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn spawn(command: &mut Command) -> Result<Self, LabError> {
        let program = command.get_program().display().to_string();
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(LabError::io(format!("starting {program}")))?;
        let answers = BufReader::new(child.stdout.take().expect("its output was asked for"));
        Ok(Self { child, answers })
    }

    /// Its answer to a line.
    ///
    /// # Errors
    /// If it ends without one.
    pub fn ask(&mut self, question: &str) -> Result<String, LabError> {
        let questions = self.child.stdin.as_mut().expect("its input was asked for");
        writeln!(questions, "{question}").map_err(LabError::io("asking the other process"))?;
        match self.answer()? {
            none if none.is_empty() => {
                Err(LabError::Failed(format!("the other process ended without an answer to `{question}`")))
            }
            answer => Ok(answer),
        }
    }

    fn answer(&mut self) -> Result<String, LabError> {
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(LabError::io("waiting for the other process"))?;
        Ok(line)
    }

    /// Sends it a signal; one that is gone already is no matter.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Whether it has ended.
    pub fn is_gone(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        // Both fail only for a process that is gone, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
