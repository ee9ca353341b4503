//! A process that is started, and started again when it dies: what `pares up` and `pares member up` have in common.
//!
//! A process that cannot be started (its program is just being replaced, there is no memory for it) is a death like any other:
//! the next try comes after a pause. Pauses grow while processes die young, so that one that can never live costs little.
//! What it complains of goes into its log, or to who watches it if the log takes nothing: on a full disk that is why it does not start.
//!
//! ```text
//!   due --start--> running --reap: it ended--> paused --its pause is over--> due
//!    \--- it cannot be started --------------->/
//! ```

mod heard;

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::process::{Pid, Signal, kill_process};

use crate::NodeError;
use crate::leftovers::PARENT;
use crate::world::complain;
use heard::Heard;

/// A process that dies younger than this is started again with growing pauses.
const INFANT: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// A process that was asked to end for so long is killed.
const END_MAX: Duration = Duration::from_secs(5);
/// A pipe in the place of a log would wait for a process at its other end.
const NEVER_WAITS: i32 = OFlags::NONBLOCK.bits().cast_signed();
/// The end of a log in which last words are looked for.
const LAST_WORDS_BYTES_MAX: u64 = 4_096;
/// Kept free behind the end of a log, so that a process that dies of a full disk can say so.
const ROOM_BYTES: u64 = 4_096;

/// A process to be kept running. Dropped, it runs on: who watches it stops it.
#[derive(Debug)]
pub struct Watched {
    child: Option<Child>,
    started: Instant,
    pause: Duration,
    /// A drill killed it: no reason to suspect it and wait.
    killed: bool,
    /// How long its log was when it started.
    log_bytes: u64,
    /// What it says, if its log took nothing when it started.
    heard: Option<Heard>,
}

impl Default for Watched {
    /// One that was never started, and is due.
    fn default() -> Self {
        let (started, pause) = (Instant::now(), Duration::ZERO);
        Self { child: None, started, pause, killed: false, log_bytes: 0, heard: None }
    }
}

impl Watched {
    /// Whether nothing runs, and the pause is over.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.child.is_none() && self.started.elapsed() >= self.pause
    }

    /// The process that runs, or has not been [reaped](Self::reap).
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Starts `program`, which complains into `log`. Returns the process.
    ///
    /// # Errors
    /// If it cannot be started; its pause begins.
    ///
    /// # Panics
    /// If one runs already.
    pub fn start(&mut self, program: &mut Command, log: &Path) -> Result<u32, NodeError> {
        assert!(self.child.is_none(), "one process at a time");
        self.started = Instant::now();
        self.log_bytes = std::fs::metadata(log).map_or(0, |log| log.len());
        match spawn(program, log, self.heard.is_some()) {
            Ok((child, heard)) => {
                self.heard = heard;
                Ok(self.child.insert(child).id())
            }
            Err(error) => {
                self.grow_pause();
                Err(error)
            }
        }
    }

    /// How the process ended, once after each end.
    pub fn reap(&mut self) -> Option<String> {
        let ended = self.child.as_mut()?.try_wait();
        // Behind the look: then all has been said.
        self.heard.iter_mut().for_each(Heard::listen);
        let how = match ended {
            Ok(None) => return None,
            Ok(Some(status)) => status.to_string(),
            // Nobody can say how it fares: it is gone, or the next one finds its log locked and ends.
            Err(error) => error.to_string(),
        };
        self.child = None;
        let crashed = !std::mem::take(&mut self.killed);
        match crashed && self.started.elapsed() < INFANT {
            true => self.grow_pause(),
            false => self.pause = Duration::ZERO,
        }
        Some(how)
    }

    /// The last line that the process wrote into its log, or said. What its predecessors complained of is none of it.
    #[must_use]
    pub fn last_words(&self, log: &Path) -> Option<String> {
        self.heard
            .as_ref()
            .map_or_else(|| last_words_behind(log, self.log_bytes), |heard| last_line(heard.end()))
    }

    fn grow_pause(&mut self) {
        self.pause = PAUSE_MAX.min(self.pause * 2 + Duration::from_millis(50));
    }

    /// Sends a signal. A process that is killed this way is due at once, however young it was.
    ///
    /// # Errors
    /// If nothing runs.
    pub fn signal(&mut self, signal: Signal) -> Result<(), NodeError> {
        let child = self.child.as_ref().ok_or_else(|| NodeError::Refused("it is not running".into()))?;
        kill_process(Pid::from_child(child), signal)
            .map_err(|error| NodeError::io("signalling a process")(error.into()))?;
        self.killed |= signal == Signal::KILL;
        Ok(())
    }

    /// Asks the process to end, waits for that, and kills it when that takes too long. Nothing if none runs.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn stop(&mut self) -> Result<(), NodeError> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        // A stopped (SIGSTOP) process must continue to be able to end; one that is gone needs no signal.
        let _ = kill_process(Pid::from_child(&child), Signal::CONT);
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        let asked = Instant::now();
        while child.try_wait().map_err(NodeError::io("waiting for a process"))?.is_none() {
            if asked.elapsed() > END_MAX {
                child.kill().map_err(NodeError::io("killing a process"))?;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

fn spawn(program: &mut Command, log: &Path, was_heard: bool) -> Result<(Child, Option<Heard>), NodeError> {
    // A disk without room for a log, or without a right to it, keeps no process down.
    let (output, heard) = match open_with_room(log) {
        Ok(log) => (log.into(), None),
        Err(error) => {
            if !was_heard {
                let log = log.display();
                complain(&format_args!(
                    "{log}: {error}; of what the process says only the last line is kept"
                ));
            }
            match Heard::open() {
                Ok((heard, writer)) => (writer.into(), Some(heard)),
                Err(_) => (Stdio::null(), None),
            }
        }
    };
    let child = program
        .env(PARENT, std::process::id().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output)
        // Ctrl-C in a terminal goes to a whole process group: these processes end when they receive a signal to.
        .process_group(0)
        .spawn()
        .map_err(NodeError::io("starting a process"))?;
    Ok((child, heard))
}

/// A log that takes some words, if its file system can promise that.
fn open_with_room(log: &Path) -> io::Result<File> {
    let log = File::options().create(true).append(true).custom_flags(NEVER_WAITS).open(log)?;
    let bytes = log.metadata()?.len();
    match fallocate(&log, FallocateFlags::KEEP_SIZE, bytes, ROOM_BYTES).map_err(io::Error::from) {
        Err(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => Err(error),
        _ => Ok(log),
    }
}

/// The last line of a log, perhaps of an earlier life.
#[must_use]
pub fn last_words(log: &Path) -> Option<String> {
    last_words_behind(log, 0)
}

fn last_words_behind(log: &Path, begin: u64) -> Option<String> {
    let mut log = File::options().read(true).custom_flags(NEVER_WAITS).open(log).ok()?;
    let end = log.metadata().ok()?.len();
    log.seek(SeekFrom::Start(end.saturating_sub(LAST_WORDS_BYTES_MAX).max(begin))).ok()?;
    let mut bytes = Vec::new();
    log.take(LAST_WORDS_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    last_line(&bytes)
}

fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn failing_process_restarts_after_pause() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mut watched = Watched::default();
        assert!(watched.is_due());
        watched.start(&mut Command::new(dir.path().join("nothing")), &log).unwrap_err();
        let grown = watched.pause;
        assert!(grown > Duration::ZERO && watched.id().is_none());
        watched.pause = Duration::ZERO;
        watched.start(Command::new("sh").args(["-c", "echo so it is >&2; exit 3"]), &log).unwrap();
        assert!(!watched.is_due());
        assert!(end_of(&mut watched).contains('3'));
        assert!(watched.id().is_none() && watched.reap().is_none());
        assert_eq!(watched.last_words(&log).unwrap(), "so it is");
        watched.start(&mut Command::new("true"), &log).unwrap();
        end_of(&mut watched);
        assert_eq!(watched.last_words(&log), None, "its predecessor said that");
        assert_eq!(last_words(&log).unwrap(), "so it is");
    }

    #[test]
    fn process_whose_log_takes_nothing_is_heard() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        for log in [dir.path(), &pipe] {
            let mut watched = Watched::default();
            watched.start(Command::new("sh").args(["-c", "echo so it is >&2; exit 3"]), log).unwrap();
            assert!(end_of(&mut watched).contains('3'));
            assert_eq!(watched.last_words(log).unwrap(), "so it is");
        }
    }

    #[test]
    fn a_log_keeps_room_for_last_words() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        std::fs::write(&log, "before\n").unwrap();
        let opened = open_with_room(&log).unwrap().metadata().unwrap();
        assert_eq!(opened.len(), 7, "nothing is added");
        assert!(opened.blocks() * 512 >= 7 + ROOM_BYTES, "{opened:?}");
    }

    fn end_of(watched: &mut Watched) -> String {
        let how = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(1));
            watched.reap()
        });
        how.flatten().next().unwrap()
    }

    #[test]
    fn last_output_found_in_long_or_binary_log() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        assert_eq!(last_words(&log), None);
        let mut text = vec![b'x'; 100_000];
        text.extend_from_slice(b"\nnot \xff text\n\n");
        std::fs::write(&log, text).unwrap();
        assert_eq!(last_words(&log).unwrap(), "not \u{fffd} text");
    }
}
