//! In directories.

use std::path::Path;

use pares_archive::{Days, Store, restore};
use pares_types::BusinessDay;

use crate::log::{Log, RECORDER, SHARD, name};

fn store(dir: &Path) -> Store {
    Store::open(dir.to_str().unwrap()).unwrap()
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
