//! Changes of the schema: tried at the site's server, and ordered among all sites; again, while others write.

use std::io;
use std::time::{Duration, Instant};

use pares_store::postgres::SqlError;
use pares_wice::{AbortReason, Version};

use crate::commit::patience;
use crate::front::Denied;
use crate::link::{Link, Trouble};
use crate::session::Session;
use crate::statement::READ_ONLY;
use crate::transaction::says;
use crate::wire::Message;

/// How often a change of the schema is tried while others write.
const SCHEMA_TRIES: usize = 100;
/// How long others continue between two tries of a change of the schema, if a session was in the way or nothing has come since.
const SCHEMA_PAUSE: Duration = Duration::from_millis(50);
/// After so many tries without success, because a session was in the way or others have written, all others give way.
const PATIENT_TRIES: usize = 10;
/// Or behind this part of the time that the change may take: at a server with many tables one try takes seconds.
const PATIENT_PART: u32 = 4;
/// No client waits for longer, and what is added to a clock does not overflow.
const DAY: Duration = Duration::from_secs(86_400);
const ELSEWHERE: &str = "sites execute a schema change with the store's search_path, but this session's begins with another schema: RESET search_path, and name schemas explicitly";
const NOT_OWNER: &str =
    "only the owner of the store's tables, or a member of that role, can change the schema";

/// Why a change of the schema has not come to its turn.
const OTHERS_WRITE: (&str, &str) = (
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
    /// A session was in the way, or another change came first.
    Blocked,
    /// Others have written since this version, which it was tried at.
    Outrun(Version),
}

/// Why a change of the schema was not tried with success, as its client receives it.
fn refusal(error: SqlError) -> Message {
    match error {
        SqlError::Refused { code, why, detail, hint } => {
            Message::error(&code, &why).with(b'D', &detail).with(b'H', &hint)
        }
        SqlError::Again(why) => Message::error("40001", &why),
        SqlError::Store(error) => Message::error("0A000", &error.to_string()),
    }
}

impl Session {
    /// Has a change of the schema ordered.
    pub(crate) fn change_schema(&mut self, link: &mut Link, statement: &str, tag: &str) -> io::Result<bool> {
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
        let done = self.try_repeatedly(statement, patience, &mut has_announced);
        if has_announced && done.is_err() {
            self.front.withdraw_turn();
        }
        done
    }

    fn try_repeatedly(
        &self,
        statement: &str,
        patience: Duration,
        has_announced: &mut bool,
    ) -> Result<(), Message> {
        let patience = patience.min(DAY);
        let (began, patient) = (Instant::now(), patience / PATIENT_PART);
        let tries = Tries { until: began + patience, began: None, longest: Duration::ZERO };
        let (mut failed_tries, mut last_snapshot, mut why, mut has_failed) = (0, None, OTHERS_WRITE, false);
        for left in tries.take(SCHEMA_TRIES) {
            let has_way = failed_tries >= PATIENT_TRIES;
            // Behind each try: a turn expires, and ends with another change, which had it for both.
            if has_way && std::mem::take(&mut has_failed) && self.announce(left) {
                *has_announced = true;
                continue;
            }
            let tried = self.try_change(statement, has_way, left)?;
            let failed_more = if began.elapsed() < patient { failed_tries + 1 } else { PATIENT_TRIES };
            match tried {
                Tried::Done => return Ok(()),
                Tried::Outrun(snapshot) if last_snapshot.replace(snapshot) != Some(snapshot) => {
                    (failed_tries, why) = (failed_more, OTHERS_WRITE);
                }
                // Nothing has come into the store since the last try, so the next ends the same.
                Tried::Outrun(_) => {
                    why = UNSTABLE;
                    std::thread::sleep(SCHEMA_PAUSE);
                }
                Tried::Blocked => {
                    failed_tries = failed_more;
                    std::thread::sleep(SCHEMA_PAUSE);
                }
            }
            has_failed = true;
        }
        Err(Message::error(why.0, why.1))
    }

    fn try_change(&self, statement: &str, has_way: bool, left: Duration) -> Result<Tried, Message> {
        let change = match self.front.schema.propose(statement, has_way) {
            Ok(change) => change,
            Err(SqlError::Again(_)) => return Ok(Tried::Blocked),
            Err(error) => return Err(refusal(error)),
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
}
