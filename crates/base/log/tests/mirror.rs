//! A mirror has the bytes of its source, whatever came of what was sent.
#![allow(clippy::unwrap_used)] // helpers of tests, too

use std::path::Path;

use pares_log::{
    Config, Mirror, MirrorError, Offset, OpenError, Reader, Recovery, Writer, record, take_over, verify,
};
use proptest::prelude::*;
use tempfile::TempDir;

const SEGMENT: u64 = 4096;

fn config() -> Config {
    Config::default().segment_bytes(SEGMENT)
}

/// A source, and a place for its mirror.
struct Pair {
    source: TempDir,
    mirror: TempDir,
    writer: Writer,
}

impl Pair {
    fn new() -> Pair {
        let [source, mirror] = [0; 2].map(|_| tempfile::tempdir().unwrap());
        let (writer, _) = Writer::open(source.path(), config()).unwrap();
        Pair { source, mirror, writer }
    }

    fn append(&mut self, lengths: impl IntoIterator<Item = usize>) {
        for len in lengths {
            self.writer.append(&vec![len as u8 | 1; len]).unwrap();
        }
        self.writer.publish();
    }

    fn open(&self) -> Mirror {
        Mirror::open(self.mirror.path(), config(), false).unwrap()
    }

    /// Takes what the source has, at most so many stretches.
    fn copy(&self, mirror: &mut Mirror, mut stretches: usize, bytes_max: usize) {
        let mut reader = Reader::open(self.source.path(), mirror.next()).unwrap();
        while stretches > 0
            && let Some(stretch) = reader.next_stretch(Offset(u64::MAX), bytes_max).unwrap()
        {
            mirror.take(stretch.offset, stretch.bytes).unwrap();
            stretches -= 1;
        }
        mirror.publish(self.writer.durable());
    }

    /// All segments of the source are the mirror's, byte for byte, as far as that has come.
    fn check_prefix(&self) {
        let reader = Reader::at_end(self.mirror.path()).unwrap();
        let (released, written) = (reader.released().0, reader.written().0);
        assert!(reader.durable() <= reader.written());
        for base in (released - released % SEGMENT..written).step_by(SEGMENT as usize) {
            let len = (written - base).min(SEGMENT) as usize;
            let [ours, theirs] = [&self.mirror, &self.source].map(|dir| segment(dir.path(), base));
            assert!(ours[..len] == theirs[..len], "segment {base}");
        }
        assert!(verify(self.mirror.path(), &mut |_, _| {}).unwrap().damage.is_empty());
    }
}

fn segment(dir: &Path, base: u64) -> Vec<u8> {
    std::fs::read(dir.join(format!("{base:020}.seg"))).unwrap()
}

#[test]
fn a_mirror_rolls_where_its_source_did() {
    let mut pair = Pair::new();
    pair.append([100, 900, 1_000]);
    pair.writer.begin_segment().unwrap();
    pair.append([1_000, 8, 1_000, 1_000, 1_000]);
    let mut mirror = pair.open();
    pair.copy(&mut mirror, usize::MAX, 1);
    assert_eq!(mirror.next(), pair.writer.tail());
    pair.check_prefix();
    let [ours, theirs] = [&pair.mirror, &pair.source].map(|dir| segment(dir.path(), 0));
    assert_eq!(ours, theirs, "a closed segment, its pad included");
}

#[test]
fn durable_is_what_the_source_says_and_no_more_than_there_is() {
    let mut pair = Pair::new();
    pair.append([100, 100]);
    let (half, mut mirror) = (Offset(64 + record::size(100) as u64), pair.open());
    pair.copy(&mut mirror, 1, 1);
    assert_eq!(mirror.publish(Offset(1 << 30)), half, "no more than it has");
    let mut reader = Reader::at_end(pair.source.path()).unwrap();
    reader.seek(half).unwrap();
    let second = reader.next_stretch(Offset(u64::MAX), 1).unwrap().unwrap();
    mirror.take(second.offset, second.bytes).unwrap();
    assert_eq!(mirror.publish(half), half, "no more than the source says");
    drop(mirror);
    drop(pair.open());
    let reader = Reader::at_end(pair.mirror.path()).unwrap();
    assert_eq!((reader.durable(), reader.written()), (half, pair.writer.tail()), "opened again");
}

#[test]
fn another_place_and_other_bytes_are_refused() {
    let mut pair = Pair::new();
    pair.append([100, 100]);
    let mut mirror = pair.open();
    let mut reader = Reader::at_start(pair.source.path()).unwrap();
    let all = reader.next_stretch(Offset(u64::MAX), 1 << 20).unwrap().unwrap();
    let next = mirror.next();
    let gap = mirror.take(Offset(all.offset.0 + 8), all.bytes);
    assert_eq!(gap, Err(MirrorError::Gap { next, from: Offset(next.0 + 8) }));
    for at in 0..all.bytes.len() {
        let mut bytes = all.bytes.to_vec();
        bytes[at] ^= 0x10;
        // What pads a record to a multiple of eight is of no record.
        if record::scan(&bytes, all.offset.0, 0, usize::MAX).position < bytes.len() {
            assert!(matches!(mirror.take(next, &bytes), Err(MirrorError::Damaged { .. })), "{at}");
        }
        assert!(mirror.take(next, &all.bytes[..at]).is_err() || [0, 112].contains(&at), "{at}");
        if at == 112 {
            break;
        }
    }
}

#[test]
fn a_log_is_a_mirror_or_its_writers_own() {
    let mut pair = Pair::new();
    pair.append([100, 100]);
    let own = Mirror::open(pair.source.path(), config(), false).map(drop);
    assert!(matches!(own, Err(OpenError::Locked { .. })));
    let mut mirror = pair.open();
    pair.copy(&mut mirror, usize::MAX, 1 << 20);
    assert!(matches!(take_over(pair.mirror.path()), Err(OpenError::Locked { .. })));
    drop(mirror);
    let refused = |opened: Result<(Writer, Recovery), OpenError>| opened.map(drop).unwrap_err().to_string();
    assert!(refused(Writer::open(pair.mirror.path(), config())).contains("is a mirror"));
    assert!(take_over(pair.mirror.path()).unwrap());
    assert!(!take_over(pair.mirror.path()).unwrap());
    let (mut writer, recovery) = Writer::open(pair.mirror.path(), config()).unwrap();
    assert_eq!((recovery.tail, writer.durable()), (pair.writer.tail(), pair.writer.tail()));
    assert_eq!(writer.append(&[1]).unwrap(), pair.writer.tail());
    drop(writer);
    let again = Mirror::open(pair.mirror.path(), config(), false).map(drop);
    assert!(matches!(again, Err(OpenError::NotAMirror { .. })));
    let anew = Mirror::open(pair.mirror.path(), config(), true).map(drop);
    assert!(matches!(anew, Err(OpenError::NotAMirror { .. })));
}

#[test]
fn a_log_with_damaged_marks_is_not_set_aside() {
    let mut pair = Pair::new();
    pair.append([100, 100]);
    let Pair { source, writer, .. } = pair;
    drop(writer);
    let open = || Mirror::open(source.path(), config(), true).map(drop).unwrap_err().to_string();
    std::fs::write(source.path().join("marks"), b"spoilt").unwrap();
    assert!(open().contains("marks"), "{}", open());
    std::fs::remove_file(source.path().join("marks")).unwrap();
    assert!(open().contains("00000000000000000000.seg"), "{}", open());
    assert!(!source.path().join("damaged-1").exists());
}

#[test]
fn a_log_released_beyond_the_mirror_sets_it_aside() {
    let mut pair = Pair::new();
    pair.append([1_000; 10]);
    let first = pair.writer.release_before(pair.writer.tail());
    assert!(first.0 > SEGMENT);
    let mut mirror = pair.open();
    pair.append([1_000]);
    drop(mirror);
    mirror = Mirror::open(pair.mirror.path(), config().mirror_from(first), true).unwrap();
    let mut reader = Reader::at_end(pair.mirror.path()).unwrap();
    pair.copy(&mut mirror, usize::MAX, 1 << 20);
    assert_eq!(mirror.next(), pair.writer.tail());
    pair.check_prefix();
    assert_eq!(Reader::at_start(pair.mirror.path()).unwrap().released(), first);
    assert!(pair.mirror.path().join("damaged-1").is_dir());
    assert!(!reader.is_replaced() && reader.next().unwrap().is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the records and wherever what was sent is cut, damaged or broken off: a prefix of the source, byte for byte.
    #[test]
    fn any_cut_leaves_a_prefix(steps in prop::collection::vec((0_u8..6, any::<u16>()), 1..40)) {
        let mut pair = Pair::new();
        let mut mirror = Some(pair.open());
        for (step, size) in steps {
            let size = usize::from(size);
            match step {
                0..2 => pair.append([size % 1_000, size % 7, size % 300]),
                2 => pair.writer.begin_segment().unwrap(),
                3 => pair.copy(mirror.as_mut().unwrap(), 1 + size % 3, size % 2_000),
                4 => {
                    let mirror = mirror.as_mut().unwrap();
                    let mut reader = Reader::open(pair.source.path(), mirror.next()).unwrap();
                    if let Some(stretch) = reader.next_stretch(Offset(u64::MAX), size).unwrap() {
                        let mut bytes = stretch.bytes.to_vec();
                        let len = bytes.len();
                        bytes[size % 8] ^= 1 << (size % 7);
                        let _refused = mirror.take(stretch.offset, &bytes[..len - size % 3]);
                    }
                }
                _ => {
                    // What is not published when it dies is kept if it is whole.
                    drop(mirror.take());
                    mirror = Some(pair.open());
                }
            }
            pair.check_prefix();
        }
        pair.copy(mirror.as_mut().unwrap(), usize::MAX, 700);
        prop_assert_eq!(mirror.unwrap().next().0.max(pair.writer.tail().0), pair.writer.tail().0);
        pair.check_prefix();
    }
}
