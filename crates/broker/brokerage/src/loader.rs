//! A loader: commands to fronts, each executed once though fronts die.
//!
//! It keeps every line until that is answered. When its front is gone it continues its session at the next one, and says all lines again that have no answer, in their order; the first of each user with
//! the one that came before, so that the accounts know where to continue. What was executed already is answered again, and not done again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use pares_broker::Verb;

use crate::link::{self, Conn, Retry};

/// Longest line of a front, bytes.
const LINE_MAX: usize = 4 << 10;
/// Answers that are read in one turn, bytes.
const READ_MAX: usize = 256 << 10;
/// Bytes that wait for the socket before more lines are written.
const UNSENT_MAX: usize = 256 << 10;
/// A front that owes answers and says nothing for so long is given up: longer than any quote takes.
const SILENCE_MAX: Duration = Duration::from_secs(8);
/// The same of one that owes logs alone: each is answered when its file is there, whole, and may have millions of entries.
const LOG_SILENCE_MAX: Duration = Duration::from_secs(600);
const FRONT: Token = Token(0);

/// What became of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineAnswer {
    /// The line's number.
    pub number: u64,
    /// Whether it was executed and not refused, though perhaps a log could not be written.
    pub is_done: bool,
    /// What was said of it.
    pub words: String,
}

struct Line {
    user: String,
    command: String,
    is_dump: bool,
    /// The line of the same user before, 0 if there is none.
    after: u64,
}

/// How it stands with hits that no command used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noting {
    /// Nothing is wanted, or it was done.
    No,
    Wanted,
    Asked,
}

/// See the [module](self).
pub struct Loader {
    poll: Poll,
    events: Events,
    fronts: Vec<SocketAddr>,
    at: usize,
    conn: Option<Conn>,
    retry: Retry,
    heard: Instant,
    /// Of the first front that it was connected to.
    session: Option<u64>,
    /// The front has said a session: lines may be said.
    is_greeted: bool,
    /// How often a front was lost that had greeted it.
    losses: u64,
    /// Without an answer.
    lines: BTreeMap<u64, Line>,
    /// Up to this line all are said that are not answered.
    said: u64,
    /// Who has said a line on this connection.
    introduced: BTreeSet<String>,
    /// The latest line of each user.
    latest: HashMap<String, u64>,
    noting: Noting,
}

impl Loader {
    /// A loader that begins with the first of these fronts.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn new(fronts: Vec<SocketAddr>) -> io::Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            events: Events::with_capacity(16),
            fronts,
            at: 0,
            conn: None,
            retry: Retry::default(),
            heard: Instant::now(),
            session: None,
            is_greeted: false,
            losses: 0,
            lines: BTreeMap::new(),
            said: 0,
            introduced: BTreeSet::new(),
            latest: HashMap::new(),
            noting: Noting::No,
        })
    }

    /// Has a command executed: `CMD,user,args`, as it stands in a workload behind its number. Numbers ascend.
    pub fn push(&mut self, number: u64, user: &str, command: String) {
        let after = self.latest.insert(user.to_owned(), number).unwrap_or(0);
        let is_dump = command.starts_with(Verb::Dumplog.name());
        self.lines.insert(number, Line { user: user.to_owned(), command, is_dump, after });
    }

    /// How often its front was lost.
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// Lines without an answer.
    pub fn open(&self) -> usize {
        self.lines.len()
    }

    /// Has hits noted that no command used, by the front that it uses; [`Self::is_noted`] then.
    pub fn note(&mut self) {
        self.noting = Noting::Wanted;
    }

    /// Whether a front has said so since.
    pub fn is_noted(&self) -> bool {
        self.noting == Noting::No
    }

    /// Says and hears what there is, and waits for `wait` at most if that is nothing; lines that have their answer.
    ///
    /// # Errors
    /// If the operating system cannot wait.
    pub fn turn(&mut self, wait: Duration) -> io::Result<Vec<LineAnswer>> {
        self.dial();
        if self.say().is_none() {
            self.lose();
        }
        link::wait(&mut self.poll, &mut self.events, Some(wait))?;
        if let Some(conn) = self.conn.as_mut().filter(|_| !self.events.is_empty()) {
            conn.wake();
        }
        let mut answers = Vec::new();
        if self.hear(&mut answers).is_none() {
            self.lose();
        }
        Ok(answers)
    }

    fn dial(&mut self) {
        if self.conn.is_some() || !self.retry.is_due() {
            return;
        }
        match Conn::dial(self.fronts[self.at], self.poll.registry(), FRONT) {
            Ok(conn) => (self.conn, self.heard) = (Some(conn), Instant::now()),
            Err(_) => self.lose(),
        }
    }

    fn lose(&mut self) {
        self.conn = None;
        self.losses += u64::from(self.is_greeted);
        (self.is_greeted, self.said) = (false, 0);
        self.introduced.clear();
        if self.noting == Noting::Asked {
            self.noting = Noting::Wanted;
        }
        self.at = (self.at + 1) % self.fronts.len();
        // Each front is tried at once; a pause comes when all were.
        if self.at == 0 || self.fronts.len() == 1 {
            self.retry.failed();
        }
    }

    /// Says what was not said; nothing if the connection is over.
    fn say(&mut self) -> Option<()> {
        let Some(conn) = &mut self.conn else { return Some(()) };
        if self.is_greeted {
            for (number, line) in self.lines.range(self.said + 1..) {
                if conn.backlog() >= UNSENT_MAX {
                    break;
                }
                let text = match self.introduced.insert(line.user.clone()) {
                    true => format!("[{number}>{}] {}\n", line.after, line.command),
                    false => format!("[{number}] {}\n", line.command),
                };
                conn.push(text.as_bytes());
                self.said = *number;
            }
        }
        if self.is_greeted && self.noting == Noting::Wanted {
            conn.push(b"NOTE\n");
            self.noting = Noting::Asked;
        }
        conn.flush().ok().map(drop)
    }

    /// Hears what was said; nothing if the connection is over.
    fn hear(&mut self, answers: &mut Vec<LineAnswer>) -> Option<()> {
        let Some(conn) = &mut self.conn else { return Some(()) };
        conn.fill(READ_MAX).ok()?;
        while let Some(line) = self.conn.as_mut()?.line(LINE_MAX).ok()? {
            self.heard = Instant::now();
            self.heard_line(str::from_utf8(&line).ok()?, answers)?;
        }
        let owes = !self.lines.is_empty() || !self.is_greeted || self.noting == Noting::Asked;
        let is_over = self.conn.as_ref()?.has_ended() || (owes && self.heard.elapsed() >= self.silence_max());
        (!is_over).then_some(())
    }

    /// So long its front may say nothing while it owes something.
    fn silence_max(&self) -> Duration {
        let owes_more = !self.is_greeted || self.noting == Noting::Asked || self.lines.is_empty();
        let is_log_alone = !owes_more && self.lines.values().all(|line| line.is_dump);
        if is_log_alone { LOG_SILENCE_MAX } else { SILENCE_MAX }
    }

    /// Nothing if that is no word of a front.
    fn heard_line(&mut self, line: &str, answers: &mut Vec<LineAnswer>) -> Option<()> {
        if let Some(session) = line.strip_prefix("SESSION ") {
            let theirs = session.parse().ok()?;
            let own = *self.session.get_or_insert(theirs);
            if own != theirs {
                self.conn.as_mut()?.push(format!("SESSION {own}\n").as_bytes());
            }
            self.is_greeted = true;
            self.retry.answered();
            return Some(());
        }
        if line == "NOTED" {
            self.noting = Noting::No;
            return Some(());
        }
        let (number, words) = line.strip_prefix('[')?.split_once("] ")?;
        let number = number.parse().ok()?;
        if self.lines.remove(&number).is_some() {
            let is_done = words.starts_with("OK") || words.starts_with("UNWRITTEN");
            answers.push(LineAnswer { number, is_done, words: words.to_owned() });
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_writing_long_log_survives_other_owing_one_not() {
        let mut loader = Loader::new(Vec::new()).unwrap();
        loader.is_greeted = true;
        loader.push(1, "", "DUMPLOG,./testLOG".into());
        assert_eq!(loader.silence_max(), LOG_SILENCE_MAX);
        loader.push(2, "jo", "ADD,jo,1.00".into());
        assert_eq!(loader.silence_max(), SILENCE_MAX);
        loader.lines.remove(&2);
        loader.noting = Noting::Asked;
        assert_eq!(loader.silence_max(), SILENCE_MAX);
        (loader.noting, loader.is_greeted) = (Noting::No, false);
        assert_eq!(loader.silence_max(), SILENCE_MAX);
    }
}
