//! What the recorders have: how far each one is, whether they agree, and what each log says of its requests.
//!
//! Two records of one position must be the same bytes but for the venue that happened to write them. So each is
//! remembered as a digest of its bytes without that field: a drill's million records take 8 MB, not 300. What else is
//! asked of requests differs from audit to audit, and is noted by the auditor ([`LogNotes`]).

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pares_log::{ReadError, Reader};
use pares_node::{Layout, Supervisor, SystemConfig};
use pares_types::{Outcome, Position, RecorderId, Request, ShardId};
use pares_wire::WireError;
use pares_wire::record::{self, ResultHead, ResultRecord};

use crate::LabError;

/// How long recorders may take to become equal once nothing is asked any more.
const PATIENCE: Duration = Duration::from_secs(30);
/// Where the writing venue stands in a result.
const VENUE: std::ops::Range<usize> = {
    let start = std::mem::offset_of!(ResultHead, venue);
    start..start + 2
};

/// The next position of each shard.
pub type Reach = BTreeMap<ShardId, Position>;

/// What one log says of the requests in it.
pub trait LogNotes: Clone {
    /// Takes note of a request that is recorded there.
    fn note(&mut self, place: (ShardId, Position), request: &Request, outcome: &Outcome);

    /// Takes note of what happened there, in its order; most audits need no more than the request.
    fn note_events(&mut self, _: &ResultRecord<'_>, _: &Request, _: &Outcome) -> Result<(), WireError> {
        Ok(())
    }
}

/// The logs of all recorders, each read as far as it goes.
pub struct Records<N> {
    logs: Vec<RecorderLog<N>>,
    blank: N,
}

struct RecorderLog<N> {
    id: RecorderId,
    dir: PathBuf,
    reader: Option<Reader>,
    /// The digest of each record; the place in the vector is the position.
    digests: BTreeMap<ShardId, Vec<u64>>,
    notes: N,
}

impl<N: LogNotes> Records<N> {
    /// The logs of the recorders in `layout`, nothing read yet; notes of each log begin as `blank`.
    pub fn new(layout: &Layout, config: &SystemConfig, blank: N) -> Self {
        let log = |id| RecorderLog {
            id,
            dir: layout.recorder_log(id),
            reader: None,
            digests: BTreeMap::new(),
            notes: blank.clone(),
        };
        Self { logs: config.recorder_ids().map(log).collect(), blank: blank.clone() }
    }

    /// Reads on. The furthest that any recorder is in each shard.
    ///
    /// # Errors
    /// If a log is damaged, or has not each position once and in order.
    pub fn furthest(&mut self) -> Result<Reach, LabError> {
        let mut furthest = Reach::new();
        for log in &mut self.logs {
            log.read_on()?;
            for (shard, position) in log.reach() {
                let entry = furthest.entry(shard).or_insert(position);
                *entry = position.max(*entry);
            }
        }
        Ok(furthest)
    }

    /// Whether the recorder has all that.
    ///
    /// # Errors
    /// As [`Records::furthest`].
    pub fn has(&mut self, id: RecorderId, goal: &Reach) -> Result<bool, LabError> {
        let log = &mut self.logs[usize::from(id.0)];
        log.read_on()?;
        let reach = log.reach();
        Ok(goal.iter().all(|(shard, position)| reach.get(shard) >= Some(position)))
    }

    /// Takes note that the recorder's log is gone: what it writes from now on is another one.
    pub fn forget(&mut self, id: RecorderId) {
        let log = &mut self.logs[usize::from(id.0)];
        (log.reader, log.notes) = (None, self.blank.clone());
        log.digests.clear();
    }

    /// Waits until all recorders have the same number of records, or for long enough.
    ///
    /// # Errors
    /// As [`Records::furthest`].
    pub fn await_level(&mut self, supervisor: &mut Supervisor) -> Result<(), LabError> {
        let begun = Instant::now();
        loop {
            let furthest = self.furthest()?;
            if self.logs.iter().all(|log| log.reach() == furthest) || begun.elapsed() > PATIENCE {
                return Ok(());
            }
            supervisor.tick();
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Positions recorded anywhere, and those of them, but for the excused, that are not the same in all logs or missing in some.
    pub fn differing(&self, is_excused: impl Fn(ShardId, Position) -> bool) -> (u64, u64) {
        let (mut all, mut differing) = (0, 0);
        let shards: std::collections::BTreeSet<&ShardId> =
            self.logs.iter().flat_map(|log| log.digests.keys()).collect();
        for shard in shards {
            let of = |log: &RecorderLog<N>, at: usize| {
                log.digests.get(shard).and_then(|digests| digests.get(at)).copied()
            };
            let lengths = self.logs.iter().map(|log| log.digests.get(shard).map_or(0, Vec::len));
            let length = lengths.max().unwrap_or(0);
            all += length as u64;
            let differs = |at: usize| self.logs.iter().any(|log| of(log, at) != of(&self.logs[0], at));
            let counts = |&at: &usize| differs(at) && !is_excused(*shard, Position(at as u64));
            differing += (0..length).filter(counts).count() as u64;
        }
        (all, differing)
    }

    /// Positions in any of these logs that are not the same in the first log of `other` that has them.
    pub fn differing_from(&self, other: &Self) -> u64 {
        let digest = |shard, at: usize| {
            other.logs.iter().find_map(|log| log.digests.get(shard).and_then(|digests| digests.get(at)))
        };
        let mut differing = 0;
        for (shard, digests) in self.logs.iter().flat_map(|log| &log.digests) {
            let differs = |(at, own): &(usize, &u64)| digest(shard, *at) != Some(own);
            differing += digests.iter().enumerate().filter(differs).count() as u64;
        }
        differing
    }

    /// The notes of each log.
    pub fn notes(&self) -> impl Iterator<Item = &N> {
        self.logs.iter().map(|log| &log.notes)
    }
}

impl<N: LogNotes> RecorderLog<N> {
    fn reach(&self) -> Reach {
        self.digests.iter().map(|(&shard, all)| (shard, Position(all.len() as u64))).collect()
    }

    /// Takes in what was published since this was last called.
    fn read_on(&mut self) -> Result<(), LabError> {
        if self.reader.is_none() {
            self.reader = match Reader::at_start(&self.dir) {
                Ok(reader) => Some(reader),
                Err(ReadError::NotYet { .. }) => return Ok(()),
                Err(error) => return Err(unreadable(self.id, &error)),
            };
        }
        let mut reader = self.reader.take().expect("opened above");
        while let Some(entry) = reader.next().map_err(|error| unreadable(self.id, &error))? {
            if record::schema(entry.payload) == Some(record::RESULT) {
                self.take_in(entry.payload)?;
            }
        }
        self.reader = Some(reader);
        Ok(())
    }

    fn take_in(&mut self, payload: &[u8]) -> Result<(), LabError> {
        let wrong = |error: &dyn std::fmt::Display| unreadable(self.id, error);
        let result = ResultRecord::read(payload).map_err(|error| wrong(&error))?;
        let request = result.request().map_err(|error| wrong(&error))?;
        let outcome = result.outcome().map_err(|error| wrong(&error))?;
        let (shard, position) = (result.shard(), result.position());
        let digests = self.digests.entry(shard).or_default();
        if position.0 != digests.len() as u64 {
            return Err(wrong(&format!(
                "shard {shard} goes on at position {position}, which is not the next"
            )));
        }
        digests.push(digest(payload));
        self.notes.note((shard, position), &request, &outcome);
        self.notes.note_events(&result, &request, &outcome).map_err(|error| wrong(&error))
    }
}

/// A digest of a result, whichever venue wrote it.
fn digest(payload: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    payload[..VENUE.start].hash(&mut hasher);
    payload[VENUE.end..].hash(&mut hasher);
    hasher.finish()
}

fn unreadable(id: RecorderId, error: &dyn std::fmt::Display) -> LabError {
    LabError::Failed(format!("the log of recorder-{id}: {error}"))
}
