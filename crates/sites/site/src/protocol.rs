//! Frames between clients and sites, and between sites.
//!
//! In the layouts of [`pares_wice::codec`]: the first byte is the kind. Kinds 1 to 4 were those of clients that said nothing of what they had seen.
//!
//! | from a client | | |
//! |---|---|---|
//! | 5 | execute | id (client `u64`, sequence `u64`), horizon, request |
//! | 6 | read | tag `u64`, horizon, request |
//! | 7 | read the latest | tag `u64`, horizon, request |
//! | 8 | operate | tag `u64`, command (1 lost: set `u64`, 2 admit: `u8`, 3 migrate: `u8`, 4 lost, as granted: declaration, 5 lost, without the witness: set `u64`, 6 renew) |
//! | 9 | report | tag `u64` |
//! | 10 | remove | tag `u64`, site: cluster `u8`, number `u8` |
//! | 11 | copy | tag `u64`, copy `u64` (0: another), next piece `u32`, the key before it, the first piece not wanted yet `u32` |
//! | 12 | versions | tag `u64`, version `u64`: what came after it |
//! | 64 | grant, of a witness | tag `u64`, database `u32`, declaration (takeovers `u32`, by `u8`, lost `u64`) |
//! | 65 | begin, of a witness | tag `u64`, database `u32`, takeovers `u32`, opening `u64` |
//!
//! | to a client | |
//! |---|---|
//! | sequence or tag `u64`, code `u8`, horizon, reply or reason | codes: 1 done, 2 refused by the application, 3 aborted, 4 behind, 5 not possible here, 6 denied, 7 not known yet, 8 busy, 9 not at this site now |
//!
//! A horizon is a database `u32` and a version `u64`. `between` has the frames between sites.

mod between;
mod horizon;

pub use between::Between;
pub use horizon::{Horizon, database_of};
use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Command, Declaration, KEY_BYTES_MAX, Key, SiteId, TransactionId, VALUE_BYTES_MAX, Version};

/// Requests a client may have open at a time: a site remembers the replies to so many, for repeats.
pub const OPEN_MAX: u64 = 64;

/// Longest frame between client and site, bytes.
pub(crate) const FRAME_MAX: usize = 1 << 20;
/// Longest body of a reply, bytes.
pub const REPLY_BYTES_MAX: usize = FRAME_MAX - REPLY_HEAD_BYTES;
/// What stands before the body of a reply, bytes.
const REPLY_HEAD_BYTES: usize = 21;
const _: () = assert!(KEY_BYTES_MAX + VALUE_BYTES_MAX < REPLY_BYTES_MAX, "an item fits into one frame");

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Execute this, once, whatever happens and however often it is asked; on what the client has seen, or later.
    Execute(TransactionId, Horizon, Vec<u8>),
    /// Answer this from the stable version; from what the client has seen, or later.
    Read(u64, Horizon, Vec<u8>),
    /// The same, from a version that has all that was answered to any client before this was asked.
    Latest(u64, Horizon, Vec<u8>),
    /// Carry out a decision.
    Operate(u64, Command),
    /// Say how the site is.
    Report(u64),
    /// Take this site's vote away.
    Remove(u64, SiteId),
    /// Hand out all items, as they are at one version.
    Copy(u64, WantedPieces),
    /// Hand out the versions that the store has behind this one.
    Versions(u64, Version),
    /// Of a witness: grant this declaration, in this database.
    Grant(u64, u32, Declaration),
    /// Of a witness that has lost its register: begin another, in this database, with so many takeovers, if it is still the one that was opened under this number.
    Begin(u64, u32, u32, u64),
}

/// The next pieces of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedPieces {
    /// Which copy, by the giver's number; 0 for another.
    pub copy: u64,
    /// The next piece, from 0.
    pub next: u32,
    /// The last key before it.
    pub after: Key,
    /// The first piece that is not to come yet.
    pub until: u32,
}
pares_wice::fields! { WantedPieces { copy, next, after, until } }

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// Done; of an execution: in the logs of all living clusters.
    Done,
    /// The application says no; nothing has changed.
    Refused,
    /// It lost against others, too often; nothing has changed.
    Aborted,
    /// A cluster is behind or cut off, and too much waits for it; nothing has changed.
    Behind,
    /// Not at this site, or not now; nothing has changed. The text says what to do.
    Impossible,
    /// Who asks may not ask this; nothing has changed.
    Denied,
    /// Not known yet: it may be done already, or be done later. Ask again under the same number, to learn what became of it.
    Unknown,
    /// Too much of this is under way at this site; nothing has changed. Ask again later, or another site.
    Busy,
    /// This site takes no part now, reads its log, or does not have what the client has seen; nothing has changed. Another site may do it, or this one later.
    Elsewhere,
}
pares_wice::kinds! {
    Code, "code" {
        1 => Done,
        2 => Refused,
        3 => Aborted,
        4 => Behind,
        5 => Impossible,
        6 => Denied,
        7 => Unknown,
        8 => Busy,
        9 => Elsewhere,
    }
    Ask, "question" {
        5 => Execute(id, horizon; request),
        6 => Read(tag, horizon; request),
        7 => Latest(tag, horizon; request),
        8 => Operate(tag, command),
        9 => Report(tag),
        10 => Remove(tag, site),
        11 => Copy(tag, wanted),
        12 => Versions(tag, after),
        64 => Grant(tag, database, declared),
        65 => Begin(tag, database, takeovers, opening),
    }
}

/// An answer to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The sequence or tag of what was asked.
    pub to: u64,
    /// What became of it.
    pub code: Code,
    /// How far who reads this has seen. Nothing, where this says nothing of the database.
    pub horizon: Horizon,
    /// The application's reply, or why there is none.
    pub body: Vec<u8>,
}

impl Ask {
    /// The number that the reply answers.
    pub(crate) fn number(&self) -> u64 {
        match *self {
            Self::Execute(id, ..) => id.sequence,
            Self::Read(tag, ..)
            | Self::Latest(tag, ..)
            | Self::Operate(tag, _)
            | Self::Report(tag)
            | Self::Remove(tag, _)
            | Self::Copy(tag, _)
            | Self::Versions(tag, _)
            | Self::Grant(tag, ..)
            | Self::Begin(tag, ..) => tag,
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// From its bytes.
    ///
    /// # Errors
    /// If they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::decode(&mut &*bytes)
    }
}

impl Reply {
    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(REPLY_HEAD_BYTES + self.body.len());
        (self.to, (self.code, self.horizon)).encode(&mut bytes);
        assert_eq!(bytes.len(), REPLY_HEAD_BYTES, "so much stands before the body of a reply");
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// From its bytes.
    ///
    /// # Errors
    /// If they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut from = bytes;
        let (to, (code, horizon)) = Coded::decode(&mut from)?;
        Ok(Self { to, code, horizon, body: from.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use pares_wice::{ClusterId, ClusterSet};

    use super::*;

    const DECLARED: Declaration = Declaration { takeovers: 1, by: ClusterId(1), lost: ClusterSet(1) };
    const ID: TransactionId = TransactionId { client: 1, sequence: 2 };
    const SEEN: Horizon = Horizon { database: 5, version: Version(0x0102) };

    #[test]
    fn a_question_and_its_reply_have_these_bytes() {
        let asked = b"\x06\x07\0\0\0\0\0\0\0\x05\0\0\0\x02\x01\0\0\0\0\0\0get a";
        assert_eq!(Ask::Read(7, SEEN, b"get a".to_vec()).to_bytes(), asked);
        let told = b"\x07\0\0\0\0\0\0\0\x01\x05\0\0\0\x02\x01\0\0\0\0\0\0five";
        let reply = Reply { to: 7, code: Code::Done, horizon: SEEN, body: b"five".to_vec() };
        assert_eq!(reply.to_bytes(), told);
        assert_eq!(Reply { body: vec![], ..reply }.to_bytes().len(), REPLY_HEAD_BYTES);
    }

    #[test]
    fn client_request_without_seen_version_is_invalid() {
        for kind in 0..=4 {
            assert!(Ask::from_bytes(&[&[kind][..], &[0; 40]].concat()).is_err());
        }
    }

    #[test]
    fn questions_are_read_as_they_were_written() {
        let commands = [
            Command::DeclareLost(ClusterSet(3)),
            Command::Admit(ClusterId(1)),
            Command::Migrate(ClusterId(2)),
            Command::Granted(DECLARED),
            Command::Unwitnessed(ClusterSet(3)),
            Command::Renew,
        ];
        let asks = commands.map(|command| Ask::Operate(7, command)).into_iter();
        let wanted = WantedPieces { copy: 7, next: 1, after: Key::from("a"), until: 9 };
        let others = [
            Ask::Execute(ID, SEEN, b"x".to_vec()),
            Ask::Read(3, SEEN, vec![]),
            Ask::Latest(3, SEEN, b"y".to_vec()),
            Ask::Report(4),
            Ask::Remove(5, SiteId::new(1, 2)),
            Ask::Copy(5, wanted),
            Ask::Versions(6, Version(8)),
            Ask::Grant(7, 5, DECLARED),
            Ask::Begin(8, 5, 2, u64::MAX),
        ];
        for ask in asks.chain(others) {
            assert_eq!(Ask::from_bytes(&ask.to_bytes()).as_ref(), Ok(&ask));
        }
        assert!(
            Ask::from_bytes(&[]).is_err()
                && Ask::from_bytes(&[9]).is_err()
                && Ask::from_bytes(&[1, 2]).is_err()
        );
    }

    #[test]
    fn replies_are_read_as_they_were_written() {
        let reply = Reply { to: 9, code: Code::Behind, horizon: SEEN, body: b"later".to_vec() };
        assert_eq!(Reply::from_bytes(&reply.to_bytes()), Ok(reply));
    }
}
