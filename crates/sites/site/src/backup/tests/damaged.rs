//! Damage in the log that is followed into: what lies behind it is kept, and what lies before it is continued.

use super::*;

/// Follows on in a scene that is damaged, and takes what was lost again; what was said to be damaged.
fn mended(scene: &Scene) -> (Version, Vec<DamagedLog>) {
    let mut damaged = Vec::new();
    let found = |found: Finding| {
        if let Finding::Log(log) = found {
            damaged.push(log)
        }
    };
    let mut following = Following::resume(&scene.folder, found).unwrap().unwrap();
    let last = following.last();
    let again: Vec<Kept> = (last.0 + 1..=NEWEST).map(|version| kept(version, &scene.digests)).collect();
    following.keep(&again).unwrap();
    (last, damaged)
}

/// Where the records of that file begin, behind its head of its kind.
pub(super) fn records(bytes: &[u8]) -> Vec<usize> {
    let mut at = 17;
    std::iter::from_fn(|| {
        let length = bytes.get(at..at + 4)?;
        let begins = at;
        at += 8 + u32::from_le_bytes(length.try_into().unwrap()) as usize;
        Some(begins)
    })
    .collect()
}

#[test]
fn bit_flip_in_growing_log_loses_nothing_intact() {
    let right = fs::read(Scene::new().folder.log_path(Version(25))).unwrap();
    let records = records(&right);
    let last = *records.last().unwrap();
    for at in 0..right.len() {
        let scene = Scene::new();
        let path = scene.folder.log_path(Version(25));
        let mut changed = right.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&path, &changed).unwrap();
        let (went_on, damaged) = mended(&scene);
        let whole = records.iter().filter(|begins| **begins <= at).count().saturating_sub(2) as u64;
        let before = Version((25 + 4 * whole).min(NEWEST));
        if at < records[1] {
            assert_eq!(went_on, Version(25), "byte {at}: its head is gone, or the first record");
        } else {
            assert_eq!(went_on, before, "byte {at}");
        }
        // A torn write cannot be told from a length that has grown in the very last record: that is cut.
        match damaged.as_slice() {
            [] => assert!(at >= last && at < last + 4, "byte {at} was cut"),
            [DamagedLog { kept, last, .. }] => {
                assert_eq!(fs::read(kept).unwrap(), changed, "byte {at}");
                assert_eq!(*last, went_on, "byte {at}");
            }
            more => panic!("{more:?}"),
        }
        scene.folder.verify().unwrap_or_else(|error| panic!("byte {at}: {error}"));
        let (restored, store) = scene.restore(Until::Newest).unwrap();
        assert_eq!((restored.version.0, items(&store)), (NEWEST, items(&store_at(NEWEST).0)), "byte {at}");
    }
}

#[test]
fn overlong_record_length_is_damage_and_file_is_kept() {
    let scene = Scene::new();
    let path = scene.folder.log_path(Version(25));
    for (number, record, before) in [(1, 2, 29), (2, 1, 25)] {
        let right = fs::read(&path).unwrap();
        let mut changed = right.clone();
        changed[records(&right)[record] + 2] ^= 1;
        fs::write(&path, &changed).unwrap();
        assert!(matches!(scene.folder.verify(), Err(BackupError::Damaged { .. })));
        assert!(matches!(scene.restore(Until::Newest), Err(BackupError::Damaged { .. })));
        assert_eq!(scene.restore(Until::Version(Version(before))).unwrap().0.version, Version(before));
        let (last, damaged) = mended(&scene);
        assert_eq!(last, Version(before));
        let name = format!("log-00000000000000000025.versions.damaged-{number}");
        assert_eq!(damaged[0].kept, scene.dir.path().join(name));
    }
}

#[test]
fn crash_while_setting_log_aside_keeps_old_or_intact() {
    let scene = Scene::new();
    let (path, right) = scene.growing();
    let mut changed = right.clone();
    changed[records(&right)[2]] ^= 1;
    fs::write(&path, &changed).unwrap();
    let other = |extension: &str| path.with_added_extension(extension);
    // Another file that was damaged once has a name of its own.
    fs::write(other("damaged-1"), &right).unwrap();
    let steps: [fn(&Path, &Path); 3] = [
        |_, _| {},
        |path, kept| fs::hard_link(path, kept).unwrap(),
        |path, kept| fs::write(kept, fs::read(path).unwrap()).unwrap(),
    ];
    for crashed_behind in steps {
        fs::write(&path, &changed).unwrap();
        // Half of the file that was to take its place, and of the one that is to be kept where there are no links.
        fs::write(other("mending"), &right[..30]).unwrap();
        fs::write(other("keeping"), &changed[..30]).unwrap();
        crashed_behind(&path, &other("damaged-2"));
        let (last, damaged) = mended(&scene);
        assert_eq!((last, damaged.len()), (Version(29), 1));
        assert_eq!(damaged[0].kept, other("damaged-2"));
        assert_eq!(fs::read(other("damaged-2")).unwrap(), changed);
        assert!(!other("damaged-3").exists(), "one file is kept once");
        assert_eq!(scene.restore(Until::Newest).unwrap().0.version, Version(NEWEST));
        fs::remove_file(other("damaged-2")).unwrap();
    }
}

#[test]
fn new_log_keeps_intact_part_of_damaged_one() {
    let scene = Scene::new();
    let (path, right) = scene.growing();
    let mut changed = right.clone();
    changed[records(&right)[2] + 9] ^= 1;
    for first in [27, 33] {
        fs::write(&path, &changed).unwrap();
        let (mut damaged, stored) = (Vec::new(), scene.stored(first));
        let begun =
            Following::begin(&scene.folder, IDENTITY, stored, 0, |found| damaged.push(found)).unwrap();
        assert_eq!(
            begun.last(),
            Version(first.max(29)),
            "what is whole is gone on with, or a copy behind it"
        );
        let [DamagedLog { kept, last: Version(29), .. }] = damaged.as_slice() else { panic!("{damaged:?}") };
        assert_eq!(fs::read(kept).unwrap(), changed);
        assert_eq!(scene.folder.verify().unwrap().logs[1].last, Version(29));
    }
}

#[test]
fn zeroed_last_record_is_reported_and_kept_on_follow() {
    let scene = Scene::new();
    let (path, right) = scene.growing();
    let last = *records(&right).last().unwrap();
    // Pages reach the disk in any order: any of them may be missing, the one with the record's head too.
    for zeros in [last + 20..right.len(), last + 8..last + 30, last + 2..last + 10] {
        let mut changed = right.clone();
        changed[zeros.clone()].fill(0);
        fs::write(&path, &changed).unwrap();
        assert_eq!(scene.folder.verify().unwrap().logs[1].torn_at, Some(last as u64), "{zeros:?}");
        let (restored, store) = scene.restore(Until::Newest).unwrap();
        assert_eq!((restored.version, restored.torn_at), (Version(37), Some(last as u64)), "{zeros:?}");
        assert_eq!(items(&store), items(&store_at(37).0));
        assert!(matches!(scene.restore(Until::Version(Version(38))), Err(BackupError::Absent(_))));
        let (went_on, damaged) = mended(&scene);
        assert_eq!((went_on, damaged.len()), (Version(37), 1), "{zeros:?}");
        assert_eq!(
            fs::read(&damaged[0].kept).unwrap(),
            changed,
            "nothing is cut off that may be more than a torn write"
        );
    }
    // Before a whole record it is damage.
    let mut changed = right.clone();
    changed[last - 6..last].fill(0);
    fs::write(&path, &changed).unwrap();
    assert!(matches!(scene.restore(Until::Newest), Err(BackupError::Damaged { .. })));
}

/// What is found of copies when following is begun again.
fn found_of_bases(scene: &Scene) -> (Option<Version>, Vec<Finding>) {
    let mut all = Vec::new();
    let following = Following::resume(&scene.folder, |found| all.push(found)).unwrap();
    (following.map(|following| following.last()), all)
}

/// Leaves something else than a copy under a copy's name.
type Spoil = fn(&std::path::Path, &[u8]);

const SPOILT: [(&str, Spoil); 5] = [
    ("empty", |path, _| fs::write(path, b"").unwrap()),
    ("one flipped bit", |path, right| {
        let mut changed = right.to_vec();
        changed[right.len() / 2] ^= 1;
        fs::write(path, changed).unwrap();
    }),
    ("a wrong head", |path, right| fs::write(path, [&b"XXXX"[..], &right[4..]].concat()).unwrap()),
    ("cut", |path, right| fs::write(path, &right[..right.len() - 1]).unwrap()),
    ("a directory", |path, _| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    }),
];

#[test]
fn unusable_copy_set_aside_following_uses_another() {
    for (how, spoil) in SPOILT {
        let scene = Scene::new();
        scene.base(30);
        let path = |version| scene.folder.copy_path(Version(version));
        let is_set_aside = |found: &Finding| match found {
            Finding::Base(UnusableBase { kept, .. }) => kept.exists(),
            _ => false,
        };
        spoil(&path(30), &fs::read(path(30)).unwrap());
        let (last, found) = found_of_bases(&scene);
        assert_eq!(last, Some(Version(NEWEST)), "{how}: the copy before it counts");
        let [unusable, Finding::Sound(sound)] = found.as_slice() else { panic!("{how}: {found:?}") };
        assert!(is_set_aside(unusable) && !path(30).exists(), "{how}");
        assert_eq!(*sound, SoundBase { version: Version(BASE), was_read: true }, "{how}");
        spoil(&path(BASE), &fs::read(path(BASE)).unwrap());
        let (last, found) = found_of_bases(&scene);
        assert_eq!(last, None, "{how}: a copy is taken");
        assert!(matches!(found.as_slice(), [unusable] if is_set_aside(unusable)), "{how}: {found:?}");
        scene.base(BASE);
    }
}
