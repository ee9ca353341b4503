//! What can be read about people.

use std::collections::BTreeMap;

use pares_wice::codec::Coded;
use pares_wice::{Key, KeyRange, fields, kinds};

use crate::command::UserName;
use crate::ledger::{BrokerError, Found, Shelf};
use crate::people::row::{self, PERSON, Person, PersonRight, SessionDigest, SessionRow};
use crate::rows::{self, ACCOUNT, UserRow, one};

/// Most users in a page.
pub const USERS_PAGE_MAX: usize = 100;

/// A read about people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersonRead {
    /// Whose a session is: a [`SessionFound`], if it is one that has not ended.
    Session {
        /// Which.
        session: SessionDigest,
        /// When, ms.
        now_ms: u64,
    },
    /// A [`Person`], if there is one.
    Person {
        /// Who.
        name: UserName,
    },
    /// People and accounts, short names first: a [`UsersPage`].
    Users {
        /// Behind this one.
        after: Option<UserName>,
    },
}

/// Whose a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFound {
    /// Who.
    pub name: UserName,
    /// What the person may do now.
    pub rights: Vec<PersonRight>,
    /// When it was used last, give or take a minute, ms.
    pub seen_ms: u64,
    /// When it ends, if it is not used again, ms.
    pub expires_ms: u64,
}

/// A person who can sign in, or has an account, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserListed {
    /// Who.
    pub name: UserName,
    /// What the person may do; none if nobody can sign in by this name.
    pub rights: Option<Vec<PersonRight>>,
    /// Free cash in cents, if there is an account.
    pub cash_cents: Option<u64>,
}

/// A page of users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsersPage {
    /// At most [`USERS_PAGE_MAX`].
    pub users: Vec<UserListed>,
    /// Whether there are more.
    pub has_more: bool,
}

fields! {
    SessionFound { name, rights, seen_ms, expires_ms }
    UserListed { name, rights, cash_cents }
    UsersPage { users, has_more }
}
kinds!(PersonRead, "read about people" {
    1 => Session { session, now_ms },
    2 => Person { name },
    3 => Users { after },
});

/// Answers a read, in bytes.
///
/// # Errors
/// If the items cannot be read, or are damaged.
pub(crate) fn answer<S: Shelf>(read: &PersonRead, shelf: &S) -> Found<Vec<u8>, S> {
    match read {
        PersonRead::Session { session, now_ms } => {
            found(shelf, session, *now_ms).map(|found| found.to_bytes())
        }
        PersonRead::Person { name } => {
            one::<Person, S>(shelf, &row::person(name)).map(|person| person.to_bytes())
        }
        PersonRead::Users { after } => users(shelf, after.as_ref()).map(|page| page.to_bytes()),
    }
}

fn found<S: Shelf>(shelf: &S, session: &SessionDigest, now_ms: u64) -> Found<Option<SessionFound>, S> {
    let Some(of) = one::<SessionRow, S>(shelf, &row::session(session))? else { return Ok(None) };
    let expires_ms = of.expires_ms();
    if now_ms >= expires_ms {
        return Ok(None);
    }
    let person = one::<Person, S>(shelf, &row::person(&of.name))?;
    let person = person.filter(|person| person.sessions.contains(session));
    Ok(person.map(|Person { rights, .. }| SessionFound {
        name: of.name,
        rights,
        seen_ms: of.seen_ms,
        expires_ms,
    }))
}

fn users<S: Shelf>(shelf: &S, after: Option<&UserName>) -> Found<UsersPage, S> {
    let mut listed = BTreeMap::new();
    for (name, person) in named::<Person, S>(shelf, PERSON, after)? {
        list(&mut listed, name).rights = Some(person.rights);
    }
    for (name, UserRow { account, .. }) in named::<UserRow, S>(shelf, ACCOUNT, after)? {
        list(&mut listed, name).cash_cents = account.is_open.then_some(account.cash_cents);
    }
    let has_more = listed.len() > USERS_PAGE_MAX;
    Ok(UsersPage { users: listed.into_values().take(USERS_PAGE_MAX).collect(), has_more })
}

fn list(listed: &mut BTreeMap<(usize, UserName), UserListed>, name: UserName) -> &mut UserListed {
    let place = (name.as_str().len(), name.clone());
    listed.entry(place).or_insert(UserListed { name, rights: None, cash_cents: None })
}

/// One more than a page of the items of a kind whose key is a user's name, behind `after`.
fn named<T: Coded, S: Shelf>(shelf: &S, kind: u8, after: Option<&UserName>) -> Found<Vec<(UserName, T)>, S> {
    let all = KeyRange::prefix(&[b'b', kind]);
    let from = after.map(|name| Key::new(rows::of_user(kind, name.as_str(), &[0])));
    let range = KeyRange { from: from.unwrap_or(all.from), to: all.to };
    let items = shelf.first(&range, USERS_PAGE_MAX + 1).map_err(BrokerError::Items)?;
    let name = |key: &Key| UserName::new(core::str::from_utf8(key.as_bytes().get(3..)?).ok()?);
    let rows = items.iter().filter_map(|(key, value)| Some((name(key)?, value)));
    rows.map(|(name, value)| Ok((name, rows::row(value)?))).collect()
}
