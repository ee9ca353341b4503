//! Crashes, torn tails, bit rot: what is cut, what is kept, what is refused.
#![allow(clippy::unwrap_used)] // helpers of tests, too

mod common;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use common::{
    EIO, flip_bit, lose_power, numbered, overwrite, payloads, segment_file, small, wait_until, without,
    written,
};
use pares_log::{
    AppendError, Device, Durability, MarksReader, Offset, OpenError, ReadError, Reader, Recovery, Writer,
    cut, verify,
};
use proptest::prelude::*;
use tempfile::tempdir;

fn open(dir: &Path) -> Result<Recovery, OpenError> {
    Writer::open(dir, small()).map(|(_, recovery)| recovery)
}

#[test]
fn torn_tail_is_cut_at_last_whole_record() {
    let (whole, offsets) = written(4);
    let (start, end) = (offsets[3].0, offsets[4].0);
    for torn_at in start..end {
        let dir = tempdir().unwrap();
        for file in ["marks", "00000000000000000000.seg"] {
            std::fs::copy(whole.path().join(file), dir.path().join(file)).unwrap();
        }
        lose_power(dir.path());
        let segment = segment_file(dir.path(), 0);
        if torn_at % 2 == 0 {
            overwrite(&segment, torn_at, &vec![0; (end - torn_at) as usize]);
        } else {
            std::fs::File::options().write(true).open(&segment).unwrap().set_len(torn_at).unwrap();
        }
        let recovery = open(dir.path()).unwrap();
        assert_eq!((recovery.tail, recovery.lost_bytes), (Offset(start), end - start), "torn at {torn_at}");
        assert_eq!(payloads(dir.path()), (0..3).map(numbered).collect::<Vec<_>>());
    }
}

#[test]
fn torn_record_remains_are_zeroed_and_never_return() {
    let (dir, offsets) = written(3);
    lose_power(dir.path());
    flip_bit(&segment_file(dir.path(), 0), offsets[1].0 + 9);
    assert_eq!(open(dir.path()).unwrap().cut_bytes, offsets[3].0 - offsets[1].0);
    let bytes = std::fs::read(segment_file(dir.path(), 0)).unwrap();
    assert!(bytes[offsets[1].0 as usize..].iter().all(|&b| b == 0));
}

#[test]
fn a_torn_record_takes_the_segments_behind_it_along() {
    let (dir, offsets) = written(100);
    lose_power(dir.path());
    flip_bit(&segment_file(dir.path(), 0), offsets[2].0 + 9);
    assert_eq!(open(dir.path()).unwrap().tail, offsets[2]);
    assert_eq!(payloads(dir.path()), (0..2).map(numbered).collect::<Vec<_>>());
}

#[test]
fn a_flipped_bit_below_synced_is_damage_and_never_cut() {
    let dir = tempdir().unwrap();
    let (mut writer, _) = Writer::open(dir.path(), small().durability(Durability::Disk)).unwrap();
    let offsets: Vec<_> = (0..5).map(|i| writer.append(&numbered(i)).unwrap()).collect();
    let synced = writer.sync().unwrap();
    drop(writer);
    lose_power(dir.path());
    flip_bit(&segment_file(dir.path(), 0), offsets[2].0 + 9);
    for _ in 0..2 {
        let refused = open(dir.path()).unwrap_err();
        let OpenError::Damaged { offset, promised, .. } = refused else { panic!("{refused}") };
        assert_eq!((offset, promised), (offsets[2], synced));
    }
}

#[test]
fn without_a_reboot_everything_published_is_promised() {
    let (dir, offsets) = written(5);
    flip_bit(&segment_file(dir.path(), 0), offsets[4].0 + 9);
    let refused = open(dir.path()).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { offset, .. } if offset == offsets[4]), "{refused}");
}

#[test]
fn zeros_and_missing_files_below_the_promise_are_damage_too() {
    let (dir, offsets) = written(5);
    overwrite(&segment_file(dir.path(), 0), offsets[3].0, &[0; 64]);
    assert!(matches!(open(dir.path()), Err(OpenError::Damaged { offset, .. }) if offset == offsets[3]));
    std::fs::remove_file(segment_file(dir.path(), 0)).unwrap();
    assert!(matches!(open(dir.path()), Err(OpenError::Damaged { offset: Offset(64), .. })));
}

#[test]
fn segments_whose_marks_are_lost_are_refused_and_kept() {
    let (dir, _) = written(5);
    std::fs::remove_file(dir.path().join("marks")).unwrap();
    let refused = open(dir.path()).unwrap_err();
    // What to do is its reader's to say: it differs between an exchange and a site.
    assert!(matches!(refused, OpenError::Foreign { .. }) && refused.to_string().ends_with("is missing"));
    assert!(segment_file(dir.path(), 0).exists());
}

#[test]
fn verify_names_the_exact_offset_of_damage_in_the_middle() {
    let (dir, offsets) = written(100);
    let hit = offsets.iter().find(|o| o.0 > 2 * 4096 + 500).unwrap();
    flip_bit(&segment_file(dir.path(), 2 * 4096), hit.0 % 4096 + 9);
    let found = verify(dir.path(), &mut |_, _| {}).unwrap();
    let damage: Vec<_> = found.damage.iter().map(|d| (d.offset, d.until)).collect();
    assert_eq!(damage, [(*hit, Offset(3 * 4096))]);
    let mut reader = Reader::open(dir.path(), *hit).unwrap();
    assert!(matches!(reader.next(), Err(ReadError::Damaged { offset, .. }) if offset == *hit));
}

#[test]
fn cutting_at_the_damage_makes_the_log_usable_again() {
    let (dir, offsets) = written(100);
    flip_bit(&segment_file(dir.path(), 4096), 64 + 9);
    let damage = verify(dir.path(), &mut |_, _| {}).unwrap().damage[0].offset;
    assert!(matches!(cut(dir.path(), Offset(damage.0 - 4)), Err(OpenError::NotABoundary { .. })));
    assert!(cut(dir.path(), damage).unwrap() > 0);
    assert_eq!(open(dir.path()).unwrap().tail, damage);
    let kept = offsets.iter().filter(|&&o| o < damage).count() as u32;
    assert_eq!(payloads(dir.path()), (0..kept).map(numbered).collect::<Vec<_>>());
}

/// All whole records, damage skipped, and that no place was passed twice.
fn read_past_damage(reader: &mut Reader) -> Vec<(Offset, Vec<u8>)> {
    let mut all: Vec<(Offset, Vec<u8>)> = Vec::new();
    loop {
        match reader.next() {
            Ok(None) => break,
            Ok(Some(record)) => all.push((record.offset, record.payload.to_vec())),
            Err(error) => {
                assert!(error.is_damage(), "{error}");
                let stood = reader.offset();
                assert!(reader.skip_damage() >= stood);
            }
        }
    }
    assert!(all.is_sorted_by(|a, b| a.0 < b.0), "out of order, or twice");
    all
}

fn past_damage(dir: &Path) -> Vec<(Offset, Vec<u8>)> {
    read_past_damage(&mut Reader::at_start(dir).unwrap())
}

#[test]
fn a_reader_skips_a_record_whichever_byte_of_it_is_damaged() {
    let (dir, offsets) = written(60);
    for byte in offsets[5].0..offsets[6].0 {
        flip_bit(&segment_file(dir.path(), 0), byte);
        assert_eq!(past_damage(dir.path()), without(&offsets, |i| i == 5), "byte {byte}");
        flip_bit(&segment_file(dir.path(), 0), byte);
    }
}

#[test]
fn reader_past_damaged_last_record_gets_later_ones() {
    let (dir, offsets) = written(5);
    let mut reader = Reader::at_start(dir.path()).unwrap();
    flip_bit(&segment_file(dir.path(), 0), offsets[4].0);
    assert_eq!(read_past_damage(&mut reader), without(&offsets, |i| i == 4));
    assert_eq!(reader.offset(), offsets[5]);
    flip_bit(&segment_file(dir.path(), 0), offsets[4].0);
    let (mut writer, _) = Writer::open(dir.path(), small()).unwrap();
    let later = writer.append(b"later").unwrap();
    writer.publish();
    assert_eq!(read_past_damage(&mut reader), [(later, b"later".to_vec())]);
}

#[test]
fn a_reader_skips_damage_across_the_boundary_of_segments() {
    let (dir, offsets) = written(60);
    let (from, to) = (3000, 4096 + 900);
    overwrite(&segment_file(dir.path(), 0), from, &[0xff; 1096]);
    overwrite(&segment_file(dir.path(), 4096), 64, &[0xff; 836]);
    let is_hit = |i: usize| offsets[i + 1].0 > from && offsets[i].0 < to;
    assert_eq!(past_damage(dir.path()), without(&offsets, is_hit));
}

#[test]
fn reader_survives_damaged_header_and_skips_lost_segment() {
    let (dir, offsets) = written(200);
    let segment = |i: usize| offsets[i].0 / 4096;
    for header in 0..64 {
        flip_bit(&segment_file(dir.path(), 4096), header);
        assert_eq!(past_damage(dir.path()), without(&offsets, |_| false), "byte {header}");
        flip_bit(&segment_file(dir.path(), 4096), header);
    }
    std::fs::write(segment_file(dir.path(), 2 * 4096), b"").unwrap();
    assert_eq!(past_damage(dir.path()), without(&offsets, |i| segment(i) == 2));
    std::fs::remove_file(segment_file(dir.path(), 2 * 4096)).unwrap();
    assert_eq!(past_damage(dir.path()), without(&offsets, |i| segment(i) == 2));
    let short = std::fs::File::options().write(true).open(segment_file(dir.path(), 3 * 4096)).unwrap();
    short.set_len(2048).unwrap();
    let is_cut = |i: usize| segment(i) == 3 && offsets[i + 1].0 > 3 * 4096 + 2048;
    assert_eq!(past_damage(dir.path()), without(&offsets, |i| segment(i) == 2 || is_cut(i)));
}

#[test]
fn a_reader_whose_last_segment_is_gone_waits_at_the_end() {
    let (dir, offsets) = written(60);
    let (end, last) = (offsets[60], offsets[59].0 / 4096);
    std::fs::remove_file(segment_file(dir.path(), last * 4096)).unwrap();
    let mut reader = Reader::at_start(dir.path()).unwrap();
    assert_eq!(read_past_damage(&mut reader), without(&offsets, |i| offsets[i].0 / 4096 == last));
    assert_eq!(reader.offset(), end);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn overwritten_bytes_leave_all_other_records_readable(
        hits in prop::collection::vec((64..12_000u64, prop::collection::vec(any::<u8>(), 1..400)), 1..5),
    ) {
        let (dir, offsets) = written(80);
        let mut ranges = Vec::new();
        for (at, bytes) in &hits {
            let path = segment_file(dir.path(), at - at % 4096);
            let len = bytes.len().min((4096 - at % 4096) as usize);
            overwrite(&path, at % 4096, &bytes[..len]);
            ranges.push(*at..*at + len as u64);
        }
        let is_hit = |i: usize| ranges.iter().any(|r| r.start < offsets[i + 1].0 && r.end > offsets[i].0);
        let (found, whole) = (past_damage(dir.path()), without(&offsets, |_| false));
        prop_assert!(without(&offsets, is_hit).iter().all(|record| found.contains(record)));
        prop_assert!(found.iter().all(|record| whole.contains(record)));
    }
}

#[derive(Debug, Clone)]
enum Operation {
    Append(usize),
    Publish,
    Sync,
    Reopen,
    /// Power is lost, and of what was not synced the last bytes never reached the device.
    Crash(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        20 => (0..=1000usize).prop_map(Operation::Append),
        5 => Just(Operation::Publish),
        2 => Just(Operation::Sync),
        1 => Just(Operation::Reopen),
        1 => (0..3000usize).prop_map(Operation::Crash),
    ]
}

/// Zeroes the last `bytes` below `tail`, but nothing below `synced`, whichever segments they lie in.
fn wipe(dir: &Path, synced: u64, tail: u64, bytes: usize) {
    for at in tail.saturating_sub(bytes as u64).max(synced)..tail {
        let path = segment_file(dir, at - at % 4096);
        if path.exists() && at % 4096 >= 64 {
            overwrite(&path, at % 4096, &[0]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn log_is_always_a_prefix_with_all_synced_records(
        operations in prop::collection::vec(operation(), 1..120),
    ) {
        let dir = tempdir().unwrap();
        let open = || Writer::open(dir.path(), small().durability(Durability::Disk)).unwrap();
        let (mut writer, mut model, mut synced) = (open().0, Vec::new(), 0);
        for (i, operation) in operations.iter().enumerate() {
            match operation {
                Operation::Append(len) => {
                    let payload = vec![i as u8 | 1; *len];
                    model.push((writer.append(&payload).unwrap(), payload));
                }
                Operation::Publish => drop(writer.publish().to_string()),
                Operation::Sync => {
                    writer.sync().unwrap();
                    synced = model.len();
                }
                Operation::Reopen => {
                    drop(writer);
                    let (log, recovery) = open();
                    prop_assert_eq!((recovery.cut_bytes, recovery.lost_bytes), (0, 0));
                    (writer, synced) = (log, model.len());
                }
                Operation::Crash(bytes) => {
                    let (tail, mark) = (writer.tail().0, Reader::at_start(dir.path()).unwrap().marks().stats().synced.0);
                    drop(writer);
                    lose_power(dir.path());
                    wipe(dir.path(), mark, tail, *bytes);
                    let (log, recovery) = open();
                    model.retain(|(offset, _)| *offset < recovery.tail);
                    prop_assert!(model.len() >= synced, "synced records were lost");
                    (writer, synced) = (log, model.len());
                }
            }
        }
        writer.publish();
        let mut reader = Reader::open(dir.path(), Offset::START).unwrap();
        for (offset, payload) in &model {
            let record = reader.next().unwrap().unwrap();
            prop_assert_eq!((record.offset, record.payload), (*offset, &payload[..]));
        }
        prop_assert!(reader.next().unwrap().is_none());
    }
}

#[test]
fn reader_waits_before_inaccessible_segment() {
    let (dir, _) = written(60);
    flip_bit(&segment_file(dir.path(), 0), 64);
    overwrite(&segment_file(dir.path(), 0), 72, &[0xff; 4000]);
    // As with too many open files: an error, and no damage.
    std::fs::remove_file(segment_file(dir.path(), 4096)).unwrap();
    std::fs::create_dir(segment_file(dir.path(), 4096)).unwrap();
    let mut reader = Reader::at_start(dir.path()).unwrap();
    for _ in 0..2 {
        assert_eq!(reader.skip_damage(), Offset(4096 + 64));
        assert!(!reader.next().unwrap_err().is_damage());
    }
}

/// A device that keeps no name of a segment made ahead, and gives segments back only once that is known.
#[derive(Debug, Default)]
struct Racing {
    dir: Mutex<Option<PathBuf>>,
}

impl Device for Racing {
    fn sync(&self, path: &Path, file: &File) -> io::Result<()> {
        let dir = self.dir.lock().unwrap().clone();
        if let (Some(dir), true) = (dir, path.extension().is_some_and(|extension| extension == "seg")) {
            wait_until(|| MarksReader::open(&dir).unwrap().stats().poisoned != 0);
        }
        file.sync_data()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        match std::thread::current().name() {
            Some("log-prepare") => {
                wait_until(|| self.dir.lock().unwrap().is_some());
                Err(io::Error::from_raw_os_error(EIO))
            }
            _ => File::open(dir)?.sync_all(),
        }
    }
}

#[test]
fn a_sync_during_which_the_log_is_poisoned_promises_nothing() {
    let dir = tempdir().unwrap();
    let racing = Arc::new(Racing::default());
    let config = small().durability(Durability::Disk).device(racing.clone());
    let (mut writer, _) = Writer::open(dir.path(), config).unwrap();
    writer.append(b"on the device").unwrap();
    *racing.dir.lock().unwrap() = Some(dir.path().to_owned());
    assert_eq!(writer.sync(), Err(AppendError::Poisoned { errno: EIO }));
}
