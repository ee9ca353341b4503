//! One user who says as much as a front takes, while others work.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::{BrokerageError, BrokerageResult, failed};
use crate::loader::Loader;

/// Lines that he has said, and that have no answer: more than a front takes of one connection.
const WINDOW: usize = 8_192;
/// Longest wait for something to do.
const WAIT_MAX: Duration = Duration::from_millis(5);
const USER: &str = "flood";

/// What became of his commands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FloodSeen {
    pub(super) told: u64,
    pub(super) refused: u64,
}

/// See the [module](self).
pub(super) struct Flood {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<FloodSeen>>,
}

impl Flood {
    /// Begins, at this front.
    pub(super) fn begin(front: SocketAddr) -> BrokerageResult<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let named = std::thread::Builder::new().name("flood".into());
        let thread = named.spawn(move || run(front, &told));
        Ok(Self { stop, thread: thread.map_err(BrokerageError::io("starting a flood"))? })
    }

    /// Says no more.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether all has its answer.
    pub(super) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// What became of his commands, once it is over.
    pub(super) fn seen(self) -> BrokerageResult<FloodSeen> {
        let ended = self.thread.join().map_err(|_| failed("the thread that floods has panicked"))?;
        ended.map_err(BrokerageError::io("flooding"))
    }
}

fn run(front: SocketAddr, stop: &AtomicBool) -> std::io::Result<FloodSeen> {
    let (mut loader, mut number, mut seen) = (Loader::new(vec![front])?, 0, FloodSeen::default());
    loop {
        let is_over = stop.load(Ordering::Relaxed);
        if is_over && loader.open() == 0 {
            return Ok(seen);
        }
        while !is_over && loader.open() < WINDOW {
            number += 1;
            // What costs the least to say, and as much as any to execute.
            loader.push(number, USER, format!("COMMIT_BUY,{USER}"));
        }
        for answer in loader.turn(WAIT_MAX)? {
            seen.told += 1;
            seen.refused += u64::from(!answer.is_done);
        }
    }
}
