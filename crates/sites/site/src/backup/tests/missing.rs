//! What is missing: gaps, logs without a copy, files that are gone, and what a crash leaves.

use super::*;

#[test]
fn a_gap_ends_what_can_be_restored_from_the_base_before_it() {
    let scene = Scene::without_growing();
    scene.base(30);
    scene.log(30, NEWEST, false);
    for until in [Until::Version(Version(27)), Until::Moment(25_000), Until::Moment(29_999)] {
        is_a_gap(&scene, until, 25, 30);
    }
    for (until, version) in [
        (Until::Version(Version(25)), 25),
        (Until::Moment(24_999), 24),
        (Until::Moment(30_000), 30),
        (Until::Newest, NEWEST),
    ] {
        assert_eq!(scene.restore(until).unwrap().0.version, Version(version), "{until:?}");
    }
    // The same if the log behind the later base is gone.
    fs::remove_file(scene.folder.log_path(Version(30))).unwrap();
    is_a_gap(&scene, Until::Moment(29_999), 25, 30);
    assert_eq!(scene.restore(Until::Newest).unwrap().0.version, Version(30));
}

/// What is restored up to there would have to lie behind a gap, or may, and that is said.
fn is_a_gap(scene: &Scene, until: Until, before: u64, behind: u64) {
    match scene.restore(until).err() {
        Some(BackupError::Gap { last, next, .. }) => {
            assert_eq!((last.0, next.0), (before, behind), "{until:?}");
        }
        other => panic!("{until:?}: {other:?}"),
    }
}

#[test]
fn log_after_gap_without_copy_restores_nothing_silently() {
    let scene = with_an_orphan();
    for until in [Until::Newest, Until::Version(Version(38)), Until::Moment(25_000), Until::Moment(u64::MAX)]
    {
        is_a_gap(&scene, until, 25, 30);
    }
    for (until, version) in [(Until::Version(Version(25)), 25), (Until::Moment(24_000), 24)] {
        assert_eq!(scene.restore(until).unwrap().0.version, Version(version), "{until:?}");
    }
}

/// A scene whose follower was away for too long, and died before the copy behind the gap was whole.
fn with_an_orphan() -> Scene {
    let scene = Scene::without_growing();
    scene.log(30, 35, true);
    scene.log(35, NEWEST, false);
    scene
}

#[test]
fn log_without_copy_not_continued_and_blocks_no_copy() {
    let scene = with_an_orphan();
    assert_eq!(resumed(&scene).unwrap().unwrap().last(), Version(25), "what has a copy");
    let aside =
        scene.files().iter().filter(|path| path.extension().is_some_and(|end| end == "aside")).count();
    assert_eq!(aside, 2);
    assert_eq!(scene.restore(Until::Newest).unwrap().0.version, Version(25));
    // Without any copy nothing is continued, and the next copy may be of the very same version.
    fs::remove_file(scene.folder.copy_path(Version(BASE))).unwrap();
    assert!(resumed(&scene).unwrap().is_none());
    scene.base(BASE);
    let mut following = scene.begin(scene.stored(BASE)).unwrap();
    following.keep(&vec![kept(BASE + 1, &scene.digests)]).unwrap();
    assert_eq!(scene.restore(Until::Newest).unwrap().0.version, Version(BASE + 1));
}

#[test]
fn log_continued_if_copy_is_in_unbroken_run() {
    for base in [BASE, 17, 25, 33, NEWEST] {
        let scene = Scene::new();
        fs::remove_file(scene.folder.copy_path(Version(BASE))).unwrap();
        scene.base(base);
        assert_eq!(resumed(&scene).unwrap().unwrap().last(), Version(NEWEST), "{base}");
    }
    // A log that has no version yet, behind a gap: its beginning is not the end of the one before.
    let scene = Scene::without_growing();
    scene.log(30, 30, false);
    assert_eq!(resumed(&scene).unwrap().unwrap().last(), Version(25));
}

/// What is in that directory can be restored up to `version`, and followed on from there.
fn goes_on_from(scene: &Scene, version: u64, what: &str) {
    scene.folder.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(scene.restore(Until::Newest).unwrap().0.version, Version(version), "{what}");
    let mut following = resumed(scene).unwrap().unwrap();
    assert_eq!(following.last(), Version(version), "{what}");
    following.keep(&vec![kept(version + 1, &scene.digests)]).unwrap();
    drop(following);
    scene.folder.verify().unwrap_or_else(|error| panic!("{what}, and on: {error}"));
    assert_eq!(scene.restore(Until::Newest).unwrap().0.version, Version(version + 1), "{what}, and on");
}

#[test]
fn crash_starting_next_file_keeps_intact_part() {
    let scene = Scene::new();
    let (old, next) = (scene.folder.log_path(Version(25)), scene.folder.log_path(Version(30)));
    let whole = || {
        let _ = fs::remove_file(&next);
        let _ = fs::remove_file(&old);
        scene.log(25, 30, false);
        fs::read(&old).unwrap()
    };
    let grown = whole().len();
    // The next file cannot be made: the old one has its end by then.
    let mut following = resumed(&scene).unwrap().unwrap();
    fs::create_dir(&next).unwrap();
    following.file_bytes = 1;
    assert!(following.keep(&vec![kept(31, &scene.digests)]).is_err());
    drop(following);
    fs::remove_dir(&next).unwrap();
    let ended = fs::read(&old).unwrap();
    assert!(ended.len() > grown, "the end comes first");
    goes_on_from(&scene, 30, "the next file was not made");
    for length in grown..=ended.len() {
        whole();
        fs::write(&old, &ended[..length]).unwrap();
        goes_on_from(&scene, 30, &format!("{length} bytes of the old file"));
    }
    whole();
    fs::write(&old, &ended).unwrap();
    drop(resumed(&scene).unwrap());
    let begun = fs::read(&next).unwrap();
    for length in 0..=begun.len() {
        whole();
        fs::write(&old, &ended).unwrap();
        fs::write(&next, &begun[..length]).unwrap();
        goes_on_from(&scene, 30, &format!("{length} bytes of the next file"));
    }
}

fn runs(scene: &Scene) -> Vec<(u64, u64, Option<u64>)> {
    let facts = scene.folder.verify().unwrap();
    facts.runs().iter().map(|run| (run.behind.0, run.last.0, run.base.map(|base| base.0))).collect()
}

#[test]
fn a_file_that_is_missing_is_found_though_all_others_are_whole() {
    let scene = Scene::new();
    scene.base(30);
    assert_eq!(runs(&scene), [(BASE, NEWEST, Some(BASE))]);
    assert_eq!(scene.folder.verify().unwrap().faults(), Vec::<String>::new());
    let without = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let found = (runs(&scene), scene.folder.verify().unwrap().faults());
        fs::write(&path, bytes).unwrap();
        found
    };
    // The first log: nothing leads from the first base to what follows.
    let (found, faults) = without(scene.folder.log_path(Version(BASE)));
    assert_eq!(found, [(BASE, BASE, Some(BASE)), (25, NEWEST, Some(30))]);
    assert!(faults.len() == 1 && faults[0].contains("between 10 and 25 are missing"), "{faults:?}");
    // The last one: all that there is can be restored, and what it had nobody can know.
    let (found, faults) = without(scene.folder.log_path(Version(25)));
    assert_eq!((found, faults.len()), (vec![(BASE, 25, Some(BASE)), (30, 30, Some(30))], 0));
    fs::remove_file(scene.folder.copy_path(Version(30))).unwrap();
    let (found, faults) = without(scene.folder.copy_path(Version(BASE)));
    assert_eq!(found, [(BASE, NEWEST, None)]);
    assert!(faults.len() == 1 && faults[0].contains("no base for the versions from 10 to 40"), "{faults:?}");
    let scene = with_an_orphan();
    assert_eq!(runs(&scene), [(BASE, 25, Some(BASE)), (30, NEWEST, None)]);
    assert_eq!(scene.folder.verify().unwrap().faults().len(), 2);
}

#[test]
fn files_that_meet_must_be_of_one_history() {
    let right = Scene::new().digests;
    let another = |change: &dyn Fn(&mut Scene)| {
        let mut scene = Scene::without_growing();
        change(&mut scene);
        scene.digests.clone_from(&right);
        scene.folder.verify()
    };
    // The end of one log and the head of the next.
    let found = another(&|scene| {
        scene.digests[24] ^= 1;
        scene.log(25, NEWEST, false);
    });
    assert!(matches!(found, Err(BackupError::Another(_))), "{found:?}");
    // A version in a log, or its head, and the base of that version.
    for (changed, behind) in [(29, 25), (29, 30)] {
        let found = another(&|scene| {
            scene.base(30);
            scene.digests[changed] ^= 1;
            scene.log(behind, NEWEST, false);
        });
        assert!(matches!(found, Err(BackupError::Another(_))), "{found:?}");
    }
    assert!(another(&|scene| scene.log(25, NEWEST, false)).is_ok());
}

/// A log that ended before its first version, and one that is long: a site that is behind gives a copy that begins where they did.
#[test]
fn copy_of_followed_version_continues_existing_log() {
    for copied in [NEWEST, 30, 25, BASE] {
        let scene = Scene::new();
        resumed(&scene).unwrap().unwrap().end().unwrap();
        scene.log(NEWEST, NEWEST, true);
        let following = scene.begin(scene.stored(copied)).unwrap();
        assert_eq!(following.last(), Version(NEWEST), "behind {copied}");
        scene.folder.verify().unwrap();
    }
}

#[test]
fn copy_of_other_history_does_not_join_the_log() {
    // In the last log, at its end, where two meet, and in the one before it.
    for copied in [33, NEWEST, 25, 15] {
        let scene = Scene::new();
        let before: Vec<_> = scene.files().iter().map(|path| fs::read(path).unwrap()).collect();
        let stored = at(copied, scene.digests[copied as usize - 1] ^ 1);
        let begun = scene.begin(stored).map(|_| ());
        assert!(matches!(begun, Err(BackupError::Another(_))), "{copied}: {begun:?}");
        fs::remove_file(scene.dir.path().join("following")).unwrap();
        let behind: Vec<_> = scene.files().iter().map(|path| fs::read(path).unwrap()).collect();
        assert!(before == behind, "{copied}: nothing has changed");
    }
}

#[test]
fn a_damaged_log_before_the_last_is_no_reason_to_take_no_copy() {
    let scene = Scene::new();
    let path = scene.folder.log_path(Version(BASE));
    let mut changed = fs::read(&path).unwrap();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    fs::write(&path, changed).unwrap();
    let begun = scene.begin(scene.stored(24)).unwrap();
    assert_eq!(begun.last(), Version(NEWEST));
}

#[test]
fn a_directory_of_another_database_is_told_with_both() {
    let scene = Scene::new();
    scene.folder.takes(IDENTITY).unwrap();
    let refused = scene.folder.takes("f409").unwrap_err().to_string();
    let both = format!("contains copies of database {IDENTITY}, but the site belongs to f409");
    assert!(refused.contains(&both), "{refused}");
}
