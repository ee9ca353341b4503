//! What lies in the items of people.
//!
//! ```text
//!   key                value                              one for each
//!   bu user            Person                             person
//!   bw digest          SessionRow                         session
//!
//!   user: length u8, name; digest: 32 bytes
//! ```

use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Key, fields, kinds};

/// Of a session's token.
pub use crate::coded::Digest as SessionDigest;
use crate::coded::{Text, encode_text};
use crate::command::UserName;
use crate::rows::of_user;

/// How long a session lasts, ms.
pub const SESSION_MS: u64 = 12 * 3_600_000;
/// How long it lasts unused, ms.
pub const SESSION_IDLE_MS: u64 = 30 * 60_000;
/// Most sessions of a person at a time; the next one ends the oldest.
pub const PERSON_SESSIONS_MAX: usize = 8;
/// Longest wait after wrong tries, ms: it slows guessing down, and locks nobody out for long.
pub const SIGN_IN_WAIT_MAX_MS: u64 = 60_000;
/// So many tries need no wait.
const FREE_TRIES: u64 = 5;

pub(crate) const PERSON: u8 = b'u';
const SESSION: u8 = b'w';

/// A string of argon2id (PHC form), 256 bytes at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordString(pub String);

impl Coded for PasswordString {
    fn encode(&self, to: &mut Vec<u8>) {
        encode_text(&self.0, to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(Self(Text::decode(from)?.0))
    }
}

/// What a person may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PersonRight {
    /// Trade, on the account of this name.
    Trader = 1,
    /// See the log of all, and say what others may do.
    Supervisor = 2,
}

impl PersonRight {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Trader, Self::Supervisor];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Trader => "trader",
            Self::Supervisor => "supervisor",
        }
    }
}

/// The secret of codes that change each 30 seconds (RFC 6238).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneTimeCode {
    /// 20 bytes.
    pub secret: Vec<u8>,
    /// Whether its owner has shown a code of it: only then is one asked for at sign-in.
    pub is_confirmed: bool,
    /// The 30 seconds of the last code that was used, counted from 1970: none is used twice.
    pub last_step: u64,
}

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The string of argon2id that the password fits.
    pub password: PasswordString,
    /// In order, each once.
    pub rights: Vec<PersonRight>,
    /// The second factor, if there is one.
    pub code: Option<OneTimeCode>,
    /// Tries to sign in since the last one that went well.
    pub tries: u64,
    /// No try before this, ms.
    pub wait_until_ms: u64,
    /// Since when there is this person, ms.
    pub made_ms: u64,
    /// Sessions, the newest first.
    pub sessions: Vec<SessionDigest>,
}

impl Person {
    /// A new person, without a second factor.
    pub(crate) fn new(password: PasswordString, rights: Vec<PersonRight>, made_ms: u64) -> Self {
        let (code, sessions) = (None, Vec::new());
        Self { password, rights, code, tries: 0, wait_until_ms: 0, made_ms, sessions }
    }

    /// All is well: the next try need not wait.
    pub(crate) fn forget_tries(&mut self) {
        (self.tries, self.wait_until_ms) = (0, 0);
    }

    /// One more try, at `now_ms`: after the free ones each waits twice as long as the one before.
    pub(crate) fn try_at(&mut self, now_ms: u64) {
        self.tries = self.tries.saturating_add(1);
        let beyond = self.tries.saturating_sub(FREE_TRIES);
        let wait_ms = match beyond {
            0 => 0,
            beyond => (1_000_u64 << beyond.min(10)).min(SIGN_IN_WAIT_MAX_MS),
        };
        self.wait_until_ms = now_ms.saturating_add(wait_ms);
    }
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionRow {
    pub(crate) name: UserName,
    pub(crate) made_ms: u64,
    /// Used at this time at the latest, give or take a minute.
    pub(crate) seen_ms: u64,
}

impl SessionRow {
    /// When it ends, if it is not used again, ms.
    pub(crate) fn expires_ms(&self) -> u64 {
        let unused = self.seen_ms.saturating_add(SESSION_IDLE_MS);
        unused.min(self.made_ms.saturating_add(SESSION_MS))
    }
}

kinds!(PersonRight, "right" { 1 => Trader, 2 => Supervisor });
fields! {
    Person { password, rights, code, tries, wait_until_ms, made_ms, sessions }
    OneTimeCode { secret, is_confirmed, last_step }
    SessionRow { name, made_ms, seen_ms }
}

pub(crate) fn person(name: &UserName) -> Key {
    Key::new(of_user(PERSON, name.as_str(), &[]))
}

pub(crate) fn session(digest: &SessionDigest) -> Key {
    Key::new([&[b'b', SESSION], &digest.0[..]].concat())
}
