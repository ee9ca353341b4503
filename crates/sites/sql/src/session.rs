//! A client's session.
//!
//! ```text
//!            BEGIN             error, or a refusal                the writer needs the way
//!   Idle ------------> Explicit ----------> Failed     Explicit ---------------------------> Over
//!    |  ^  COMMIT, ROLLBACK |                 | ROLLBACK                                      | ROLLBACK
//!    |  +-------------------+-----------------+-----------------------------------------------+
//!    | any other statement, and its end
//!    +------> Implicit
//! ```

mod answers;

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pares_store::postgres::{SqlStatement as Statement, split};

use crate::client::Client;
use crate::front::{Front, LOST};
use crate::link::{Link, Shared, Trouble};
use crate::settings::Settings;
use crate::startup::{self, Begun};
use crate::statement::{Kind, Mode, Prepared, kind};
use crate::wire::{Message, text};

/// Time for a client to take what is left when the server has ended its session.
const LAST_PATIENCE: Duration = Duration::from_secs(30);
/// What a client may send while its session lasts.
const KNOWN: &[u8] = b"QPBDECHSFXdcf";
const BY_NUMBER: &str = "function calls by number are not supported: use SELECT";

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

/// Where a statement can stand: the server gives all of a text, or of a pipeline, one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A text of its own.
    Alone,
    /// A text of several.
    Text,
    /// Messages of the extended protocol.
    Pipeline,
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
    /// Where the statement stands that is being done.
    pub(crate) place: Place,
    /// Whether the transaction locks rows that it reads.
    pub(crate) locks: bool,
    /// A statement that locks rows was prepared: whether it is executed is not seen.
    locks_prepared: bool,
    pub(crate) settings: Settings,
    /// What ended the first statement of an implicit transaction, and all answers behind it: held back until what it did is certified. They are dropped if
    /// the transaction has failed, since a driver may take them for the outcome.
    held: Vec<Message>,
    held_bytes: usize,
    /// What the client has sent in the middle of rows: it comes next, if the server has refused these.
    early: Option<Message>,
    /// The server has ended the session, and said why.
    has_ended: bool,
    pub(crate) prepared: Prepared,
}

/// Refuses a client for whom there is no room.
pub(crate) fn turn_away(client: TcpStream, until: Instant) -> io::Result<()> {
    let mut client = Client::over(client, until)?;
    client.send(&Message::fatal("53300", "this site has reached its limit of clients: try another site"))?;
    client.flush()
}

/// Serves a client of that number until it ends.
pub(crate) fn run(front: &Arc<Front>, number: u64, client: Client) -> io::Result<()> {
    let Some(Begun { mut client, link, pid }) = startup::begin(front, client)? else {
        return Ok(());
    };
    if !front.crowd().signed_on(number) {
        return Ok(()); // another has its place
    }
    client.begun(link.socket()?, LAST_PATIENCE);
    let shared = Arc::new(Shared::new(link));
    front.options.sessions.enter(pid, Arc::clone(&shared) as _);
    let mut session = Session::over(Arc::clone(front), shared, client);
    let ended = session.serve();
    front.options.sessions.leave(pid);
    if ended.is_err() {
        let shared = Arc::clone(&session.shared);
        session.beside(&mut shared.lock())?;
    }
    if ended.is_err() && !session.has_ended {
        session.write(&Message::fatal("57P01", "the connection to the site's PostgreSQL server was lost"))?;
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
            place: Place::Pipeline,
            locks: false,
            locks_prepared: false,
            settings: Settings::default(),
            held: Vec::new(),
            held_bytes: 0,
            early: None,
            has_ended: false,
            prepared: Prepared::default(),
        }
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            let Ok(message) =
                self.early.take().map_or_else(|| self.client.receive(), |early| Ok(Some(early)))
            else {
                return Ok(());
            };
            let shared = Arc::clone(&self.shared);
            let mut link = shared.lock();
            let Some(message) = message else {
                self.overhear(&mut link)?;
                continue;
            };
            if message.tag == b'X' {
                return Ok(());
            }
            self.look(&mut link)?;
            self.answer(&mut link, &message)?;
            self.look(&mut link)?;
        }
    }

    fn answer(&mut self, link: &mut Link, message: &Message) -> io::Result<()> {
        if !KNOWN.contains(&message.tag) {
            let why = format!("invalid frontend message type {}", message.tag);
            self.write(&Message::fatal("08P01", &why))?;
            return Err(io::ErrorKind::InvalidData.into());
        }
        match message.tag {
            // As the server ignores it, whatever it is.
            tag if self.prepared.skips && tag != b'S' => return Ok(()),
            // What is left of a COPY that has failed.
            b'd' | b'c' | b'f' => return Ok(()),
            _ => {}
        }
        if let Some(fault) = message.fault() {
            self.fail(link, &fault)?;
        } else {
            match message.tag {
                b'F' => self.refuse(link, "0A000", BY_NUMBER).map(drop)?,
                b'Q' => return self.query(link, message),
                _ => return self.extended(link, message),
            }
        }
        self.prepared.skips = !matches!(message.tag, b'F' | b'Q' | b'S');
        if self.prepared.skips { Ok(()) } else { self.ready() }
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
        let kinds: Vec<_> = statements.iter().map(kind).collect();
        self.place = if statements.len() > 1 { Place::Text } else { Place::Alone };
        let mut done = self.is_read(link, &texts, &kinds)?;
        for (statement, kind) in statements.iter().zip(&kinds) {
            done = done && self.step(link, statement, kind)?;
        }
        self.place = Place::Pipeline;
        self.end_implicit(link)?;
        self.beside(link)?;
        self.ready()
    }

    /// Whether the server reads a text to its end, if a part of it could last without the rest.
    fn is_read(&mut self, link: &mut Link, texts: &str, kinds: &[Kind]) -> io::Result<bool> {
        if self.place != Place::Text || !kinds.iter().any(Kind::is_boundary) {
            return Ok(true);
        }
        match link.must_all_be_read(texts, link.open && self.state != State::Failed) {
            Ok(()) => Ok(true),
            Err(why) => self.refused(link, why),
        }
    }

    /// Commits what was begun for these statements only.
    pub(crate) fn end_implicit(&mut self, link: &mut Link) -> io::Result<()> {
        if self.state != State::Implicit {
            return Ok(());
        }
        match self.commit(link)? {
            Ok(()) => self.release(),
            Err(why) => self.write(&why),
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
            Err(why) => return self.refused(link, why),
        };
        self.after(link, kind, statement.text, done)
    }

    /// Begins a transaction if the statement needs one; false if that fails.
    pub(crate) fn open_for(
        &mut self,
        link: &mut Link,
        kind: &Kind,
        statement: &Statement<'_>,
    ) -> io::Result<bool> {
        // Alone these do nothing, as the server says.
        let is_inside = |word| statement.tokens.first().is_some_and(|first| first.is(word));
        let needs_one = match kind {
            Kind::Ordinary { .. } => {
                self.place != Place::Alone || !["SET", "DECLARE"].into_iter().any(is_inside)
            }
            Kind::Execute(_) => true,
            Kind::Setting => self.place != Place::Alone,
            Kind::Discard => self.place == Place::Text,
            _ => false,
        };
        if self.state == State::Idle && !needs_one {
            return Ok(true);
        }
        self.note(kind, statement);
        if self.state != State::Idle {
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
                let prepares = statement.tokens.first().is_some_and(|token| token.is("PREPARE"));
                self.locks_prepared |= *locks && prepares;
            }
            // What was prepared by a statement or a function is not seen.
            Kind::Execute(_) => self.locks |= self.locks_prepared,
            _ => {}
        }
    }

    /// After the server has done a statement, or refused it.
    pub(crate) fn after(&mut self, link: &mut Link, kind: &Kind, text: &str, done: bool) -> io::Result<bool> {
        self.fresh &= done && *kind == Kind::Setting;
        if done && self.state != State::Idle {
            self.settings.note(kind, text);
        }
        match (self.state, done) {
            (State::Idle, true) if matches!(kind, Kind::Setting | Kind::Discard) => {
                // DISCARD by the extended protocol lasts from here on, whatever becomes of the question.
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
}

#[cfg(test)]
mod tests;
