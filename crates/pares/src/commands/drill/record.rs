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

use super::diverge::Trace;
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
    /// Positions that are not the same in all recorders' logs, or missing in some; without those that a wrong venue left behind.
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
    last_sequence: u64,
}

impl Records {
    /// The logs of the recorders in `layout`, in which the requests of `plan` are expected; nothing is read yet.
    pub(super) fn new(layout: &Layout, config: &SystemConfig, plan: &LoadPlan) -> Self {
        let log =
            |id| RecorderLog::new(id, layout.recorder_log(id), (plan.members, plan.first_client_order_id));
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

    /// The highest number of a recorded request, among those of its gateway.
    pub(super) fn last_sequence(&mut self) -> Result<u64, CommandError> {
        self.furthest()?;
        Ok(self.logs.iter().map(|log| log.last_sequence).max().unwrap_or(0))
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
        trace: &Trace,
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
        Ok(self.compare(&observed.answered(), trace))
    }

    fn compare(&self, answered: &Numbers, trace: &Trace) -> Agreement {
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
            let counts = |&at: &usize| differs(at) && !trace.covers(*shard, Position(at as u64));
            found.differing += (0..length).filter(counts).count() as u64;
        }
        found.executed_twice = self.logs.iter().map(|log| log.executed_twice).max().unwrap_or(0);
        let missing = self.logs.iter().map(|log| answered.count_missing_in(&log.recorded));
        found.acknowledged_lost = missing.max().unwrap_or(0);
        found
    }
}

impl RecorderLog {
    /// A log in which requests of members 1 to `members` are expected, with names from `first_client_order_id`.
    fn new(id: RecorderId, dir: PathBuf, (members, first_client_order_id): (u32, u64)) -> Self {
        Self {
            id,
            dir,
            reader: None,
            digests: BTreeMap::new(),
            recorded: Numbers::default(),
            members,
            first_client_order_id,
            executed_twice: 0,
            last_sequence: 0,
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
        self.last_sequence = self.last_sequence.max(request.id.sequence());
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

#[cfg(test)]
mod tests {
    use super::*;
    use pares_log::{Config, Writer};
    use pares_types::{
        ClientOrderId, Command, Epoch, GatewayId, InstrumentId, MemberId, NewOrder, OrderId, Outcome, Price,
        Quantity, Request, RequestId, Side, Status, Timestamp, VenueId,
    };
    use pares_wire::record::{ResultPlace, result_bytes, write_result};

    /// What one recorder has: at each position a member's request, as a venue wrote it.
    fn log(id: u16, dir: &std::path::Path, entries: &[(u64, u16, Reason)]) -> RecorderLog {
        let dir = dir.join(format!("recorder-{id}"));
        let (mut writer, _) = Writer::open(&dir, Config::default().segment_bytes(1 << 20)).unwrap();
        for (position, &(name, venue, reason)) in (0..).zip(entries) {
            let request = Request {
                id: RequestId::new(GatewayId(0), name),
                stamp: Timestamp(1),
                member: MemberId(1),
                client_order_id: ClientOrderId(name),
                instrument: InstrumentId(1),
                shard: ShardId(0),
                command: Command::Enter(NewOrder::limit(Side::Buy, Price(100), Quantity(1))),
            };
            let (order, executed, remaining) = (OrderId(request.id), Quantity(0), Quantity(1));
            let outcome = Outcome { status: Status::Resting, reason, order, executed, remaining };
            let (shard, epoch, position) = (ShardId(0), Epoch(1), Position(position));
            let place = ResultPlace { shard, epoch, position, venue: VenueId(venue), state_hash: 0 };
            let fill = |out: &mut [u8]| write_result(out, &place, &request, &outcome, &[]);
            writer.append_with(result_bytes(&request, 0), fill).unwrap();
        }
        writer.publish();
        let plan = (2, 1);
        let mut log = RecorderLog::new(RecorderId(id), dir, plan);
        log.read_on().unwrap();
        log
    }

    fn compare(ours: &[(u64, u16, Reason)], theirs: &[(u64, u16, Reason)], answered: &[u64]) -> Agreement {
        let dir = tempfile::tempdir().unwrap();
        let records = Records { logs: vec![log(0, dir.path(), ours), log(1, dir.path(), theirs)] };
        let mut numbers = Numbers::default();
        answered.iter().for_each(|&name| assert!(numbers.insert(name - 1)));
        records.compare(&numbers, &Trace::default())
    }

    const NONE: Reason = Reason::None;

    #[test]
    fn who_wrote_a_record_is_no_difference() {
        let found = compare(&[(1, 0, NONE), (2, 0, NONE)], &[(1, 1, NONE), (2, 0, NONE)], &[1, 2]);
        assert_eq!(found, Agreement { records: 2, ..Agreement::default() });
    }

    #[test]
    fn another_request_outcome_or_end_is_a_difference() {
        let ours = [(1, 0, NONE), (2, 0, NONE), (3, 0, NONE)];
        assert_eq!(compare(&ours, &[(1, 0, NONE), (3, 0, NONE), (2, 0, NONE)], &[]).differing, 2);
        let refused = [(1, 0, Reason::UnknownOrder), (2, 0, NONE), (3, 0, NONE)];
        assert_eq!(compare(&ours, &refused, &[]).differing, 1);
        assert_eq!(compare(&ours, &ours[..2], &[]).differing, 1);
    }

    #[test]
    fn what_was_answered_must_be_in_every_log() {
        let ours = [(1, 0, NONE), (2, 0, NONE)];
        assert_eq!(compare(&ours, &ours, &[1, 2]).acknowledged_lost, 0);
        assert_eq!(compare(&ours, &ours[..1], &[1, 2]).acknowledged_lost, 1);
        assert_eq!(compare(&ours, &ours, &[1, 2, 3, 4]).acknowledged_lost, 2);
    }

    #[test]
    fn a_second_position_counts_unless_it_was_refused_as_a_repeat() {
        let twice = [(1, 0, NONE), (1, 0, NONE)];
        assert_eq!(compare(&twice, &twice, &[1]).executed_twice, 1);
        let repeated = [(1, 0, NONE), (1, 0, Reason::DuplicateRequest)];
        assert_eq!(compare(&repeated, &repeated, &[1]).executed_twice, 0);
    }
}
