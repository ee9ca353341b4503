//! Where transactions begin and end, and what is not passed on to the server.

use std::io;
use std::time::{Duration, Instant};

use pares_store::postgres::SqlError;
use pares_wice::{AbortReason, Version};

use crate::commit::{self, Ended, patience};
use crate::front::{Denied, LOST};
use crate::link::{Link, Rows, Trouble};
use crate::session::{Session, State};
use crate::statement::{Kind, Mode, READ_ONLY, SCHEMA_ALONE, about, isolation_named};
use crate::wire::Message;

/// How often a change of the schema is tried while others write.
const SCHEMA_TRIES: usize = 100;
/// How long others continue between two tries of a change of the schema, if a session was in the way or nothing has come since.
const SCHEMA_PAUSE: Duration = Duration::from_millis(50);
/// After so many tries without success, because a session was in the way or others have written, all others give way.
const PATIENT_TRIES: usize = 10;
/// No client waits for longer, and what is added to a clock does not overflow.
const DAY: Duration = Duration::from_secs(86_400);
const CHAIN_ALONE: &str = "AND CHAIN needs a transaction in progress";
const LEVEL_LATE: &str = "SET TRANSACTION must precede the first query";
const ABORTED: &str = "current transaction is aborted, commands ignored until end of transaction block";
const ELSEWHERE: &str = "sites execute a schema change with the store's search_path, but this session's begins with another schema: RESET search_path, and name schemas explicitly";
const NOT_OWNER: &str =
    "only the owner of the store's tables, or a member of that role, can change the schema";

const SETTINGS_LARGE: &str = "the settings of the transaction are too large: set them outside of it";

/// Why a change of the schema has not come to its turn.
const OTHERS: (&str, &str) = (
    "40001",
    "other transactions keep writing to the tables, and nothing was changed: change the schema when they pause",
);
const UNSTABLE: (&str, &str) = (
    "57P03",
    "earlier transactions are not stable in all clusters yet, because one is slow or does not answer; nothing was changed: try again when it answers (pares site status)",
);

/// Tries of a change of the schema: what is left of the time for each. One that is not likely to hear its outcome would leave it unknown, and is none.
struct Tries {
    until: Instant,
    began: Option<Instant>,
    longest: Duration,
}

impl Iterator for Tries {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let left = self.until.saturating_duration_since(now);
        if let Some(began) = self.began.replace(now) {
            self.longest = self.longest.max(now - began);
            return (left > self.longest * 2).then_some(left);
        }
        Some(left)
    }
}

/// What a try of a change of the schema came to.
enum Tried {
    Done,
    /// A session was in the way.
    Blocked,
    /// Others have written since this version, which it was tried at.
    Outrun(Version),
}

/// Why a change of the schema was not tried with success, as its client receives it.
fn said(error: SqlError) -> Message {
    match error {
        SqlError::Refused { code, why, detail, hint } => {
            Message::error(&code, &why).with(b'D', &detail).with(b'H', &hint)
        }
        SqlError::Again(why) => Message::error("40001", &why),
        SqlError::Store(error) => Message::error("0A000", &error.to_string()),
    }
}

/// Whether the first row begins with that word.
fn says(rows: &Rows, word: &str) -> bool {
    rows.first().and_then(|row| row[0].as_deref()) == Some(word)
}

/// Sets again what a transaction has set that was taken back to be certified.
fn repeat(link: &mut Link, settings: &[String]) -> io::Result<()> {
    for setting in settings {
        // It was possible a moment ago.
        if let Err(Trouble::Gone(error)) = link.ask(setting, &[]) {
            return Err(error);
        }
    }
    if settings.is_empty() { Ok(()) } else { link.learn_level() }
}

impl Session {
    /// A statement that is not passed on; whether it was done. None if it is to be passed on.
    pub(crate) fn own_step(&mut self, link: &mut Link, kind: &Kind, text: &str) -> io::Result<Option<bool>> {
        if let State::Over { told } = self.state
            && !matches!(kind, Kind::Rollback { .. } | Kind::Commit { .. })
        {
            self.state = State::Over { told: true };
            let why = if told { Message::error("25P02", ABORTED) } else { self.why_over() };
            self.write(&why)?;
            return Ok(Some(false));
        }
        let done = match kind {
            Kind::Begin(mode) => self.begin(link, *mode)?,
            Kind::Mode(mode) if self.state == State::Idle || self.fresh => self.change_mode(link, *mode)?,
            Kind::Commit { chain } => self.end(link, *chain)?,
            Kind::Rollback { chain } => self.back(link, *chain)?,
            Kind::Refused(why) => self.refuse(link, "0A000", &about(text, why))?,
            Kind::Schema { .. } if self.state != State::Idle => {
                self.refuse(link, "0A000", &about(text, SCHEMA_ALONE))?
            }
            Kind::Schema { tag } => self.change_schema(link, text, tag)?,
            _ => return Ok(None),
        };
        Ok(Some(done))
    }

    fn begin(&mut self, link: &mut Link, mode: Mode) -> io::Result<bool> {
        match self.state {
            State::Idle => {
                if !self.begin_as(link, mode, State::Explicit)? {
                    return Ok(false);
                }
            }
            State::Implicit => {}
            State::Failed => return self.refuse(link, "25P02", ABORTED),
            _ if mode.level.is_some() && !self.fresh => return self.refuse(link, "25001", LEVEL_LATE),
            _ => {
                self.write(&Message::warning("25001", "there is already a transaction in progress"))?;
                if mode.level.is_some() && !self.begin_anew(link, mode)? {
                    return Ok(false);
                }
            }
        }
        self.state = State::Explicit;
        self.write(&Message::complete("BEGIN"))?;
        Ok(true)
    }

    fn change_mode(&mut self, link: &mut Link, mode: Mode) -> io::Result<bool> {
        let done = self.begin_anew(link, mode)?;
        if done {
            self.write(&Message::complete("SET"))?;
        }
        Ok(done)
    }

    /// Nothing has been done yet: what is open is begun again, in another way. (The server would refuse that behind the savepoint.)
    fn begin_anew(&mut self, link: &mut Link, mode: Mode) -> io::Result<bool> {
        let state = if self.state == State::Idle { State::Implicit } else { self.state };
        if link.open {
            link.roll_back()?;
        }
        self.state = State::Idle;
        let mode = Mode { read_only: mode.read_only || self.mode.read_only, ..mode };
        let done = self.begin_as(link, mode, state)?;
        if !done && state == State::Explicit {
            self.state = State::Over { told: true };
        }
        Ok(done)
    }

    fn end(&mut self, link: &mut Link, chain: bool) -> io::Result<bool> {
        self.note_mode(link, chain)?;
        match self.state {
            State::Idle if chain => return self.refuse(link, "25P01", CHAIN_ALONE),
            State::Over { told: false } => {
                let why = self.why_over();
                self.leave();
                self.write(&why)?;
                return Ok(false);
            }
            State::Failed | State::Over { .. } => return self.back(link, chain),
            State::Idle => self.write(&Message::warning("25P01", "there is no transaction in progress"))?,
            State::Implicit | State::Explicit => {
                let committed = self.commit(link)?;
                self.beside(link)?;
                if let Err(why) = committed {
                    self.write(&why)?;
                    return Ok(false);
                }
            }
        }
        self.chained(link, chain, "COMMIT")
    }

    fn back(&mut self, link: &mut Link, chain: bool) -> io::Result<bool> {
        if chain && self.state == State::Idle {
            return self.refuse(link, "25P01", CHAIN_ALONE);
        }
        self.note_mode(link, chain)?;
        if link.open {
            link.roll_back()?;
        } else if self.state == State::Idle {
            self.write(&Message::warning("25P01", "there is no transaction in progress"))?;
        }
        self.leave();
        self.chained(link, chain, "ROLLBACK")
    }

    /// The next transaction of a chain is as this one is at its end.
    fn note_mode(&mut self, link: &mut Link, chain: bool) -> io::Result<()> {
        if !chain || self.state != State::Explicit {
            return Ok(());
        }
        match link.ask(
            "SELECT current_setting('transaction_read_only'), current_setting('transaction_isolation')",
            &[],
        ) {
            Ok(rows) => {
                let level = rows.first().and_then(|row| row[1].as_deref()).map(isolation_named);
                self.mode = Mode { read_only: says(&rows, "on"), level };
                Ok(())
            }
            // It has failed just now, and its end says so.
            Err(Trouble::Refused(_)) => Ok(()),
            Err(Trouble::Gone(error)) => Err(error),
        }
    }

    fn chained(&mut self, link: &mut Link, chain: bool, tag: &str) -> io::Result<bool> {
        self.beside(link)?;
        self.write(&Message::complete(tag))?;
        if chain && let Err(why) = self.begin_untold(link, self.mode, State::Explicit)? {
            // The client has heard that the one before is over. Of the next it hears as soon as it uses it.
            (self.state, self.untold) = (State::Over { told: false }, Some(why));
        }
        Ok(true)
    }

    /// Why a transaction is over of which the client does not know.
    fn why_over(&mut self) -> Message {
        self.untold.take().unwrap_or_else(|| Message::error("40001", LOST))
    }

    /// Commits what is open, among all sites. Whatever comes of it, it is over.
    pub(crate) fn commit(&mut self, link: &mut Link) -> io::Result<Result<(), Message>> {
        let ended = match commit::end(&self.front, link, self.locks) {
            Err(Trouble::Gone(error)) => return Err(error),
            Err(Trouble::Refused(why)) => Err(self.meant(why)),
            Ok(ended) => Ok(ended),
        };
        let settings = self.settings.take();
        self.leave();
        let (executed, patience, settings) = match (ended, settings) {
            (Ok(Ended::ReadOnly), _) => return Ok(Ok(())),
            (Ok(Ended::Ready { executed, patience }), Some(settings)) => (executed, patience, settings),
            (Ok(Ended::Ready { .. }), None) => return Ok(Err(Message::error("54000", SETTINGS_LARGE))),
            (Err(why), _) => return Ok(Err(why)),
        };
        if !executed.writes.is_empty()
            && let Err(denied) = self.front.certify(executed, patience)
        {
            return Ok(Err(denied.message()));
        }
        // The client is sent the outcome even if the server is gone, which the link's next use finds.
        let _ = repeat(link, &settings);
        Ok(Ok(()))
    }

    /// Says no; what is open is taken back.
    pub(crate) fn refuse(&mut self, link: &mut Link, code: &str, why: &str) -> io::Result<bool> {
        self.write(&Message::error(code, why))?;
        if link.open {
            link.roll_back()?;
        }
        match self.state {
            State::Explicit | State::Failed => self.state = State::Over { told: true },
            State::Implicit => self.leave(),
            _ => {}
        }
        Ok(false)
    }

    /// Has a change of the schema ordered.
    fn change_schema(&mut self, link: &mut Link, statement: &str, tag: &str) -> io::Result<bool> {
        let done = match self.may_change_schema(link) {
            Ok(()) => self.ordered(statement, patience(link)?),
            Err(Trouble::Refused(why)) => Err(why),
            Err(Trouble::Gone(error)) => return Err(error),
        };
        let is_done = done.is_ok();
        self.write(&done.err().unwrap_or_else(|| Message::complete(tag)))?;
        Ok(is_done)
    }

    fn may_change_schema(&self, link: &mut Link) -> Result<(), Trouble> {
        let no = |code, why| Err(Trouble::Refused(Message::error(code, why)));
        let owner = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('PARES.pares_items')";
        if !says(&link.ask(&self.front.own(owner), &[])?, "t") {
            return no("42501", NOT_OWNER);
        }
        if link.reads_only {
            return no("25006", READ_ONLY);
        }
        // Names without a schema are those of the store, in which sites carry the statement out.
        let first = link.ask("SELECT pg_catalog.quote_ident(pg_catalog.current_schema())", &[])?;
        if says(&first, &self.front.home) { Ok(()) } else { no("0A000", ELSEWHERE) }
    }

    fn ordered(&self, statement: &str, patience: Duration) -> Result<(), Message> {
        let mut has_announced = false;
        let done = self.tried(statement, patience, &mut has_announced);
        if has_announced && done.is_err() {
            self.front.withdraw_turn();
        }
        done
    }

    fn tried(&self, statement: &str, patience: Duration, has_announced: &mut bool) -> Result<(), Message> {
        let tries = Tries { until: Instant::now() + patience.min(DAY), began: None, longest: Duration::ZERO };
        let (mut failed_tries, mut was, mut others, mut has_failed) = (0, None, OTHERS, false);
        for left in tries.take(SCHEMA_TRIES) {
            let has_way = failed_tries >= PATIENT_TRIES;
            // Behind each try: a turn expires, and ends with another change, which had it for both.
            if has_way && std::mem::take(&mut has_failed) && self.announce(left) {
                *has_announced = true;
                continue;
            }
            match self.try_change(statement, has_way, left)? {
                Tried::Done => return Ok(()),
                Tried::Outrun(snapshot) if was.replace(snapshot) != Some(snapshot) => {
                    (failed_tries, others) = (failed_tries + 1, OTHERS);
                }
                // Nothing has come into the store since the last try, so the next ends the same.
                Tried::Outrun(_) => {
                    others = UNSTABLE;
                    std::thread::sleep(SCHEMA_PAUSE);
                }
                Tried::Blocked => {
                    failed_tries += 1;
                    std::thread::sleep(SCHEMA_PAUSE);
                }
            }
            has_failed = true;
        }
        Err(Message::error(others.0, others.1))
    }

    fn try_change(&self, statement: &str, has_way: bool, left: Duration) -> Result<Tried, Message> {
        let change = match self.front.schema.propose(statement, has_way) {
            Ok(change) => change,
            Err(SqlError::Again(_)) => return Ok(Tried::Blocked),
            Err(error) => return Err(said(error)),
        };
        let snapshot = change.snapshot;
        match self.front.certify(change.into(), left) {
            Ok(()) => Ok(Tried::Done),
            Err(Denied::Aborted(reason)) if reason != AbortReason::Behind => Ok(Tried::Outrun(snapshot)),
            Err(denied) => Err(denied.message()),
        }
    }

    /// Has all sites let a change of the schema go first, unless they do; whether that was asked for. If it fails, they do as before, or for 10 s at most.
    fn announce(&self, left: Duration) -> bool {
        let Ok(Some(announcement)) = self.front.schema.announcement() else { return false };
        let _ = self.front.certify(announcement.into(), left);
        true
    }

    pub(crate) fn leave(&mut self) {
        (self.state, self.fresh, self.locks) = (State::Idle, false, false);
        self.untold = None;
        self.shared.forget();
        self.settings.take();
    }
}
