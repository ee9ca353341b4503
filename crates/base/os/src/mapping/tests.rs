//! Mappings of the same file, their words and their bounds.

use super::*;

#[test]
fn stores_are_seen_through_another_mapping_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m");
    let mut writer = Mapping::create(&path, 8192).unwrap();
    let reader = Mapping::open_read_only(&path).unwrap();
    writer.write(100, b"hello");
    writer.atomic_u64(8).store(7, Ordering::Release);
    writer.atomic_u128(16).store(1 << 100, Ordering::SeqCst);
    assert_eq!(reader.load_u64(8, Ordering::Acquire), 7);
    assert_eq!(reader.bytes(100..105), b"hello");
    assert_eq!(reader.load_u64(24, Ordering::Acquire), 1 << 36);
}

/// Whether this process has a descriptor of the file.
fn is_held_open(path: &Path) -> bool {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    descriptors.filter_map(|link| std::fs::read_link(link).ok()).any(|file| file == path)
}

#[test]
fn a_mapping_holds_no_descriptor_unless_it_is_to_be_synced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m");
    let written = Mapping::create(&path, 4096).unwrap();
    assert!(is_held_open(&path));
    let written = written.without_file();
    let read = Mapping::open_read_only(&path).unwrap();
    assert!(!is_held_open(&path));
    written.atomic_u64(8).store(7, Ordering::Release);
    assert_eq!(read.load_u64(8, Ordering::Acquire), 7);
}

#[test]
fn create_keeps_what_is_there_and_allocates_every_block() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m");
    std::fs::write(&path, b"old").unwrap();
    let m = Mapping::create(&path, 64 * 1024).unwrap();
    m.prefault(0..m.len());
    assert_eq!(m.bytes(0..4), b"old\0");
    assert!(std::fs::metadata(&path).unwrap().blocks() * 512 >= 64 * 1024);
}

#[test]
fn a_file_not_there_yet_is_told_from_one_that_cannot_be_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m");
    assert!(Mapping::open(&path).unwrap_err().is_not_yet());
    std::fs::write(&path, b"").unwrap();
    assert!(Mapping::open(&path).unwrap_err().is_not_yet());
    assert!(!Mapping::open(&path.join("below-a-file")).unwrap_err().is_not_yet());
}

#[test]
fn a_mapping_larger_than_the_disk_is_refused_as_full() {
    let dir = tempfile::tempdir().unwrap();
    let refused = Mapping::create(&dir.path().join("m"), 1 << 46).unwrap_err();
    let MapError::Io { source, .. } = &refused else { panic!("{refused}") };
    assert!(refused.is_full() || source.kind() == io::ErrorKind::FileTooLarge, "{source}");
}

#[test]
#[should_panic(expected = "read-only")]
fn a_word_of_a_read_only_mapping_cannot_be_stored_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m");
    Mapping::create(&path, 64).unwrap();
    Mapping::open_read_only(&path).unwrap().atomic_u64(0);
}

#[test]
#[should_panic(expected = "outside")]
fn a_word_past_the_end_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    Mapping::create(&dir.path().join("m"), 64).unwrap().atomic_u64(64);
}
