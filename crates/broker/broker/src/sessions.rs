//! What was executed before: so that no command is executed twice, nor before the one before it.
//!
//! Sites execute a request once under its name, but a front that dies takes the names along, and who asked repeats his command through another. So the user's row has the number of the
//! latest command in each session. Numbers ascend, so one that is not above it was executed, and its reply is in the log, or is in a gap and never will be. A row has room for a few sessions; the one that was used
//! least recently gets an item of its own, and keeps it: however late a command is repeated, it is known.

use crate::audit::AuditRecord;
use crate::command::UserName;
use crate::execute::{Turn, logged};
use crate::ledger::{BrokerError, Executed, Ledger};
use crate::names::{number_in_session, session_of};
use crate::reply::BrokerReply;
use crate::request::Named;
use crate::rows;

/// So many sessions of a user have room in his row.
pub(crate) const SESSIONS_MAX: usize = 8;
/// So many entries are looked through for the reply to a command that is repeated.
pub(crate) const ENTRIES_SEARCHED_MAX: u64 = 4_096;

impl<L: Ledger> Turn<'_, L> {
    /// The reply, if it is decided already; else the request is to be executed now, and its session is where it says.
    pub(crate) fn reply_before(&mut self) -> Executed<Option<BrokerReply>, L> {
        let (number, after) = (self.request.number, self.request.after);
        if self.request.asked.is_moment() {
            return Ok(None);
        }
        let Some(user) = self.user else {
            let first: Option<AuditRecord> = rows::take(self.ledger, &rows::audit("", number))?;
            return match first {
                Some(first) => Ok(Some(self.reply_of_same(first))),
                None => self.reply_of_name(),
            };
        };
        let latest = self.latest(user, session_of(number))?;
        if number <= latest {
            let named = self.reply_of_name()?;
            return named.map_or_else(|| self.first_reply(user), Ok).map(Some);
        }
        if after != 0 && after != latest {
            let is_early = after > latest;
            return Ok(Some(if is_early { BrokerReply::Early } else { BrokerReply::Overtaken }));
        }
        self.advance(user);
        self.reply_of_name()
    }

    /// The number of the user's latest command in a session; that of the session with 0 behind it if there is none.
    fn latest(&mut self, user: &UserName, session: u64) -> Executed<u64, L> {
        let none = number_in_session(session, 0);
        if let Some(latest) = self.row.latest.iter().find(|latest| session_of(**latest) == session) {
            return Ok(*latest);
        }
        if self.row.latest.len() < SESSIONS_MAX {
            return Ok(none);
        }
        Ok(rows::take(self.ledger, &rows::session(user, session))?.unwrap_or(none))
    }

    /// The session is that which was used last, and this request its latest.
    fn advance(&mut self, user: &UserName) {
        let number = self.request.number;
        self.has_advanced = true;
        self.row.latest.retain(|latest| session_of(*latest) != session_of(number));
        self.row.latest.insert(0, number);
        if self.row.latest.len() > SESSIONS_MAX
            && let Some(pushed_out) = self.row.latest.pop()
        {
            rows::put(self.ledger, &rows::session(user, session_of(pushed_out)), &pushed_out);
        }
    }

    /// The reply to a command that is not above the latest: it lies the less far back the sooner it is repeated. One that is in no entry was overtaken.
    fn first_reply(&mut self, user: &UserName) -> Executed<BrokerReply, L> {
        let end = self.row.place;
        let begin = end.saturating_sub(ENTRIES_SEARCHED_MAX);
        for place in (begin..end).rev() {
            let value = self.ledger.get(&rows::audit(user.as_str(), place)).map_err(BrokerError::Items)?;
            let Some(value) = value else { return Ok(BrokerReply::Repeated) };
            // An entry begins with its number: the others need not be read whole.
            if rows::row::<u64, _>(&value)? == self.request.number {
                let first: AuditRecord = rows::row(&value)?;
                // A repeat that brought a hit has an entry too, without its command.
                if first.command.is_some() || logged(self.request).is_none() {
                    return Ok(self.reply_of_same(first));
                }
            }
        }
        Ok(if begin == 0 { BrokerReply::Overtaken } else { BrokerReply::Repeated })
    }

    /// The reply of the entry of this number, if it is this command's. A session is no secret: a client that continues another's must not take the other's reply for his own.
    /// Of requests about orders an entry keeps none, so they are not compared: no session that was given out has any.
    fn reply_of_same(&self, first: AuditRecord) -> BrokerReply {
        if first.command == logged(self.request) { first.reply } else { BrokerReply::NameTaken }
    }

    /// If a command of this name was executed: its reply, or that the name is taken.
    fn reply_of_name(&mut self) -> Executed<Option<BrokerReply>, L> {
        let Some(name) = &self.request.name else { return Ok(None) };
        let user = self.user.map_or("", UserName::as_str);
        let Some(Named { place, asked }) = rows::take(self.ledger, &rows::named(user, name))? else {
            return Ok(None);
        };
        if asked != self.request.asked {
            return Ok(Some(BrokerReply::NameTaken));
        }
        let first: Option<AuditRecord> = rows::take(self.ledger, &rows::audit(user, place))?;
        Ok(Some(first.map_or(BrokerReply::Repeated, |first| first.reply)))
    }
}
