//! Venues as processes on one shared window: one is killed, one is stopped until the window has left it
//! behind.
//!
//! This test starts its own binary again as the venues. Each hears the same gateways in an order of its
//! own, conforms to the window, and writes what it executes to a file. The test itself is the recorder:
//! it observes the window, appends to the record, and only then raises the mark, so slots are reused
//! thousands of times.
#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use pares_sequencer::{ProposeError, Sequencer};
use pares_types::{Epoch, GatewayId, Position, RequestId, ShardId};
use pares_window::SharedWindow;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

const CAPACITY: usize = 256;
const GATEWAYS: u16 = 3;
const REQUESTS: u64 = 400_000;
const TOTAL: usize = GATEWAYS as usize * REQUESTS as usize;
const VENUES: usize = 4;
const KILLED: usize = 0;
const STOPPED: usize = 1;
const DIRECTORY: &str = "PARES_TEST_WINDOW_DIRECTORY";
const VENUE: &str = "PARES_TEST_WINDOW_VENUE";

/// A list of requests in a file, appended to as it grows.
struct Journal {
    file: File,
}

impl Journal {
    fn create(path: &Path) -> Self {
        Self { file: OpenOptions::new().create_new(true).append(true).open(path).unwrap() }
    }

    fn append(&mut self, requests: &[RequestId]) {
        let bytes: Vec<u8> = requests.iter().flat_map(|id| id.to_bits().to_le_bytes()).collect();
        self.file.write_all(&bytes).unwrap();
    }

    /// All whole entries; a killed process may leave a torn one.
    fn read(path: &Path) -> Vec<RequestId> {
        let bytes = fs::read(path).unwrap_or_default();
        let word = |entry: &[u8]| u64::from_le_bytes(entry.try_into().unwrap());
        bytes.chunks_exact(8).map(|entry| RequestId::from_bits(word(entry)).unwrap()).collect()
    }
}

fn journal(directory: &Path, venue: usize) -> PathBuf {
    directory.join(format!("venue-{venue}"))
}

fn statistics(directory: &Path, venue: usize) -> PathBuf {
    directory.join(format!("statistics-{venue}"))
}

/// The gateways' streams, merged by a generator seeded with the venue.
fn arrivals(venue: usize) -> VecDeque<RequestId> {
    let mut streams: Vec<_> = (0..GATEWAYS).map(|g| (GatewayId(g), 1..=REQUESTS)).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(venue as u64 + 1);
    let mut merged = VecDeque::with_capacity(TOTAL);
    while merged.len() < TOTAL {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (gateway, stream) = &mut streams[(random >> 33) as usize % usize::from(GATEWAYS)];
        merged.extend(stream.next().map(|sequence| RequestId::new(*gateway, sequence)));
    }
    merged
}

/// A venue reduced to its order.
struct Venue {
    window: SharedWindow,
    journal: Journal,
    pending: VecDeque<RequestId>,
    /// Highest sequence executed, by gateway: what comes again is dropped (paper 1, section 3).
    through: [u64; GATEWAYS as usize],
    executed: usize,
    /// How often it lost a position to another venue.
    lost: usize,
    /// How often it fell out of the window.
    left_behind: usize,
}

impl Venue {
    fn execute(&mut self, requests: &[RequestId]) {
        for id in requests {
            let through = &mut self.through[usize::from(id.gateway().0)];
            assert_eq!(id.sequence(), *through + 1, "a gateway's requests are decided in its order");
            *through = id.sequence();
        }
        self.journal.append(requests);
        self.executed += requests.len();
    }

    fn step(&mut self, directory: &Path) {
        let batch: Vec<_> = self.next_pending();
        let mut decided = vec![];
        let first = Position(self.executed as u64);
        let answer = self.window.propose(first, &batch, 32, &mut decided);
        self.lost += usize::from(decided.iter().zip(&batch).any(|(winner, proposed)| winner != proposed));
        self.execute(&decided);
        match answer {
            Ok(()) => {}
            Err(ProposeError::WindowFull { .. }) => std::thread::yield_now(),
            Err(ProposeError::TooFarBehind { .. }) => {
                let record = Journal::read(&directory.join("record"));
                assert!(record.len() > self.executed, "what left the window is in the record");
                self.execute(&record[self.executed..]);
                self.left_behind += 1;
            }
            Err(over @ ProposeError::EpochOver { .. }) => panic!("{over}"),
        }
    }

    /// The next requests in order of arrival that are not executed yet.
    fn next_pending(&mut self) -> Vec<RequestId> {
        let through = self.through;
        let done = |id: &RequestId| id.sequence() <= through[usize::from(id.gateway().0)];
        while self.pending.front().is_some_and(done) {
            self.pending.pop_front();
        }
        self.pending.iter().filter(|id| !done(id)).take(8).copied().collect()
    }
}

/// Not a test of its own: the body of a venue's process.
#[test]
fn venue_process() {
    let (Ok(directory), Ok(venue)) = (std::env::var(DIRECTORY), std::env::var(VENUE)) else { return };
    let (directory, number) = (PathBuf::from(directory), venue.parse().unwrap());
    let mut venue = Venue {
        window: SharedWindow::open(&directory.join("window")).unwrap(),
        journal: Journal::create(&journal(&directory, number)),
        pending: arrivals(number),
        through: [0; GATEWAYS as usize],
        executed: 0,
        lost: 0,
        left_behind: 0,
    };
    while venue.executed < TOTAL {
        venue.step(&directory);
    }
    fs::write(statistics(&directory, number), format!("{} {}", venue.lost, venue.left_behind)).unwrap();
}

/// Ends the process also when the test fails.
struct Process(Child);

impl Process {
    fn start(directory: &Path, venue: usize) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["venue_process", "--exact", "--nocapture"]).stdout(std::process::Stdio::null());
        Self(command.env(DIRECTORY, directory).env(VENUE, venue.to_string()).spawn().unwrap())
    }

    fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// Sends the signal, and returns once it has had its effect.
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, signal).unwrap();
        if signal == Signal::STOP {
            waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _already_over = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Observes the window and records all of it; kills, stops and continues venues on the way.
fn record(directory: &Path, window: &mut SharedWindow, venues: &mut [Process]) -> Vec<RequestId> {
    let mut journal = Journal::create(&directory.join("record"));
    let mut record = vec![];
    let mut faults = VecDeque::from([
        (TOTAL / 4, KILLED, Signal::KILL),
        (TOTAL / 3, STOPPED, Signal::STOP),
        (TOTAL / 3 * 2, STOPPED, Signal::CONT),
    ]);
    while record.len() < TOTAL {
        let known = record.len();
        window.propose(Position(known as u64), &[], CAPACITY, &mut record).unwrap();
        if record.len() == known {
            let working = venues.iter_mut().skip(STOPPED + 1).any(Process::is_running);
            assert!(working, "the venues left alone have failed");
            std::thread::yield_now();
            continue;
        }
        journal.append(&record[known..]);
        window.raise_recorded(Position(record.len() as u64));
        while faults.front().is_some_and(|&(at, ..)| record.len() >= at) {
            let (_, venue, signal) = faults.pop_front().unwrap();
            venues[venue].signal(signal);
        }
    }
    record
}

#[test]
fn processes_agree_despite_kill_and_sleep() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("window");
    let mut window = SharedWindow::create(&path, ShardId(1), CAPACITY, Epoch(1), Position(0)).unwrap();
    let mut venues: Vec<_> = (0..VENUES).map(|venue| Process::start(dir.path(), venue)).collect();
    let record = record(dir.path(), &mut window, &mut venues);

    let unique: BTreeSet<_> = record.iter().collect();
    assert_eq!(unique.len(), TOTAL, "no request lost, none ordered twice");
    for (index, venue) in venues.iter_mut().enumerate() {
        let status = venue.0.wait().unwrap();
        let executed = Journal::read(&journal(dir.path(), index));
        if index == KILLED {
            assert!(!status.success() && executed.len() < TOTAL, "it died on the way");
            assert!(record.starts_with(&executed), "what the dead had executed is in the order");
        } else {
            assert!(status.success(), "venue {index}: {status}");
            assert_eq!(executed, record, "venue {index}");
        }
    }
    let count = |venue| -> [usize; 2] {
        let text = fs::read_to_string(statistics(dir.path(), venue)).unwrap();
        let counts: Vec<_> = text.split(' ').map(|word| word.parse().unwrap()).collect();
        counts.try_into().unwrap()
    };
    let [_, left_behind] = count(STOPPED);
    assert!(left_behind > 0, "the sleeper fell out of the window");
    let lost: usize = (STOPPED..VENUES).map(|venue| count(venue)[0]).sum();
    // How often they met depends on how the machine ran them; on one core they may never meet.
    println!("{lost} positions lost to another venue");
}
