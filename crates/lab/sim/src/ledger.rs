//! What was executed where: the checkers of agreement, exactly once and conservation.
//!
//! Every result a venue hands out and every record a recorder takes is compared with the first one seen at its
//! position. A new epoch voids what no recorder had; the ledger forgets it too.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use pares_book::Instrument;
use pares_exercise::accounts::ShareAccounts;
use pares_gateway::{Answer, Trade};
use pares_register::Register;
use pares_types::{
    CancelCause, ClientOrderId, Command, Event, IncomingCause, MemberId, Outcome, Phase, Position, Reason,
    RequestId, RestCause, ShardId, Status, Timestamp,
};

use crate::engine::Poison;
use crate::oracle::{Replay, Witness};
use crate::record::Record;
use crate::{Broken, Summary, Verdict, broken, must};

#[derive(Default)]
struct Shard {
    records: Vec<Option<Rc<Record>>>,
    /// State hashes by next position.
    hashes: BTreeMap<u64, u64>,
    /// State hashes as venues hand them out, by position.
    handed_out: BTreeMap<u64, u64>,
}

/// The first account of everything.
pub(crate) struct Ledger {
    shards: Vec<Shard>,
    requests: BTreeMap<RequestId, (ShardId, Position)>,
    names: BTreeMap<(ShardId, MemberId, ClientOrderId), Position>,
    pub(crate) witness: Witness,
    pub(crate) duplicates_refused: u64,
    /// Refused because their names were forgotten.
    pub(crate) too_old: u64,
    /// Venues are not compared: whether others would notice a difference is what is to be seen.
    pub(crate) looks_away: bool,
    /// By shard: positions for which venues handed out different results or state hashes, if the ledger looks away.
    pub(crate) contradicted: Vec<BTreeSet<Position>>,
}

impl Ledger {
    pub(crate) fn new(shards: usize, looks_away: bool) -> Self {
        Self {
            shards: (0..shards).map(|_| Shard::default()).collect(),
            requests: BTreeMap::new(),
            names: BTreeMap::new(),
            witness: Witness::new(shards),
            duplicates_refused: 0,
            too_old: 0,
            looks_away,
            contradicted: vec![BTreeSet::new(); shards],
        }
    }

    /// A result was handed out or recorded.
    pub(crate) fn on_record(&mut self, record: &Rc<Record>) -> Verdict {
        self.note_hash(record);
        let records = &mut self.shards[usize::from(record.shard().0)].records;
        let at = record.position.0 as usize;
        if records.len() <= at {
            records.resize(at + 1, None);
        }
        match &records[at] {
            Some(first) => {
                let same = first.request == record.request
                    && first.outcome == record.outcome
                    && first.events == record.events;
                let (shard, position) = (record.shard(), record.position);
                if !same && self.looks_away {
                    self.contradicted[usize::from(shard.0)].insert(position);
                    return Ok(());
                }
                must(same, "I1 agreement", || {
                    format!("shard {shard} position {position}: {first:?} and {record:?}")
                })
            }
            None => {
                records[at] = Some(Rc::clone(record));
                self.check_once(record)
            }
        }
    }

    fn check_once(&mut self, record: &Record) -> Verdict {
        let place = (record.shard(), record.position);
        if let Some(other) = self.requests.insert(record.request.id, place) {
            return broken("I3 exactly once", format!("{} is at {other:?} and {place:?}", record.request.id));
        }
        let count = record.events.len();
        must(count <= Instrument::EVENTS_MAX, "I6 bounded", || format!("{count} events at {place:?}"))?;
        if let Err(answered) = self.witness.check(record) {
            let what = format!("position {answered} was answered before {record:?} was sent");
            return broken("real-time order", what);
        }
        match record.outcome.reason {
            Reason::DuplicateRequest => self.duplicates_refused += 1,
            Reason::TooOld => self.too_old += 1,
            _ => return self.check_executed_once(record, place),
        }
        Ok(())
    }

    fn check_executed_once(&mut self, record: &Record, place: (ShardId, Position)) -> Verdict {
        if record.request.command.is_repeatable() {
            return Ok(());
        }
        let name = (record.shard(), record.request.member, record.request.client_order_id);
        match self.names.insert(name, record.position) {
            Some(other) => broken("I3 exactly once", format!("{name:?} executed at {other} and {place:?}")),
            None => Ok(()),
        }
    }

    /// Compares the hash of a result, if it has one, with the first that was handed out for its position.
    fn note_hash(&mut self, record: &Record) {
        let (shard, position) = (usize::from(record.shard().0), record.position);
        let Some(hash) = record.state_hash else { return };
        let first = *self.shards[shard].handed_out.entry(position.0).or_insert(hash);
        if first != hash {
            self.contradicted[shard].insert(position);
        }
    }

    /// A venue's state after `next` positions.
    pub(crate) fn on_state(&mut self, shard: usize, next: Position, hash: u64) -> Verdict {
        let first = *self.shards[shard].hashes.entry(next.0).or_insert(hash);
        must(first == hash || self.looks_away, "I1 agreement", || {
            format!("shard {shard} next {next}: state {first:016x} and {hash:016x}")
        })
    }

    /// A new epoch starts at `first`: nothing from there on ever happened.
    pub(crate) fn void_from(&mut self, shard: usize, first: Position) {
        let history = &mut self.shards[shard];
        history.records.truncate(first.0 as usize);
        history.hashes.retain(|&next, _| next <= first.0);
        history.handed_out.retain(|&position, _| position < first.0);
        let is_void = |place: &(ShardId, Position)| usize::from(place.0.0) == shard && place.1 >= first;
        self.requests.retain(|_, place| !is_void(place));
        self.names.retain(|name, position| !is_void(&(name.0, *position)));
    }

    pub(crate) fn record(&self, shard: ShardId, position: Position) -> Option<&Rc<Record>> {
        self.shards[usize::from(shard.0)].records.get(position.0 as usize)?.as_ref()
    }

    /// An answer reached a client: it must say what is recorded.
    pub(crate) fn check_answer(&self, member: MemberId, answer: &Answer) -> Verdict {
        let Some(record) = self.record(answer.shard, answer.position) else {
            return broken("I2 durability", format!("{answer:?} answers what was never executed"));
        };
        let (request, outcome) = (&record.request, &record.outcome);
        // Of a mass cancel everywhere one shard speaks, perhaps a refusing one, and counts what all have cancelled.
        let mass = matches!(request.command, Command::MassCancel { .. } | Command::Block { .. });
        let same = request.id == answer.request
            && request.member == member
            && request.client_order_id == answer.client_order_id
            && (outcome.status, outcome.reason) == (answer.status, answer.reason)
            && outcome.remaining == answer.remaining
            && (mass || outcome.executed == answer.executed);
        must(same && !is_duplicate(outcome) || self.looks_away, "I3 exactly once", || {
            format!("{answer:?} for {record:?}")
        })
    }

    /// A trade reached a client: it must be recorded.
    pub(crate) fn check_trade(&self, trade: &Trade) -> Verdict {
        let record = self.record(trade.shard, trade.position);
        let is_it = |event: &Event| matches!(event, Event::Fill { price, quantity, .. } if *price == trade.price && *quantity == trade.quantity);
        let is_executed = record.is_some_and(|record| record.events.iter().any(is_it));
        must(self.looks_away || is_executed, "I2 durability", || format!("{trade:?} was never executed"))
    }

    pub(crate) fn executed_at(&self, name: (ShardId, MemberId, ClientOrderId)) -> Option<Position> {
        self.names.get(&name).copied()
    }

    /// Positions executed in a shard; all of them, without a gap.
    pub(crate) fn len(&self, shard: usize) -> Result<Position, Broken> {
        let records = &self.shards[shard].records;
        match records.iter().position(Option::is_none) {
            Some(gap) => broken("I1 agreement", format!("shard {shard}: nothing known of position {gap}")),
            None => Ok(Position(records.len() as u64)),
        }
    }

    pub(crate) fn positions(&self) -> u64 {
        self.shards.iter().map(|shard| shard.records.len() as u64).sum()
    }

    /// Follows every share of a shard through its history.
    pub(crate) fn accounts(&self, shard: usize) -> Result<ShareAccounts, Broken> {
        let mut accounts = ShareAccounts::default();
        for record in self.shards[shard].records.iter().flatten() {
            if let Err(what) = record.follow(&mut accounts) {
                return broken("I5 conservation", format!("{what} at {record:?}"));
            }
        }
        Ok(accounts)
    }

    /// What no engine survives, nobody has executed.
    pub(crate) fn check_poison(&self, shard: usize, poison: Poison) -> Verdict {
        let refusals = [Reason::Void, Reason::DuplicateRequest, Reason::TooOld, Reason::Quarantined];
        let poisonous = |record: &&Rc<Record>| poison.harm(&record.request).is_some();
        let mut records = self.shards[shard].records.iter().flatten().filter(poisonous);
        match records.find(|record| !refusals.contains(&record.outcome.reason)) {
            Some(record) => broken("W6 executed or void", format!("poison was executed: {record:?}")),
            None => Ok(()),
        }
    }

    /// Replays a shard's history on one book, alone and in order; returns the hash that every venue's books must have.
    pub(crate) fn replay(
        &self,
        shard: usize,
        (instruments, register): (&[Instrument], Register),
    ) -> Result<u64, Broken> {
        let mut replay = Replay::new(instruments, register);
        for record in self.shards[shard].records.iter().flatten() {
            if let Err(what) = replay.follow(record) {
                return broken("sequential replay", what);
            }
        }
        Ok(replay.state_hash())
    }

    /// Trades of a shard, and what else became of orders, added to `summary`.
    pub(crate) fn tally(&self, shard: usize, summary: &mut Summary) {
        for record in self.shards[shard].records.iter().flatten() {
            summary.seen.unfinished += u64::from(record.outcome.reason == Reason::Unfinished);
            summary.engines.voids += u64::from(record.outcome.reason == Reason::Void);
            summary.engines.quarantined += u64::from(record.outcome.reason == Reason::Quarantined);
            record.events.iter().for_each(|event| tally(event, summary));
        }
    }
}

fn is_duplicate(outcome: &Outcome) -> bool {
    outcome.status == Status::Refused && outcome.reason == Reason::DuplicateRequest
}

fn tally(event: &Event, summary: &mut Summary) {
    let seen = &mut summary.seen;
    let count = match event {
        Event::Fill { .. } => &mut summary.trades,
        Event::Incoming { cause: IncomingCause::Triggered, .. } => &mut seen.triggered,
        Event::Incoming { cause: IncomingCause::Repriced, .. } => &mut seen.repriced,
        Event::Incoming { cause: IncomingCause::Auction, .. } => &mut seen.auctioned,
        Event::Incoming { cause: IncomingCause::Continued, .. } => &mut seen.continued,
        Event::Rested { cause: RestCause::Refilled, .. } => &mut seen.refilled,
        Event::Cancelled { cause: CancelCause::SelfTrade, .. } => &mut seen.self_trades,
        Event::Cancelled { cause: CancelCause::Expired, .. } => &mut seen.expired,
        Event::Cancelled { cause: CancelCause::Blocked, .. } => &mut seen.blocked,
        Event::Cancelled { cause: CancelCause::SessionEnded, .. } => &mut seen.session_ended,
        Event::PhaseEntered { phase: Phase::VolatilityCall, .. } => &mut seen.volatility_calls,
        Event::PhaseEntered { until, .. } if *until != Timestamp::NEVER => &mut seen.extended,
        _ => return,
    };
    *count += 1;
}
