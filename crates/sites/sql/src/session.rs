//! A client's session.
//!
//! ```text
//!            BEGIN                 error                      the writer needs the way, or a refusal
//!   Idle ------------> Explicit ----------> Failed     Explicit ----------------------------> Over
//!    |  ^  COMMIT, ROLLBACK |                 | ROLLBACK                                       | ROLLBACK
//!    |  +-------------------+-----------------+------------------------------------------------+
//!    | any other statement, and its end
//!    +------> Implicit
//! ```

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use pares_store::postgres::{SqlStatement as Statement, split};

use crate::client::Client;
use crate::front::{Front, LOST};
use crate::link::{CANCELLED, Link, Shared, Trouble};
use crate::startup::{self, Begun};
use crate::statement::{Kind, Mode, Prepared, SCHEMA_ALONE, about, kind};
use crate::wire::{Message, text};

/// Of answers that are held back.
const HELD_MAX_BYTES: usize = 1 << 20;
const ENCODING: &str = "only UTF-8 is supported: SET client_encoding = 'UTF8'";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    /// Begun for one statement, or for one text of statements.
    Implicit,
    /// Begun by the client.
    Explicit,
    /// Failed, and open at the server.
    Failed,
    /// Taken back at the server; whether the client has been told. If not, of what is [untold](Session::untold), or that it has lost.
    Over {
        told: bool,
    },
}

pub(crate) struct Session {
    pub(crate) front: Arc<Front>,
    pub(crate) shared: Arc<Shared>,
    client: Client,
    pub(crate) state: State,
    /// Why the next transaction of a chain has not begun.
    pub(crate) untold: Option<Message>,
    /// How the transaction was begun.
    pub(crate) mode: Mode,
    /// Nothing has been executed in it.
    pub(crate) fresh: bool,
    /// Whether the transaction locks rows that it reads.
    pub(crate) locks: bool,
    /// A statement that locks rows was prepared: whether it is executed is not seen.
    locks_prepared: bool,
    /// Settings of the transaction, which outlive it if it commits.
    pub(crate) settings: Vec<String>,
    /// What ended the first statement of an implicit transaction, and all answers behind it: held back until what it did is certified. They are dropped if
    /// the transaction has failed, since a driver may take them for the outcome.
    held: Vec<Message>,
    held_bytes: usize,
    pub(crate) prepared: Prepared,
}

/// Refuses a client for whom there is no room.
pub(crate) fn turn_away(client: TcpStream, until: Instant) {
    let mut client = Client::over(client, until);
    let message = Message::fatal("53300", "this site has reached its limit of clients: try another site");
    // It may be gone already.
    let _ = client.send(&message).and_then(|()| client.flush());
}

/// Serves a client of that number until it ends.
pub(crate) fn run(front: &Arc<Front>, number: u64, client: Client) -> io::Result<()> {
    let Some(Begun { mut client, link, pid }) = startup::begin(front, client)? else {
        return Ok(());
    };
    if !front.crowd().signed_on(number) {
        return Ok(()); // another has its place
    }
    client.begun()?;
    let shared = Arc::new(Shared::new(link));
    front.options.sessions.enter(pid, Arc::clone(&shared) as _);
    let mut session = Session::over(Arc::clone(front), shared, client);
    let ended = session.serve();
    front.options.sessions.leave(pid);
    if ended.is_err() {
        session.write(&Message::fatal("57P01", "the connection to the site's PostgreSQL server was lost"))?;
        session.client.flush()?;
    }
    ended
}

impl Session {
    fn over(front: Arc<Front>, shared: Arc<Shared>, client: Client) -> Self {
        Self {
            front,
            shared,
            client,
            state: State::Idle,
            untold: None,
            mode: Mode::default(),
            fresh: false,
            locks: false,
            locks_prepared: false,
            settings: Vec::new(),
            held: Vec::new(),
            held_bytes: 0,
            prepared: Prepared::default(),
        }
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            let Ok(message) = self.client.receive() else { return Ok(()) };
            if message.tag == b'X' {
                return Ok(());
            }
            let shared = Arc::clone(&self.shared);
            let mut link = shared.lock();
            self.look(&mut link)?;
            self.answer(&mut link, &message)?;
            self.look(&mut link)?;
        }
    }

    fn answer(&mut self, link: &mut Link, message: &Message) -> io::Result<()> {
        let refused = match message.tag {
            b'F' => Message::error("0A000", "function calls by number are not supported: use SELECT"),
            b'Q' if message.is_readable() => return self.query(link, message),
            b'P' | b'B' | b'D' | b'E' | b'C' if !message.is_readable() => {
                self.prepared.skips = true;
                return self.write(&Message::error("22021", ENCODING));
            }
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' | b'S' => return self.extended(link, message),
            b'Q' => Message::error("22021", ENCODING),
            // What is left of a COPY that has failed.
            _ => return Ok(()),
        };
        self.write(&refused)?;
        self.ready()
    }

    /// Whether the writer needed the way meanwhile.
    fn look(&mut self, link: &mut Link) -> io::Result<()> {
        if link.open && link.current.is_in_the_way() {
            link.roll_back()?;
            link.lost = true;
        }
        if !std::mem::take(&mut link.lost) {
            return Ok(());
        }
        if self.state == State::Implicit {
            self.leave();
            self.prepared.skips = true;
            return self.write(&Message::error("40001", LOST));
        }
        // The client of one that has failed has the reason.
        self.state = State::Over { told: self.state == State::Failed };
        Ok(())
    }

    /// Writes to the client, behind what is held back.
    pub(crate) fn write(&mut self, message: &Message) -> io::Result<()> {
        if message.tag == b'E' {
            self.held.clear();
        }
        if self.state == State::Implicit && !self.held.is_empty() {
            return self.hold(message.clone());
        }
        self.release()?;
        self.client.send(message)
    }

    /// Holds an answer back. Of more than [`HELD_MAX_BYTES`] all go out.
    fn hold(&mut self, message: Message) -> io::Result<()> {
        self.held_bytes = if self.held.is_empty() { 0 } else { self.held_bytes } + message.body.len();
        self.held.push(message);
        if self.held_bytes > HELD_MAX_BYTES { self.release() } else { Ok(()) }
    }

    fn release(&mut self) -> io::Result<()> {
        self.held.drain(..).try_for_each(|held| self.client.send(&held))
    }

    /// What ends a statement: a driver may take it for the outcome, if the transaction is this statement's.
    pub(crate) fn complete(&mut self, message: Message) -> io::Result<()> {
        if self.state == State::Implicit { self.hold(message) } else { self.write(&message) }
    }

    /// The client gets all that it was answered.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.release()?;
        self.client.flush()
    }

    pub(crate) fn beside(&mut self, link: &mut Link) -> io::Result<()> {
        std::mem::take(&mut link.aside).iter().try_for_each(|message| self.write(message))
    }

    pub(crate) fn ready(&mut self) -> io::Result<()> {
        let status = match self.state {
            State::Idle | State::Implicit => b'I',
            State::Explicit => b'T',
            State::Failed | State::Over { .. } => b'E',
        };
        self.write(&Message::ready(status))?;
        self.flush()
    }

    fn query(&mut self, link: &mut Link, message: &Message) -> io::Result<()> {
        let [texts] = message.strings()?;
        let texts = texts.to_owned();
        let statements = split(&texts);
        if statements.is_empty() {
            self.write(&Message::new(b'I', []))?;
        }
        let alone = statements.len() == 1;
        for statement in &statements {
            let kind = kind(statement);
            let done = match kind {
                Kind::Schema { .. } if !alone => {
                    self.refuse(link, "0A000", &about(statement.text, SCHEMA_ALONE))?
                }
                kind => self.step(link, statement, &kind)?,
            };
            if !done {
                break;
            }
        }
        self.end_implicit(link)?;
        self.beside(link)?;
        self.ready()
    }

    /// Commits what was begun for these statements only.
    pub(crate) fn end_implicit(&mut self, link: &mut Link) -> io::Result<()> {
        match self.state {
            State::Implicit => self.commit(link)?.or_else(|why| self.write(&why)),
            _ => Ok(()),
        }
    }

    /// A statement of the simple protocol. Whether the next may follow.
    fn step(&mut self, link: &mut Link, statement: &Statement<'_>, kind: &Kind) -> io::Result<bool> {
        if let Some(done) = self.own_step(link, kind, statement.text)? {
            return Ok(done);
        }
        if !self.open_for(link, kind, statement)? {
            return Ok(false);
        }
        let done = match link.must_be_one(statement.text) {
            Ok(()) => {
                link.pass(&Message::new(b'Q', text(statement.text)), false)?;
                self.relay(link)?
            }
            Err(Trouble::Refused(why)) => {
                let why = self.meant(why);
                self.write(&why)?;
                false
            }
            Err(Trouble::Gone(error)) => return Err(error),
        };
        self.after(link, kind, done)
    }

    /// Begins a transaction if the statement needs one; false if that fails.
    pub(crate) fn open_for(
        &mut self,
        link: &mut Link,
        kind: &Kind,
        statement: &Statement<'_>,
    ) -> io::Result<bool> {
        self.note(kind, statement);
        if self.state != State::Idle || !matches!(kind, Kind::Ordinary { .. }) {
            return Ok(true);
        }
        self.begin_as(link, Mode::default(), State::Implicit)
    }

    /// Begins a transaction; false if the server refuses, which its client receives.
    pub(crate) fn begin_as(&mut self, link: &mut Link, mode: Mode, state: State) -> io::Result<bool> {
        let begun = self.begin_untold(link, mode, state)?;
        begun.map_or_else(|why| self.write(&why).map(|()| false), |()| Ok(true))
    }

    /// The same; why the server refuses.
    pub(crate) fn begin_untold(
        &mut self,
        link: &mut Link,
        mode: Mode,
        state: State,
    ) -> io::Result<Result<(), Message>> {
        match link.begin(mode) {
            Ok(()) => {
                (self.state, self.mode, self.fresh) = (state, mode, true);
                Ok(Ok(()))
            }
            Err(Trouble::Refused(why)) => {
                link.roll_back()?;
                Ok(Err(self.meant(why)))
            }
            Err(Trouble::Gone(error)) => Err(error),
        }
    }

    /// What has to be known of a statement when its transaction ends.
    fn note(&mut self, kind: &Kind, statement: &Statement<'_>) {
        match kind {
            Kind::Ordinary { locks } => {
                self.locks |= locks;
                // What was prepared by a statement or a function is not seen.
                self.locks |=
                    self.locks_prepared && statement.tokens.first().is_some_and(|token| token.is("EXECUTE"));
                self.locks_prepared |=
                    *locks && statement.tokens.first().is_some_and(|token| token.is("PREPARE"));
            }
            Kind::Setting if self.state == State::Explicit => self.settings.push(statement.text.to_owned()),
            _ => {}
        }
    }

    /// After the server has done a statement, or refused it.
    pub(crate) fn after(&mut self, link: &mut Link, kind: &Kind, done: bool) -> io::Result<bool> {
        self.fresh = false;
        match (self.state, done) {
            (State::Idle, true) if *kind == Kind::Setting => {
                // A setting by the extended protocol lasts from here on, whatever becomes of the question.
                link.sync()?;
                link.learn_level()?;
            }
            (State::Failed, true) if *kind == Kind::BackTo => self.state = State::Explicit,
            (State::Explicit, false) => self.state = State::Failed,
            (State::Implicit, false) => {
                link.roll_back()?;
                self.leave();
            }
            _ => {}
        }
        Ok(done)
    }

    /// Takes the server's answer to a simple query; whether it was done.
    fn relay(&mut self, link: &mut Link) -> io::Result<bool> {
        let mut done = true;
        loop {
            let message = link.receive()?;
            match message.tag {
                b'Z' => return Ok(done),
                b'E' => {
                    done = false;
                    let message = self.meant(message);
                    self.write(&message)?;
                }
                b'G' => self.copy_in(link, &message, false)?,
                b'C' => self.complete(message)?,
                _ => self.write(&message)?,
            }
        }
    }

    /// The server takes rows now: the client's, until it ends them. A server that has seen enough says so behind that.
    pub(crate) fn copy_in(&mut self, link: &mut Link, message: &Message, extended: bool) -> io::Result<()> {
        self.write(message)?;
        self.flush()?;
        loop {
            let rows = self.client.receive()?;
            match rows.tag {
                b'd' => link.pass_on(&rows)?,
                b'c' | b'f' => return link.pass(&rows, extended),
                // As the server takes them while it copies.
                b'H' | b'S' => {}
                _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "no rows in a COPY")),
            }
        }
    }

    /// What a failed statement means here: one that was cancelled because the writer needed the way has lost.
    pub(crate) fn meant(&self, message: Message) -> Message {
        let is_cancelled = message.tag == b'E' && message.field(b'C') == CANCELLED;
        if is_cancelled && self.shared.is_in_the_way() { Message::error("40001", LOST) } else { message }
    }
}

#[cfg(test)]
mod tests;
