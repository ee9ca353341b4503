//! Names remembered, forgotten and given back.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

const A: MemberId = MemberId(1);
const FULL: u64 = NAMES_MAX as u64;

const fn name(series: u64, number: u64) -> ClientOrderId {
    ClientOrderId(series << 48 | number)
}

/// Names of a series of another member, as many as a shard remembers.
fn forget_all(names: &mut Names, first: u64) {
    (first..first + FULL).for_each(|number| names.insert(MemberId(9), name(0, number)).unwrap());
}

#[test]
fn a_repeat_is_not_new() {
    let mut names = Names::new();
    assert_eq!(names.insert(A, name(0, 7)), Ok(()));
    assert_eq!(names.insert(A, name(0, 7)), Err(Reason::DuplicateRequest));
    assert_eq!(names.insert(MemberId(2), name(0, 7)), Ok(()));
    assert_eq!(names.insert(A, name(1, 7)), Ok(()));
}

#[test]
fn the_oldest_name_is_forgotten_first_and_not_executed_again() {
    let mut names = Names::new();
    (0..=FULL).for_each(|number| names.insert(A, name(0, number)).unwrap());
    assert_eq!(names.insert(A, name(0, 0)), Err(Reason::TooOld));
    assert_eq!(names.insert(A, name(0, 1)), Err(Reason::DuplicateRequest));
    assert_eq!(names.iter().next(), Some((A, name(0, 1))));
}

/// Decision 6 let this request be executed a second time.
#[test]
fn what_others_have_pushed_out_is_too_old_for_ever() {
    let mut names = Names::new();
    names.insert(A, name(3, 5)).unwrap();
    forget_all(&mut names, 0);
    forget_all(&mut names, FULL);
    assert_eq!(names.insert(A, name(3, 5)), Err(Reason::TooOld));
    assert_eq!(names.insert(A, name(3, 4)), Err(Reason::TooOld));
    assert_eq!(names.insert(A, name(3, 6)), Ok(()));
    assert_eq!(names.insert(A, name(2, 1)), Ok(()), "another series");
}

#[test]
fn requests_may_overtake_each_other_while_they_are_remembered() {
    let mut names = Names::new();
    names.insert(A, name(0, 1_000_000)).unwrap();
    assert_eq!(names.insert(A, name(0, 1)), Ok(()), "late, and new");
}

#[test]
fn beyond_so_many_members_only_the_exchange_has_room() {
    let mut names = Names::new();
    for member in 1..=SERIES_MAX as u32 {
        names.insert(MemberId(member), name(1, 1)).unwrap();
    }
    let newcomer = MemberId(SERIES_MAX as u32 + 1);
    assert_eq!(names.insert(newcomer, name(1, 1)), Err(Reason::TooManySeries));
    assert_eq!(names.insert(A, name(0, 1)), Err(Reason::TooManySeries), "below its only one");
    assert_eq!(names.insert(A, name(1, 2)), Ok(()), "a series that is known");
    assert_eq!(names.insert(A, name(2, 1)), Ok(()), "for its only one");
    assert_eq!(names.insert(A, name(1, 3)), Err(Reason::TooOld));
    assert_eq!(names.insert(MemberId(0), name(9, 1)), Ok(()));
}

/// Two members use up all series, half of them guarded ones.
fn used_up() -> Names {
    let mut names = Names::new();
    for series in 0..SERIES_MAX as u64 / 4 {
        for (member, upper) in [(1, 0), (1, 1 << 15), (2, 0), (2, 1 << 15)] {
            names.insert(MemberId(member), name(series | upper, 7)).unwrap();
        }
    }
    assert_eq!(names.floors().len(), SERIES_MAX);
    names
}

#[test]
fn members_that_use_all_series_make_room_for_others() {
    let mut names = used_up();
    for member in 3..1_000 {
        for series in [0, 1 << 15 | 1] {
            assert_eq!(names.insert(MemberId(member), name(series, 1)), Ok(()), "member {member}");
        }
    }
    assert_eq!(names.floors().len(), SERIES_MAX);
    for member in [1, 2] {
        let member = MemberId(member);
        assert_eq!(names.shares.count(member), SERIES_MAX / 2 - 997);
        assert_eq!(names.insert(member, name(0, 8)), Err(Reason::TooOld), "given back");
        assert_eq!(names.insert(member, name(997, 8)), Ok(()), "kept");
    }
}

#[test]
fn what_was_given_back_is_executed_by_no_restored_shard() {
    let mut names = used_up();
    names.insert(MemberId(3), name(5, 1)).unwrap();
    let giver = MemberId(2);
    let mut restored = restored(&names).unwrap();
    for names in [&mut names, &mut restored] {
        assert_eq!(names.insert(giver, name(0, 8)), Err(Reason::TooOld));
        assert_eq!(names.insert(MemberId(1), name(0, 8)), Ok(()), "who gave nothing back");
        forget_all(names, 0);
        assert_eq!(names.insert(giver, name(0, 7)), Err(Reason::TooOld));
    }
    assert!(restored.iter().eq(names.iter()) && restored.written_floors().eq(names.written_floors()));
    let few = names.clone().with_max(2);
    assert!(few.written_floors().map(|(series, _)| series).eq(names.floors().map(|(series, _)| series)));
    assert!(Names::restore(&[((A, 0), 0), ((A, 1), LOWER_USED)], &[]).is_none(), "not its lowest");
}

fn restored(names: &Names) -> Option<Names> {
    Names::restore(&names.written_floors().collect::<Vec<_>>(), &names.iter().collect::<Vec<_>>())
}

#[test]
fn what_is_restored_refuses_the_same() {
    let mut names = Names::new();
    names.insert(A, name(3, 5)).unwrap();
    forget_all(&mut names, 0);
    let mut restored = restored(&names).unwrap();
    for one in [name(3, 5), name(3, 6)] {
        assert_eq!(restored.insert(A, one), names.insert(A, one));
    }
    assert!(restored.iter().eq(names.iter()) && restored.floors().eq(names.floors()));
}

#[test]
fn who_remembers_fewer_forgets_the_oldest_behind_their_floors() {
    let mut names = Names::new();
    (0..5).for_each(|number| names.insert(A, name(0, number)).unwrap());
    let mut few = names.with_max(2);
    assert!(few.iter().eq([(A, name(0, 3)), (A, name(0, 4))]));
    assert_eq!(few.insert(A, name(0, 2)), Err(Reason::TooOld));
    assert_eq!(few.insert(A, name(0, 3)), Err(Reason::DuplicateRequest));
    few.insert(A, name(0, 9)).unwrap();
    assert_eq!(few.insert(A, name(0, 3)), Err(Reason::TooOld));
    assert_eq!(few.insert(A, name(0, 4)), Err(Reason::DuplicateRequest));
}

#[test]
fn late_name_above_floor_is_restored() {
    let mut names = Names::new();
    names.insert(A, name(0, 1_000_000)).unwrap();
    names.insert(A, name(0, 1)).unwrap();
    (0..FULL - 1).for_each(|number| names.insert(MemberId(9), name(0, number)).unwrap());
    assert_eq!(names.iter().next(), Some((A, name(0, 1))), "the higher one was forgotten first");
    let mut restored = restored(&names).unwrap();
    assert!(restored.iter().eq(names.iter()) && restored.floors().eq(names.floors()));
    assert_eq!(restored.insert(A, name(0, 1)), Err(Reason::DuplicateRequest));
}

#[test]
fn no_shard_has_names_without_their_series() {
    let kept = [(A, name(0, 1))];
    assert!(Names::restore(&[], &kept).is_none());
    assert!(Names::restore(&[((A, 0), 0)], &[kept[0], kept[0]]).is_none(), "twice");
    assert!(Names::restore(&[((A, 1), 0), ((A, 0), 0)], &kept).is_none(), "out of order");
    assert!(Names::restore(&[((A, 0), 0)], &kept).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Whatever comes in whatever order: nothing is executed twice, and a number above all of its series always is.
    #[test]
    fn nothing_is_new_twice(seeds in prop::collection::vec((0_u32..3, 0_u64..2, 0_u64..30_000), 40_000)) {
        let (mut names, mut used) = (Names::new(), BTreeSet::new());
        let mut kept = VecDeque::new();
        for (member, series, number) in seeds {
            let (member, name) = (MemberId(member), name(series, number));
            let above = used.range((member, name)..).next().is_none_or(|(m, n): &(MemberId, ClientOrderId)| *m != member || n.series() != name.series());
            match names.insert(member, name) {
                Ok(()) => {
                    prop_assert!(used.insert((member, name)));
                    kept.push_back((member, name));
                    kept.drain(..kept.len().saturating_sub(NAMES_MAX));
                }
                Err(reason) => prop_assert!(!above && (reason == Reason::TooOld || used.contains(&(member, name)))),
            }
        }
        prop_assert!(names.iter().eq(kept));
        let restored = restored(&names).unwrap();
        prop_assert!(restored.iter().eq(names.iter()) && restored.floors().eq(names.floors()));
    }
}
