//! Days of a log as files: closed, archived, restored, dropped.
//!
//! Archives lie in directories here, and in a bucket if `PARES_TEST_BUCKET` names one (`s3://BUCKET`): `cargo xtask s3` does.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::{Path, PathBuf};

use pares_archive::{Days, Manifest, Store, back_up, is_unfinished, restore};
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

/// A place for archives that nobody else has: this directory, or where in the bucket it is called so.
fn store(dir: &Path) -> Store {
    let dir = dir.to_str().unwrap();
    Store::open(&std::env::var("PARES_TEST_BUCKET").map_or(dir.to_owned(), |bucket| bucket + dir)).unwrap()
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
fn two_that_archive_to_one_place_at_once_both_succeed() {
    let (mut log, place, into) = (Log::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    (20_000..20_005).for_each(|day| log.pass(day));
    let (days, system) = (log.days(), log.system());
    std::thread::scope(|scope| {
        let archive = || days.archive((&system, RECORDER), &store(place.path()), None).unwrap();
        let both = [scope.spawn(archive), scope.spawn(archive)];
        both.into_iter().for_each(|one| drop(one.join().unwrap()));
    });
    let copied = restore(&store(place.path()), RECORDER, (None, None), &into.path().join("all")).unwrap();
    assert_eq!(copied.days.len(), 5);
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
    assert!(refused.contains("does not match its manifest"), "{refused}");
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
fn dropped_day_is_neither_archived_nor_closed_again() {
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
    other.append(Command::TIME, &[]);
    other.pass(20_000);
    let store = store(place.path());
    log.archive(&store, None).unwrap();
    let object = format!("{RECORDER}/{}/manifest.json", name(20_000));
    let before = store.get(&object).unwrap();
    let refused = other.archive(&store, None).unwrap_err();
    assert!(refused.contains("belongs to another system"), "{refused}");
    assert_eq!(store.get(&object).unwrap(), before);
    assert!(!other.days().is_archived(BusinessDay(20_000)));
}

#[test]
fn rotten_archive_file_is_rewritten_before_it_counts() {
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
fn unreadable_manifest_is_rewritten_by_own_system_only() {
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
    assert!(refused.unwrap_err().to_string().contains("a backup cannot be inside"));
}

#[test]
fn a_restore_that_broke_off_is_no_system_until_it_is_done_again() {
    let (mut log, place, into) = (Log::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    (20_000..20_002).for_each(|day| log.pass(day));
    let store = store(place.path());
    log.archive(&store, None).unwrap();
    // The last day is not whole.
    let object = format!("{RECORDER}/{}/manifest.json", name(20_001));
    let manifest = store.get(&object).unwrap().unwrap();
    store.put(&object, Vec::new()).unwrap();
    let (all, dir) = ((None, None), into.path().join("all"));
    let refused = restore(&store, RECORDER, all, &dir).unwrap_err().to_string();
    assert!(refused.contains("manifest.json cannot be read"), "{refused}");
    assert!(is_unfinished(&dir));
    store.put(&object, manifest).unwrap();
    let refused = restore(&store, RECORDER, all, &dir).unwrap_err().to_string();
    assert!(refused.contains("holds an unfinished restore"), "{refused}");
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(restore(&store, RECORDER, all, &dir).unwrap().days.len(), 2);
    assert!(!is_unfinished(&dir));
}

#[cfg(feature = "s3")]
#[test]
fn a_bucket_that_is_not_there_takes_nothing_and_is_named() {
    let Ok(bucket) = std::env::var("PARES_TEST_BUCKET") else {
        return println!("skipped: PARES_TEST_BUCKET names no bucket (`cargo xtask s3`)");
    };
    let mut log = Log::new();
    log.pass(20_000);
    let refused = log.archive(&Store::open(&format!("{bucket}-of-nobody/a")).unwrap(), None).unwrap_err();
    assert!(refused.contains("-of-nobody/a/recorder-0") && refused.contains("NoSuchBucket"), "{refused}");
    assert!(!log.days().is_archived(BusinessDay(20_000)));
}

#[test]
fn a_manifest_that_does_not_name_its_segments_is_none() {
    let mut log = Log::new();
    (20_000..20_003).for_each(|day| log.pass(day));
    let (path, all) = (log.days().path(BusinessDay(20_000)), log.days().manifests().unwrap());
    let until = |until| Manifest { until, ..all[0].clone() };
    let no_bytes = Manifest { segment_bytes: 0, ..all[0].clone() };
    for impossible in [until(all[2].until), until(u64::MAX), no_bytes] {
        std::fs::write(&path, impossible.text()).unwrap();
        assert_eq!(log.days().manifests().unwrap(), all[1..]);
    }
}

/// What an archived day's manifest says instead, as damage would have it.
fn changes(manifest: &Manifest) -> Vec<(&'static str, String, String)> {
    let number = |name: &str, value: u64| format!("\"{name}\": {value}");
    let hash = &manifest.shards[0].state_hash;
    vec![
        ("next_from", number("next_from", manifest.next_from), number("next_from", manifest.next_from + 8)),
        ("until", number("until", manifest.until), number("until", manifest.until - 1)),
        ("state hash", hash.clone(), hash.replace('7', "8")),
        ("day", manifest.day.clone(), name(20_003)),
        ("shard", number("shard", 0), number("shard", 1)),
    ]
}

#[test]
fn an_archived_day_whose_manifest_lies_is_not_restored() {
    let (mut log, place, into) = (Log::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    log.pass(20_000);
    let (store, object) = (store(place.path()), format!("{RECORDER}/{}/manifest.json", name(20_000)));
    log.archive(&store, None).unwrap();
    let text = String::from_utf8(store.get(&object).unwrap().unwrap()).unwrap();
    let refused = |what: &str, text: &str| {
        store.put(&object, text.as_bytes().to_vec()).unwrap();
        restore(&store, RECORDER, (None, None), &into.path().join(what)).unwrap_err().to_string()
    };
    for (what, old, new) in changes(&log.days().manifests().unwrap()[0]) {
        let changed = text.replace(&old, &new);
        assert_ne!(changed, text, "{what}");
        let why = refused(what, &changed);
        assert!(why.contains("manifest.json cannot be read") && why.contains("SHA-256"), "{what}: {why}");
    }
    let earlier = refused("earlier", &text.replace("\"version\": 2", "\"version\": 1"));
    assert!(earlier.contains("an earlier version of Pares (version 1)"), "{earlier}");
    let own = String::from_utf8(log.days().manifests().unwrap()[0].text()).unwrap();
    let own = refused("own", &own);
    assert!(own.contains("lacks the hash of pares.toml"), "{own}");
    store.put(&object, text.into_bytes()).unwrap();
    restore(&store, RECORDER, (None, None), &into.path().join("whole")).unwrap();
}

#[test]
fn a_day_in_the_folder_of_another_is_not_restored() {
    let (mut log, place, into) = (Log::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    log.pass(20_000);
    let store = store(place.path());
    log.archive(&store, None).unwrap();
    let manifest = &log.days().manifests().unwrap()[0];
    for file in ["manifest.json", "pares.toml", &format!("{}.zst", manifest.segments[0].name)] {
        let content = store.get(&format!("{RECORDER}/{}/{file}", name(20_000))).unwrap().unwrap();
        store.put(&format!("{RECORDER}/{}/{file}", name(20_001)), content).unwrap();
    }
    let only = Some(BusinessDay(20_001));
    let refused = restore(&store, RECORDER, (only, only), &into.path().join("all")).unwrap_err().to_string();
    assert!(refused.contains(&format!("it belongs to another day, {}", name(20_000))), "{refused}");
}

#[test]
fn a_damaged_configuration_is_not_restored_and_put_there_again() {
    let (mut log, place, into) = (Log::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(log.system(), "durability = \"disk\"\n").unwrap();
    log.pass(20_000);
    let (store, object) = (store(place.path()), format!("{RECORDER}/{}/pares.toml", name(20_000)));
    log.archive(&store, None).unwrap();
    store.put(&object, b"durability = \"os\"\n".to_vec()).unwrap();
    let refused = restore(&store, RECORDER, (None, None), &into.path().join("a")).unwrap_err().to_string();
    assert!(refused.contains("pares.toml is missing or damaged"), "{refused}");
    assert!(!into.path().join("a/pares.toml").exists());
    assert_eq!(log.archive(&store, None), Ok(vec![name(20_000)]));
    restore(&store, RECORDER, (None, None), &into.path().join("b")).unwrap();
    let (was, is) = (std::fs::read(log.system()), std::fs::read(into.path().join("b/pares.toml")));
    assert_eq!(is.unwrap(), was.unwrap());
}

/// With a raised `next_from` no further day would ever be closed.
#[test]
fn rotten_but_valid_manifest_is_rebuilt_identically() {
    let mut log = Log::new();
    let checkpoints = log.days().log().join("checkpoints");
    std::fs::create_dir(&checkpoints).unwrap();
    std::fs::write(checkpoints.join("0-1.ckpt"), "the first day's").unwrap();
    log.pass(20_000);
    let (before, path) = (log.days().manifests().unwrap(), log.days().path(BusinessDay(20_000)));
    assert_eq!(before[0].checkpoints.len(), 1);
    // The recorder has a newer one, and removes the older.
    std::fs::rename(checkpoints.join("0-1.ckpt"), checkpoints.join("0-9.ckpt")).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    for (what, old, new) in changes(&before[0]) {
        std::fs::write(&path, text.replace(&old, &new)).unwrap();
        assert_eq!(log.days().manifests().unwrap(), [], "{what}");
        assert_eq!(log.days().close().unwrap(), [BusinessDay(20_000)], "{what}");
        assert_eq!(log.days().manifests().unwrap(), before, "{what}");
    }
    std::fs::rename(&path, log.days().path(BusinessDay(20_007))).unwrap();
    assert_eq!(log.days().manifests().unwrap(), [], "by another day's name");
    assert_eq!(log.days().close().unwrap(), [BusinessDay(20_000)]);
    log.pass(20_001);
}
