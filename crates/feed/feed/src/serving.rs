//! A replayer's side of one TCP connection: docs/protocols/market-data.md, *Over TCP*.
//!
//! A server that queues for a client what the client does not read has, in time, all memory full of slow clients. Here nothing is queued:
//! the caller says how much room its buffer has, and the connection writes no more than that, out of what is kept anyway. So a client that
//! never reads costs one buffer, for thirty seconds.
//!
//! ```text
//!   login ---> asked ---> replay ----> end of session ---+
//!     |          |                                       +--> told: the client logs out, or ten seconds
//!     |          +------> snapshot ---> end of snapshot -+
//!     |          +------> rejected ---> ended
//!     +- any error, silence: ended
//! ```

use std::sync::Arc;

use pares_types::ShardId;
use zerocopy::IntoBytes;

pub use crate::asked::{LoginAsked, SessionAsked};
use crate::publication::Session;
use crate::publisher::HEARTBEAT_NS;
use crate::snapshot::FeedSnapshot;
use crate::soup::{self, FromClient, HEAD_BYTES, LoginAccepted, Pieces, SoupError};
use crate::store::{SessionStanding, SessionStore, find};

/// A client that has not logged in for so long is sent away, nanoseconds.
const LOGIN_NS: u64 = 10_000_000_000;
/// A client that takes nothing for so long, while something is due, is sent away, nanoseconds.
pub const STALL_NS: u64 = 30_000_000_000;
/// How long a client has to log out once it has everything, nanoseconds.
const GOODBYE_NS: u64 = 10_000_000_000;
/// The most that is written in one turn, whatever room there is: others wait. It is the longest packet, so an empty buffer has to have as much
/// room.
pub const TURN_BYTES_MAX: usize = 2 + u16::MAX as usize;

/// Why a connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServingEnded {
    /// What came is not the protocol.
    #[error("{0}")]
    Malformed(SoupError),
    /// A login, or a message, where none is due.
    #[error("a second login")]
    LoggedInTwice,
    /// No login came.
    #[error("no login for ten seconds")]
    NoLogin,
    /// The client was silent.
    #[error("the client was silent for fifteen seconds")]
    Silent,
    /// The client takes nothing.
    #[error("the client does not read")]
    TakesNothing,
    /// The client logged out.
    #[error("the client logged out")]
    LoggedOut,
    /// The login was rejected.
    #[error("the requested messages do not exist")]
    Rejected,
    /// It has everything.
    #[error("all was sent")]
    Finished,
    /// The session is not kept any more, or cannot be read.
    #[error("the messages are no longer stored")]
    NotThere,
}

/// How far a connection is.
#[derive(Clone, Debug)]
enum Phase {
    Login,
    /// The caller has to answer.
    Asked(LoginAsked),
    /// The login is accepted, which is to be written; then as the other phase.
    Accepted(LoginAccepted, Box<Phase>),
    Rejected,
    Replay {
        session: Session,
        next: u64,
    },
    /// A snapshot, written up to here.
    Snapshot {
        snapshot: Arc<FeedSnapshot>,
        at: usize,
    },
    /// All was written at that time.
    Told {
        at_ns: u64,
    },
    /// It ends once what was written is gone.
    Leaving(ServingEnded),
}

/// One connection.
#[derive(Debug)]
pub struct Serving {
    pieces: Pieces,
    phase: Phase,
    opened_ns: u64,
    /// When the client sent something last.
    heard_ns: u64,
    /// When something was written last.
    sent_ns: u64,
    /// Whether nobody knows if there is more than what is kept: then silence says so.
    is_mute: bool,
    /// Since when the client has taken nothing of what was written.
    stalled_ns: Option<u64>,
    ended: Option<ServingEnded>,
}

impl Serving {
    /// A connection that was accepted now.
    #[must_use]
    pub fn new(now_ns: u64) -> Self {
        Self {
            pieces: Pieces::new(soup::CLIENT_BYTES_MAX),
            phase: Phase::Login,
            opened_ns: now_ns,
            heard_ns: now_ns,
            sent_ns: now_ns,
            is_mute: false,
            stalled_ns: None,
            ended: None,
        }
    }

    /// Whether heartbeats stop, since the publisher, which may have more, is silent. A client that hears nothing does not call what it has current.
    pub fn mute(&mut self, is_mute: bool) {
        self.is_mute = is_mute;
    }

    /// Bytes that came from the client: at most some thousands at once, since they are copied.
    pub fn on_bytes(&mut self, bytes: &[u8], now_ns: u64) {
        if self.ended.is_some() {
            return;
        }
        self.heard_ns = now_ns;
        self.pieces.push(bytes);
        if let Err(ended) = self.read_packets() {
            self.ended = Some(ended);
        }
    }

    fn read_packets(&mut self) -> Result<(), ServingEnded> {
        while let Some(packet) = self.pieces.take().map_err(ServingEnded::Malformed)? {
            match FromClient::read(packet).map_err(ServingEnded::Malformed)? {
                FromClient::Login(login) if matches!(self.phase, Phase::Login) => {
                    let asked = LoginAsked::read(login).map_err(ServingEnded::Malformed)?;
                    self.phase = asked.map_or(Phase::Rejected, Phase::Asked);
                }
                FromClient::Login(_) => return Err(ServingEnded::LoggedInTwice),
                FromClient::Logout => {
                    let has_all = matches!(self.phase, Phase::Told { .. });
                    return Err(if has_all { ServingEnded::Finished } else { ServingEnded::LoggedOut });
                }
                FromClient::Heartbeat | FromClient::Debug(_) | FromClient::Unsequenced(_) => {}
            }
        }
        Ok(())
    }

    /// What the client asks for, while it is not answered. Look up the shard's store, and answer by one of the three below.
    #[must_use]
    pub fn asked(&self) -> Option<LoginAsked> {
        match self.phase {
            Phase::Asked(asked) => Some(asked),
            _ => None,
        }
    }

    /// Answers one who asks for messages: how far the sessions of the shard have come.
    pub fn answer(&mut self, standing: &[SessionStanding]) {
        let Phase::Asked(asked) = self.phase else { return };
        let found = asked.session_of(standing);
        let next = |one: SessionStanding| if asked.from == 0 { one.next } else { asked.from };
        self.phase = match found.filter(|one| next(*one) <= one.next) {
            Some(one) => {
                accepted(one.session, next(one), Phase::Replay { session: one.session, next: next(one) })
            }
            None => Phase::Rejected,
        };
    }

    /// Answers one who asks for a snapshot.
    pub fn answer_snapshot(&mut self, snapshot: Arc<FeedSnapshot>) {
        let Phase::Asked(asked) = self.phase else { return };
        let session = snapshot.session;
        let is_asked = match asked.session {
            SessionAsked::One(one) => one == session,
            SessionAsked::Lowest | SessionAsked::Current(_) => true,
        };
        let snapshot = Phase::Snapshot { snapshot, at: 0 };
        self.phase = if is_asked { accepted(session, 1, snapshot) } else { Phase::Rejected };
    }

    /// There is no such shard, or nothing of it.
    pub fn reject(&mut self) {
        if matches!(self.phase, Phase::Asked(_)) {
            self.phase = Phase::Rejected;
        }
    }

    /// The shard whose store [`Serving::fill`] needs, if it needs one.
    #[must_use]
    pub fn reads(&self) -> Option<ShardId> {
        match &self.phase {
            Phase::Replay { session, .. } => session.shard(),
            Phase::Accepted(_, then) => match **then {
                Phase::Replay { session, .. } => session.shard(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Writes what is due to the end of `out`, at most `room` bytes and [`TURN_BYTES_MAX`]. `store` is that of the shard that it reads.
    pub fn fill(
        &mut self,
        out: &mut Vec<u8>,
        room: usize,
        now_ns: u64,
        store: Option<&mut dyn SessionStore>,
    ) {
        let before = out.len();
        if self.ended.is_none() {
            let end = before + room.min(TURN_BYTES_MAX);
            self.fill_to(out, end, now_ns, store);
            let is_quiet = now_ns >= self.beat_ns().unwrap_or(u64::MAX);
            if out.len() == before && is_quiet && room >= HEAD_BYTES {
                soup::write(out, b'H', b"");
            }
        }
        if out.len() > before {
            self.sent_ns = now_ns;
        }
    }

    fn fill_to(&mut self, out: &mut Vec<u8>, end: usize, now_ns: u64, store: Option<&mut dyn SessionStore>) {
        if let Phase::Accepted(login, then) = &mut self.phase {
            if out.len() + HEAD_BYTES + size_of::<LoginAccepted>() > end {
                return;
            }
            soup::write(out, b'A', login.as_bytes());
            self.phase = std::mem::replace(then, Phase::Login);
        }
        match &mut self.phase {
            Phase::Replay { session, next } => {
                let done = replay(out, end, store, *session, next);
                match done {
                    Ok(false) => {}
                    Ok(true) => self.phase = Phase::Told { at_ns: now_ns },
                    Err(ended) => self.ended = Some(ended),
                }
            }
            Phase::Snapshot { snapshot, at } => {
                copy_packets(out, end, &snapshot.packets, at);
                if *at >= snapshot.packets.len() {
                    self.phase = Phase::Told { at_ns: now_ns };
                }
            }
            Phase::Rejected if out.len() + HEAD_BYTES < end => {
                soup::write(out, b'J', &[soup::NOT_THERE]);
                self.phase = Phase::Leaving(ServingEnded::Rejected);
            }
            _ => {}
        }
    }

    /// Of what was written, so many bytes went to the network now, and so many are left in the buffer.
    pub fn on_written(&mut self, gone: usize, left: usize, now_ns: u64) {
        self.stalled_ns = match self.stalled_ns {
            _ if left == 0 => None,
            Some(since) if gone == 0 => Some(since),
            _ => Some(now_ns),
        };
        if let (Phase::Leaving(ended), 0) = (&self.phase, left) {
            self.ended = Some(*ended);
        }
    }

    /// Time has passed. Call it when [`Serving::deadline_ns`] has come, and then `fill`.
    pub fn on_time(&mut self, now_ns: u64) {
        if self.ended.is_none() {
            self.ended = self.limits().find(|&(at_ns, _)| now_ns >= at_ns).map(|(_, ended)| ended);
        }
    }

    /// When it ends for what reason, if nothing happens before.
    fn limits(&self) -> impl Iterator<Item = (u64, ServingEnded)> + use<> {
        let login =
            matches!(self.phase, Phase::Login).then_some((self.opened_ns, LOGIN_NS, ServingEnded::NoLogin));
        let told = match self.phase {
            Phase::Told { at_ns } => Some((at_ns, GOODBYE_NS, ServingEnded::Finished)),
            _ => None,
        };
        let stalled = self.stalled_ns.map(|since| (since, STALL_NS, ServingEnded::TakesNothing));
        let told = told.filter(|_| stalled.is_none());
        let silent = Some((self.heard_ns, soup::SILENCE_NS, ServingEnded::Silent));
        let all = [login, told, stalled, silent].into_iter().flatten();
        all.map(|(since, after, ended)| (u64::saturating_add(since, after), ended))
    }

    /// When a heartbeat is due, if nothing is written before.
    fn beat_ns(&self) -> Option<u64> {
        let beats = matches!(self.phase, Phase::Replay { .. } | Phase::Snapshot { .. } | Phase::Told { .. });
        (beats && !self.is_mute && self.stalled_ns.is_none())
            .then_some(self.sent_ns.saturating_add(HEARTBEAT_NS))
    }

    /// Since when nothing comes of the connection: the client has not logged in, takes nothing, or has everything. Such a one makes room for
    /// others first.
    #[must_use]
    pub fn idle_since_ns(&self) -> Option<u64> {
        match self.phase {
            Phase::Login => Some(self.opened_ns),
            Phase::Told { at_ns } => Some(at_ns),
            _ => self.stalled_ns,
        }
    }

    /// When something is to be done, if nothing happens before: [`Serving::on_time`], then [`Serving::fill`].
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        let limits = self.limits().map(|(at_ns, _)| at_ns);
        limits.chain(self.beat_ns()).min().unwrap_or(u64::MAX)
    }

    /// Why the connection is to be closed, if it is.
    #[must_use]
    pub fn ended(&self) -> Option<ServingEnded> {
        self.ended
    }
}

fn accepted(session: Session, sequence: u64, then: Phase) -> Phase {
    let login = LoginAccepted { session: session.0, sequence: soup::digits(sequence) };
    Phase::Accepted(login, Box::new(then))
}

/// Writes messages from `next` on. Says whether all of the session was written, its end too.
fn replay(
    out: &mut Vec<u8>,
    end: usize,
    store: Option<&mut dyn SessionStore>,
    session: Session,
    next: &mut u64,
) -> Result<bool, ServingEnded> {
    let Some(store) = store else { return Ok(false) };
    let standing = find(store.standing(), session).ok_or(ServingEnded::NotThere)?;
    let mut number = *next;
    let read = store.read(session, number, &mut |message| {
        let has_room = out.len() + HEAD_BYTES + message.len() <= end && number < standing.next;
        if has_room {
            soup::write(out, b'S', message);
            number += 1;
        }
        has_room
    });
    *next = number;
    read.map_err(|_| ServingEnded::NotThere)?;
    let is_over = standing.over && number >= standing.next && out.len() + HEAD_BYTES <= end;
    if is_over {
        soup::write(out, b'Z', b"");
    }
    Ok(is_over)
}

/// Copies whole packets from `at` on, as many as have room.
fn copy_packets(out: &mut Vec<u8>, end: usize, packets: &[u8], at: &mut usize) {
    let from = *at;
    let room = end.saturating_sub(out.len());
    while let Some(&[high, low]) = packets.get(*at..).and_then(<[u8]>::first_chunk) {
        let after = *at + 2 + usize::from(u16::from_be_bytes([high, low]));
        if after - from > room {
            break;
        }
        *at = after;
    }
    out.extend_from_slice(&packets[from..*at]);
}
