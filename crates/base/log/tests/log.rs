//! The log as its users see it: writing, tailing, rolling, releasing, refusing.
#![allow(clippy::unwrap_used)] // helpers of tests, too

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use common::{EIO, EMFILE, ENFILE, ENOSPC, Held, Sick, numbered, payloads, small, wait_until};
use pares_log::{
    AppendError, Config, Durability, MarksReader, Offset, OpenError, ReadError, Reader, Recovery, Writer,
    verify,
};
use tempfile::{TempDir, tempdir};

fn new_log(config: Config) -> (TempDir, Writer) {
    let dir = tempdir().unwrap();
    let (writer, _) = Writer::open(&dir.path().join("log"), config).unwrap();
    (dir, writer)
}

fn log_of(dir: &TempDir) -> std::path::PathBuf {
    dir.path().join("log")
}

fn drain(reader: &mut Reader) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push(record.payload.to_vec());
    }
    all
}

#[test]
fn a_reader_can_tell_that_another_log_took_the_place_of_its_own() {
    let (dir, mut writer) = new_log(small());
    writer.append(b"old").unwrap();
    writer.publish();
    let mut reader = Reader::open(&log_of(&dir), Offset::START).unwrap();
    assert_eq!(drain(&mut reader), [b"old"]);
    drop(writer);
    assert!(!reader.is_replaced());
    std::fs::remove_dir_all(log_of(&dir)).unwrap();
    assert!(!reader.is_replaced(), "there is no other yet");
    Writer::open(&log_of(&dir), small()).unwrap();
    assert!(reader.is_replaced());
    reader.seek(Offset::START).unwrap();
    assert_eq!(drain(&mut reader), [b"old"], "what is mapped stays readable");
    assert!(!Reader::open(&log_of(&dir), Offset::START).unwrap().is_replaced());
}

#[test]
fn a_record_is_readable_once_published_and_not_before() {
    let (dir, mut writer) = new_log(small());
    let mut reader = Reader::open(&log_of(&dir), Offset::START).unwrap();
    let offset = writer.append(b"one").unwrap();
    assert!(reader.next().unwrap().is_none());
    writer.publish();
    let record = reader.next().unwrap().unwrap();
    assert_eq!((record.offset, record.payload), (offset, &b"one"[..]));
    assert_eq!((reader.written(), reader.durable()), (writer.tail(), writer.tail()));
}

#[test]
fn records_of_every_size_are_read_back_across_rolls() {
    let (dir, mut writer) = new_log(small());
    let expected: Vec<_> = (0..500).map(numbered).collect();
    let mut offsets = Vec::new();
    for payload in &expected {
        offsets.push(writer.append_with(payload.len(), |bytes| bytes.copy_from_slice(payload)).unwrap());
        writer.publish();
    }
    let mut reader = Reader::open(&log_of(&dir), Offset::START).unwrap();
    assert_eq!(drain(&mut reader), expected);
    assert!(MarksReader::open(&log_of(&dir)).unwrap().stats().rolls > 10);
    for (offset, payload) in offsets.iter().zip(&expected).rev() {
        assert_eq!(reader.read_at(*offset).unwrap().payload, payload);
    }
}

#[test]
fn record_filling_segment_exactly_needs_no_pad() {
    let (dir, mut writer) = new_log(small());
    let len = 1016;
    let expected: Vec<_> =
        (0..9u8).map(|i| vec![i; if i == 3 { 4096 - 64 - 3 * 1024 - 8 } else { len }]).collect();
    for payload in &expected {
        writer.append(payload).unwrap();
    }
    writer.publish();
    drop(writer);
    let (writer, recovery) = Writer::open(&log_of(&dir), small()).unwrap();
    assert_eq!((recovery.tail, recovery.cut_bytes), (writer.tail(), 0));
    assert_eq!(payloads(&log_of(&dir)), expected);
}

#[test]
fn whole_records_beyond_the_written_mark_are_kept() {
    let (dir, mut writer) = new_log(small());
    writer.append(b"published").unwrap();
    writer.publish();
    writer.append(b"appended only").unwrap();
    drop(writer);
    let (_writer, recovery) = Writer::open(&log_of(&dir), small()).unwrap();
    assert_eq!((recovery.kept_unpublished_bytes, recovery.cut_bytes), (24, 0));
    assert_eq!(payloads(&log_of(&dir)), [&b"published"[..], b"appended only"]);
}

#[test]
fn a_second_writer_is_refused_and_told_who_holds_the_log() {
    let (dir, _writer) = new_log(small());
    let refused = Writer::open(&log_of(&dir), small()).unwrap_err();
    assert!(matches!(refused, OpenError::Locked { pid, .. } if pid == std::process::id()), "{refused}");
}

#[test]
fn oversized_record_is_refused_without_change() {
    let (dir, mut writer) = new_log(small());
    let max = writer.payload_bytes_max();
    assert_eq!(writer.append(&vec![0; max + 1]), Err(AppendError::TooLarge { len: max + 1, max }));
    writer.append(&vec![7; max]).unwrap();
    writer.publish();
    assert_eq!(payloads(&log_of(&dir)), [vec![7; max]]);
}

#[test]
fn a_reader_resumes_at_the_offset_it_had_reached() {
    let (dir, mut writer) = new_log(small());
    let mut reader = Reader::open(&log_of(&dir), Offset::START).unwrap();
    for n in 0..200 {
        writer.append(&numbered(n)).unwrap();
        writer.publish();
        assert_eq!(reader.next().unwrap().unwrap().payload, numbered(n));
        let here = reader.offset();
        reader = Reader::open(&log_of(&dir), here).unwrap();
    }
    assert!(Reader::at_end(&log_of(&dir)).unwrap().next().unwrap().is_none());
}

#[test]
fn a_reader_of_a_log_that_does_not_exist_is_told_to_try_later() {
    let dir = tempdir().unwrap();
    assert!(matches!(Reader::open(dir.path(), Offset::START), Err(ReadError::NotYet { .. })));
}

#[test]
fn an_offset_beyond_the_end_or_inside_a_record_is_an_error() {
    let (dir, mut writer) = new_log(small());
    let offset = writer.append(b"a record of some length").unwrap();
    let end = writer.publish();
    let beyond = Offset(end.0 + 8);
    assert!(matches!(Reader::open(&log_of(&dir), beyond), Err(ReadError::BeyondEnd { .. })));
    let mut reader = Reader::open(&log_of(&dir), Offset(offset.0 + 8)).unwrap();
    assert!(matches!(reader.next(), Err(ReadError::Damaged { .. })));
    assert!(matches!(reader.read_at(Offset(offset.0 + 3)), Err(ReadError::Damaged { .. })));
    assert!(matches!(reader.read_at(end), Err(ReadError::BeyondEnd { .. })));
}

#[test]
fn released_segments_go_and_a_reader_in_one_finishes_it_first() {
    let (dir, mut writer) = new_log(small());
    let log = log_of(&dir);
    let mut reader = Reader::open(&log, Offset::START).unwrap();
    for n in 0..200 {
        writer.append(&numbered(n)).unwrap();
    }
    writer.publish();
    assert_eq!(reader.next().unwrap().unwrap().payload, numbered(0));
    let first = writer.release_before(writer.tail());
    wait_until(|| !log.join(format!("{:020}.seg", 0)).exists());
    let mut read = 1;
    let stopped = loop {
        match reader.next() {
            Ok(record) => assert_eq!(record.unwrap().payload, numbered(read)),
            Err(e) => break e,
        }
        read += 1;
    };
    assert!(matches!(stopped, ReadError::Released { first: f, .. } if f == first), "{stopped}");
    assert!(read > 2 && reader.offset().0 == 4096 + 64, "all of the first segment was read");
    assert!(matches!(Reader::open(&log, Offset::START), Err(ReadError::Released { .. })));
    let rest = drain(&mut Reader::at_start(&log).unwrap());
    assert_eq!(rest.last().unwrap(), &numbered(199));
    drop(writer);
    assert!(Writer::open(&log, small()).is_ok());
}

#[test]
fn disk_durability_follows_the_sync_and_not_the_publish() {
    let (dir, mut writer) = new_log(small().durability(Durability::Disk));
    let reader = Reader::open(&log_of(&dir), Offset::START).unwrap();
    let before = reader.durable();
    for n in 0..100 {
        writer.append(&numbered(n)).unwrap();
    }
    let end = writer.publish();
    assert_eq!((reader.written(), reader.durable()), (end, before));
    let syncer = writer.syncer();
    assert_eq!(std::thread::spawn(move || syncer.sync_to_written()).join().unwrap(), Ok(end));
    assert_eq!((reader.durable(), reader.marks().stats().synced), (end, end));
    assert_eq!(reader.marks().sync_latency().len(), 1);
}

#[test]
fn a_failed_sync_poisons_the_log_for_good() {
    let sick = Arc::new(Sick::default());
    let (dir, mut writer) = new_log(small().durability(Durability::Disk).device(sick.clone()));
    writer.append(b"safe").unwrap();
    let safe = writer.sync().unwrap();
    writer.append(b"lost").unwrap();
    sick.sync.store(EIO, Ordering::Relaxed);
    assert_eq!(writer.sync(), Err(AppendError::Poisoned { errno: EIO }));
    sick.sync.store(0, Ordering::Relaxed);
    assert_eq!(writer.sync(), Err(AppendError::Poisoned { errno: EIO }));
    assert_eq!(writer.append(b"more"), Err(AppendError::Poisoned { errno: EIO }));
    let reader = Reader::open(&log_of(&dir), Offset::START).unwrap();
    assert_eq!((reader.durable(), reader.poisoned()), (safe, Some(EIO)));
    drop(writer);
    let refused = Writer::open(&log_of(&dir), small()).unwrap_err();
    assert!(matches!(refused, OpenError::Poisoned { errno: EIO, synced } if synced == safe), "{refused}");
    pares_log::cut(&log_of(&dir), safe).unwrap();
    let (_writer, recovery) = Writer::open(&log_of(&dir), small()).unwrap();
    assert_eq!((recovery.tail, payloads(&log_of(&dir))), (safe, vec![b"safe".to_vec()]));
}

/// Appends until the log refuses because `fault` keeps it from making a segment; once it does not, the log continues.
fn refuses_until_it_can_make_a_segment(
    durability: Durability,
    errno: i32,
    fault: impl Fn(&Sick) -> &AtomicI32,
) {
    let sick = Arc::new(Sick::default());
    let (dir, mut writer) = new_log(small().durability(durability).device(sick.clone()));
    fault(&sick).store(errno, Ordering::Relaxed);
    let mut accepted = Vec::new();
    let refused = (0..).map(numbered).find_map(|payload| match writer.append(&payload) {
        Ok(_) => {
            accepted.push(payload);
            None
        }
        Err(e) => Some(e),
    });
    assert_eq!(refused, Some(AppendError::Full), "{errno}");
    writer.publish();
    assert_eq!(payloads(&log_of(&dir)), accepted);
    fault(&sick).store(0, Ordering::Relaxed);
    wait_until(|| writer.append(b"room again").is_ok());
    writer.sync().unwrap();
    accepted.push(b"room again".to_vec());
    assert_eq!(payloads(&log_of(&dir)), accepted);
    assert_eq!(MarksReader::open(&log_of(&dir)).unwrap().stats().poisoned, 0);
}

#[test]
fn a_full_disk_refuses_and_room_makes_it_go_on() {
    refuses_until_it_can_make_a_segment(Durability::Os, ENOSPC, |sick| &sick.make);
}

#[test]
fn out_of_descriptors_refuses_without_poisoning() {
    for errno in [EMFILE, ENFILE] {
        for durability in [Durability::Os, Durability::Disk] {
            refuses_until_it_can_make_a_segment(durability, errno, |sick| &sick.make);
        }
        // The directory has to be opened for its sync.
        refuses_until_it_can_make_a_segment(Durability::Disk, errno, |sick| &sick.sync_dir);
    }
}

#[test]
fn roll_without_prepared_segment_is_inline_and_counted() {
    let sick = Arc::new(Sick::default());
    sick.ahead.store(ENOSPC, Ordering::Relaxed);
    let dir = tempdir().unwrap();
    let (mut writer, _) = Writer::open(dir.path(), small().device(sick)).unwrap();
    let expected: Vec<_> = (0..100).map(numbered).collect();
    for payload in &expected {
        writer.append(payload).unwrap();
    }
    writer.publish();
    assert_eq!(payloads(dir.path()), expected);
    let stats = MarksReader::open(dir.path()).unwrap().stats();
    assert!(stats.rolls > 1 && stats.rolls_unprepared == stats.rolls, "{stats:?}");
}

#[test]
fn log_without_inline_creation_waits_for_segment() {
    let sick = Arc::new(Sick { ahead: AtomicI32::new(ENOSPC), ..Sick::default() });
    let (dir, mut writer) = new_log(small().prepared_only().device(sick.clone()));
    while writer.append(&[1; 500]).is_ok() {}
    assert!(matches!(writer.append(&[1; 500]), Err(AppendError::Full)));
    sick.ahead.store(0, Ordering::Relaxed);
    wait_until(|| writer.append(&[2; 500]).is_ok());
    let stats = MarksReader::open(&log_of(&dir)).unwrap().stats();
    assert_eq!((stats.rolls, stats.rolls_unprepared), (1, 0));
}

#[test]
fn a_prepared_segment_is_taken_at_the_roll() {
    let (dir, mut writer) = new_log(small());
    let marks = MarksReader::open(&log_of(&dir)).unwrap();
    for rolls in 1..4 {
        wait_until(|| marks.stats().segments_prepared >= rolls);
        while marks.stats().rolls < rolls {
            writer.append(&[1; 500]).unwrap();
        }
        writer.publish();
    }
    assert_eq!(marks.stats().rolls_unprepared, 0);
}

#[test]
fn first_append_and_one_in_32_enter_latency_histogram() {
    let (dir, mut writer) = new_log(Config::default());
    for _ in 0..3 {
        for _ in 0..40 {
            writer.append(b"x").unwrap();
        }
        writer.publish();
    }
    let marks = MarksReader::open(&log_of(&dir)).unwrap();
    assert_eq!((marks.append_latency().len(), marks.stats().appends), (6, 120));
}

#[test]
fn known_records_are_skipped_whatever_their_checksum() {
    let (dir, mut writer) = new_log(Config::default());
    for n in 0..3 {
        writer.append(&numbered(n)).unwrap();
    }
    let end = writer.publish();
    writer.append(&numbered(3)).unwrap();
    let mut reader = Reader::open(&log_of(&dir), Offset::START).unwrap();
    assert!(!reader.pass_if(end, |_| true), "its segment is not looked at yet");
    assert_eq!(reader.next().unwrap().unwrap().payload, numbered(0));
    let segment = log_of(&dir).join(format!("{:020}.seg", 0));
    let file = std::fs::OpenOptions::new().write(true).open(segment).unwrap();
    let second_byte = reader.offset().0 + pares_log::record::HEADER_BYTES as u64 + 1;
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xff], second_byte).unwrap();
    assert!(!reader.pass_if(end, |_| false));
    assert!(reader.next().is_err(), "it stands before the damage");
    assert!(reader.pass_if(end, |payload| payload[0] == numbered(1)[0]));
    assert_eq!(reader.next().unwrap().unwrap().payload, numbered(2));
    assert!(!reader.pass_if(Offset(u64::MAX), |_| true), "not published");
}

#[test]
fn verify_counts_all_records_and_finds_none_damaged() {
    let (dir, mut writer) = new_log(small());
    for n in 0..300 {
        writer.append(&numbered(n)).unwrap();
    }
    writer.publish();
    let mut progress = Vec::new();
    let found = verify(&log_of(&dir), &mut |done, all| progress.push((done, all))).unwrap();
    assert_eq!((found.records, found.damage.len()), (300, 0));
    assert!(progress.windows(2).all(|w| w[0].0 < w[1].0) && progress.last().is_some_and(|p| p.0 == p.1));
}

#[test]
fn a_new_log_says_so() {
    let dir = tempdir().unwrap();
    let (writer, recovery) = Writer::open(dir.path(), small()).unwrap();
    assert_eq!(recovery, Recovery { created: true, tail: writer.tail(), ..Recovery::default() });
}

#[test]
fn segment_is_written_only_after_its_name_is_durable() {
    let held = Arc::new(Held::default());
    let (_dir, mut writer) = new_log(small().durability(Durability::Disk).device(held.clone()));
    wait_until(|| held.waiting.load(Ordering::Acquire));
    let before = *held.others.lock().unwrap();
    while writer.append(&[1; 1000]).unwrap().0 < 4096 {}
    let after = *held.others.lock().unwrap();
    held.let_go.store(true, Ordering::Release);
    assert_eq!(after, before + 1);
}

#[test]
fn first_segment_name_is_durable_before_syncs_count() {
    let held = Arc::new(Held::default());
    held.let_go.store(true, Ordering::Release);
    let (_dir, mut writer) = new_log(small().durability(Durability::Os).device(held.clone()));
    let before = *held.others.lock().unwrap();
    writer.append(b"first").unwrap();
    writer.sync().unwrap();
    assert_eq!(*held.others.lock().unwrap(), before + 1);
    writer.append(b"second").unwrap();
    writer.sync().unwrap();
    assert_eq!(*held.others.lock().unwrap(), before + 1, "once is enough");
}

#[test]
fn prepared_segment_with_unkeepable_name_poisons_log() {
    let sick = Arc::new(Sick::default());
    let (dir, mut writer) = new_log(small().durability(Durability::Disk).device(sick.clone()));
    let marks = MarksReader::open(&log_of(&dir)).unwrap();
    wait_until(|| marks.stats().segments_prepared == 1);
    sick.sync_dir.store(EIO, Ordering::Relaxed);
    while writer.append(&[1; 1000]).unwrap().0 < 4096 {}
    wait_until(|| marks.stats().poisoned == EIO);
    assert_eq!(writer.append(b"more"), Err(AppendError::Poisoned { errno: EIO }));
}

#[test]
fn reader_at_start_begins_there_as_start_moves() {
    let (dir, mut writer) = new_log(small());
    let (log, stop) = (log_of(&dir), Arc::new(AtomicBool::new(false)));
    let stopped = stop.clone();
    let releasing = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            writer.append(&[1; 1000]).unwrap();
            let end = writer.publish();
            writer.release_before(end);
        }
    });
    for _ in 0..3000 {
        Reader::at_start(&log).unwrap().next().unwrap();
        Reader::at_end(&log).unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    releasing.join().unwrap();
}
