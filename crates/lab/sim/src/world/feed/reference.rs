//! What the feed must be: one publication of each shard, driven by the committed record and by nothing else.

use std::collections::BTreeMap;

use pares_book::Instrument;
use pares_feed::publication::{FeedSink, Publication, Session};
use pares_types::{Position, ShardId};

use super::{AGAIN, COMMITTED, RECORD};
use crate::ledger::Ledger;
use crate::{Broken, Verdict, must};

/// A session as it must be told.
#[derive(Default)]
pub(super) struct Told {
    pub(super) messages: Vec<Vec<u8>>,
    pub(super) is_over: bool,
}

impl Told {
    pub(super) fn next(&self) -> u64 {
        self.messages.len() as u64 + 1
    }
}

/// All sessions of a shard.
#[derive(Default)]
struct Sessions {
    told: BTreeMap<Session, Told>,
    last: Option<Session>,
}

impl FeedSink for Sessions {
    fn begin(&mut self, session: Session) {
        assert!(self.last < Some(session), "sessions follow each other: {:?}, {session}", self.last);
        self.last = Some(session);
        self.told.insert(session, Told::default());
    }

    fn message(&mut self, bytes: &[u8]) {
        let session = self.last.expect("a session has begun");
        self.told.entry(session).or_default().messages.push(bytes.to_vec());
    }

    fn end(&mut self) {
        let session = self.last.expect("a session has begun");
        self.told.entry(session).or_default().is_over = true;
    }
}

struct Shard {
    publication: Publication,
    next: Position,
    sessions: Sessions,
}

/// The feed of all shards, as far as the record is committed.
pub(super) struct Reference(Vec<Shard>);

impl Reference {
    pub(super) fn new(instruments: &[Vec<Instrument>]) -> Self {
        let shard = |(id, instruments): (usize, &Vec<Instrument>)| Shard {
            publication: Publication::new(super::super::shard_id(id), instruments),
            next: Position(0),
            sessions: Sessions::default(),
        };
        Self(instruments.iter().enumerate().map(shard).collect())
    }

    /// Reads on in a shard's record, below `committed`.
    pub(super) fn read(&mut self, ledger: &Ledger, shard: ShardId, committed: Position) {
        let Some(of) = self.0.get_mut(usize::from(shard.0)) else { return };
        while of.next < committed {
            let record = ledger.record(shard, of.next).expect("what is committed was executed");
            let (request, outcome, events) = (&record.request, &record.outcome, &record.events);
            of.publication.on_record(of.next, request, outcome, events, &mut of.sessions);
            of.next = of.next.next();
        }
    }

    /// How far a shard's record was read.
    pub(super) fn next(&self, shard: ShardId) -> Position {
        self.0[usize::from(shard.0)].next
    }

    /// How many sessions there were, of all shards.
    pub(super) fn sessions(&self) -> usize {
        self.0.iter().map(|shard| shard.sessions.told.len()).sum()
    }

    pub(super) fn session(&self, session: Session) -> Option<&Told> {
        let shard = self.0.get(usize::from(session.shard()?.0))?;
        shard.sessions.told.get(&session)
    }

    pub(super) fn last(&self, shard: ShardId) -> Option<(Session, &Told)> {
        let sessions = &self.0[usize::from(shard.0)].sessions;
        let last = sessions.last?;
        Some((last, &sessions.told[&last]))
    }

    /// A message as a publisher tells it.
    pub(super) fn check_told(&self, session: Session, number: u64, bytes: &[u8]) -> Verdict {
        match self.message(session, number) {
            Some(message) if message == bytes => Ok(()),
            Some(message) => {
                let what =
                    format!("{number} of {session} is told as {bytes:02x?}; the record gives {message:02x?}");
                Err(Broken { invariant: RECORD, what })
            }
            None => {
                let what =
                    format!("{number} of {session} is told, {bytes:02x?}; what is committed gives no such");
                Err(Broken { invariant: COMMITTED, what })
            }
        }
    }

    /// A message as it is sent again, or handed out.
    pub(super) fn check_again(&self, session: Session, number: u64, bytes: &[u8]) -> Verdict {
        self.check_told(session, number, bytes)
            .map_err(|Broken { what, .. }| Broken { invariant: AGAIN, what })
    }

    /// How far a packet says that a session is, and whether that is over.
    pub(super) fn check_standing(&self, session: Session, next: u64, is_over: bool) -> Verdict {
        let told = self.session(session).filter(|told| next <= told.next());
        let ends = told.is_some_and(|told| told.is_over && next == told.next());
        must(told.is_some() && (!is_over || ends), COMMITTED, || {
            format!("{session} is told to be at {next}, over: {is_over}; what is committed is not")
        })
    }

    fn message(&self, session: Session, number: u64) -> Option<&[u8]> {
        let at = usize::try_from(number.checked_sub(1)?).ok()?;
        self.session(session)?.messages.get(at).map(Vec::as_slice)
    }
}
