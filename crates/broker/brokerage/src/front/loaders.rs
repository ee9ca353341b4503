//! The port where loaders bring commands, as lines of text.
//!
//! Each connection has a share of the front, and each of its users a share of that. A user's commands beyond it wait here, and the front reads on, to the lines of others; so who waits for a slow quote
//! holds nobody else up. When as many lines wait as the connection's share, or it has not taken most of its answers, it is not read: who floods, or does not listen, waits in his own socket, and
//! costs the others nothing. Nor does a user with many connections. Who takes no answer at all for a while, or begins a line and does not end it, has its connection closed; its session continues over another.

mod patience;
mod refusing;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use pares_broker::{BrokerReply, Refusal, UserName, WorkloadLine};
use pares_front::loader_lines::{LINE_MAX, LoaderLine, answer, lost, refused, unwritten};
use pares_front::{FairFeed, NotTaken};

use self::patience::Patience;
use self::refusing::{BEYOND, given_up, out_of_order};
use crate::floor::{Floor, Told};
use crate::link::Port;

/// Commands of a connection without a reply, and as many that wait; fewer if so many connections share the front.
const SHARE_MAX: usize = 4_096;
/// However many do.
const SHARE_MIN: usize = 3;
/// Bytes of answers that a connection may leave before no more of its lines are read.
const UNREAD_MAX: usize = 256 << 10;
/// Far more than that and the answers to all that may be under way: it never comes to this.
const BACKLOG_MAX: usize = 4 << 20;
/// Lines of one connection that are read in one turn, bytes.
const READ_MAX: usize = 32 << 10;
/// Users of one connection: a client with more continues through another.
const USERS_MAX: usize = 65_536;
/// Commands of a user without a reply, however many connections they came by.
const USER_OPEN_MAX: usize = SHARE_MAX;
/// A line, and which one of its user came before in the session, if it says so.
type Said = (WorkloadLine, Option<u64>);

struct Loader {
    /// Once it has received it.
    session: Option<u64>,
    /// Commands that wait for room, or for their reply.
    feed: FairFeed<Said>,
    /// Its commands that the front has, by their place among all that arrived there.
    arrivals: BTreeSet<u64>,
    /// Of each user the line before, [`USERS_MAX`] at most.
    latest: BTreeMap<UserName, u64>,
    /// A command that waits until others of its user are answered, or dumps written; nothing behind it is read.
    held: Option<Said>,
    /// It is to be told when hits are noted.
    wants_note: bool,
    /// Since when the line has begun that has not ended.
    half: Option<Instant>,
    /// When it last said something, or was answered.
    latest_word: Instant,
    /// Nothing more comes: it is closed when all is answered.
    has_ended: bool,
}

impl Loader {
    fn new() -> Self {
        Self {
            session: None,
            feed: FairFeed::new(SHARE_MAX),
            arrivals: BTreeSet::new(),
            latest: BTreeMap::new(),
            held: None,
            wants_note: false,
            half: None,
            latest_word: Instant::now(),
            has_ended: false,
        }
    }

    /// Whether it has commands without a reply.
    fn is_busy(&self) -> bool {
        self.feed.open() + self.feed.held() > 0
    }

    /// The line that this one of the user comes after, if it does not say so itself. A number that is not above the latest was said before, or comes too late: the accounts know which.
    fn before(&self, user: Option<&UserName>, count: u64) -> u64 {
        let latest = user.and_then(|user| self.latest.get(user).copied());
        latest.filter(|latest| *latest < count).unwrap_or(0)
    }

    /// The front has taken a line of the user.
    fn taken(&mut self, user: UserName, count: u64) {
        let latest = self.latest.entry(user).or_default();
        *latest = count.max(*latest);
    }

    /// The front has taken it, and then its clock has turned out to be off: the next line comes after the one before this.
    fn taken_back(&mut self, user: Option<&UserName>, Open { count, before, .. }: Open) {
        if let Some(latest) =
            user.and_then(|user| self.latest.get_mut(user)).filter(|latest| **latest == count)
        {
            *latest = before;
        }
    }

    /// Whether another line may wait.
    fn may_say(&self, share: usize) -> bool {
        self.feed.held() < share && self.held.is_none()
    }
}

/// A line that the front has.
#[derive(Clone, Copy)]
struct Open {
    /// Of which connection.
    number: u64,
    count: u64,
    /// Which one of its user it comes after.
    before: u64,
}

/// See the [module](self).
pub(super) struct Loaders {
    pub(super) port: Port,
    loaders: BTreeMap<u64, Loader>,
    /// Commands without a reply, by their place among all that arrived.
    open: HashMap<u64, Open>,
    users_max: usize,
    user_open_max: usize,
    patience: Patience,
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
            patience: Patience::default(),
            looked: Instant::now(),
        }
    }

    /// Takes in who has come and what they say.
    pub(super) fn turn(&mut self, floor: &mut Floor) {
        for number in self.port.accept() {
            self.loaders.insert(number, Loader::new());
        }
        for number in self.port.take_ready() {
            if self.read(number, floor).is_none() {
                self.end(number, floor);
            }
        }
        self.end_who_wait_too_long(floor);
    }

    /// Nothing if the connection is over.
    fn read(&mut self, number: u64, floor: &mut Floor) -> Option<()> {
        if !self.greet(number, floor) {
            self.port.keep_ready(number);
            return Some(());
        }
        if !self.takes_answers(number) {
            // Room for an answer brings it back.
            return Some(());
        }
        let share = (floor.room_of_loaders() / (self.loaders.len() + 1)).clamp(SHARE_MIN, SHARE_MAX);
        self.loaders.get_mut(&number)?.feed.set_room(share);
        self.hand_on(number, floor)?;
        if self.loaders.get(&number)?.may_say(share) {
            self.port.conn(number)?.fill(READ_MAX).ok()?;
        }
        // An answer brings it back.
        while self.takes_answers(number) && self.loaders.get(&number)?.may_say(share) {
            match self.port.conn(number)?.line(LINE_MAX) {
                Ok(Some(line)) => self.heard(number, LoaderLine::parse(&line), floor)?,
                Ok(None) => return self.has_read(number),
                Err(_) => return self.dismiss_for_length(number),
            }
        }
        Some(())
    }

    fn takes_answers(&mut self, number: u64) -> bool {
        self.port.conn(number).is_some_and(|conn| conn.backlog() < UNREAD_MAX)
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
        let is_owed = loader.is_busy() || loader.wants_note || !is_told;
        (!has_ended || is_owed).then_some(())
    }

    /// Tells a connection its session; whether it has one.
    fn greet(&mut self, number: u64, floor: &mut Floor) -> bool {
        let Some(loader) = self.loaders.get_mut(&number) else { return true };
        if loader.session.is_none()
            && let Some(session) = floor.front.open_session()
            && let Some(conn) = self.port.writer(number)
        {
            loader.session = Some(session);
            conn.push(format!("SESSION {session}\n").as_bytes());
        }
        loader.session.is_some()
    }

    fn heard(&mut self, number: u64, line: LoaderLine, floor: &mut Floor) -> Option<()> {
        let loader = self.loaders.get_mut(&number)?;
        (loader.half, loader.latest_word) = (None, Instant::now());
        match line {
            LoaderLine::Nothing => {}
            LoaderLine::Session(session) => return self.name_session(number, session, floor),
            LoaderLine::Note => loader.wants_note = true,
            LoaderLine::Wrong(count, refusal) => {
                self.port.writer(number)?.push(refused(count, refusal).as_bytes());
            }
            LoaderLine::Beyond(shown) => self.port.writer(number)?.push(lost(shown, BEYOND).as_bytes()),
            LoaderLine::Foreign => return self.dismiss(number, "the line is not a loader's"),
            LoaderLine::Command(line, after) => {
                if let Some(why) = out_of_order(&line, after) {
                    self.port.writer(number)?.push(lost(line.number, &why).as_bytes());
                    return Some(());
                }
                loader.feed.push(line.command.user.clone().as_ref(), (line, after));
                return self.hand_on(number, floor);
            }
        }
        Some(())
    }

    fn name_session(&mut self, number: u64, session: u64, floor: &Floor) -> Option<()> {
        let loader = self.loaders.get_mut(&number)?;
        // In the middle it would be a session that begins with a command of another.
        if loader.is_busy() || !loader.latest.is_empty() {
            return self.dismiss(number, "a session must be named before its first command");
        }
        if !floor.front.may_go_on(session) {
            return self.dismiss(number, &format!("session {session} was never assigned"));
        }
        loader.session = Some(session);
        Some(())
    }

    /// Hands the front the commands that there is room for; nothing if the connection is over.
    fn hand_on(&mut self, number: u64, floor: &mut Floor) -> Option<()> {
        while floor.has_room() && self.open.len() < floor.room_of_loaders() {
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
        let user = line.command.user.as_ref();
        let is_new = user.is_some_and(|user| !loader.latest.contains_key(user));
        if is_new && loader.latest.len() >= self.users_max {
            return self.dismiss(number, "too many users on one connection");
        }
        let is_full = floor.front.open_of(user) >= self.user_open_max;
        if is_full || !floor.has_room_for(&line.command) {
            loader.held = Some((line, after));
            self.port.keep_ready(number);
            return Some(());
        }
        self.give(number, line, after, floor)
    }

    /// Gives the front a line.
    fn give(&mut self, number: u64, line: WorkloadLine, after: Option<u64>, floor: &mut Floor) -> Option<()> {
        let loader = self.loaders.get_mut(&number)?;
        let (session, count, user) = (loader.session?, line.number, line.command.user.clone());
        let before = after.filter(|_| user.is_some()).unwrap_or_else(|| loader.before(user.as_ref(), count));
        match floor.arrives_in(number, session, before, line) {
            Ok(arrival) => {
                user.into_iter().for_each(|user| loader.taken(user, count));
                loader.arrivals.insert(arrival);
                self.open.insert(arrival, Open { number, count, before });
            }
            Err(why) => {
                loader.feed.done(user.as_ref());
                let said = match why {
                    NotTaken::Clock => refused(count, Refusal::ClockOff),
                    // There is room, and the order is one: see `hand_on` and `out_of_order`.
                    NotTaken::Busy | NotTaken::Dumps | NotTaken::Order => lost(count, &why.to_string()),
                };
                self.port.writer(number)?.push(said.as_bytes());
            }
        }
        Some(())
    }

    /// A command has its reply, or was given up; then its loader is to come again, and says again what has no answer.
    pub(super) fn tell(&mut self, told: &Told, floor: &mut Floor) {
        let Some(open) = self.open.remove(&told.arrival) else { return };
        let Open { number, count, .. } = open;
        let Some(loader) = self.loaders.get_mut(&number) else { return };
        loader.latest_word = Instant::now();
        loader.arrivals.remove(&told.arrival);
        let user = told.command().and_then(|command| command.user.as_ref());
        loader.feed.done(user);
        if told.reply == Some(BrokerReply::Refused { refusal: Refusal::ClockOff }) {
            loader.taken_back(user, open);
        }
        let Some(reply) = &told.reply else {
            self.dismiss(number, &given_up(count));
            return self.end(number, floor);
        };
        match self.port.writer(number) {
            Some(conn) if told.is_unwritten => conn.push(unwritten(count).as_bytes()),
            Some(conn) => conn.push(answer(count, reply).as_bytes()),
            None => return self.end(number, floor),
        }
        // It may have been waiting for room, or for its last answer.
        self.port.keep_ready(number);
    }

    /// Has hits noted that no command used, if a client waits for that, and tells it when they are.
    pub(super) fn note(&mut self, floor: &mut Floor) {
        if !self.loaders.values().any(|loader| loader.wants_note) {
            return;
        }
        floor.note_unclaimed();
        if floor.has_noted() {
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
    pub(super) fn flush(&mut self, floor: &mut Floor) {
        for number in self.port.flush(BACKLOG_MAX) {
            self.end(number, floor);
        }
    }

    /// A connection is over: its commands that are not at the sites yet are dropped.
    fn end(&mut self, number: u64, floor: &mut Floor) {
        self.port.close(number);
        let Some(loader) = self.loaders.remove(&number) else { return };
        for arrival in &loader.arrivals {
            self.open.remove(arrival);
        }
        floor.forget(&loader.arrivals.into_iter().collect::<Vec<_>>());
    }
}

#[cfg(test)]
mod tests;
