//! Several sites that speak to each other, without a wire.

use super::*;

const NOBODY: [usize; 0] = [];

/// A site whose versions 1 to 9 have these digests.
fn site(kind: u64) -> Comparison {
    let mut site = Comparison::new(Stored::default());
    site.applied(&digests(kind));
    site
}

fn digests(kind: u64) -> Vec<u64> {
    (1..10).map(|version| kind * 1000 + version).collect()
}

fn id(number: usize) -> SiteId {
    SiteId::new(u8::try_from(number).unwrap(), 0)
}

/// All speak once, and all hear it.
fn speak(sites: &mut [Comparison]) {
    let words: Vec<Option<Said>> = sites.iter().map(Comparison::word).collect();
    for (to, site) in sites.iter_mut().enumerate() {
        for (from, word) in words.iter().enumerate().filter(|(from, _)| *from != to) {
            word.clone().into_iter().for_each(|word| site.heard(id(from), word));
        }
    }
}

/// Who ends within some words, of sites with digests of these kinds.
fn ends(kinds: &[u64]) -> Vec<usize> {
    let mut sites: Vec<Comparison> = kinds.iter().map(|kind| site(*kind)).collect();
    let mut ended = Vec::new();
    for second in 0..6 {
        speak(&mut sites);
        let alone = |site: &mut Comparison| site.is_alone(second * COMPARE_TICKS);
        let now = (0..sites.len()).filter(|at| alone(&mut sites[*at]) == Some(Version(9)));
        ended.extend(now.collect::<Vec<_>>());
    }
    ended.sort_unstable();
    ended.dedup();
    ended
}

#[test]
fn the_one_that_differs_from_others_that_agree_ends() {
    assert_eq!(ends(&[1, 1, 1]), NOBODY);
    assert_eq!(ends(&[1, 2, 1]), [1]);
    assert_eq!(ends(&[1, 1, 1, 1, 1, 2]), [5]);
    assert_eq!(ends(&[1, 2, 1, 3, 1]), [1, 3]);
    assert_eq!(ends(&[1, 2, 1, 2, 1]), [1, 3], "those that are fewer");
}

#[test]
fn nobody_ends_where_nobody_knows_who_is_right() {
    assert_eq!(ends(&[1, 2]), NOBODY);
    assert_eq!(ends(&[1, 2, 3]), NOBODY, "all would end");
    assert_eq!(ends(&[1, 1, 2, 2]), NOBODY);
    assert_eq!(ends(&[1, 1, 2, 2, 3, 3]), NOBODY);
}

#[test]
fn who_differs_is_told_once_until_it_agrees_again() {
    let mut sites = [site(1), site(2)];
    speak(&mut sites);
    assert_eq!(sites[0].take_new(), [(id(1), Version(9))]);
    speak(&mut sites);
    assert_eq!((sites[0].take_new(), sites[0].differing().count()), (vec![], 1));
    sites[1] = site(1);
    speak(&mut sites);
    assert_eq!((sites[0].take_new(), sites[0].differing().count()), (vec![], 0));
    sites[1] = site(2);
    speak(&mut sites);
    assert_eq!(sites[0].take_new().len(), 1);
}

#[test]
fn a_word_from_ahead_is_compared_when_the_version_is_reached() {
    let said = |version, kind: u64| Said {
        version: Version(version),
        digest: kind * 1000 + version,
        agrees: Vec::new(),
    };
    let mut behind = Comparison::new(Stored::default());
    behind.heard(id(1), said(5, 2));
    behind.heard(id(2), said(5, 1));
    // Who is always behind still gets to the first word.
    (6..9).for_each(|version| behind.heard(id(1), said(version, 2)));
    behind.applied(&digests(1)[..4]);
    assert_eq!(behind.differing().count(), 0);
    behind.applied(&digests(1)[4..]);
    assert_eq!(behind.differing().collect::<Vec<_>>(), [(id(1), Version(5))]);
    assert_eq!(behind.word().unwrap().agrees, [id(2)]);
}

#[test]
fn what_a_site_said_before_it_was_filled_anew_counts_no_more() {
    let mut behind = Comparison::new(Stored::default());
    behind.heard(id(1), Said { version: Version(5), digest: 7, agrees: Vec::new() });
    behind.connected(id(1));
    behind.applied(&digests(1));
    assert_eq!(behind.differing().count(), 0);
}

/// A late word of a version that is remembered is as true as a new one; one of a version that is not is skipped.
#[test]
fn lost_late_and_repeated_words_do_no_harm() {
    let mut sites = [site(1), site(1), site(1)];
    let late = sites[1].word().unwrap();
    sites.iter_mut().for_each(|site| site.applied(&[77, 78]));
    speak(&mut sites[..2]);
    for _ in 0..3 {
        sites[0].heard(id(1), late.clone());
        sites[0].heard(id(2), Said { version: Version(11), digest: 78, agrees: vec![id(1)] });
    }
    let mut late_joiner = Comparison::new(Stored { version: Version(11), digest: 78, ..Stored::default() });
    late_joiner.heard(id(1), Said { version: Version(3), digest: 666, agrees: Vec::new() });
    for tick in 0..20 {
        assert_eq!(sites[0].is_alone(tick * COMPARE_TICKS), None);
    }
    assert_eq!((sites[0].differing().count(), late_joiner.differing().count()), (0, 0));
}
