//! The port where loaders bring commands, as lines of text.
//!
//! A front reads a connection only while that has fewer than [`OPEN_MAX`] commands without a reply and has taken most of its answers: who floods, or does not
//! listen, waits in its own socket, and costs the others nothing. So does a user who comes through many connections. Who takes no answer at all for a while, or begins a line and
//! does not end it, has its connection closed, since there are only so many; its session goes on over another.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use pares_broker::{COMMANDS_OF_SESSION, UserName, WorkloadLine};
use pares_front::FRONT_OPEN_MAX;
use pares_front::loader_lines::{LINE_MAX, LoaderLine, answer, lost, refused};

use crate::floor::{Floor, Told};
use crate::link::Port;

/// Commands of a connection without a reply.
const OPEN_MAX: usize = 4_096;
/// Bytes of answers that a connection may leave before no more of its lines are read.
const UNREAD_MAX: usize = 256 << 10;
/// Far more than that and the answers to all that may be under way: it never comes to this.
const BACKLOG_MAX: usize = 4 << 20;
/// Lines of one connection that are read in one turn, bytes.
const READ_MAX: usize = 32 << 10;
/// Users of one connection: who has more goes on through another.
const USERS_MAX: usize = 65_536;
/// Commands of a user without a reply, however many connections they came by.
const USER_OPEN_MAX: usize = OPEN_MAX;
/// Who takes no answer for so long is cut off.
const UNREAD_PATIENCE: Duration = Duration::from_secs(30);
/// Who has nothing under way, and does not end a line within this.
const LINE_PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks for such.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Loader {
    /// Once it was told.
    session: Option<u64>,
    /// Commands without a reply.
    open: usize,
    /// Of each user the line before, [`USERS_MAX`] at most.
    latest: BTreeMap<UserName, u64>,
    /// A command that waits until others are answered, or written; nothing behind it is read.
    held: Option<(WorkloadLine, Option<u64>)>,
    /// It is to be told when hits are noted and logs are written.
    wants_note: bool,
    /// Since when the line has begun that has not ended.
    half: Option<Instant>,
    /// Nothing more comes: it is closed when all is answered.
    has_ended: bool,
}

/// See the [module](self).
pub(super) struct Loaders {
    pub(super) port: Port,
    loaders: BTreeMap<u64, Loader>,
    /// Which line of which connection each command was that has no reply.
    open: HashMap<u64, (u64, u64)>,
    users_max: usize,
    user_open_max: usize,
    /// For an answer that is not taken, and for the end of a line.
    patience: (Duration, Duration),
    looked: Instant,
}

impl Loaders {
    pub(super) fn at(port: Port) -> Self {
        Self {
            port,
            loaders: BTreeMap::new(),
            open: HashMap::new(),
            users_max: USERS_MAX,
            user_open_max: USER_OPEN_MAX,
            patience: (UNREAD_PATIENCE, LINE_PATIENCE),
            looked: Instant::now(),
        }
    }

    /// Takes in who has come and what they say.
    pub(super) fn turn(&mut self, floor: &mut Floor) {
        for number in self.port.accept() {
            self.loaders.insert(number, Loader::default());
        }
        for number in self.port.take_ready() {
            if self.read(number, floor).is_none() {
                self.end(number);
            }
        }
        let (unread, half) = self.patience;
        if self.looked.elapsed() >= LOOK_EVERY.min(unread).min(half) {
            self.looked = Instant::now();
            self.end_deaf();
            if !is_busy(floor) {
                self.end_halves();
            }
        }
    }

    /// Cuts off who takes no answers. Its socket takes no reason either: that is said here.
    fn end_deaf(&mut self) {
        let deaf = self.port.stuck(self.patience.0);
        if !deaf.is_empty() {
            pares_text::tell!(
                "{} connections of loaders are closed: they have taken no answer for {} s",
                deaf.len(),
                self.patience.0.as_secs()
            );
        }
        deaf.into_iter().for_each(|number| self.end(number));
    }

    /// Cuts off who has begun a line and does not end it. One that has something under way may not have been read for a while.
    fn end_halves(&mut self) {
        let patience = self.patience.1;
        let is_over = |half: Instant| half.elapsed() >= patience;
        let halves =
            self.loaders.iter().filter(|(_, loader)| loader.open == 0 && loader.half.is_some_and(is_over));
        for number in halves.map(|(number, _)| *number).collect::<Vec<_>>() {
            if self.port.conn(number).is_some_and(|conn| conn.backlog() == 0) {
                self.dismiss(number, "a line has no end");
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
        if is_busy(floor) {
            self.port.keep_ready(number);
            return Some(());
        }
        if !self.may_say_more(number) {
            // An answer, or room for one, brings it back.
            return Some(());
        }
        self.port.conn(number)?.fill(READ_MAX).ok()?;
        if let Some((line, after)) = self.loaders.get_mut(&number)?.held.take() {
            self.commanded(number, line, after, floor)?;
        }
        while self.may_say_more(number) && self.loaders.get(&number)?.held.is_none() {
            match self.port.conn(number)?.line(LINE_MAX) {
                Ok(Some(line)) => self.heard(number, LoaderLine::parse(&line), floor)?,
                Ok(None) => return self.has_read(number),
                Err(_) => return self.dismiss(number, "a line has 1,024 bytes at most"),
            }
        }
        Some(())
    }

    /// Whether it has room for another command, and takes its answers.
    fn may_say_more(&mut self, number: u64) -> bool {
        let has_room = self.loaders.get(&number).is_some_and(|loader| loader.open < OPEN_MAX);
        has_room && self.port.conn(number).is_some_and(|conn| conn.backlog() < UNREAD_MAX)
    }

    /// All whole lines are taken that are here.
    fn has_read(&mut self, number: u64) -> Option<()> {
        let conn = self.port.conn(number)?;
        let (has_ended, has_more, is_half) = (conn.has_ended(), conn.may_have_more(), conn.holds_half());
        let is_told = conn.backlog() == 0;
        if has_more {
            self.port.keep_ready(number);
        }
        let loader = self.loaders.get_mut(&number)?;
        loader.half = loader.half.or_else(|| is_half.then(Instant::now));
        loader.has_ended = has_ended;
        // Its last answers may be on their way to its socket.
        let is_owed = loader.open > 0 || loader.wants_note || !is_told;
        (!has_ended || is_owed).then_some(())
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
        loader.half = None;
        match line {
            LoaderLine::Nothing => {}
            LoaderLine::Session(session) => {
                // In the middle it would be a session that begins with a command of another.
                if loader.open > 0 || !loader.latest.is_empty() {
                    return self.dismiss(number, "a session is said before its first command");
                }
                if !floor.front.may_go_on(session) {
                    return self.dismiss(number, &format!("session {session} was given out to nobody"));
                }
                loader.session = Some(session);
            }
            LoaderLine::Note => loader.wants_note = true,
            LoaderLine::Wrong(refusal) => self.port.writer(number)?.push(refused(0, refusal).as_bytes()),
            LoaderLine::Foreign => return self.dismiss(number, "this is no line of a loader"),
            LoaderLine::Command(line, after) => match out_of_order(&line, after) {
                Some(why) => self.port.writer(number)?.push(lost(line.number, &why).as_bytes()),
                None => return self.commanded(number, line, after, floor),
            },
        }
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
        let is_full = floor.front.open_of(user.as_ref()) >= self.user_open_max;
        if is_full || !floor.has_room_for(&line.command) {
            loader.held = Some((line, after));
            self.port.keep_ready(number);
            return Some(());
        }
        // A number that is not above the latest was said before, or comes too late: the accounts know which.
        let before = user.as_ref().and(after.or(latest.filter(|latest| *latest < count))).unwrap_or(0);
        // There is always room: see `read`; its session and its order were looked at.
        let arrival = floor.arrives_in(session, before, line).ok()?;
        loader.open += 1;
        loader.latest.extend(user.map(|user| (user, latest.unwrap_or(0).max(count))));
        self.open.insert(arrival, (number, count));
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
        loader.open -= 1;
        let Some(reply) = &told.reply else {
            self.dismiss(number, &given_up(count));
            return self.end(number);
        };
        match self.port.writer(number) {
            Some(conn) => conn.push(answer(count, reply).as_bytes()),
            None => return self.end(number),
        }
        // It may have been waiting for room, or for its last answer.
        self.port.keep_ready(number);
    }

    /// Has hits noted that no command used, if anybody waits for that, and tells who does when they are, and no log is being written.
    pub(super) fn note(&mut self, floor: &mut Floor, has_written: bool) {
        if !self.loaders.values().any(|loader| loader.wants_note) {
            return;
        }
        floor.note_unclaimed();
        if floor.has_noted() && has_written {
            self.tell_noted();
        }
    }

    fn tell_noted(&mut self) {
        for (number, loader) in self.loaders.iter_mut().filter(|(_, loader)| loader.wants_note) {
            loader.wants_note = false;
            if let Some(conn) = self.port.writer(*number) {
                conn.push(b"NOTED\n");
            }
        }
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

/// Why no command can have this number there, if none can.
fn out_of_order(line: &WorkloadLine, after: Option<u64>) -> Option<String> {
    let number = line.number;
    match after.filter(|_| line.command.user.is_some()) {
        _ if number >= COMMANDS_OF_SESSION => {
            Some("the numbers of a session are below 16777216: go on in a new one".into())
        }
        Some(after) if after >= number => {
            Some(format!("its number is not above {after}, which it is to come after"))
        }
        _ => None,
    }
}

/// What is said of a command that was given up.
fn given_up(number: u64) -> String {
    format!(
        "line {number} was given up: the line before it has not come, or the sites do not take it; say it again on another connection, behind the line before it"
    )
}

/// Whether the front has no room for all that one more connection may bring.
fn is_busy(floor: &Floor) -> bool {
    floor.front.open() + OPEN_MAX > FRONT_OPEN_MAX
}

#[cfg(test)]
mod tests;
