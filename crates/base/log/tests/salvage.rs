//! What is left of a damaged log, and another one in its place.
#![allow(clippy::unwrap_used)] // helpers of tests, too

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use common::{
    Sick, flip_bit, lose_power, numbered, overwrite, payloads, segment_file, small, without, written,
};
use pares_log::{Durability, Offset, OpenError, Reader, Replacement, Salvage, Writer, verify};
use proptest::prelude::*;
use tempfile::tempdir;

fn salvaged(mut salvage: Salvage) -> Vec<(Offset, Vec<u8>)> {
    std::iter::from_fn(|| salvage.next().map(|record| (record.offset, record.payload.to_vec()))).collect()
}

fn published(dir: &Path) -> Vec<(Offset, Vec<u8>)> {
    salvaged(Salvage::published(dir).unwrap())
}

#[test]
fn records_behind_damage_are_found_whatever_is_damaged_of_one() {
    let (dir, offsets) = written(60);
    let file = segment_file(dir.path(), 0);
    assert!(offsets[7].0 < 4096);
    for byte in offsets[5].0..offsets[6].0 {
        flip_bit(&file, byte);
        assert_eq!(published(dir.path()), without(&offsets, |i| i == 5), "byte {byte}");
        flip_bit(&file, byte);
    }
}

#[test]
fn lost_page_header_or_segment_costs_only_its_content() {
    let (dir, offsets) = written(200);
    let at = |segment: u64| offsets.iter().enumerate().filter(move |(_, o)| o.0 / 4096 == segment);
    overwrite(&segment_file(dir.path(), 4096), 0, &[0; 64]);
    assert_eq!(published(dir.path()), without(&offsets, |_| false));
    std::fs::remove_file(segment_file(dir.path(), 2 * 4096)).unwrap();
    let half = std::fs::File::options().write(true).open(segment_file(dir.path(), 3 * 4096)).unwrap();
    half.set_len(2048).unwrap();
    let gone: Vec<_> = at(2).chain(at(3).filter(|(_, o)| o.0 % 4096 > 1_700)).map(|(i, _)| i).collect();
    let left = published(dir.path());
    assert!(without(&offsets, |i| gone.contains(&i)).iter().all(|record| left.contains(record)));
    assert!(
        left.iter()
            .all(|(offset, _)| offset.0 / 4096 != 2 && offset.0 < 3 * 4096 + 2048 || offset.0 >= 4 * 4096)
    );
}

#[test]
fn a_record_is_looked_up_by_its_offset_and_damage_is_none() {
    let (dir, offsets) = written(60);
    flip_bit(&segment_file(dir.path(), 0), offsets[2].0 + 9);
    let mut salvage = Salvage::published(dir.path()).unwrap();
    for i in [59, 3, 40, 0] {
        assert_eq!(salvage.read_at(offsets[i]).unwrap().payload, numbered(i as u32));
    }
    assert_eq!(salvage.read_at(offsets[2]), None);
    assert_eq!(salvage.read_at(Offset(offsets[3].0 + 8)), None);
    assert_eq!(salvage.read_at(Offset(1 << 40)), None);
}

#[test]
fn of_a_log_that_is_written_only_what_is_published_is_read() {
    let dir = tempdir().unwrap();
    let (mut writer, _) = Writer::open(dir.path(), small()).unwrap();
    writer.append(b"published").unwrap();
    writer.publish();
    writer.append(b"not yet").unwrap();
    assert_eq!(published(dir.path()), [(Offset(64), b"published".to_vec())]);
}

#[test]
fn data_past_marks_after_power_loss_are_salvaged() {
    let (dir, offsets) = written(3);
    lose_power(dir.path());
    let new = Replacement::begin(dir.path(), small()).unwrap();
    assert_eq!(new.promised(), Offset(64), "nothing was synced");
    assert_eq!(salvaged(new.damaged().unwrap()), without(&offsets, |_| false));
}

#[test]
fn a_poisoned_log_is_replaced_by_one_that_takes_records_again() {
    let dir = tempdir().unwrap();
    let sick = Arc::new(Sick::default());
    let disk = small().durability(Durability::Disk);
    let (mut writer, _) = Writer::open(dir.path(), disk.clone().device(sick.clone())).unwrap();
    writer.append(b"synced").unwrap();
    let synced = writer.sync().unwrap();
    writer.append(b"not synced").unwrap();
    sick.sync.store(5, Ordering::Relaxed);
    writer.sync().unwrap_err();
    drop(writer);
    assert!(matches!(Writer::open(dir.path(), disk.clone()), Err(OpenError::Poisoned { .. })));
    let mut new = Replacement::begin(dir.path(), disk.clone()).unwrap();
    assert_eq!(new.promised(), synced);
    for (_, payload) in salvaged(new.damaged().unwrap()) {
        new.append(&payload).unwrap();
    }
    let mut reader = Reader::at_end(dir.path()).unwrap();
    new.complete().unwrap();
    assert!(reader.is_replaced() && reader.next().unwrap().is_none());
    let (mut writer, _) = Writer::open(dir.path(), disk).unwrap();
    writer.append(b"new").unwrap();
    writer.sync().unwrap();
    assert_eq!(payloads(dir.path()), [&b"synced"[..], b"not synced", b"new"]);
    assert!(verify(dir.path(), &mut |_, _| {}).unwrap().damage.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn salvage_finds_every_intact_record_and_nothing_else(
        blows in prop::collection::vec((0..16_384_u64, prop::collection::vec(any::<u8>(), 1..300)), 1..6),
    ) {
        let (dir, offsets) = written(60);
        let mut hit = Vec::new();
        for (at, bytes) in &blows {
            let path = segment_file(dir.path(), at - at % 4096);
            let bytes = &bytes[..bytes.len().min((4096 - at % 4096) as usize)];
            if path.exists() {
                let before = std::fs::read(&path).unwrap();
                overwrite(&path, at % 4096, bytes);
                let after = std::fs::read(&path).unwrap();
                let changed = (0..before.len()).filter(|&i| before[i] != after[i]);
                hit.extend(changed.map(|i| at - at % 4096 + i as u64));
            }
        }
        let end = |i: usize| offsets[i].0 + (8 + numbered(i as u32).len()) as u64;
        let is_gone = |i: usize| hit.iter().any(|h| (offsets[i].0..end(i)).contains(h));
        prop_assert_eq!(published(dir.path()), without(&offsets, is_gone));
    }
}
