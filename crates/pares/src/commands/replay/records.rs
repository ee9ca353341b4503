//! What the recorders hold, against what the client was told.
//!
//! The client's answers alone prove little: they may come from one recorder while the other has
//! something else, or from a venue's memory. So both recorders' logs are read from their beginning, and every
//! record is held against the others at its position, and against the answer given for it.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::time::{Duration, Instant};

use pares_log::Reader;
use pares_node::{Layout, NodeError, Role, SystemConfig};
use pares_shm::CountersReader;
use pares_types::{ClientOrderId, RequestId};
use pares_wire::WireError;
use pares_wire::record::{self, ResultRecord};

use super::driver::MEMBER;
use super::ledger::{Fate, Ledger, Place};
use crate::error::CommandError;

/// How long a recorder may lag behind the last answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the comparison found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Records in the first recorder's log.
    pub recorded: u64,
    /// Commands sent that were not answered, or whose answer is not what is recorded at its place.
    pub lost: u64,
    /// Requests or names recorded at two places, and places recorded twice in one log.
    pub duplicated: u64,
    /// Places at which the recorders' logs differ, or that one of them lacks.
    pub disagreements: u64,
    /// Records of commands that nobody sent.
    pub unasked: u64,
}

/// Waits until every recorder has `records` records: with a quorum of one, the other may lag behind the last
/// answer. Gives up after ten seconds: what is missing then shows as a disagreement.
pub fn wait_until_level(layout: &Layout, config: &SystemConfig, records: u64) {
    let begun = Instant::now();
    let has_all = |id| {
        let counters = CountersReader::open(&layout.counters(&Role::Recorder(id).to_string())).ok();
        counters.and_then(|counters| counters.get("records")).is_some_and(|count| count >= records)
    };
    while !config.recorder_ids().all(has_all) && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Reads all recorders' logs and compares.
///
/// # Errors
/// If a log cannot be read through.
pub fn compare(layout: &Layout, config: &SystemConfig, ledger: &Ledger) -> Result<Findings, CommandError> {
    let mut records = Records::new(ledger);
    let mut logs = Vec::new();
    for id in config.recorder_ids() {
        logs.push(records.read(&layout.recorder_log(id))?);
    }
    Ok(records.findings(&logs))
}

/// One log: a fingerprint of what is recorded at each place.
type Log = HashMap<Place, u64>;

struct Records<'a> {
    ledger: &'a Ledger,
    /// Where each request and each name was met first, in whatever log.
    requests: HashMap<RequestId, Place>,
    names: HashMap<ClientOrderId, Place>,
    duplicated: BTreeSet<RequestId>,
    unasked: BTreeSet<RequestId>,
    places_twice: u64,
}

impl<'a> Records<'a> {
    fn new(ledger: &'a Ledger) -> Self {
        Self {
            ledger,
            requests: HashMap::new(),
            names: HashMap::new(),
            duplicated: BTreeSet::new(),
            unasked: BTreeSet::new(),
            places_twice: 0,
        }
    }

    fn read(&mut self, dir: &Path) -> Result<Log, CommandError> {
        let mut log = Log::new();
        let mut reader = Reader::at_start(dir).map_err(NodeError::from)?;
        while let Some(entry) = reader.next().map_err(NodeError::from)? {
            if record::schema(entry.payload) == Some(record::RESULT) {
                self.on_record(entry.payload, &mut log).map_err(NodeError::from)?;
            }
        }
        Ok(log)
    }

    fn on_record(&mut self, payload: &[u8], log: &mut Log) -> Result<(), WireError> {
        let record = ResultRecord::read(payload)?;
        let request = record.request()?;
        let place = (record.shard(), record.position());
        let is_new = log.insert(place, fingerprint(&record)?).is_none();
        self.places_twice += u64::from(!is_new);
        if *self.requests.entry(request.id).or_insert(place) != place
            || *self.names.entry(request.client_order_id).or_insert(place) != place
        {
            self.duplicated.insert(request.id);
        }
        if request.member != MEMBER || !self.ledger.has(request.client_order_id) {
            self.unasked.insert(request.id);
        }
        Ok(())
    }

    fn findings(&self, logs: &[Log]) -> Findings {
        let (first, others) = logs.split_first().expect("a system has a recorder");
        let disagreements = others.iter().map(|other| differences(first, other)).sum();
        let is_lost = |(name, fate): &(ClientOrderId, Fate)| match *fate {
            Fate::Unanswered => true,
            Fate::Rejected => false,
            Fate::Answered(place) => self.names.get(name) != Some(&place),
        };
        Findings {
            recorded: first.len() as u64,
            lost: self.ledger.iter().filter(is_lost).count() as u64,
            duplicated: self.duplicated.len() as u64 + self.places_twice,
            disagreements,
            unasked: self.unasked.len() as u64,
        }
    }
}

/// Places at which two logs differ.
fn differences(one: &Log, other: &Log) -> u64 {
    let differing = one.iter().filter(|&(place, print)| other.get(place) != Some(print)).count();
    let missing = other.keys().filter(|place| !one.contains_key(place)).count();
    (differing + missing) as u64
}

/// A hash of all that is recorded but the venue that wrote it: venues race, and either may have been first.
fn fingerprint(record: &ResultRecord<'_>) -> Result<u64, WireError> {
    let mut hasher = DefaultHasher::new();
    (record.shard(), record.position(), record.epoch(), record.state_hash()).hash(&mut hasher);
    (record.request()?, record.outcome()?).hash(&mut hasher);
    for event in record.events() {
        event?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_log::{Config, Writer};
    use pares_types::{
        Command, Epoch, GatewayId, InstrumentId, OrderId, Outcome, Position, Quantity, Reason, RecorderId,
        Request, ShardId, Status, Timestamp, VenueId,
    };
    use pares_wire::record::{ResultPlace, result_bytes, write_result};

    /// Name (and request number), position, shares executed: enough to tell records apart.
    type Entry = (u64, u64, u64);

    const PLACE: Place = (ShardId(0), Position(0));

    fn append(writer: &mut Writer, venue: u16, (name, position, executed): Entry) {
        let id = RequestId::new(GatewayId(0), name);
        let request = Request {
            id,
            stamp: Timestamp(0),
            member: MEMBER,
            client_order_id: ClientOrderId(name),
            instrument: InstrumentId(1),
            shard: ShardId(0),
            command: Command::Cancel { target: OrderId(id) },
        };
        let outcome = Outcome {
            status: Status::Cancelled,
            reason: Reason::Requested,
            order: OrderId(id),
            executed: Quantity(executed),
            remaining: Quantity::ZERO,
        };
        let place = ResultPlace {
            shard: ShardId(0),
            epoch: Epoch(1),
            position: Position(position),
            venue: VenueId(venue),
            state_hash: 0,
        };
        writer
            .append_with(result_bytes(&request, 0), |out| write_result(out, &place, &request, &outcome, &[]))
            .unwrap();
    }

    /// What is found in these two logs after one command was sent and met that fate.
    fn findings(fate: Fate, logs: [&[Entry]; 2]) -> Findings {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        for (recorder, entries) in (0..).zip(logs) {
            let config = Config::default().segment_bytes(1 << 20);
            let (mut writer, _) = Writer::open(&layout.recorder_log(RecorderId(recorder)), config).unwrap();
            entries.iter().for_each(|&entry| append(&mut writer, recorder, entry));
            writer.publish();
        }
        let mut ledger = Ledger::default();
        ledger.on_sent(Ledger::FIRST);
        ledger.on_fate(Ledger::FIRST, fate);
        compare(&layout, &SystemConfig::default(), &ledger).unwrap()
    }

    #[test]
    fn logs_that_agree_but_for_the_venue_are_clean() {
        let found = findings(Fate::Answered(PLACE), [&[(1, 0, 0)], &[(1, 0, 0)]]);
        assert_eq!(found, Findings { recorded: 1, ..Findings::default() });
    }

    #[test]
    fn an_answer_that_nobody_recorded_is_a_loss() {
        assert_eq!(findings(Fate::Answered(PLACE), [&[], &[]]).lost, 1);
        assert_eq!(findings(Fate::Unanswered, [&[(1, 0, 0)], &[(1, 0, 0)]]).lost, 1);
        assert_eq!(findings(Fate::Rejected, [&[], &[]]).lost, 0);
    }

    #[test]
    fn an_answer_recorded_elsewhere_is_a_loss() {
        let elsewhere = Fate::Answered((ShardId(0), Position(5)));
        assert_eq!(findings(elsewhere, [&[(1, 0, 0)], &[(1, 0, 0)]]).lost, 1);
    }

    #[test]
    fn a_request_at_two_places_is_a_duplicate_whichever_logs_they_are_in() {
        let one_log = findings(Fate::Answered(PLACE), [&[(1, 0, 0), (1, 1, 0)], &[(1, 0, 0), (1, 1, 0)]]);
        assert_eq!((one_log.duplicated, one_log.disagreements), (1, 0));
        let two_logs = findings(Fate::Answered(PLACE), [&[(1, 0, 0)], &[(1, 1, 0)]]);
        assert_eq!((two_logs.duplicated, two_logs.disagreements), (1, 2));
    }

    #[test]
    fn a_place_recorded_twice_is_a_duplicate() {
        assert_eq!(findings(Fate::Answered(PLACE), [&[(1, 0, 0), (1, 0, 0)], &[(1, 0, 0)]]).duplicated, 1);
    }

    #[test]
    fn recorders_that_differ_or_lack_a_place_disagree() {
        assert_eq!(findings(Fate::Answered(PLACE), [&[(1, 0, 0)], &[(1, 0, 7)]]).disagreements, 1);
        assert_eq!(findings(Fate::Answered(PLACE), [&[(1, 0, 0)], &[]]).disagreements, 1);
    }

    #[test]
    fn a_command_nobody_sent_is_found() {
        assert_eq!(findings(Fate::Answered(PLACE), [&[(1, 0, 0), (2, 1, 0)], &[]]).unasked, 1);
    }
}
