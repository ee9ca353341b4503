//! A cluster that was lost comes back with empty disks.

use std::sync::Arc;

use pares_wice::{
    Body, ClusterId, ClusterSet, Configuration, Entry, Era, LogEntry, LogRole, Message, Notice, Settings,
    Site, SiteId, Status, Term, Version, Wanted,
};

const LOST: SiteId = SiteId::new(0, 0);

const BACK: SiteId = SiteId::new(2, 0);
const WENT_ON: SiteId = SiteId::new(1, 0);

fn says(site: &mut Site, term: u64, delivered: u64) {
    let status = Status {
        site: LOST,
        term: Term(term),
        serial: 1,
        eras: vec![(Era::default(), Version(0))],
        delivered: Version(delivered),
        received: Version(delivered),
        is_whole: true,
        ..Status::default()
    };
    site.receive(LOST, Message::Status(status), &mut Wanted::default());
}

fn heard(site: &Site) -> Vec<Term> {
    site.statuses().filter(|status| status.site == LOST).map(|status| status.term).collect()
}

/// Its log counts its terms again. A site that hears of the loss only after it has connected again would take all it says for late, and
/// nothing would be stable there again.
#[test]
fn old_words_of_lost_cluster_do_not_outdate_new_ones() {
    let sites = (0..3).map(|cluster| SiteId::new(cluster, 0)).collect();
    let mut site = Site::new(Settings::new(SiteId::new(1, 0), sites), ClusterId(2));
    says(&mut site, 9, 0);
    site.connected(LOST);
    says(&mut site, 1, 0);
    assert_eq!(heard(&site), [Term(9)], "it counts as living, and does not go back");

    let era = Era { takeovers: 0, number: 1, by: ClusterId(2) };
    let lost = Configuration { era, certifier: ClusterId(2), live: ClusterSet(6) };
    let entry = Entry { version: Version(1), era: Era::default(), body: Body::Configure(lost) };
    site.committed(LogEntry::Stream { era: Era::default(), entry: Arc::new(entry) }, &mut Wanted::default());
    says(&mut site, 1, 0);
    assert_eq!(heard(&site), [Term(1)]);
}

/// Those who continued begin another era, forget what a cluster outside of it has said, and hear late what it said before it gave up its own
/// versions: they tell it to give them up again. By then it has theirs, and some are stable: no history has parted.
#[test]
fn what_is_asked_for_again_by_what_was_said_late_is_no_split() {
    let era = |number| Era { takeovers: 1, number, by: ClusterId(1) };
    let sites = (0..3).map(|cluster| SiteId::new(cluster, 0)).collect();
    let mut site = Site::new(Settings::new(BACK, sites), ClusterId(2));
    let mut heard = Wanted::default();
    site.role(LogRole { term: Term(1), leads: true });
    let without = Configuration { era: era(1), certifier: ClusterId(1), live: ClusterSet(2) };
    let entry = Entry { version: Version(1), era: Era::default(), body: Body::Configure(without) };
    site.committed(LogEntry::Stream { era: era(1), entry: Arc::new(entry) }, &mut heard);
    let mut says = |serial, eras: Vec<(Era, Version)>| {
        let status = Status {
            site: WENT_ON,
            term: Term(1),
            serial,
            eras,
            promised: era(2),
            delivered: Version(9),
            received: Version(9),
            certifying: true,
            is_whole: true,
        };
        heard.notices.clear();
        site.receive(WENT_ON, Message::Status(status), &mut heard);
        site.flush(&mut heard);
        heard.notices.clear();
        site.receive(WENT_ON, Message::Rewind { era: era(2), keep: Version(0) }, &mut heard);
        heard.notices.contains(&Notice::Split(ClusterId(1)))
    };
    let (first, same) = ((Era::default(), Version(0)), (era(1), Version(1)));
    assert!(!says(1, vec![first, same, (era(2), Version(3))]));
    assert!(says(2, vec![first, (era(2), Version(1))]), "and histories that part are");
}
