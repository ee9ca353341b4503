//! Where transactions begin and end, and what is not passed on to the server.

use std::io;

use crate::commit::{self, Ended};
use crate::front::LOST;
use crate::link::{Link, Rows, Trouble};
use crate::session::{Place, Session, State};
use crate::statement::{EXECUTED, Kind, Mode, SCHEMA_ALONE, UNREAD, about, isolation_named};
use crate::wire::Message;

const CHAIN_ALONE: &str = "AND CHAIN can only be used in transaction blocks";
const MODE_ALONE: &str = "SET TRANSACTION can only be used in transaction blocks";
const SAVEPOINT_ALONE: &str = "savepoints can only be used in transaction blocks";
const ABORTED: &str = "current transaction is aborted, commands ignored until end of transaction block";
const SETTINGS_LARGE: &str = "the settings of the transaction are too large: set them outside of it";

/// Whether the first row begins with that word.
pub(crate) fn says(rows: &Rows, word: &str) -> bool {
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
        if let State::Over { .. } = self.state
            && !kind.ends()
        {
            return self.refuse(link, "25P02", ABORTED).map(Some);
        }
        let done = match kind {
            Kind::Begin { mode, tag } => self.begin(link, *mode, tag)?,
            // Alone the server warns that it has no effect.
            Kind::Mode(_) if self.state == State::Idle && self.place == Place::Alone => return Ok(None),
            Kind::Mode(mode) => return self.change_mode(link, *mode),
            Kind::Commit { chain } => self.end(link, *chain)?,
            Kind::Rollback { chain } => self.back(link, *chain)?,
            Kind::Refused(why) => self.refuse(link, "0A000", &about(text, why))?,
            Kind::Unread => self.unread(link, text)?,
            Kind::Execute(name) if self.is_hidden(link, name)? => {
                self.refuse(link, "0A000", &about(text, EXECUTED))?
            }
            Kind::Savepoint | Kind::BackTo if self.state == State::Implicit => {
                self.refuse(link, "25P01", &about(text, SAVEPOINT_ALONE))?
            }
            Kind::Schema { .. } if self.state != State::Idle || self.place == Place::Text => {
                self.refuse(link, "0A000", &about(text, SCHEMA_ALONE))?
            }
            Kind::Schema { tag } => self.change_schema(link, text, tag)?,
            _ => return Ok(None),
        };
        Ok(Some(done))
    }

    /// The server says what is wrong with a statement, and does nothing.
    fn unread(&mut self, link: &mut Link, text: &str) -> io::Result<bool> {
        match link.must_be_read(text) {
            Ok(()) => self.refuse(link, "0A000", &about(text, UNREAD)),
            Err(why) => self.refused(link, why),
        }
    }

    /// The server has refused what the session has asked for its client.
    pub(crate) fn refused(&mut self, link: &mut Link, why: Trouble) -> io::Result<bool> {
        match why {
            Trouble::Refused(why) => {
                let why = self.meant(why);
                self.write(&why)?;
                self.after(link, &Kind::Session, "", false)
            }
            Trouble::Gone(error) => Err(error),
        }
    }

    /// Whether EXECUTE would do by that name what must be seen.
    fn is_hidden(&mut self, link: &mut Link, name: &str) -> io::Result<bool> {
        match self.prepared.statements.get(name).filter(|known| !name.is_empty() && known.kind.is_seen()) {
            Some(known) => link.has_prepared(name, &known.text),
            None => Ok(false),
        }
    }

    fn begin(&mut self, link: &mut Link, mode: Mode, tag: &str) -> io::Result<bool> {
        match self.state {
            State::Idle => {
                if !self.begin_as(link, mode, State::Explicit)? {
                    return Ok(false);
                }
            }
            State::Failed => return self.refuse(link, "25P02", ABORTED),
            state => {
                if state == State::Explicit {
                    self.write(&Message::warning("25001", "there is already a transaction in progress"))?;
                }
                if mode != Mode::default() && !self.change_open(link, mode)? {
                    return Ok(false);
                }
            }
        }
        self.state = State::Explicit;
        self.write(&Message::complete(tag))?;
        Ok(true)
    }

    /// A second BEGIN says how the transaction is to be.
    fn change_open(&mut self, link: &mut Link, mode: Mode) -> io::Result<bool> {
        if self.fresh {
            return self.begin_anew(link, mode);
        }
        match link.ask(&format!("SET TRANSACTION {}", mode.words()), &[]) {
            Ok(_) => Ok(true),
            Err(why) => self.refused(link, why),
        }
    }

    /// None if the server is to do it.
    fn change_mode(&mut self, link: &mut Link, mode: Mode) -> io::Result<Option<bool>> {
        if matches!(self.state, State::Idle | State::Implicit) && self.place != Place::Text {
            self.write(&Message::warning("25P01", MODE_ALONE))?;
        }
        if self.state != State::Idle && !self.fresh {
            return Ok(None);
        }
        let done = self.begin_anew(link, mode)?;
        if done {
            self.write(&Message::complete("SET"))?;
        }
        Ok(Some(done))
    }

    /// Nothing but settings has been done yet: what is open is begun again, in another way, and they are made again. (The server would refuse that behind the
    /// savepoint.)
    fn begin_anew(&mut self, link: &mut Link, mode: Mode) -> io::Result<bool> {
        let state = if self.state == State::Idle { State::Implicit } else { self.state };
        let mode = if self.state == State::Idle { mode } else { mode.or(self.mode) };
        let Some(settings) = self.settings.take() else {
            return self.refuse(link, "54000", SETTINGS_LARGE);
        };
        if link.open {
            link.roll_back()?;
        }
        self.state = State::Idle;
        let done = self.begin_as(link, mode, state)?;
        if !done && state == State::Explicit {
            self.state = State::Over { told: true };
        }
        if done { self.set_again(link, &settings) } else { Ok(false) }
    }

    fn set_again(&mut self, link: &mut Link, settings: &[String]) -> io::Result<bool> {
        for setting in settings {
            if let Err(why) = link.ask(setting, &[]) {
                return self.refused(link, why);
            }
            self.settings.note(&Kind::Setting, setting);
        }
        Ok(true)
    }

    fn end(&mut self, link: &mut Link, chain: bool) -> io::Result<bool> {
        self.note_mode(link, chain)?;
        match self.state {
            State::Idle | State::Implicit if chain => {
                return self.refuse(link, "25P01", &format!("COMMIT {CHAIN_ALONE}"));
            }
            State::Over { told: false } => {
                let why = self.why_over();
                self.leave();
                self.write(&why)?;
                return Ok(false);
            }
            State::Failed | State::Over { .. } => return self.back(link, chain),
            State::Idle => self.warn_of_none()?,
            State::Implicit | State::Explicit => {
                self.warn_of_none()?;
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
        if chain && matches!(self.state, State::Idle | State::Implicit) {
            return self.refuse(link, "25P01", &format!("ROLLBACK {CHAIN_ALONE}"));
        }
        self.note_mode(link, chain)?;
        self.warn_of_none()?;
        if link.open {
            link.roll_back()?;
        }
        self.leave();
        self.chained(link, chain, "ROLLBACK")
    }

    /// The client ends a transaction that it has not begun.
    fn warn_of_none(&mut self) -> io::Result<()> {
        match self.state {
            State::Idle | State::Implicit => {
                self.write(&Message::warning("25P01", "there is no transaction in progress"))
            }
            _ => Ok(()),
        }
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
                self.mode = Mode { read_only: Some(says(&rows, "on")), level };
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

    /// Says no, or that the transaction has failed before. What is open fails.
    pub(crate) fn refuse(&mut self, link: &mut Link, code: &str, why: &str) -> io::Result<bool> {
        let why = self.ended_before().unwrap_or_else(|| Message::error(code, why));
        self.fail(link, &why)?;
        Ok(false)
    }

    /// Sends an error that the server knows nothing of. What is open fails as with one of the server's own: a savepoint leads back.
    pub(crate) fn fail(&mut self, link: &mut Link, why: &Message) -> io::Result<()> {
        self.write(why)?;
        self.fresh = false;
        match self.state {
            State::Explicit => {
                link.fail()?;
                self.state = State::Failed;
            }
            State::Implicit => {
                link.roll_back()?;
                self.leave();
            }
            State::Idle | State::Failed | State::Over { .. } => {}
        }
        Ok(())
    }

    /// Why nothing more is done in the transaction, if it has failed or was taken back.
    fn ended_before(&mut self) -> Option<Message> {
        match self.state {
            State::Over { told: false } => {
                self.state = State::Over { told: true };
                Some(self.why_over())
            }
            State::Failed | State::Over { .. } => Some(Message::error("25P02", ABORTED)),
            State::Idle | State::Implicit | State::Explicit => None,
        }
    }

    pub(crate) fn leave(&mut self) {
        (self.state, self.fresh, self.locks) = (State::Idle, false, false);
        self.untold = None;
        self.shared.forget();
        self.settings.take();
    }
}
