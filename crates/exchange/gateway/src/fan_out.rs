//! A request to all shards (a mass cancel of everything, a block): one part per shard, one answer.
//!
//! Shards are independent orders, so "all my orders" is one request in each, all under the client's one
//! name. The answer goes out when every part is committed; it is the answer of the part that speaks for
//! all (the first shard that refused, else the first with something left to do, else the first that did it, else the first
//! where it was done already) with the orders cancelled in total. That choice does not depend on which shard's stream comes first, so every gateway gives the same answer.
//!
//! Parts are journalled one by one: a crash or a full disk can come between two, and one may be damaged before a venue has read it.
//! A member who repeats the request has the missing parts taken in; should two gateways do so at once, the shard refuses the second.

use pares_types::{Answer, Command, InstrumentId, Reason, RequestId, Status};

use crate::Place;

/// Whether every shard gets a part of the request.
pub(crate) fn is_for_all(instrument: InstrumentId, command: Command) -> bool {
    match command {
        Command::Block { .. }
        | Command::Unblock { .. }
        | Command::BeginDay { .. }
        | Command::EndDay { .. } => true,
        Command::MassCancel { .. } | Command::Time { .. } => instrument == InstrumentId(0),
        _ => false,
    }
}

/// How far one part has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Missing,
    /// Journalled, last under this number.
    Pending(RequestId),
    /// Before all that this gateway has read.
    Before,
    Committed,
}

/// All parts are committed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whole {
    /// The speaker's answer, its place, and the orders cancelled in total.
    Answer(Answer, Place, u64),
    /// Some before all that this gateway has read.
    Elsewhere,
}

/// A request to all shards that is not committed in full.
#[derive(Clone, Debug)]
pub(crate) struct FanOut {
    /// What each part asks.
    pub(crate) command: Command,
    parts: Box<[Part]>,
    cancelled: u64,
    /// The part that speaks for all so far: its shard's place, its own answer, and where that lies.
    speaker: Option<(usize, Answer, Place)>,
}

impl FanOut {
    /// `before`: of each shard whether the part was committed there before all that this gateway has read.
    pub(crate) fn new(before: impl Iterator<Item = bool>, command: Command) -> Self {
        let part = |before| if before { Part::Before } else { Part::Missing };
        Self { command, parts: before.map(part).collect(), cancelled: 0, speaker: None }
    }

    /// Shards for which no gateway has journalled a part, or one that is lost.
    pub(crate) fn missing(&self, lost: impl Fn(usize, RequestId) -> bool) -> impl Iterator<Item = usize> {
        let is_missing = move |shard: usize, part: Part| match part {
            Part::Missing => true,
            Part::Pending(part) => lost(shard, part),
            Part::Before | Part::Committed => false,
        };
        self.parts
            .iter()
            .enumerate()
            .filter(move |&(shard, &part)| is_missing(shard, part))
            .map(|(shard, _)| shard)
    }

    /// A part is journalled.
    pub(crate) fn on_journalled(&mut self, shard: usize, part: RequestId) {
        if !matches!(self.parts[shard], Part::Before | Part::Committed) {
            self.parts[shard] = Part::Pending(part);
        }
    }

    /// A part is committed with that answer. Only a shard's first counts.
    pub(crate) fn on_committed(&mut self, shard: usize, answer: Answer, place: Place) {
        if matches!(self.parts[shard], Part::Before | Part::Committed) {
            return;
        }
        self.parts[shard] = Part::Committed;
        if answer.status == Status::MassCancelled {
            self.cancelled = self.cancelled.saturating_add(answer.executed.0);
        }
        let rank = |shard, answer: &Answer| {
            let class = match (answer.status, answer.reason) {
                (Status::Refused, Reason::NothingChanged) => 3,
                (Status::Refused, _) => 0,
                (_, Reason::Unfinished) => 1,
                _ => 2,
            };
            (class, shard)
        };
        if self.speaker.as_ref().is_none_or(|(best, by, _)| rank(shard, &answer) < rank(*best, by)) {
            self.speaker = Some((shard, answer, place));
        }
    }

    /// What came of it, once every part is committed.
    pub(crate) fn complete(&self) -> Option<Whole> {
        let is_over = |part: &Part| matches!(part, Part::Before | Part::Committed);
        if !self.parts.iter().all(is_over) {
            return None;
        }
        if self.parts.contains(&Part::Before) {
            return Some(Whole::Elsewhere);
        }
        let (_, answer, place) = self.speaker?;
        Some(Whole::Answer(answer, place, self.cancelled))
    }
}
