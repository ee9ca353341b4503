//! The port where loaders bring commands, as lines of text.
//!
//! Each connection has a share of the front, and each of its users a share of that. A user's commands beyond it wait here, and the front reads on, to the lines of others; so who waits for a slow quote
//! holds nobody else up. When as many lines wait as the connection's share, or it has not taken most of its answers, it is not read: who floods, or does not listen, waits in his own socket, and
//! costs the others nothing.

use std::collections::{BTreeMap, HashMap};

use pares_broker::{Refusal, UserName, WorkloadLine};
use pares_front::{FRONT_OPEN_MAX, FairFeed, NotTaken};

use super::lines::{LINE_MAX, LoaderLine, answer, lost, refused};
use crate::floor::{Floor, Told};
use crate::link::Port;

/// Commands of a connection without a reply, and as many that wait; fewer if so many connections share the front.
const SHARE_MAX: usize = 4_096;
/// However many do.
const SHARE_MIN: usize = 16;
/// Bytes of answers that a connection may leave before no more of its lines are read.
const UNREAD_MAX: usize = 256 << 10;
/// Far more than the answers to all that may be under way: it never comes to this.
pub(super) const BACKLOG_MAX: usize = 64 << 20;
/// Lines of one connection that are read in one turn, bytes.
const READ_MAX: usize = 32 << 10;
/// Users of one connection: who has more goes on through another.
const USERS_MAX: usize = 65_536;

/// A line, and which one of its user came before in the session, if it says so.
type Said = (WorkloadLine, Option<u64>);

struct Loader {
    /// Once it was told.
    session: Option<u64>,
    /// Commands that wait for room, or for their reply.
    feed: FairFeed<Said>,
    /// Of each user the line before, [`USERS_MAX`] at most.
    latest: BTreeMap<UserName, u64>,
    /// A dump that waits until others are written; nothing behind it is read.
    held: Option<Said>,
    /// It is to be told when hits are noted.
    wants_note: bool,
    /// Nothing more comes: it is closed when all is answered.
    has_ended: bool,
}

impl Loader {
    fn new() -> Self {
        Self {
            session: None,
            feed: FairFeed::new(SHARE_MAX),
            latest: BTreeMap::new(),
            held: None,
            wants_note: false,
            has_ended: false,
        }
    }

    /// Whether it has commands without a reply.
    fn is_busy(&self) -> bool {
        self.feed.open() + self.feed.held() > 0
    }

    /// Whether another line may wait.
    fn may_say(&self, share: usize) -> bool {
        self.feed.held() < share && self.held.is_none()
    }
}

/// See the [module](self).
pub(super) struct Loaders {
    pub(super) port: Port,
    loaders: BTreeMap<u64, Loader>,
    /// Which line of which connection each command was that has no reply.
    open: HashMap<u64, (u64, u64)>,
    users_max: usize,
}

impl Loaders {
    pub(super) fn at(port: Port) -> Self {
        Self { port, loaders: BTreeMap::new(), open: HashMap::new(), users_max: USERS_MAX }
    }

    /// Takes in who has come and what they say.
    pub(super) fn turn(&mut self, floor: &mut Floor) {
        for number in self.port.accept() {
            self.loaders.insert(number, Loader::new());
        }
        for number in self.port.take_ready() {
            if self.read(number, floor).is_none() {
                self.end(number);
            }
        }
    }

    /// Nothing if the connection is over.
    fn read(&mut self, number: u64, floor: &mut Floor) -> Option<()> {
        if !self.greet(number, floor) {
            self.port.keep_ready(number);
            return Some(());
        }
        if self.port.conn(number)?.backlog() >= UNREAD_MAX {
            // Room for an answer brings it back.
            return Some(());
        }
        let share = (FRONT_OPEN_MAX / (self.loaders.len() + 1)).clamp(SHARE_MIN, SHARE_MAX);
        self.loaders.get_mut(&number)?.feed.set_room(share);
        self.hand_on(number, floor)?;
        if self.loaders.get(&number)?.may_say(share) {
            self.port.conn(number)?.fill(READ_MAX).ok()?;
        }
        // An answer brings it back.
        while self.loaders.get(&number).is_some_and(|loader| loader.may_say(share)) {
            let Some(line) = self.port.conn(number)?.line(LINE_MAX).ok()? else {
                return self.has_read(number);
            };
            self.heard(number, LoaderLine::parse(&line), floor)?;
        }
        Some(())
    }

    /// All whole lines are taken that are here.
    fn has_read(&mut self, number: u64) -> Option<()> {
        let conn = self.port.conn(number)?;
        let (has_ended, has_more) = (conn.has_ended(), conn.may_have_more());
        if has_more {
            self.port.keep_ready(number);
        }
        let loader = self.loaders.get_mut(&number)?;
        loader.has_ended = has_ended;
        (!has_ended || loader.is_busy()).then_some(())
    }

    /// Tells a connection its session; whether it has one.
    fn greet(&mut self, number: u64, floor: &mut Floor) -> bool {
        let Some(loader) = self.loaders.get_mut(&number) else { return true };
        if loader.session.is_none()
            && let Some(session) = floor.open_session()
            && let Some(conn) = self.port.writer(number)
        {
            loader.session = Some(session);
            conn.push(format!("SESSION {session}\n").as_bytes());
        }
        loader.session.is_some()
    }

    fn heard(&mut self, number: u64, line: LoaderLine, floor: &mut Floor) -> Option<()> {
        let loader = self.loaders.get_mut(&number)?;
        match line {
            LoaderLine::Nothing => {}
            LoaderLine::Session(session) => {
                // In the middle it would be a session that begins with a command of another.
                if loader.is_busy() || !loader.latest.is_empty() {
                    return None;
                }
                if !floor.front.may_go_on(session) {
                    return self.dismiss(number, &format!("session {session} was given out to nobody"));
                }
                loader.session = Some(session);
            }
            LoaderLine::Note => {
                loader.wants_note = true;
                floor.note_unclaimed();
            }
            LoaderLine::Wrong(refusal) => self.port.writer(number)?.push(refused(0, refusal).as_bytes()),
            LoaderLine::Foreign => return self.dismiss(number, "this is no line of a loader"),
            LoaderLine::Command(line, after) => {
                loader.feed.push(line.command.user.clone().as_ref(), (line, after));
                return self.hand_on(number, floor);
            }
        }
        Some(())
    }

    /// Hands the front the commands that there is room for; nothing if the connection is over.
    fn hand_on(&mut self, number: u64, floor: &mut Floor) -> Option<()> {
        while floor.front.open() < FRONT_OPEN_MAX {
            let loader = self.loaders.get_mut(&number)?;
            let Some((line, after)) = loader.held.take().or_else(|| loader.feed.take()) else {
                return Some(());
            };
            self.commanded(number, line, after, floor)?;
            if self.loaders.get(&number)?.held.is_some() {
                return Some(());
            }
        }
        self.port.keep_ready(number);
        Some(())
    }

    fn commanded(
        &mut self,
        number: u64,
        line: WorkloadLine,
        after: Option<u64>,
        floor: &mut Floor,
    ) -> Option<()> {
        let loader = self.loaders.get_mut(&number)?;
        let (session, count, user) = (loader.session?, line.number, line.command.user.clone());
        let latest = user.as_ref().and_then(|user| loader.latest.get(user).copied());
        if user.is_some() && latest.is_none() && loader.latest.len() >= self.users_max {
            return self.dismiss(number, "too many users on one connection");
        }
        if !floor.has_room_for(&line.command) {
            loader.held = Some((line, after));
            self.port.keep_ready(number);
            return Some(());
        }
        let before = user.as_ref().and(after.or(latest)).unwrap_or(0);
        match floor.arrives_in(session, before, line) {
            Ok(arrival) => {
                loader.latest.extend(user.map(|user| (user, count)));
                self.open.insert(arrival, (number, count));
            }
            // There is always room: see `hand_on`.
            Err(NotTaken::Busy | NotTaken::Dumps) => return None,
            Err(NotTaken::Order) => {
                loader.feed.done(user.as_ref());
                self.port.writer(number)?.push(refused(count, Refusal::NoNumber).as_bytes());
            }
        }
        Some(())
    }

    /// A connection is told why it ends, if its socket takes it.
    fn dismiss(&mut self, number: u64, why: &str) -> Option<()> {
        let conn = self.port.conn(number)?;
        conn.push(lost(0, why).as_bytes());
        // It may be gone already.
        let _ = conn.flush();
        None
    }

    /// A command has its reply, or was given up; then its loader is to come again, and says again what has no answer.
    pub(super) fn tell(&mut self, told: &Told) {
        let Some((number, count)) = self.open.remove(&told.arrival) else { return };
        let Some(loader) = self.loaders.get_mut(&number) else { return };
        loader.feed.done(told.command().and_then(|command| command.user.as_ref()));
        match (&told.reply, self.port.writer(number)) {
            (Some(reply), Some(conn)) => conn.push(answer(count, reply).as_bytes()),
            _ => return self.end(number),
        }
        // It may have been waiting for room, or for its last answer.
        self.port.keep_ready(number);
    }

    /// All hits are noted that no command used.
    pub(super) fn tell_noted(&mut self) {
        for (number, loader) in self.loaders.iter_mut().filter(|(_, loader)| loader.wants_note) {
            loader.wants_note = false;
            if let Some(conn) = self.port.writer(*number) {
                conn.push(b"NOTED\n");
            }
        }
    }

    /// Whether anybody waits until hits are noted.
    pub(super) fn wants_note(&self) -> bool {
        self.loaders.values().any(|loader| loader.wants_note)
    }

    /// Hands the sockets what they take.
    pub(super) fn flush(&mut self) {
        for number in self.port.flush(BACKLOG_MAX) {
            self.loaders.remove(&number);
        }
    }

    /// A connection is over; what it has sent is executed all the same.
    fn end(&mut self, number: u64) {
        self.port.close(number);
        self.loaders.remove(&number);
    }
}

#[cfg(test)]
mod tests;
