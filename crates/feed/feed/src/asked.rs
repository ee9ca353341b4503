//! What a client asks for by its login: docs/protocols/market-data.md, *Over TCP*.

use pares_types::ShardId;

use crate::publication::Session;
use crate::soup::{self, LoginRequest, SoupError};
use crate::store::{SessionStanding, find, shard_of};

/// The name under which a snapshot is asked for.
pub(crate) const SNAPSHOT_USERNAME: &[u8] = b"SNAP";

/// Which session is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionAsked {
    /// The current one of the lowest shard.
    Lowest,
    /// The current one of a shard.
    Current(ShardId),
    /// This one.
    One(Session),
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginAsked {
    /// Of which session.
    pub session: SessionAsked,
    /// Whether a snapshot; otherwise messages.
    pub snapshot: bool,
    /// The number of the first message; 0: the next one that comes.
    pub from: u64,
}

impl LoginAsked {
    /// What a login asks for; `None` if there never is such a session.
    ///
    /// # Errors
    /// If its number is none.
    pub(crate) fn read(login: &LoginRequest) -> Result<Option<Self>, SoupError> {
        let from = soup::number(&login.sequence).ok_or(SoupError::Malformed)?;
        let name = login.username.trim_ascii();
        let snapshot = name.eq_ignore_ascii_case(SNAPSHOT_USERNAME);
        let session = match login.session.trim_ascii() {
            [] => Some(SessionAsked::Lowest),
            digits @ [_, _, _, _] => shard_of(digits).map(SessionAsked::Current),
            _ => Some(Session(login.session))
                .filter(|session| session.shard().is_some())
                .map(SessionAsked::One),
        };
        Ok(session.map(|session| Self { session, snapshot, from }))
    }

    /// The shard; `None`: the lowest there is.
    #[must_use]
    pub fn shard(&self) -> Option<ShardId> {
        match self.session {
            SessionAsked::Lowest => None,
            SessionAsked::Current(shard) => Some(shard),
            SessionAsked::One(session) => session.shard(),
        }
    }

    /// How far the session asked for has come, if it is kept.
    pub(crate) fn session_of(&self, standing: &[SessionStanding]) -> Option<SessionStanding> {
        match self.session {
            SessionAsked::One(session) => find(standing, session),
            SessionAsked::Lowest | SessionAsked::Current(_) => standing.last().copied(),
        }
    }
}
