//! The index follows its log.

use super::*;

#[test]
fn a_second_update_reads_only_what_is_new() {
    let mut day = busy_day();
    assert_eq!(day.update().unwrap().1.records, 6);
    assert_eq!(day.update().unwrap().1.records, 0);
    day.limit(2, 1, Side::Buy, 40, 10_000);
    let (index, updated) = day.update().unwrap();
    assert_eq!((updated.records, orders(&index, Filter { limit: 1, ..Filter::default() })), (1, vec![7]));
}

#[test]
fn a_deleted_index_is_built_again_the_same() {
    let mut day = busy_day();
    day.index();
    day.amend(3, OrderId(RequestId::new(GatewayId(0), 5)), 7, 9_000);
    let before = content(&day.index());
    std::fs::remove_file(day.index_path()).unwrap();
    assert_eq!(content(&day.index()), before);
}

#[test]
fn an_index_of_another_version_is_built_anew() {
    let day = busy_day();
    let before = content(&day.index());
    let db = rusqlite::Connection::open(day.index_path()).unwrap();
    db.execute_batch("PRAGMA user_version = 99; DROP TABLE trades;").unwrap();
    assert_eq!(content(&day.index()), before);
}

#[test]
fn an_index_of_another_log_starts_afresh() {
    let (day, mut other) = (busy_day(), Day::new());
    day.index();
    other.limit(9, 1, Side::Buy, 1, 5_000);
    std::fs::copy(day.index_path(), other.index_path()).unwrap();
    let (index, updated) = other.update().unwrap();
    assert_eq!((updated.records, content(&index).0.len()), (1, 1));
}

#[test]
fn what_is_not_durable_yet_is_not_indexed() {
    let mut day = Day::with(Config::default().segment_bytes(SEGMENT_BYTES).durability(Durability::Disk));
    day.limit(1, 1, Side::Buy, 1, 5_000);
    assert_eq!(day.update().unwrap().1.records, 0);
    day.writer.sync().unwrap();
    assert_eq!(day.update().unwrap().1.records, 1);
}

#[test]
fn damage_in_the_log_is_named_and_what_lies_before_it_is_found() {
    let day = busy_day();
    let inspected = pares_log::Reader::at_start(&day.log());
    let mut reader = inspected.unwrap();
    let offsets: Vec<_> = std::iter::from_fn(|| reader.next().unwrap().map(|record| record.offset)).collect();
    flip(&day, offsets[3].0 + 20);
    let Err(error) = day.update() else { panic!("damage went unnoticed") };
    assert!(matches!(error, HistoryError::Log { .. }));
    let text = error.to_string();
    assert!(
        text.contains(&format!("offset {}", offsets[3])) && text.contains("pares journal verify"),
        "{text}"
    );
    assert_eq!(content(&Index::open(&day.index_path()).unwrap()).0.len(), 3);
    flip(&day, offsets[3].0 + 20);
    assert_eq!(day.update().unwrap().1.records, 3);
}

/// Flips a bit of the log's first segment.
fn flip(day: &Day, at: u64) {
    let path = day.log().join("00000000000000000000.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[at as usize] ^= 1;
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
}

#[test]
fn what_was_released_before_it_was_indexed_is_reported() {
    let mut day = busy_day();
    day.index();
    for _ in 0..400 {
        day.limit(1, 1, Side::Buy, 1, 5_000);
    }
    let end = day.writer.tail();
    let first = day.writer.release_before(end);
    let (index, updated) = day.update().unwrap();
    assert!(first.0 > 0 && updated.skipped_bytes > 0 && updated.skipped_bytes < first.0);
    assert!(updated.records < 400 && content(&index).0.len() as u64 == 6 + updated.records);
}
