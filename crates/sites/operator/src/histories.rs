//! Two histories: clusters that have continued without each other.
//!
//! Each half is well by its own word: its sites answer, one certifies, and its cluster is live. The latest era says nothing either, for the two have one number and differ in
//! who began it. So reports are compared with each other. A site that was cut off and has missed an era is no history of its own: it counts the others as live, and nothing
//! becomes stable there without them.

use pares_site::{Access, SiteReport};
use pares_wice::SiteId;

use crate::error::{OperatorError, OperatorResult};
use crate::sites;

/// Which two sites have continued without each other, if any have.
pub(crate) fn two(reports: &[(SiteId, SiteReport)]) -> Option<String> {
    let mut pairs = reports.iter().enumerate().flat_map(|(at, one)| {
        reports[at + 1..]
            .iter()
            .filter(|other| one.0.cluster != other.0.cluster)
            .map(move |other| (one, other))
    });
    let (one, other) = pairs.find(|(one, other)| contradict(one, other))?;
    Some(format!(
        "two histories: {}; {}. Each has answered clients without the other, and they cannot be merged: stop the clusters of one of them (docs/operations/sites.md)",
        said(one),
        said(other)
    ))
}

/// Whether two sites of two clusters cannot both be right.
fn contradict((one, a): &(SiteId, SiteReport), (other, b): &(SiteId, SiteReport)) -> bool {
    let knows = |report: &SiteReport| report.apart.is_none() && !report.recalling;
    if !knows(a) || !knows(b) {
        return false;
    }
    // Only who declares others lost begins an era that those do not know of.
    let is_one_era = a.era.0 > 0 && (a.era.0, a.era.1) == (b.era.0, b.era.1);
    let differ = (a.era, a.certifier, &a.live) != (b.era, b.certifier, &b.live);
    let goes_on_without = |site: &SiteId, report: &SiteReport, other: &SiteId| {
        report.delegate && report.live.contains(&site.cluster.0) && !report.live.contains(&other.cluster.0)
    };
    is_one_era && differ || goes_on_without(one, a, other) && goes_on_without(other, b, one)
}

fn said((site, report): &(SiteId, SiteReport)) -> String {
    let live: Vec<String> = report.live.iter().map(ToString::to_string).collect();
    let (_, number, by) = report.era;
    format!(
        "{} is in era {number}, begun by cluster {by}, with cluster {} certifying and {} live",
        sites::name(*site),
        report.certifier,
        live.join(" and ")
    )
}

/// The reports of sites of other clusters than these which participate; all reports if there are none.
pub(crate) fn besides(
    reports: &[(SiteId, SiteReport)],
    is_meant: impl Fn(u8) -> bool,
) -> Vec<(SiteId, SiteReport)> {
    let takes_part =
        |(site, report): &&(SiteId, SiteReport)| !is_meant(site.cluster.0) && report.apart.is_none();
    let others: Vec<_> = reports.iter().filter(takes_part).cloned().collect();
    if others.is_empty() { reports.to_vec() } else { others }
}

/// Names the other history, if one is seen once an operator's wish was done, or was not.
pub(crate) fn named(access: &Access, done: OperatorResult) -> OperatorResult {
    let Some(two) = two(&sites::reports(access)) else { return done };
    Err(OperatorError::Unhealthy(match done {
        Ok(()) => two,
        Err(error) => format!("{error}. Also, there are {two}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(cluster: u8, era: (u32, u32, u8), certifier: u8, live: &[u8]) -> (SiteId, SiteReport) {
        let report = SiteReport {
            era,
            certifier,
            live: live.to_vec(),
            delegate: true,
            certifies: certifier == cluster,
            ..SiteReport::default()
        };
        (SiteId::new(cluster, 0), report)
    }

    #[test]
    fn independently_continued_clusters_are_named() {
        let here = site(0, (1, 1, 0), 0, &[0]);
        for (there, what) in [
            (site(1, (1, 1, 1), 1, &[1]), "each was declared lost by the other, in eras of one number"),
            (site(1, (2, 3, 1), 1, &[1]), "the other has declared more"),
            (site(1, (1, 1, 0), 0, &[0, 1]), "one era, with other living clusters"),
        ] {
            let told = two(&[here.clone(), there.clone()]).unwrap_or_else(|| panic!("{what}"));
            assert!(told.contains("0.0 is in era 1") && told.contains("1.0 is in era"), "{told}");
            assert!(two(&[there, here.clone()]).is_some(), "{what}");
        }
        let mut away = site(1, (1, 1, 1), 1, &[1]);
        away.1.recalling = true;
        for (there, what) in [
            (site(1, (1, 1, 0), 0, &[0]), "it knows that it was declared lost"),
            (site(1, (0, 0, 0), 0, &[0, 1]), "it was cut off, and has missed that"),
            (site(1, (1, 2, 0), 0, &[0, 1]), "it is back, and the other has not heard of that yet"),
            (away, "it reads its log"),
        ] {
            assert_eq!(two(&[here.clone(), there]), None, "{what}");
        }
        let migrating = [site(0, (0, 0, 0), 0, &[0, 1]), site(1, (0, 1, 0), 1, &[0, 1])];
        assert_eq!(two(&migrating), None);
    }

    #[test]
    fn addressed_sites_word_counts_when_alone() {
        let reports = [site(0, (1, 1, 0), 0, &[0]), site(1, (1, 1, 1), 1, &[1])];
        let of = |meant: u8| besides(&reports, |cluster| cluster == meant)[0].0.cluster.0;
        assert_eq!((of(0), of(1)), (1, 0));
        assert_eq!(besides(&reports[1..], |cluster| cluster == 1), &reports[1..]);
    }
}
