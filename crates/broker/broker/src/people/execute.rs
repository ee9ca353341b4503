//! One request about a person.

use crate::command::UserName;
use crate::ledger::{BrokerError, Executed, Ledger};
use crate::people::asked::PersonAsked;
use crate::people::row::{
    self, OneTimeCode, PERSON_SESSIONS_MAX, PasswordString, Person, PersonRight, SessionDigest, SessionRow,
};
use crate::refusal::Refusal;
use crate::reply::BrokerReply;
use crate::rows::{self, UserRow};

/// Executes it, at `now_ms`.
///
/// # Errors
/// If items cannot be read, or are damaged.
pub(crate) fn execute<L: Ledger>(
    asked: &PersonAsked,
    now_ms: u64,
    ledger: &mut L,
) -> Executed<BrokerReply, L> {
    let mut registry = Registry { ledger, now_ms };
    match asked {
        PersonAsked::SignOut { session } => registry.sign_out(session),
        PersonAsked::Seen { session } => registry.seen(session),
        PersonAsked::Add { name, password, rights, takes_account } => {
            let person = Person::new(password.clone(), in_order(rights), now_ms);
            registry.add(name, &person, *takes_account)
        }
        PersonAsked::SetRightsOf { by, .. } if !is_supervisor(registry.ledger, by)? => {
            Ok(BrokerReply::Refused { refusal: Refusal::NoRight })
        }
        PersonAsked::SetRightsOf { name, .. }
        | PersonAsked::Try { name }
        | PersonAsked::ChangePassword { name, .. }
        | PersonAsked::SignOutAll { name }
        | PersonAsked::SignIn { name, .. }
        | PersonAsked::SetCode { name, .. }
        | PersonAsked::ConfirmCode { name, .. }
        | PersonAsked::DropCode { name, .. }
        | PersonAsked::SetRights { name, .. }
        | PersonAsked::SetPassword { name, .. } => registry.change(name, asked),
    }
}

/// Whether a person is a supervisor, and is one still when this transaction commits.
pub(crate) fn is_supervisor<L: Ledger>(ledger: &mut L, name: &UserName) -> Executed<bool, L> {
    let person = rows::hold::<Person, L>(ledger, &row::person(name))?;
    Ok(person.is_some_and(|person| person.rights.contains(&PersonRight::Supervisor)))
}

fn in_order(rights: &[PersonRight]) -> Vec<PersonRight> {
    PersonRight::ALL.into_iter().filter(|right| rights.contains(right)).collect()
}

struct Registry<'a, L> {
    ledger: &'a mut L,
    now_ms: u64,
}

impl<L: Ledger> Registry<'_, L> {
    fn add(&mut self, name: &UserName, person: &Person, takes_account: bool) -> Executed<BrokerReply, L> {
        let key = row::person(name);
        let is_known = self.ledger.get(&key).map_err(BrokerError::Items)?.is_some();
        if is_known || (!takes_account && self.has_account(name)?) {
            return Ok(BrokerReply::Refused { refusal: Refusal::PersonTaken });
        }
        rows::put(self.ledger, &key, person);
        Ok(BrokerReply::Done)
    }

    /// Whether there is an account; if there is none, none is opened beside this. A row alone is no account: a refused command leaves one.
    fn has_account(&mut self, name: &UserName) -> Executed<bool, L> {
        let row = rows::hold::<UserRow, L>(self.ledger, &rows::account(name))?;
        Ok(row.is_some_and(|row| row.account.is_open))
    }

    fn sign_out(&mut self, session: &SessionDigest) -> Executed<BrokerReply, L> {
        let key = row::session(session);
        let Some(found) = rows::take::<SessionRow, L>(self.ledger, &key)? else {
            return Ok(BrokerReply::Unchanged);
        };
        let of = row::person(&found.name);
        if let Some(mut person) = rows::take::<Person, L>(self.ledger, &of)? {
            person.sessions.retain(|other| other != session);
            rows::put(self.ledger, &of, &person);
        }
        self.ledger.delete(&key);
        Ok(BrokerReply::Done)
    }

    /// Fronts' clocks differ: it is never seen earlier than before.
    fn seen(&mut self, session: &SessionDigest) -> Executed<BrokerReply, L> {
        let key = row::session(session);
        let Some(found) = rows::take::<SessionRow, L>(self.ledger, &key)? else {
            return Ok(BrokerReply::Unchanged);
        };
        if found.expires_ms() <= self.now_ms || found.seen_ms >= self.now_ms {
            return Ok(BrokerReply::Unchanged);
        }
        rows::put(self.ledger, &key, &SessionRow { seen_ms: self.now_ms, ..found });
        Ok(BrokerReply::Done)
    }

    /// Changes a person who is there.
    fn change(&mut self, name: &UserName, asked: &PersonAsked) -> Executed<BrokerReply, L> {
        let key = row::person(name);
        let Some(mut person) = rows::take::<Person, L>(self.ledger, &key)? else {
            return Ok(BrokerReply::Refused { refusal: Refusal::NoPerson });
        };
        match changed(&mut person, asked, self.now_ms) {
            Err(refusal) => return Ok(BrokerReply::Refused { refusal }),
            Ok(ended) => ended.iter().for_each(|session| self.ledger.delete(&row::session(session))),
        }
        if let PersonAsked::SignIn { session, .. } = asked {
            let begun = SessionRow { name: name.clone(), made_ms: self.now_ms, seen_ms: self.now_ms };
            rows::put(self.ledger, &row::session(session), &begun);
        }
        rows::put(self.ledger, &key, &person);
        Ok(match asked {
            PersonAsked::Try { .. } => BrokerReply::Person { person },
            _ => BrokerReply::Done,
        })
    }
}

/// Changes the person, and says which sessions end by it.
fn changed(person: &mut Person, asked: &PersonAsked, now_ms: u64) -> Result<Vec<SessionDigest>, Refusal> {
    match asked {
        PersonAsked::Try { .. } if now_ms < person.wait_until_ms => return Err(Refusal::TooManyTries),
        PersonAsked::Try { .. } => person.try_at(now_ms),
        PersonAsked::SignIn { password, step, session, .. } => {
            has_password(person, password)?;
            use_code(person, *step)?;
            person.forget_tries();
            return Ok(begun(person, *session));
        }
        PersonAsked::SetCode { .. } | PersonAsked::ConfirmCode { .. } | PersonAsked::DropCode { .. } => {
            return code_changed(person, asked);
        }
        PersonAsked::SetRights { rights, .. } | PersonAsked::SetRightsOf { rights, .. } => {
            person.rights = in_order(rights);
        }
        PersonAsked::ChangePassword { before, password, session, .. } => {
            has_password(person, before)?;
            person.password = password.clone();
            person.forget_tries();
            return Ok(all_but(person, session));
        }
        PersonAsked::SetPassword { password, .. } => {
            (person.password, person.code) = (password.clone(), None);
            person.forget_tries();
            return Ok(core::mem::take(&mut person.sessions));
        }
        PersonAsked::SignOutAll { .. } => return Ok(core::mem::take(&mut person.sessions)),
        PersonAsked::Add { .. } | PersonAsked::SignOut { .. } | PersonAsked::Seen { .. } => {}
    }
    Ok(Vec::new())
}

/// Changes the second factor, and says which sessions end by it.
fn code_changed(person: &mut Person, asked: &PersonAsked) -> Result<Vec<SessionDigest>, Refusal> {
    match asked {
        PersonAsked::SetCode { secret, .. } => {
            if confirmed(person).is_some() {
                return Err(Refusal::PersonChanged);
            }
            person.code = Some(OneTimeCode { secret: secret.clone(), is_confirmed: false, last_step: 0 });
            person.forget_tries();
        }
        PersonAsked::ConfirmCode { secret, step, session, .. } => {
            let code = person.code.as_mut().filter(|code| code.secret == *secret && !code.is_confirmed);
            let code = code.ok_or(Refusal::PersonChanged)?;
            (code.is_confirmed, code.last_step) = (true, *step);
            return Ok(all_but(person, session));
        }
        PersonAsked::DropCode { step, .. } => {
            use_code(person, *step)?;
            person.code = None;
            person.forget_tries();
        }
        _ => {}
    }
    Ok(Vec::new())
}

/// The password is still the one that was compared outside.
fn has_password(person: &Person, password: &PasswordString) -> Result<(), Refusal> {
    if person.password == *password { Ok(()) } else { Err(Refusal::PersonChanged) }
}

/// The second factor, once it is asked for.
fn confirmed(person: &mut Person) -> Option<&mut OneTimeCode> {
    person.code.as_mut().filter(|code| code.is_confirmed)
}

/// A code is used up, where one is needed.
fn use_code(person: &mut Person, step: Option<u64>) -> Result<(), Refusal> {
    match (confirmed(person), step) {
        (None, None) => Ok(()),
        (Some(code), Some(step)) if step > code.last_step => {
            code.last_step = step;
            Ok(())
        }
        (Some(_), Some(_)) => Err(Refusal::CodeUsed),
        _ => Err(Refusal::PersonChanged),
    }
}

/// A session begins; those that end for it.
fn begun(person: &mut Person, session: SessionDigest) -> Vec<SessionDigest> {
    person.sessions.insert(0, session);
    person.sessions.split_off(person.sessions.len().min(PERSON_SESSIONS_MAX))
}

/// All other sessions end.
fn all_but(person: &mut Person, session: &SessionDigest) -> Vec<SessionDigest> {
    let (kept, ended) = person.sessions.iter().partition(|other| *other == session);
    person.sessions = kept;
    ended
}
