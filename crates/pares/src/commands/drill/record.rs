//! What the recorders have: how far each one is, and at the end whether they agree with each other and with
//! what the clients were told.
//!
//! Two records of one position must be the same bytes but for the venue that happened to write them. So each is
//! remembered as a digest of its bytes without that field: a drill's million records take 8 MB, not 300.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pares_log::{ReadError, Reader};
use pares_node::{Layout, Supervisor, SystemConfig};
use pares_types::{Position, Reason, RecorderId, ShardId};
use pares_wire::record::{self, ResultHead, ResultRecord};

use crate::error::CommandError;
use crate::load::{LoadPlan, Numbers, Observed};

/// How long recorders may take to become equal once nothing is asked any more.
const PATIENCE: Duration = Duration::from_secs(30);
/// Where the writing venue stands in a result.
const VENUE: std::ops::Range<usize> = {
    let start = std::mem::offset_of!(ResultHead, venue);
    start..start + 2
};

/// The next position of each shard.
pub(super) type Reach = BTreeMap<ShardId, Position>;

/// The logs of all recorders, each read as far as it goes.
pub(super) struct Records {
    logs: Vec<RecorderLog>,
}

/// What the recorders' logs hold in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Agreement {
    /// Records, of one recorder.
    pub(super) records: u64,
    /// Positions that are not the same in all recorders' logs, or missing in some.
    pub(super) differing: u64,
    /// Requests that were executed at a second position.
    pub(super) executed_twice: u64,
    /// Requests that were answered and are in no record.
    pub(super) acknowledged_lost: u64,
}

struct RecorderLog {
    id: RecorderId,
    dir: PathBuf,
    reader: Option<Reader>,
    /// The digest of each record; the place in the vector is the position.
    digests: BTreeMap<ShardId, Vec<u64>>,
    /// The load's requests that are recorded.
    recorded: Numbers,
    members: u32,
    first_client_order_id: u64,
    executed_twice: u64,
}

impl Records {
    /// The logs of the recorders in `layout`, in which the requests of `plan` are expected; nothing is read yet.
    pub(super) fn new(layout: &Layout, config: &SystemConfig, plan: &LoadPlan) -> Self {
        let log = |id| RecorderLog::new(id, layout.recorder_log(id), plan);
        Self { logs: config.recorder_ids().map(log).collect() }
    }

    /// The furthest that any recorder is in each shard.
    pub(super) fn furthest(&mut self) -> Result<Reach, CommandError> {
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
    pub(super) fn has(&mut self, id: RecorderId, goal: &Reach) -> Result<bool, CommandError> {
        let log = &mut self.logs[usize::from(id.0)];
        log.read_on()?;
        let reach = log.reach();
        Ok(goal.iter().all(|(shard, position)| reach.get(shard) >= Some(position)))
    }

    /// Takes note that the recorder's log is gone: what it writes from now on is another one.
    pub(super) fn forget(&mut self, id: RecorderId) {
        let log = &mut self.logs[usize::from(id.0)];
        (log.reader, log.executed_twice) = (None, 0);
        log.digests.clear();
        log.recorded = Numbers::default();
    }

    /// Waits until all recorders have the same number of records, or for long enough, and compares.
    pub(super) fn agreement(
        &mut self,
        supervisor: &mut Supervisor,
        observed: &Observed,
    ) -> Result<Agreement, CommandError> {
        let begun = Instant::now();
        loop {
            let furthest = self.furthest()?;
            if self.logs.iter().all(|log| log.reach() == furthest) || begun.elapsed() > PATIENCE {
                break;
            }
            supervisor.tick()?;
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(self.compare(observed))
    }

    fn compare(&self, observed: &Observed) -> Agreement {
        let mut found = Agreement::default();
        let shards: std::collections::BTreeSet<&ShardId> =
            self.logs.iter().flat_map(|log| log.digests.keys()).collect();
        for shard in shards {
            let of =
                |log: &RecorderLog, at: usize| log.digests.get(shard).and_then(|all| all.get(at)).copied();
            let lengths = self.logs.iter().map(|log| log.digests.get(shard).map_or(0, Vec::len));
            let length = lengths.max().unwrap_or(0);
            found.records += length as u64;
            let differs = |at: usize| self.logs.iter().any(|log| of(log, at) != of(&self.logs[0], at));
            found.differing += (0..length).filter(|&at| differs(at)).count() as u64;
        }
        found.executed_twice = self.logs.iter().map(|log| log.executed_twice).max().unwrap_or(0);
        let answered = observed.answered();
        let missing = self.logs.iter().map(|log| answered.count_missing_in(&log.recorded));
        found.acknowledged_lost = missing.max().unwrap_or(0);
        found
    }
}

impl RecorderLog {
    fn new(id: RecorderId, dir: PathBuf, plan: &LoadPlan) -> Self {
        Self {
            id,
            dir,
            reader: None,
            digests: BTreeMap::new(),
            recorded: Numbers::default(),
            members: plan.members,
            first_client_order_id: plan.first_client_order_id,
            executed_twice: 0,
        }
    }

    fn reach(&self) -> Reach {
        self.digests.iter().map(|(&shard, all)| (shard, Position(all.len() as u64))).collect()
    }

    /// Takes in what was published since this was last called.
    fn read_on(&mut self) -> Result<(), CommandError> {
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

    fn take_in(&mut self, payload: &[u8]) -> Result<(), CommandError> {
        let wrong = |error: &dyn std::fmt::Display| unreadable(self.id, error);
        let result = ResultRecord::read(payload).map_err(|error| wrong(&error))?;
        let request = result.request().map_err(|error| wrong(&error))?;
        let outcome = result.outcome().map_err(|error| wrong(&error))?;
        let shard = self.digests.entry(result.shard()).or_default();
        if result.position().0 != shard.len() as u64 {
            let (shard, position) = (result.shard(), result.position());
            return Err(wrong(&format!(
                "shard {shard} goes on at position {position}, which is not the next"
            )));
        }
        shard.push(digest(payload));
        let of_load = (1..=self.members).contains(&request.member.0);
        if of_load && outcome.reason != Reason::DuplicateRequest {
            let number = request.client_order_id.0 - self.first_client_order_id;
            self.executed_twice += u64::from(!self.recorded.insert(number));
        }
        Ok(())
    }
}

/// A digest of a result, whichever venue wrote it.
fn digest(payload: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    payload[..VENUE.start].hash(&mut hasher);
    payload[VENUE.end..].hash(&mut hasher);
    hasher.finish()
}

fn unreadable(id: RecorderId, error: &dyn std::fmt::Display) -> CommandError {
    CommandError::Failed(format!("the log of recorder-{id}: {error}"))
}
