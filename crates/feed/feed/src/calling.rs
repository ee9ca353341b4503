//! A receiver's side of one TCP connection to a replayer: whom it calls, what both say, and when it has been quiet for too long.

use pares_types::ShardId;

use crate::publication::Session;
use crate::publisher::HEARTBEAT_NS;
use crate::soup::{self, FromServer, HEAD_BYTES, LOGIN_BYTES, Pieces, SoupError};

/// What is asked of a replayer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Which session is on, and which message is its next.
    Head(ShardId),
    /// The books of a session.
    Snapshot(Session),
    /// The messages of a session from this number on.
    Replay(Session, u64),
}

/// What a replayer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said<'a> {
    /// The login is good: session, next number.
    Accepted(Session, u64),
    /// The login is not good: why, as SoupBinTCP has it.
    Rejected(u8),
    /// A message, and its number.
    Message(u64, &'a [u8]),
    Heartbeat,
    EndOfSession,
}

/// A connection to a replayer.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) purpose: Purpose,
    pieces: Pieces,
    /// The number of the next message; `None` before the login is accepted.
    next: Option<u64>,
    /// When something came last, or the connection was asked for.
    heard_ns: u64,
    /// When something was sent last.
    sent_ns: u64,
}

impl Call {
    pub(crate) fn new(purpose: Purpose, now_ns: u64) -> Self {
        let pieces = Pieces::new(soup::SERVER_BYTES_MAX);
        Self { purpose, pieces, next: None, heard_ns: now_ns, sent_ns: now_ns }
    }

    /// What is sent first.
    pub(crate) fn login(&self) -> [u8; LOGIN_BYTES] {
        let (username, session, sequence) = match self.purpose {
            Purpose::Head(shard) => (*b"REPLAY", soup::current_session(shard), 0),
            Purpose::Snapshot(session) => (*b"SNAP  ", session.0, 1),
            Purpose::Replay(session, next) => (*b"REPLAY", session.0, next),
        };
        soup::login(username, session, sequence)
    }

    /// The connection continues with these bytes: all that the replayer said in them, until `each` says that it has heard enough.
    ///
    /// # Errors
    /// If it is no replayer that speaks there.
    pub(crate) fn on_bytes(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        mut each: impl FnMut(Said<'_>) -> bool,
    ) -> Result<(), SoupError> {
        self.heard_ns = now_ns;
        self.pieces.push(bytes);
        while let Some(packet) = self.pieces.take()? {
            let said = match FromServer::read(packet)? {
                FromServer::Accepted(session, next) if self.next.replace(next).is_none() => {
                    Said::Accepted(session, next)
                }
                FromServer::Sequenced(message) => {
                    let number = self.next.ok_or(SoupError::Malformed)?;
                    self.next = Some(number.checked_add(1).ok_or(SoupError::Malformed)?);
                    Said::Message(number, message)
                }
                FromServer::Accepted(..) => return Err(SoupError::Malformed),
                FromServer::Rejected(reason) => Said::Rejected(reason),
                FromServer::Heartbeat => Said::Heartbeat,
                FromServer::EndOfSession => Said::EndOfSession,
                FromServer::Debug(_) => continue,
            };
            if !each(said) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// When it has been quiet for too long: a replayer beats each second, but for the time in which it makes a snapshot.
    pub(crate) fn patience_ns(&self) -> u64 {
        let patience = match self.purpose {
            Purpose::Snapshot(_) => soup::SILENCE_NS,
            Purpose::Head(_) | Purpose::Replay(..) => 3 * HEARTBEAT_NS,
        };
        self.heard_ns.saturating_add(patience)
    }

    /// When it has to send a heartbeat.
    pub(crate) fn beat_ns(&self) -> u64 {
        self.sent_ns.saturating_add(HEARTBEAT_NS)
    }

    /// It sends one now.
    pub(crate) fn beat(&mut self, now_ns: u64) -> [u8; HEAD_BYTES] {
        self.sent_ns = now_ns;
        packet(b'R')
    }
}

/// A packet of a kind that has no payload.
pub(crate) fn packet(kind: u8) -> [u8; HEAD_BYTES] {
    [0, 1, kind]
}
