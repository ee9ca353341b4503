//! A loader in a thread of its own: it hands its lines to fronts, and says what it hears.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use pares_broker::Verb;

use crate::error::{BrokerageError, BrokerageResult};
use crate::loader::{LineAnswer, Loader};

/// Longest wait of a loader for something to do.
const WAIT_MAX: Duration = Duration::from_millis(5);

/// A line for a loader.
pub(super) struct Sent {
    pub(super) number: u64,
    pub(super) user: String,
    pub(super) verb: Verb,
    /// All behind the number in the file.
    pub(super) command: String,
}

/// A command has its reply.
pub(super) struct Replied {
    /// The line.
    pub(super) number: u64,
    pub(super) verb: Verb,
    /// Since the loader had it.
    pub(super) took: Duration,
    pub(super) is_done: bool,
}

/// What a loader heard at once.
pub(super) struct Heard {
    pub(super) replies: Vec<Replied>,
    /// It had commands and no reply for so long before.
    pub(super) gap: Duration,
    pub(super) ended: Instant,
    /// Its front was lost meanwhile.
    pub(super) has_moved: bool,
}

/// Starts one: it says what became of each line.
pub(super) fn start(
    fronts: Vec<SocketAddr>,
    lines: Vec<Sent>,
    window: usize,
    tell: Sender<Heard>,
) -> BrokerageResult {
    let loader = Loader::new(fronts).map_err(BrokerageError::io("starting a loader"))?;
    let (lines, open, heard) = (lines.into_iter(), HashMap::new(), Instant::now());
    let loading = Loading { loader, lines, window, open, heard, losses: 0, tell };
    let begun = std::thread::Builder::new().name("loader".into()).spawn(|| loading.run());
    begun.map(drop).map_err(BrokerageError::io("starting a loader"))
}

struct Loading {
    loader: Loader,
    lines: std::vec::IntoIter<Sent>,
    window: usize,
    /// Lines without a reply, and since when the loader has them.
    open: HashMap<u64, (Verb, Instant)>,
    /// When it had a reply last, or began to wait for one.
    heard: Instant,
    /// Losses of its front until then.
    losses: u64,
    tell: Sender<Heard>,
}

impl Loading {
    fn run(mut self) {
        let mut is_last = false;
        while !is_last || !self.loader.is_noted() {
            let has_all = self.push();
            if has_all && self.loader.open() == 0 && !std::mem::replace(&mut is_last, true) {
                self.loader.note();
            }
            // Nobody listens any more, or the system gives no sockets: who counts sees what is missing.
            let Ok(answers) = self.loader.turn(WAIT_MAX) else { return };
            let replies: Vec<_> = answers.iter().filter_map(|answer| self.replied(answer)).collect();
            if replies.is_empty() {
                continue;
            }
            let heard = self.heard(replies);
            if self.tell.send(heard).is_err() {
                return;
            }
        }
    }

    fn heard(&mut self, replies: Vec<Replied>) -> Heard {
        let losses = std::mem::replace(&mut self.losses, self.loader.losses());
        let ended = Instant::now();
        let gap = ended - std::mem::replace(&mut self.heard, ended);
        Heard { replies, gap, ended, has_moved: losses != self.losses }
    }

    /// Hands the loader what the window has room for; whether it has all lines.
    fn push(&mut self) -> bool {
        if self.loader.open() == 0 {
            self.heard = Instant::now();
        }
        while self.loader.open() < self.window {
            let Some(Sent { number, user, verb, command }) = self.lines.next() else { return true };
            self.open.insert(number, (verb, Instant::now()));
            self.loader.push(number, &user, command);
        }
        false
    }

    fn replied(&mut self, answer: &LineAnswer) -> Option<Replied> {
        let (verb, since) = self.open.remove(&answer.number)?;
        Some(Replied { number: answer.number, verb, took: since.elapsed(), is_done: answer.is_done })
    }
}
