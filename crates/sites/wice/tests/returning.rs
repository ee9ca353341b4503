//! A cluster that was lost comes back with empty disks.

use std::sync::Arc;

use pares_wice::{
    Body, ClusterId, ClusterSet, Configuration, Effects, Entry, Era, LogEntry, Message, Notice, Outcome,
    Settings, Site, SiteId, Status, Term, TransactionId, Version,
};

const LOST: SiteId = SiteId::new(0, 0);

struct Nobody;

impl Effects for Nobody {
    fn propose(&mut self, _entry: LogEntry) {}
    fn send(&mut self, _to: SiteId, _message: Message) {}
    fn outcome(&mut self, _id: TransactionId, _outcome: Outcome) {}
    fn notice(&mut self, _notice: Notice) {}
}

fn says(site: &mut Site, term: u64, delivered: u64) {
    let status = Status {
        site: LOST,
        term: Term(term),
        serial: 1,
        eras: vec![(Era::default(), Version(0))],
        promised: Era::default(),
        delivered: Version(delivered),
        received: Version(delivered),
        certifying: false,
        is_whole: true,
    };
    site.receive(LOST, Message::Status(status), &mut Nobody);
}

fn heard(site: &Site) -> Vec<Term> {
    site.statuses().filter(|status| status.site == LOST).map(|status| status.term).collect()
}

/// Its log counts its terms anew. A site that hears of the loss only after it has connected again would take all it says for late, and
/// nothing would be stable there again.
#[test]
fn what_a_lost_cluster_said_before_does_not_outdate_what_it_says_when_it_is_back() {
    let sites = (0..3).map(|cluster| SiteId::new(cluster, 0)).collect();
    let mut site = Site::new(Settings::new(SiteId::new(1, 0), sites), ClusterId(2));
    says(&mut site, 9, 0);
    site.connected(LOST);
    says(&mut site, 1, 0);
    assert_eq!(heard(&site), [Term(9)], "it counts as living, and does not go back");

    let era = Era { takeovers: 0, number: 1, by: ClusterId(2) };
    let lost = Configuration { era, certifier: ClusterId(2), live: ClusterSet(6) };
    let entry = Entry { version: Version(1), era: Era::default(), body: Body::Configure(lost) };
    site.committed(LogEntry::Stream { era: Era::default(), entry: Arc::new(entry) }, &mut Nobody);
    says(&mut site, 1, 0);
    assert_eq!(heard(&site), [Term(1)]);
}
