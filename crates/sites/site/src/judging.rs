//! What follows from what all sites say of themselves: whom an operator's word is for, and whether it is done.
//!
//! Nobody knows the latest era for sure: a site that was cut off says what was so, and one that has just started may have missed what came since. So each judgement goes by the latest
//! era that any report names, and asks the delegates of all clusters that live in it.

use std::cmp::Reverse;

use pares_wice::{ClusterId, ClusterSet, SiteId};

use crate::report::SiteReport;

/// Why no cluster can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSurvivor {
    /// No delegate that could continue answers.
    Silent,
    /// The first certifies, is not lost, and its delegate does not answer or is not asked for; the second could continue in its place only.
    CertifiedBy(ClusterId, ClusterId),
}

/// The delegate that can continue without these clusters: of one that lives by its own word, since one that is back and not admitted would have to refuse what the witness can
/// grant once. No other cluster takes over from a certifier that is not lost, also while that waits for promises: its own cluster is asked, or none, and the only grant of a
/// count is not spent at one that has to refuse.
///
/// # Errors
/// Why there is none.
pub fn who_goes_on(
    reports: &[(SiteId, SiteReport)],
    lost: ClusterSet,
    at: Option<u8>,
) -> Result<SiteId, NoSurvivor> {
    let may = |(site, report): &&(SiteId, SiteReport)| {
        let cluster = site.cluster.0;
        let lives = !lost.contains(site.cluster) && report.live.contains(&cluster);
        lives && report.delegate && at.is_none_or(|at| cluster == at)
    };
    let takes_over = |(site, report): &&(SiteId, SiteReport)| {
        report.certifier == site.cluster.0 || lost.contains(ClusterId(report.certifier))
    };
    let rank = |(site, report): &&(SiteId, SiteReport)| (report.era, report.certifies, Reverse(*site));
    let best = |all: &mut dyn Iterator<Item = &(SiteId, SiteReport)>| -> Option<(SiteId, u8)> {
        all.max_by_key(rank).map(|(site, report)| (*site, report.certifier))
    };
    match best(&mut reports.iter().filter(may).filter(takes_over)) {
        Some((site, _)) => {
            assert!(!lost.contains(site.cluster), "a surviving cluster is not among the lost");
            Ok(site)
        }
        None => Err(best(&mut reports.iter().filter(may)).map_or(NoSurvivor::Silent, |(site, certifier)| {
            NoSurvivor::CertifiedBy(ClusterId(certifier), site.cluster)
        })),
    }
}

/// The count of the era that this cluster was asked to begin, once the delegates of all that live have begun it: a register may begin there. `before` is
/// the count that it had then.
#[must_use]
pub fn renewed(reports: &[(SiteId, SiteReport)], by: u8, before: u32) -> Option<u32> {
    let (_, latest) = reports.iter().max_by_key(|(_, report)| report.era)?;
    let is_it = latest.era.0 > before && latest.era.2 == by && has_begun_everywhere(reports, latest);
    is_it.then_some(latest.era.0)
}

/// Whether the delegates of all clusters that live in the era of `latest` have begun it. One that has just started may have missed later ones; one that takes no part knows of none.
#[must_use]
pub fn has_begun_everywhere(reports: &[(SiteId, SiteReport)], latest: &SiteReport) -> bool {
    let has_begun = |cluster: &u8| {
        let is_its = |(site, report): &(SiteId, SiteReport)| {
            site.cluster.0 == *cluster && report.delegate && report.era == latest.era
        };
        reports.iter().any(is_its)
    };
    !latest.live.is_empty() && latest.live.iter().all(has_begun)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(cluster: u8, delegate: bool, era: (u32, u32, u8)) -> (SiteId, SiteReport) {
        let report = SiteReport { era, delegate, live: vec![0, 1], ..SiteReport::default() };
        (SiteId::new(cluster, 0), report)
    }

    #[test]
    fn era_renewed_when_every_live_cluster_began_it() {
        let (old, new) = ((1, 4, 0), (2, 5, 0));
        assert_eq!(renewed(&[report(0, true, new), report(1, true, new)], 0, 1), Some(2));
        for (reports, by, what) in [
            (vec![report(0, true, new), report(1, true, old)], 0, "one has not begun it"),
            (vec![report(0, true, new), report(1, false, new)], 0, "no delegate says so"),
            (vec![report(0, true, new)], 0, "one says nothing"),
            (vec![report(0, true, old), report(1, true, old)], 0, "nobody has begun one"),
            (vec![report(0, true, new), report(1, true, new)], 1, "another cluster has begun another"),
        ] {
            assert_eq!(renewed(&reports, by, 1), None, "{what}");
            let latest = &reports.iter().max_by_key(|(_, report)| report.era).unwrap().1;
            let is_nowhere_else = what.starts_with("nobody") || what.starts_with("another");
            assert_eq!(has_begun_everywhere(&reports, latest), is_nowhere_else, "{what}");
        }
        let empty = [(SiteId::new(0, 0), SiteReport::default())];
        assert!(!has_begun_everywhere(&empty, &empty[0].1), "one with an empty disk knows of no era");
    }

    #[test]
    fn who_is_to_go_on_without_others_lives_by_its_own_word() {
        let (old, new) = ((1, 4, 0), (1, 5, 0));
        let lost = ClusterSet::default().with(ClusterId(0));
        let back = (SiteId::new(2, 0), SiteReport { live: vec![0, 1], ..report(2, true, new).1 });
        let reports = [report(0, true, new), report(1, true, new), back];
        let site = |cluster| Ok(SiteId::new(cluster, 0));
        assert_eq!(who_goes_on(&reports, lost, None), site(1));
        assert_eq!(who_goes_on(&reports, lost, Some(2)), Err(NoSurvivor::Silent), "it is not admitted");
        let all = [report(1, true, old), report(0, true, new), report(1, false, new)];
        assert_eq!(who_goes_on(&all, ClusterSet(2), None), site(0));
        assert_eq!(who_goes_on(&all, lost, None), site(1));
        assert_eq!(who_goes_on(&all, ClusterSet(3), None), Err(NoSurvivor::Silent));
        let mut equal = [report(1, true, new), report(0, true, new)];
        assert_eq!(
            who_goes_on(&equal, ClusterSet::default(), None),
            site(0),
            "it certified, and waits for promises"
        );
        equal[0].1.certifier = 1;
        equal[1].1.certifier = 1;
        assert_eq!(who_goes_on(&equal, ClusterSet::default(), None), site(1));
    }

    /// The only grant of a count was spent at a cluster that refused it every time.
    #[test]
    fn silent_but_live_certifier_is_not_replaced() {
        let living = |cluster, certifier| {
            let (site, report) = report(cluster, true, (1, 5, 0));
            (site, SiteReport { live: vec![0, 1, 2], certifier, ..report })
        };
        let lost = ClusterSet::default().with(ClusterId(2));
        let refused = |certifier, own| Err(NoSurvivor::CertifiedBy(ClusterId(certifier), ClusterId(own)));
        for at in [None, Some(1)] {
            assert_eq!(who_goes_on(&[living(1, 0)], lost, at), refused(0, 1));
        }
        let both = [living(0, 0), living(1, 0)];
        assert_eq!(who_goes_on(&both, lost, None), Ok(SiteId::new(0, 0)));
        assert_eq!(who_goes_on(&both, lost, Some(1)), refused(0, 1), "also if it is asked for by name");
        let with_it = lost.with(ClusterId(0));
        assert_eq!(who_goes_on(&[living(1, 0)], with_it, None), Ok(SiteId::new(1, 0)));
        let moved = [living(0, 1), living(1, 1)];
        assert_eq!(
            who_goes_on(&moved, lost, Some(0)),
            refused(1, 0),
            "what was granted to 0 before the certifier moved"
        );
    }
}
