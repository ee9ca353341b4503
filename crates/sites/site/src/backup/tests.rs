//! Directories of backups: whole, damaged, restored.

mod damaged;
mod missing;

use std::fs;
use std::sync::Arc;

use pares_store::{Memory, Reads, Store};
use pares_wice::{Body, Entry, Era, Key, KeyRange, Stored, TransactionId, Value, Write};

use super::copy_file::{CopyHead, CopyWriter};
use super::version_log::{Kept, LogWriter, Point};
use super::*;
use crate::applier::apply_versions;

const IDENTITY: &str = "0123456789abcdef0123456789abcdef";
/// The versions of the history, and that of its base.
const NEWEST: u64 = 40;
const BASE: u64 = 10;

/// A history of some versions, which add, replace and delete; a backup of it in a directory of its own.
struct Scene {
    dir: tempfile::TempDir,
    folder: BackupFolder,
    digests: Vec<u64>,
}

fn writes(version: u64) -> Vec<Write> {
    let value = Value::new(format!("value of {version}").into_bytes());
    match version % 4 {
        0 => vec![Write::put(Key::from("b"), value), Write::add("n", 3)],
        1 => vec![Write::put(Key::new(version.to_be_bytes()), value)],
        2 => vec![Write::add("n", -1), Write::delete(Key::from("b"))],
        _ => vec![],
    }
}

/// A store with that version of the history, and the digests up to there.
fn store_at(version: u64) -> (Memory, Vec<u64>) {
    let store = Memory::default();
    let versions: Vec<_> = (1..=version).map(|version| (Version(version), writes(version))).collect();
    let digests = apply_versions(&store, versions, at(version, 0)).unwrap();
    (store, digests)
}

fn at(version: u64, digest: u64) -> Stored {
    Stored { version: Version(version), digest, ..Stored::default() }
}

fn items(store: &Memory) -> Vec<(Key, Value)> {
    store.snapshot().unwrap().first(&KeyRange::prefix(b""), usize::MAX).unwrap()
}

fn kept(version: u64, digests: &[u64]) -> Kept {
    let id = TransactionId { client: 1, sequence: version };
    let body = Body::Update { id, attempt: 1, writes: writes(version) };
    let entry = Arc::new(Entry { version: Version(version), era: Era::default(), body });
    Kept { at_ms: version * 1_000, digest: Some(digests[version as usize - 1]), entry }
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = BackupFolder::create(dir.path()).unwrap();
        let (_, digests) = store_at(NEWEST);
        let scene = Self { dir, folder, digests };
        scene.base(BASE);
        scene.log(BASE, 25, true);
        scene.log(25, NEWEST, false);
        scene
    }

    fn base(&self, version: u64) {
        let mut writer = self.copy_writer(version, version * 1_000);
        items(&store_at(version).0).chunks(2).for_each(|items| writer.write(&items.to_vec()).unwrap());
        writer.end().unwrap();
    }

    fn log(&self, behind: u64, last: u64, ends: bool) {
        let digest = Some(self.digests[behind as usize - 1]);
        let point = Point { version: Version(behind), digest, at_ms: 0 };
        let mut writer = LogWriter::create(&self.folder.log_path(Version(behind)), IDENTITY, point).unwrap();
        let versions: Vec<Kept> = (behind + 1..=last).map(|version| kept(version, &self.digests)).collect();
        versions.chunks(4).for_each(|versions| writer.write(&versions.to_vec()).unwrap());
        if ends {
            writer.end().unwrap();
        }
    }

    /// The log that grows, and what it holds.
    fn growing(&self) -> (PathBuf, Vec<u8>) {
        let path = self.folder.log_path(Version(25));
        let right = fs::read(&path).unwrap();
        (path, right)
    }

    /// One in which that log is missing.
    fn without_growing() -> Self {
        let scene = Self::new();
        fs::remove_file(scene.folder.log_path(Version(25))).unwrap();
        scene
    }

    /// What a store says of itself that has that version.
    fn stored(&self, version: u64) -> Stored {
        at(version, self.digests[version as usize - 1])
    }

    /// Follows behind a copy of which this is said, and nothing is damaged.
    fn begin(&self, stored: Stored) -> Result<Following, BackupError> {
        Following::begin(&self.folder, IDENTITY, stored, 0, |damaged| panic!("{damaged:?}"))
    }

    fn copy_writer(&self, version: u64, taken_ms: u64) -> CopyWriter {
        let head = CopyHead { identity: IDENTITY.into(), stored: self.stored(version), taken_ms };
        CopyWriter::create(&self.folder.copy_path(Version(version)), &head).unwrap()
    }

    fn restore(&self, until: Until) -> Result<(Restored, Memory), BackupError> {
        let store = Memory::default();
        let restored = Restoration::plan(&self.folder, until)?.fill_store(&store, &mut |_| {})?;
        Ok((restored, store))
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> =
            fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

/// Follows on where the scene ends, in which nothing is damaged.
fn resumed(scene: &Scene) -> Result<Option<Following>, BackupError> {
    Following::resume(&scene.folder, |found| assert!(matches!(found, Finding::Sound(_)), "{found:?}"))
}

#[test]
fn what_is_restored_is_what_the_database_was_at_every_version() {
    let scene = Scene::new();
    for version in BASE..=NEWEST {
        let (restored, store) = scene.restore(Until::Version(Version(version))).unwrap();
        let (right, digests) = store_at(version);
        assert_eq!(items(&store), items(&right), "version {version}");
        assert_eq!((restored.version.0, restored.digest), (version, digests[version as usize - 1]));
    }
    assert_eq!(scene.restore(Until::Newest).unwrap().0.version, Version(NEWEST));
}

#[test]
fn a_moment_has_what_was_stored_by_then() {
    let scene = Scene::new();
    for (moment, version) in [(30_999, 30), (31_000, 31), (10_000, BASE), (u64::MAX, NEWEST)] {
        assert_eq!(scene.restore(Until::Moment(moment)).unwrap().0.version, Version(version));
    }
    assert!(matches!(scene.restore(Until::Moment(9_999)), Err(BackupError::Absent(_))));
}

#[test]
fn moment_past_backup_end_is_distinguished() {
    let scene = Scene::new();
    let is_last = |until| scene.restore(until).unwrap().0.is_last;
    for until in [Until::Newest, Until::Moment(NEWEST * 1_000), Until::Moment(u64::MAX)] {
        assert!(is_last(until), "{until:?}");
    }
    assert!(!is_last(Until::Moment(NEWEST * 1_000 - 1)));
}

#[test]
fn what_a_backup_has_not_is_refused_and_nothing_is_written() {
    let scene = Scene::new();
    for version in [BASE - 1, NEWEST + 1] {
        let refused = Restoration::plan(&scene.folder, Until::Version(Version(version)));
        assert!(matches!(refused, Err(BackupError::Absent(_))), "before there is a store");
    }
    fs::remove_file(scene.folder.log_path(Version(25))).unwrap();
    scene.base(30);
    let refused = Restoration::plan(&scene.folder, Until::Version(Version(27)));
    assert!(matches!(refused, Err(BackupError::Gap { .. })), "{refused:?}");
}

#[test]
fn a_later_base_is_taken_and_the_log_goes_through_it() {
    let scene = Scene::new();
    scene.base(30);
    let (restored, store) = scene.restore(Until::Version(Version(35))).unwrap();
    assert_eq!((restored.base, restored.version), (Version(30), Version(35)));
    assert_eq!(items(&store), items(&store_at(35).0));
    assert_eq!(scene.restore(Until::Version(Version(29))).unwrap().0.base, Version(BASE));
}

#[test]
fn a_changed_byte_is_found_wherever_it_is() {
    let scene = Scene::new();
    let whole = scene.folder.verify().unwrap();
    assert_eq!(whole.logs.iter().map(|log| log.torn_at).collect::<Vec<_>>(), [None, None]);
    for path in scene.files() {
        let right = fs::read(&path).unwrap();
        for at in 0..right.len() {
            let mut changed = right.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(&path, &changed).unwrap();
            if let Ok(facts) = scene.folder.verify() {
                // The last record of the log that grows cannot be told from one that was not written to its end, and is said to be that.
                let last = damaged::records(&right).last().map(|begins| *begins as u64);
                assert_eq!(facts.logs[1].torn_at, last, "byte {at} of {}", path.display());
                assert!(last <= Some(at as u64), "byte {at} of {}", path.display());
            }
        }
        fs::write(&path, &right).unwrap();
    }
    assert_eq!(scene.folder.verify().unwrap(), whole);
}

#[test]
fn cut_file_found_growing_log_good_to_last_record() {
    let scene = Scene::new();
    let files = scene.files();
    let (growing, others) = files.split_last().unwrap();
    for path in others {
        let right = fs::read(path).unwrap();
        for length in 0..right.len() {
            fs::write(path, &right[..length]).unwrap();
            assert!(scene.folder.verify().is_err(), "{length} bytes of {}", path.display());
        }
        fs::write(path, &right).unwrap();
    }
    let right = fs::read(growing).unwrap();
    for length in 0..right.len() {
        fs::write(growing, &right[..length]).unwrap();
        let facts = scene.folder.verify().unwrap();
        let (restored, store) = scene.restore(Until::Newest).unwrap();
        assert!(restored.version >= Version(25) && restored.version < Version(NEWEST));
        assert_eq!(facts.logs[1].last, restored.version);
        assert_eq!(items(&store), items(&store_at(restored.version.0).0));
    }
}

#[test]
fn diverging_versions_found_despite_fitting_checksums() {
    let mut scene = Scene::new();
    fs::remove_file(scene.folder.log_path(Version(25))).unwrap();
    scene.digests[32] ^= 1;
    scene.log(25, NEWEST, false);
    scene.folder.verify().unwrap();
    assert!(scene.restore(Until::Version(Version(32))).is_ok());
    let path = scene.folder.log_path(Version(25));
    let Some(BackupError::Digest { version: Version(33), path: named, at }) =
        scene.restore(Until::Newest).err()
    else {
        panic!("version 33 is another");
    };
    // Behind the head four versions are in a record: 33 is the last in the second.
    let second = damaged::records(&fs::read(&path).unwrap())[2] as u64;
    assert_eq!((named, at), (path, second));
}

#[test]
fn checksum_blind_damage_named_with_record_offset() {
    let scene = Scene::new();
    let path = scene.folder.copy_path(Version(33));
    let mut writer = scene.copy_writer(33, 5);
    let item = |key: &str| (Key::from(key), Value::new(b"v"));
    writer.write(&vec![item("b")]).unwrap();
    writer.write(&vec![item("a")]).unwrap();
    writer.end().unwrap();
    let third = damaged::records(&fs::read(&path).unwrap())[2] as u64;
    let Err(BackupError::Damaged { path: named, at, .. }) = scene.folder.verify() else {
        panic!("its keys are not in order");
    };
    assert_eq!((named, at), (path, third));
}

#[test]
fn files_of_another_database_or_another_form_are_refused() {
    let scene = Scene::new();
    let other = scene.folder.log_path(Version(25));
    fs::remove_file(&other).unwrap();
    let point = Point { version: Version(25), digest: None, at_ms: 0 };
    LogWriter::create(&other, "another", point).unwrap();
    assert!(matches!(scene.folder.verify(), Err(BackupError::Another(_))));
    assert!(matches!(scene.restore(Until::Newest), Err(BackupError::Another(_))));
    let base = scene.folder.copy_path(Version(BASE));
    let mut bytes = fs::read(&base).unwrap();
    bytes[8] = 9;
    let crc = crc32c::crc32c(&bytes[..13]);
    bytes[13..17].copy_from_slice(&crc.to_le_bytes());
    fs::write(&base, bytes).unwrap();
    assert!(matches!(scene.restore(Until::Newest), Err(BackupError::Form { found: 9, .. })));
}

#[test]
fn half_a_copy_is_none_and_the_next_one_replaces_it() {
    let scene = Scene::new();
    drop(scene.copy_writer(33, 5));
    assert_eq!(scene.folder.verify().unwrap().bases.len(), 1);
    scene.copy_writer(33, 5).end().unwrap();
    assert_eq!(scene.folder.verify().unwrap().bases.len(), 2);
}

#[test]
fn following_goes_on_where_it_ended_whatever_was_half_written() {
    let scene = Scene::new();
    let (path, right) = scene.growing();
    for half in [&b"\x09\0\0\0crc.half"[..], b"\x09\0", &[0; 5_000]] {
        fs::write(&path, [&right[..], half].concat()).unwrap();
        assert_eq!(scene.folder.verify().unwrap().logs[1].torn_at, Some(right.len() as u64));
        assert_eq!(resumed(&scene).unwrap().unwrap().last(), Version(NEWEST));
        assert_eq!(fs::read(&path).unwrap(), right);
    }
    let following = resumed(&scene).unwrap().unwrap();
    assert!(resumed(&scene).is_err(), "nobody else follows into it meanwhile");
    following.end().unwrap();
    assert_eq!(scene.folder.verify().unwrap().logs[1].torn_at, None);
    assert_eq!(resumed(&scene).unwrap().unwrap().last(), Version(NEWEST));
    let void = scene.folder.log_path(Version(NEWEST));
    fs::write(&void, b"PARES").unwrap();
    assert_eq!(resumed(&scene).unwrap().unwrap().last(), Version(NEWEST));
}
