//! Devices that fail while a log is opened or replaced: what could not be kept is not believed at the next opening.
#![allow(clippy::unwrap_used)] // helpers of tests, too

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use common::{EIO, FailsOnce, lose_power, numbered, payloads, small};
use pares_log::{Config, Durability, Offset, OpenError, Reader, Replacement, Writer, cut, inspect};
use tempfile::{TempDir, tempdir};

/// Writes records 0..n, of which some are synced.
fn write(dir: &Path, n: u32, durability: Durability) {
    let (mut writer, _) = Writer::open(dir, small().durability(durability)).unwrap();
    for i in 0..n {
        writer.append(&numbered(i)).unwrap();
        if i == n / 2 {
            writer.sync().unwrap();
        }
    }
    writer.publish();
}

fn written(n: u32, durability: Durability) -> TempDir {
    let dir = tempdir().unwrap();
    write(dir.path(), n, durability);
    dir
}

/// Has each sync of an opening fail in turn; hands on the log, and whether what failed to be kept was unfinished.
fn with_each_sync_failing(config: Config, prepare: impl Fn(&Path), check: impl Fn(&Path, bool)) -> usize {
    for at in 0.. {
        let dir = tempdir().unwrap();
        prepare(dir.path());
        let device = Arc::new(FailsOnce::at(at));
        let opened = Writer::open(dir.path(), config.clone().device(device.clone()));
        let Some(failed) = device.failed() else { return at };
        assert!(opened.is_err(), "{} was not kept", failed.display());
        check(dir.path(), failed.extension().is_some_and(|extension| extension == "tmp"));
    }
    unreachable!("it fails for ever");
}

/// An unfinished file is rebuilt. Everything else has poisoned the log.
fn is_not_believed(dir: &Path, unfinished: bool) {
    match Writer::open(dir, small()) {
        Ok(_) => assert!(unfinished, "the sync was tried again and believed"),
        Err(OpenError::Poisoned { errno: EIO, .. }) => assert!(!unfinished),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn failed_sync_at_open_is_not_trusted_at_next_open() {
    let disk = small().durability(Durability::Disk);
    let prepare = |dir: &Path| write(dir, 60, Durability::Disk);
    assert!(with_each_sync_failing(disk, prepare, is_not_believed) > 3);
}

#[test]
fn failed_sync_after_power_loss_is_not_trusted_later() {
    for durability in [Durability::Os, Durability::Disk] {
        let prepare = |dir: &Path| {
            write(dir, 60, durability);
            lose_power(dir);
        };
        assert!(with_each_sync_failing(small().durability(durability), prepare, is_not_believed) > 3);
    }
}

#[test]
fn failed_sync_at_create_is_not_trusted_at_next_open() {
    let disk = small().durability(Durability::Disk);
    assert!(with_each_sync_failing(disk, |_| {}, is_not_believed) >= 4);
}

#[test]
fn log_poisoned_at_open_is_usable_after_cut() {
    for records in [0, 60] {
        let prepare = |dir: &Path| {
            if records > 0 {
                write(dir, records, Durability::Disk)
            }
        };
        with_each_sync_failing(small().durability(Durability::Disk), prepare, |dir, unfinished| {
            if !unfinished {
                let synced = inspect(dir).unwrap().stats.synced;
                cut(dir, synced).unwrap();
                let (_, recovery) = Writer::open(dir, small()).unwrap();
                assert_eq!(recovery.tail, synced);
            }
        });
    }
}

#[test]
fn cut_above_synced_end_of_poisoned_log_does_not_sync() {
    let dir = written(3, Durability::Disk);
    let device = Arc::new(FailsOnce::at(0));
    Writer::open(dir.path(), small().durability(Durability::Disk).device(device)).unwrap_err();
    let before = inspect(dir.path()).unwrap().stats;
    for _ in 0..2 {
        cut(dir.path(), before.written).unwrap();
        assert_eq!(inspect(dir.path()).unwrap().stats.synced, before.synced);
        assert!(matches!(Writer::open(dir.path(), small()), Err(OpenError::Poisoned { .. })));
    }
}

#[test]
fn failed_sync_at_replace_is_not_trusted_at_next_open() {
    for at in 0.. {
        let dir = written(9, Durability::Disk);
        let device = Arc::new(FailsOnce::at(at));
        let new = Replacement::begin(dir.path(), small().durability(Durability::Disk).device(device.clone()));
        let replaced = new.and_then(|mut new| {
            new.append(b"new").unwrap();
            new.complete()
        });
        if device.failed().is_none() {
            assert!(replaced.is_ok() && at > 10);
            return;
        }
        assert!(replaced.is_err(), "sync {at}");
        match Writer::open(dir.path(), small()) {
            Ok(_) => assert_eq!(payloads(dir.path()), (0..9).map(numbered).collect::<Vec<_>>(), "sync {at}"),
            Err(OpenError::Poisoned { errno: EIO, .. }) => {
                assert_eq!(payloads(dir.path()), [b"new"], "sync {at}")
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn bad_log_is_set_aside_by_empty_replacement() {
    let dir = written(9, Durability::Disk);
    common::flip_bit(&common::segment_file(dir.path(), 0), 64 + 9);
    assert!(matches!(Writer::open(dir.path(), small()), Err(OpenError::Damaged { .. })));
    let aside = Replacement::begin(dir.path(), small()).unwrap().complete().unwrap();
    assert!(aside.join("marks").exists() && common::segment_file(&aside, 0).exists());
    let (mut writer, recovery) = Writer::open(dir.path(), small()).unwrap();
    assert_eq!((recovery.tail, recovery.cut_bytes), (Offset(64), 0));
    writer.append(b"begun anew").unwrap();
    writer.publish();
    assert_eq!(payloads(dir.path()), [b"begun anew"]);
}

#[test]
fn log_with_lost_marks_can_be_replaced_and_keeps_all() {
    for lost in [false, true] {
        let dir = written(60, Durability::Os);
        let marks = dir.path().join("marks");
        if lost {
            std::fs::remove_file(&marks).unwrap()
        } else {
            common::flip_bit(&marks, 0)
        }
        assert!(Writer::open(dir.path(), small()).unwrap_err().is_damage());
        let mut new = Replacement::begin(dir.path(), small()).unwrap();
        assert_eq!(new.promised(), Offset(u64::MAX));
        let mut damaged = new.damaged().unwrap();
        while let Some(record) = damaged.next() {
            new.append(record.payload).unwrap();
        }
        new.complete().unwrap();
        assert_eq!(payloads(dir.path()), (0..60).map(numbered).collect::<Vec<_>>());
    }
}

#[test]
fn where_there_is_no_log_nothing_is_replaced() {
    let dir = tempdir().unwrap();
    assert!(matches!(Replacement::begin(dir.path(), small()), Err(OpenError::Foreign { .. })));
}

#[test]
fn a_log_of_another_version_is_no_damaged_one() {
    let dir = written(9, Durability::Os);
    common::overwrite(&dir.path().join("marks"), 8, &[9]);
    assert!(!Writer::open(dir.path(), small()).unwrap_err().is_damage());
    assert!(!Reader::at_start(dir.path()).unwrap_err().is_damage());
    assert!(Replacement::begin(dir.path(), small()).is_err());
}

#[test]
fn marks_that_say_more_is_released_than_ever_was_are_damage() {
    let dir = written(9, Durability::Os);
    common::flip_bit(&dir.path().join("marks"), 386);
    assert!(Writer::open(dir.path(), small()).unwrap_err().is_damage());
    assert!(Reader::at_start(dir.path()).unwrap_err().is_damage());
    assert!(
        pares_log::verify(dir.path(), &mut |_, _| ()).is_err(),
        "it has records, and no end of their release"
    );
}

#[test]
fn damaged_marks_without_segment_yield_empty_log() {
    let dir = tempdir().unwrap();
    std::fs::write(dir.path().join("marks"), [7; 8192]).unwrap();
    assert!(Writer::open(dir.path(), small()).unwrap_err().is_damage());
    Replacement::begin(dir.path(), small()).unwrap().complete().unwrap();
    assert_eq!(Writer::open(dir.path(), small()).unwrap().1.tail, Offset(64));
}

#[test]
fn pipe_in_place_of_log_file_is_refused_without_waiting() {
    let dir = written(9, Durability::Os);
    let segments = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let first = segments.filter(|path| path.extension().is_some_and(|end| end == "seg")).min().unwrap();
    let files = [dir.path().join("lock"), dir.path().join("marks"), first];
    for file in files {
        let aside = dir.path().with_extension("aside");
        std::fs::rename(&file, &aside).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RWXU).unwrap();
        let refused = Writer::open(dir.path(), small()).err();
        assert!(refused.as_ref().is_some_and(OpenError::is_damage), "{}: {refused:?}", file.display());
        std::fs::rename(&aside, &file).unwrap();
    }
    Writer::open(dir.path(), small()).unwrap();
}

#[test]
fn nobody_else_may_read_any_file_of_a_log() {
    let dir = written(3, Durability::Os);
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
    }
}
