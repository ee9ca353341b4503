//! Days of a log as files: closed, archived, restored, dropped.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::{Path, PathBuf};

use pares_archive::{Days, Store, back_up, is_unfinished, restore};
use pares_log::{Config, Writer};
use pares_types::{
    BusinessDay, ClientOrderId, Command, Epoch, Event, GatewayId, InstrumentId, MemberId, OrderId, Outcome,
    Position, Quantity, Reason, Request, RequestId, ShardId, Status, Timestamp, VenueId,
};
use pares_wire::record::{ResultPlace, result_bytes, write_result};
use tempfile::TempDir;

const SHARD: ShardId = ShardId(0);
const RECORDER: &str = "recorder-0";

/// A recorder's log.
struct Log {
    dir: TempDir,
    writer: Writer,
    position: u64,
}

impl Log {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("pares.toml"), "").unwrap();
        let config = Config::default().segment_bytes(1 << 20);
        let (writer, _) = Writer::open(&dir.path().join(RECORDER), config).unwrap();
        Self { dir, writer, position: 0 }
    }

    fn days(&self) -> Days {
        Days::new(&self.dir.path().join(RECORDER), &[SHARD])
    }

    fn system(&self) -> PathBuf {
        self.dir.path().join("pares.toml")
    }

    fn append(&mut self, command: Command, events: &[Event]) {
        let id = RequestId::new(GatewayId(0), self.position + 1);
        let request = Request {
            id,
            stamp: Timestamp(1),
            member: MemberId(0),
            client_order_id: ClientOrderId(self.position + 1),
            instrument: InstrumentId(0),
            shard: SHARD,
            command,
        };
        let (none, order) = (Quantity::ZERO, OrderId(id));
        let outcome = Outcome {
            status: Status::Accepted,
            reason: Reason::None,
            order,
            executed: none,
            remaining: none,
        };
        let position = Position(self.position);
        let place = ResultPlace { shard: SHARD, epoch: Epoch(1), position, venue: VenueId(0), state_hash: 0 };
        let fill = |out: &mut [u8]| write_result(out, &place, &request, &outcome, events);
        self.writer.append_with(result_bytes(&request, events.len()), fill).unwrap();
        self.position += 1;
    }

    /// A whole day; the next begins a segment.
    fn pass(&mut self, day: u32) {
        let day = BusinessDay(day);
        self.append(Command::BeginDay { day }, &[]);
        let (orders, trades, quantity) = (0, 0, Quantity::ZERO);
        let ended = Event::DayEnded { day, requests: 1, orders, trades, quantity, state_hash: 7 };
        self.append(Command::EndDay { day }, &[ended]);
        self.writer.begin_segment().unwrap();
        self.writer.publish();
        assert_eq!(self.days().close().unwrap(), [day]);
    }

    fn archive(&self, store: &Store, only: Option<u32>) -> Result<Vec<String>, String> {
        let copied = self.days().archive((&self.system(), RECORDER), store, only.map(BusinessDay));
        copied.map(|copied| copied.days).map_err(|error| error.to_string())
    }
}

fn store(dir: &Path) -> Store {
    Store::open(dir.to_str().unwrap()).unwrap()
}

fn name(day: u32) -> String {
    BusinessDay(day).to_string()
}

#[test]
fn days_follow_each_other_without_a_gap_and_are_archived_once() {
    let (mut log, place) = (Log::new(), tempfile::tempdir().unwrap());
    log.pass(20_000);
    log.pass(20_001);
    let manifests = log.days().manifests().unwrap();
    assert_eq!((manifests[0].from, manifests[0].until), (0, manifests[1].from));
    assert!(log.days().close().unwrap().is_empty(), "both are closed");
    let store = store(place.path());
    assert_eq!(log.archive(&store, None), Ok(vec![name(20_000), name(20_001)]));
    assert_eq!(log.archive(&store, None), Ok(Vec::new()));
    assert!(log.days().is_archived(BusinessDay(20_001)));
}

#[test]
fn a_lost_manifest_is_made_again_the_same() {
    let mut log = Log::new();
    log.pass(20_000);
    let before = log.days().manifests().unwrap();
    std::fs::remove_file(log.days().path(BusinessDay(20_000))).unwrap();
    assert_eq!(log.days().close().unwrap(), [BusinessDay(20_000)]);
    assert_eq!(log.days().manifests().unwrap(), before);
}

#[test]
fn a_changed_segment_is_not_archived() {
    let (mut log, place) = (Log::new(), tempfile::tempdir().unwrap());
    log.pass(20_000);
    let segment = log.days().log().join(&log.days().manifests().unwrap()[0].segments[0].name);
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[1_000] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let refused = log.archive(&store(place.path()), None).unwrap_err();
    assert!(refused.contains("is not what its manifest says"), "{refused}");
    assert!(!log.days().is_archived(BusinessDay(20_000)));
}

#[test]
fn days_are_restored_in_a_row_only() {
    let (mut log, place, into) = (Log::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    (20_000..20_003).for_each(|day| log.pass(day));
    let store = store(place.path());
    log.archive(&store, Some(20_000)).unwrap();
    log.archive(&store, Some(20_002)).unwrap();
    let all = restore(&store, RECORDER, (None, None), &into.path().join("all"));
    assert!(all.unwrap_err().to_string().contains("is missing"));
    log.archive(&store, Some(20_001)).unwrap();
    let whole = into.path().join("whole");
    let copied = restore(&store, RECORDER, (None, None), &whole).unwrap();
    assert_eq!(copied.days, [name(20_000), name(20_001), name(20_002)]);
    let restored = Days::new(&whole.join(RECORDER), &[SHARD]);
    assert_eq!(restored.manifests().unwrap(), log.days().manifests().unwrap());
}

#[test]
fn a_day_that_is_dropped_is_neither_archived_again_nor_closed_again() {
    let (mut log, place) = (Log::new(), tempfile::tempdir().unwrap());
    log.pass(20_000);
    log.pass(20_001);
    let until = log.days().manifests().unwrap()[0].until;
    assert_eq!(log.writer.release_before(pares_log::Offset(until)).0, until);
    log.days().tidy().unwrap();
    assert!(!log.days().checkpoints(BusinessDay(20_000)).exists());
    assert!(log.days().checkpoints(BusinessDay(20_001)).exists());
    assert!(log.days().close().unwrap().is_empty());
    let store = store(place.path());
    assert_eq!(log.archive(&store, None), Ok(vec![name(20_001)]));
    assert!(log.archive(&store, Some(20_000)).is_err());
}

/// Another system, whose recorder has the same name and traded on the same dates, or this one brought back from a backup.
#[test]
fn an_archive_of_another_history_is_not_touched() {
    let (mut log, mut other, place) = (Log::new(), Log::new(), tempfile::tempdir().unwrap());
    log.pass(20_000);
    other.append(Command::Time, &[]);
    other.pass(20_000);
    let store = store(place.path());
    log.archive(&store, None).unwrap();
    let object = format!("{RECORDER}/{}/manifest.json", name(20_000));
    let before = store.get(&object).unwrap();
    let refused = other.archive(&store, None).unwrap_err();
    assert!(refused.contains("another history"), "{refused}");
    assert_eq!(store.get(&object).unwrap(), before);
    assert!(!other.days().is_archived(BusinessDay(20_000)));
}

#[test]
fn what_has_rotted_in_an_archive_is_put_there_again_before_it_counts_as_archived() {
    let (mut log, place, into) = (Log::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    log.pass(20_000);
    let store = store(place.path());
    log.archive(&store, None).unwrap();
    let segment = &log.days().manifests().unwrap()[0].segments[0].name;
    let object = format!("{RECORDER}/{}/{segment}.zst", name(20_000));
    let mut packed = store.get(&object).unwrap().unwrap();
    let middle = packed.len() / 2;
    packed[middle] ^= 1;
    store.put(&object, packed).unwrap();
    // Killed before it took note.
    std::fs::remove_file(log.days().dir().join(format!("{}.archived", name(20_000)))).unwrap();
    assert_eq!(log.archive(&store, None), Ok(vec![name(20_000)]));
    restore(&store, RECORDER, (None, None), &into.path().join("all")).unwrap();
}

#[test]
fn an_archived_day_whose_manifest_cannot_be_read_is_put_there_again_by_its_own_system_only() {
    let (mut log, mut other, place) = (Log::new(), Log::new(), tempfile::tempdir().unwrap());
    log.pass(20_000);
    other.pass(20_000);
    let store = store(place.path());
    log.archive(&store, None).unwrap();
    let object = format!("{RECORDER}/{}/manifest.json", name(20_000));
    store.put(&object, b"{ of a later version }".to_vec()).unwrap();
    let refused = other.archive(&store, None).unwrap_err();
    assert!(refused.contains("cannot be read"), "{refused}");
    assert!(!other.days().is_archived(BusinessDay(20_000)));
    assert_eq!(store.get(&object).unwrap().unwrap(), b"{ of a later version }");
    assert_eq!(log.archive(&store, None), Ok(vec![name(20_000)]));
}

#[test]
fn a_system_is_not_backed_up_into_itself() {
    let mut log = Log::new();
    log.pass(20_000);
    let refused = back_up(log.dir.path(), &log.dir.path().join("copy"), &[RECORDER.to_owned()], &[]);
    assert!(refused.unwrap_err().to_string().contains("a copy in itself"));
}

#[test]
fn a_restore_that_broke_off_is_no_system_until_it_is_done_again() {
    let (mut log, place, into) = (Log::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    (20_000..20_002).for_each(|day| log.pass(day));
    let store = store(place.path());
    log.archive(&store, None).unwrap();
    let object = format!("{RECORDER}/{}/pares.toml", name(20_001));
    let path = place.path().join(&object);
    std::fs::rename(&path, place.path().join("away")).unwrap();
    let (all, dir) = ((None, None), into.path().join("all"));
    restore(&store, RECORDER, all, &dir).unwrap_err();
    assert!(is_unfinished(&dir));
    std::fs::rename(place.path().join("away"), &path).unwrap();
    let refused = restore(&store, RECORDER, all, &dir).unwrap_err().to_string();
    assert!(refused.contains("not empty"), "{refused}");
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(restore(&store, RECORDER, all, &dir).unwrap().days.len(), 2);
    assert!(!is_unfinished(&dir));
}

#[test]
fn a_manifest_that_does_not_name_its_segments_is_none() {
    let mut log = Log::new();
    (20_000..20_003).for_each(|day| log.pass(day));
    let (path, all) = (log.days().path(BusinessDay(20_000)), log.days().manifests().unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    let until =
        |until: u64| text.replace(&format!("\"until\": {}", all[0].until), &format!("\"until\": {until}"));
    for damaged in [until(all[2].until), until(u64::MAX), text.replace("\"version\": 1", "\"version\": 2")] {
        assert_ne!(damaged, text);
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(log.days().manifests().unwrap(), all[1..]);
    }
    std::fs::write(&path, text.replace(&format!("\"segment_bytes\": {}", 1 << 20), "\"segment_bytes\": 0"))
        .unwrap();
    assert_eq!(log.days().manifests().unwrap(), all[1..]);
}
