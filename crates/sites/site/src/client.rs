//! A client: executes a request once, at whichever site answers.
//!
//! It has one number for each request, for ever, and repeats a request under its number until it has an answer: at the same site, or at the next. Sites see to it that it happens once.
//!
//! Sites are not equally far, so a client that moves could read less than it was answered, and so could one that stays, at a site that has come back. So each answer says on which version it rests; the client remembers the highest, its [`Horizon`], and asks for no less with everything that it asks.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pares_link::{ClientStream as Connection, Door};
use pares_wice::{Command, Declaration, SiteId, TransactionId};
use thiserror::Error;

use crate::protocol::{Ask, Code, FRAME_MAX, Horizon, Reply};

mod question;

use question::{Heard, Question};

/// A site that has not answered for so long is asked again, or another is.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same for reads: as long as a site lets one take, since a read that is asked again is done again.
const READ_PATIENCE: Duration = Duration::from_secs(10);
/// A read may take long at a site that lives. One that says nothing for so long is asked how it is; if it says nothing for as long once more it hangs, and the read goes to the next.
const QUIET_MAX: Duration = Duration::from_millis(500);
/// Tag of the question how a site is, beside one that waits.
const HOW: u64 = u64::MAX;

/// Why a call has no reply.
#[derive(Debug, Error)]
pub enum CallError {
    /// The answer is no; nothing has changed.
    #[error("{}", said(*code, why))]
    No {
        /// In which way.
        code: Code,
        /// Why.
        why: String,
    },
    /// No site lets this client in; it was asked nothing.
    #[error("every site refuses this client: {why}. {then}", why = .0, then = way_in(.0))]
    Shut(String),
    /// No site has answered in time, or none could say what became of it. Whether it was done is not known: call again with the same number to find out.
    #[error("no answer in {0:?}")]
    Silence(Duration),
}

fn way_in(why: &str) -> &'static str {
    match why.contains("CertificateRevoked") {
        true => "This certificate was revoked: ask for another (`pares site issue`)",
        false => "`pares site issue` makes certificates; every site needs the same ca.pem",
    }
}

fn said(code: Code, why: &str) -> String {
    let (what, then) = match code {
        Code::Done => ("done", ""),
        Code::Refused => ("refused", ""),
        Code::Aborted => ("aborted because of concurrent transactions", ": try again"),
        Code::Behind => ("another cluster lags", ": try again, or declare it lost if it is down"),
        Code::Impossible => ("not possible here", ""),
        Code::Unknown => ("not known yet", ": ask again under the same number"),
        Code::Busy => ("this site is overloaded", ": try again, or another site"),
        Code::Elsewhere => ("no site can do this now", ""),
        Code::Denied => ("denied", ""),
    };
    if why.is_empty() { format!("{what}{then}") } else { format!("{what}: {why}") }
}

/// A client of a system of sites.
pub struct Client {
    /// Its number, unique among all clients.
    number: u64,
    sequence: u64,
    sites: Vec<Door>,
    /// Which of them it uses.
    at: usize,
    connection: Option<Connection>,
    /// How often it had to turn to another site, or to the same again.
    repeats: u64,
    horizon: Horizon,
}

impl Client {
    /// A client that begins with the first of `sites`. `number`, below 2^63, must be unused by other clients of the system; `sequence` is beyond all it has used.
    ///
    /// # Panics
    /// If there are no sites.
    #[must_use]
    pub fn new(number: u64, sequence: u64, sites: Vec<impl Into<Door>>) -> Self {
        assert!(!sites.is_empty(), "a client needs a site");
        let sites = sites.into_iter().map(Into::into).collect();
        let horizon = Horizon::default();
        Self { number, sequence, sites, at: 0, connection: None, repeats: 0, horizon }
    }

    /// How far it has seen. Another client that is given this, in this process or elsewhere, continues behind it.
    #[must_use]
    pub fn horizon(&self) -> Horizon {
        self.horizon
    }

    /// It has seen that too: nothing older is shown to it from now on.
    pub fn has_seen(&mut self, horizon: Horizon) {
        self.horizon = self.horizon.and(horizon);
    }

    /// How often it asked again, for want of an answer.
    #[must_use]
    pub fn repeats(&self) -> u64 {
        self.repeats
    }

    /// Which site it uses now.
    #[must_use]
    pub fn site(&self) -> SocketAddr {
        self.sites[self.at].address()
    }

    /// It uses this site from now on, if it is one of those that it knows.
    pub fn turn_to(&mut self, site: SocketAddr) {
        match self.sites.iter().position(|door| door.address() == site) {
            Some(at) if at != self.at => (self.at, self.connection) = (at, None),
            _ => {}
        }
    }

    /// Executes a request, once, and waits for its reply at most for `patience`.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn execute(&mut self, request: &[u8], patience: Duration) -> Result<Vec<u8>, CallError> {
        let sequence = self.next();
        self.execute_as(sequence, request, patience, false)
    }

    /// The last request again, after [`CallError::Silence`].
    ///
    /// # Errors
    /// [`CallError`].
    pub fn execute_again(&mut self, request: &[u8], patience: Duration) -> Result<Vec<u8>, CallError> {
        self.execute_as(self.sequence, request, patience, true)
    }

    /// The number of the next request.
    pub(crate) fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Executes a request under a number, which was asked for before (`again`), or was not.
    pub(crate) fn execute_as(
        &mut self,
        sequence: u64,
        request: &[u8],
        patience: Duration,
        again: bool,
    ) -> Result<Vec<u8>, CallError> {
        let id = TransactionId { client: self.number, sequence };
        self.ask(&Ask::Execute(id, self.horizon, request.to_vec()), patience, again)
    }

    /// Reads from the stable version: what this client was answered is there, and nothing of what it has read is missing, wherever it asks.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn read(&mut self, request: &[u8], patience: Duration) -> Result<Vec<u8>, CallError> {
        let ask = Ask::Read(self.next(), self.horizon, request.to_vec());
        self.ask(&ask, patience, false)
    }

    /// The same, with all that any client was answered before this call. It takes as long as an execution, and needs all living clusters as that does.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn read_latest(&mut self, request: &[u8], patience: Duration) -> Result<Vec<u8>, CallError> {
        let ask = Ask::Latest(self.next(), self.horizon, request.to_vec());
        self.ask(&ask, patience, false)
    }

    /// Has a decision carried out.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn operate(&mut self, command: Command, patience: Duration) -> Result<Vec<u8>, CallError> {
        let ask = Ask::Operate(self.next(), command);
        self.ask(&ask, patience, false)
    }

    /// Has a site's vote taken away, by the delegate of its cluster.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn remove(&mut self, site: SiteId, patience: Duration) -> Result<Vec<u8>, CallError> {
        let ask = Ask::Remove(self.next(), site);
        self.ask(&ask, patience, false)
    }

    /// Has a witness grant that clusters are declared lost.
    ///
    /// # Errors
    /// [`CallError`]; that it is not granted among them.
    pub fn grant(
        &mut self,
        database: u32,
        declared: Declaration,
        patience: Duration,
    ) -> Result<Vec<u8>, CallError> {
        let ask = Ask::Grant(self.next(), database, declared);
        self.ask(&ask, patience, false)
    }

    /// Has a witness that has no register begin one. `opening` is what its report said before the renewal began that led to `takeovers`.
    ///
    /// # Errors
    /// [`CallError`]; that it has one, or was opened again since, among them.
    pub fn begin_register(
        &mut self,
        database: u32,
        takeovers: u32,
        opening: u64,
        patience: Duration,
    ) -> Result<Vec<u8>, CallError> {
        let ask = Ask::Begin(self.next(), database, takeovers, opening);
        self.ask(&ask, patience, false)
    }

    /// The site's report, JSON; of a witness its own.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn report(&mut self, patience: Duration) -> Result<Vec<u8>, CallError> {
        let ask = Ask::Report(self.next());
        self.ask(&ask, patience, false)
    }

    fn ask(&mut self, ask: &Ask, patience: Duration, again: bool) -> Result<Vec<u8>, CallError> {
        let (bytes, to) = (checked(ask.to_bytes())?, ask.number());
        let began = Instant::now();
        let (patience_here, quiet_max) =
            if question::is_read(ask) { (READ_PATIENCE, QUIET_MAX) } else { (PATIENCE, PATIENCE) };
        let mut question = Question::new(ask, again);
        loop {
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(question.in_vain(patience));
            }
            match self.ask_once(&bytes, to, left.min(patience_here), quiet_max) {
                Ok(reply) => match question.heard(reply)? {
                    Heard::Done(body) => return Ok(body),
                    Heard::Elsewhere => self.turn_to_next(),
                    Heard::AskAgain => {}
                },
                Err(error) => {
                    let was_open = self.connection.is_some();
                    self.turn_to_next();
                    question.failed(was_open, error, self.sites.len())?;
                }
            }
            self.repeats += 1;
            std::thread::sleep(Duration::from_millis(10).min(left));
        }
    }

    fn turn_to_next(&mut self) {
        self.connection = None;
        self.at = (self.at + 1) % self.sites.len();
    }

    fn ask_once(
        &mut self,
        bytes: &[u8],
        to: u64,
        patience: Duration,
        quiet_max: Duration,
    ) -> io::Result<Reply> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(Connection::connect(&self.sites[self.at], FRAME_MAX)?),
        };
        let began = Instant::now();
        // A handshake waits for the site too.
        connection.set_timeout(Some(patience.min(2 * quiet_max)))?;
        connection.send(bytes)?;
        let mut is_quiet = false;
        loop {
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            connection.set_timeout(Some(left.min(quiet_max)))?;
            let said = match connection.receive() {
                Err(error) if is_late(&error) && !is_quiet => {
                    is_quiet = true;
                    connection.send(&Ask::Report(HOW).to_bytes())?;
                    continue;
                }
                said => said?,
            };
            is_quiet = false;
            let reply = Reply::from_bytes(&said).map_err(io::Error::other)?;
            if reply.to == to {
                self.horizon = self.horizon.and(reply.horizon);
                return Ok(reply);
            }
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Bytes that a site takes.
fn checked(bytes: Vec<u8>) -> Result<Vec<u8>, CallError> {
    let why = || "the request is too long for one frame: split it".into();
    let no = || CallError::No { code: Code::Impossible, why: why() };
    if bytes.len() <= FRAME_MAX { Ok(bytes) } else { Err(no()) }
}
