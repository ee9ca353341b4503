//! Takeovers, and where there is a witness their counts: what leads to the next one, and what does not.

use std::sync::Arc;

use pares_wice::site::{Base, Stored};
use pares_wice::{
    Body, ClusterId, ClusterSet, Command, Configuration, Declaration, Entry, Era, LogEntry, LogRole, Message,
    NotGranted, Refused, Register, Settings, Site, SiteId, Status, Term, Version, Wanted,
};

const A: ClusterId = ClusterId(0);
const B: ClusterId = ClusterId(1);
const C: ClusterId = ClusterId(2);
const D: ClusterId = ClusterId(3);

/// The delegate of a cluster of one site, whose log commits when the test says so. A certifies first.
struct Delegate {
    site: Site,
    wanted: Wanted,
}

impl Delegate {
    fn of(cluster: ClusterId, clusters: u8) -> Self {
        Self::where_it_is(cluster, clusters, true)
    }

    /// Where there is a witness, or none.
    fn where_it_is(cluster: ClusterId, clusters: u8, witnessed: bool) -> Self {
        let site = Site::new(Self::settings(cluster, clusters, witnessed), A);
        let mut delegate = Self { site, wanted: Wanted::default() };
        delegate.site.role(LogRole { term: Term(1), leads: true });
        delegate.site.flush(&mut delegate.wanted);
        delegate
    }

    fn settings(cluster: ClusterId, clusters: u8, witnessed: bool) -> Settings {
        let sites = (0..clusters).map(|cluster| SiteId::new(cluster, 0)).collect();
        Settings { witnessed, ..Settings::new(SiteId::new(cluster.0, 0), sites) }
    }

    fn told(&mut self, command: Command) -> Result<(), Refused> {
        self.site.command(command, &mut self.wanted)
    }

    fn given(&mut self, entry: LogEntry) {
        self.site.committed(entry, &mut self.wanted);
        self.site.flush(&mut self.wanted);
    }

    /// Its log commits what it has proposed, and what comes of that.
    fn commit(&mut self) {
        while !self.wanted.proposals.is_empty() {
            let entry = self.wanted.proposals.remove(0);
            self.given(entry);
        }
    }

    fn hears(&mut self, from: ClusterId, message: Message) {
        self.site.receive(SiteId::new(from.0, 0), message, &mut self.wanted);
        self.site.flush(&mut self.wanted);
    }

    /// What it asks others to promise now.
    fn asks(&mut self) -> Option<Configuration> {
        self.wanted.messages.clear();
        self.site.tick(&mut self.wanted);
        self.wanted.messages.iter().find_map(|(_, message)| match message {
            Message::Promise { configuration, .. } => Some(*configuration),
            _ => None,
        })
    }

    /// Whether it promises, asked twice: first its log has to have it.
    fn promises(&mut self, from: ClusterId, configuration: Configuration) -> Option<Message> {
        let asked = || Message::Promise { configuration, delivered: Version(0) };
        self.hears(from, asked());
        self.commit();
        self.wanted.messages.clear();
        self.hears(from, asked());
        let mut sent = self.wanted.messages.iter().map(|(_, message)| message);
        sent.find(|sent| matches!(sent, Message::Promised { .. })).cloned()
    }

    fn count(&self) -> u32 {
        self.site.configuration().era.takeovers
    }
}

fn says(cluster: ClusterId) -> Message {
    Message::Status(Status {
        site: SiteId::new(cluster.0, 0),
        term: Term(1),
        serial: 1,
        eras: vec![(Era::default(), Version(0))],
        is_whole: true,
        ..Status::default()
    })
}

fn granted(takeovers: u32, by: ClusterId, lost: ClusterId) -> Command {
    Command::Granted(Declaration { takeovers, by, lost: ClusterSet::default().with(lost) })
}

/// Each renewal without success counted up in the certifier's log; so it came to a count that another had passed.
#[test]
fn renewal_counts_only_with_all_live_promises() {
    let mut certifier = Delegate::of(A, 2);
    let mut other = Delegate::of(B, 2);
    certifier.hears(B, says(B));
    assert_eq!(certifier.told(Command::Renew), Ok(()));
    assert_eq!(certifier.told(Command::Renew), Err(Refused::UnderWay));
    certifier.commit();
    assert!(!certifier.site.certifies());
    assert_eq!(certifier.told(Command::Renew), Err(Refused::UnderWay));
    assert_eq!(certifier.count(), 0, "nobody else has promised");
    let asked = certifier.asks().unwrap();
    let promised = other.promises(A, asked).unwrap();
    certifier.hears(B, promised);
    certifier.commit();
    assert_eq!((certifier.count(), certifier.site.certifies()), (1, true));
    assert_eq!(other.count(), 0, "it is told of the era by the stream");
}

#[test]
fn who_has_gone_on_alone_promises_no_renewal_of_that_count() {
    let mut certifier = Delegate::of(A, 2);
    let mut other = Delegate::of(B, 2);
    other.told(granted(0, B, A)).unwrap();
    other.commit();
    assert_eq!(other.count(), 1);
    certifier.hears(B, says(B));
    certifier.told(Command::Renew).unwrap();
    certifier.commit();
    let asked = certifier.asks().unwrap();
    let later = Era { number: 40, ..asked.era };
    for asked in [asked, Configuration { era: later, ..asked }] {
        assert!(other.promises(A, asked).is_none());
    }
    assert_eq!((certifier.count(), other.count()), (0, 1));
}

/// B has continued alone with a grant that the witness has forgotten, and A, which does not hear of it, renews again and again.
#[test]
fn failed_renewals_never_reach_next_register_count() {
    let (mut in_vain, mut alone) = (Delegate::of(A, 2), Delegate::of(B, 2));
    alone.told(granted(0, B, A)).unwrap();
    alone.commit();
    for said in [Ok(()), Err(Refused::UnderWay)] {
        assert_eq!(in_vain.told(Command::Renew), said);
        in_vain.commit();
    }
    assert_eq!(alone.told(Command::Renew), Ok(()), "nobody else lives there");
    alone.commit();
    let mut register = Register::beginning(alone.count());
    let lost = ClusterSet::default().with(B);
    let asked = Declaration { takeovers: in_vain.count(), by: A, lost };
    assert_eq!(register.grant(asked), Err(NotGranted::Before(2)));
}

/// With two promises of one count, two histories could come to it.
#[test]
fn a_count_is_promised_to_one_cluster() {
    let mut between = Delegate::of(C, 3);
    let all = ClusterSet(7);
    let era = |takeovers, number, by| Era { takeovers, number, by };
    let by = |era: Era| Configuration { era, certifier: era.by, live: all };
    assert!(between.promises(A, by(era(1, 1, A))).is_some());
    assert!(between.promises(B, by(era(1, 9, B))).is_none());
    assert!(between.promises(A, by(era(1, 9, A))).is_some(), "the same again");
    assert!(between.promises(B, by(era(2, 10, B))).is_some(), "the next");
}

/// That `cluster` takes over from A in the first era of four clusters.
fn taking_over(cluster: ClusterId) -> Configuration {
    let era = Era { takeovers: 1, number: 1, by: cluster };
    Configuration { era, certifier: cluster, live: ClusterSet(0b1110) }
}

/// What C's log has come to when it is read from its first entry, or from a base that a site without a witness has made of the entries before `cut`.
fn come_to(log: &[LogEntry], cut: usize, witnessed: bool) -> Base {
    let mut delegate = Delegate::where_it_is(C, 4, false);
    log[..cut].iter().for_each(|entry| delegate.given(entry.clone()));
    let settings = Delegate::settings(C, 4, witnessed);
    delegate.site = Site::restore(settings, delegate.site.base(), Stored::default());
    log[cut..].iter().for_each(|entry| delegate.given(entry.clone()));
    delegate.site.base()
}

/// B and D have each taken over from A, without a witness, and C has promised both one after the other. Under a witness it would have skipped the second.
#[test]
fn log_from_before_witness_keeps_its_meaning() {
    let begins = |cluster| {
        let (era, body) = (taking_over(cluster).era, Body::Configure(taking_over(cluster)));
        let entry = Entry { version: Version(1), era: Era::default(), body };
        LogEntry::Stream { era, entry: Arc::new(entry) }
    };
    let fences = [B, D].map(taking_over).map(LogEntry::Fence);
    let log = [&fences[..], &[begins(B), begins(D)]].concat();
    let before = come_to(&log, 0, false);
    assert_eq!(before.eras.last(), Some(&(Version(1), taking_over(D))));
    (0..=log.len()).for_each(|cut| assert_eq!(come_to(&log, cut, true), before, "from {cut}"));
}

/// And the other way round: what a Fence means does not hang on the settings of the site that reads it.
#[test]
fn a_fence_under_a_witness_is_judged_so_by_every_site() {
    let log = [B, D, B].map(taking_over).map(LogEntry::WitnessedFence);
    for cut in 0..=log.len() {
        for witnessed in [false, true] {
            assert_eq!(come_to(&log, cut, witnessed).promised, taking_over(B).era, "from {cut}");
        }
    }
}

/// Each Fence is proposed as what it is.
#[test]
fn where_there_is_a_witness_its_rule_is_written_into_the_log() {
    for (witnessed, command) in [(true, granted(0, B, A)), (false, Command::DeclareLost(ClusterSet(1)))] {
        let mut delegate = Delegate::where_it_is(B, 2, witnessed);
        delegate.told(command).unwrap();
        let proposed = delegate.wanted.proposals.pop().unwrap();
        assert_eq!(matches!(proposed, LogEntry::WitnessedFence(_)), witnessed, "{proposed:?}");
        assert_eq!(matches!(proposed, LogEntry::Fence(_)), !witnessed, "{proposed:?}");
    }
}

/// The log decides, and it may hold another era first.
#[test]
fn grant_is_void_once_its_count_has_passed() {
    let mut delegate = Delegate::of(B, 2);
    delegate.told(granted(0, B, A)).unwrap();
    let fence = delegate.wanted.proposals.pop().unwrap();
    let era = Era { takeovers: 1, number: 1, by: A };
    let renewed = Configuration { era, certifier: A, live: ClusterSet(3) };
    let entry = Entry { version: Version(1), era: Era::default(), body: Body::Configure(renewed) };
    delegate.given(LogEntry::Stream { era, entry: Arc::new(entry) });
    assert_eq!(delegate.count(), 1);
    delegate.given(fence);
    delegate.commit();
    assert_eq!(delegate.site.configuration(), renewed);
    assert_eq!(delegate.site.base().promised, era);
    assert_eq!(delegate.told(granted(0, B, A)), Err(Refused::GrantedOtherwise));
}

#[test]
fn promised_cluster_cannot_reach_count_by_grant() {
    let mut delegate = Delegate::of(B, 2);
    let era = Era { takeovers: 1, number: 1, by: A };
    assert!(delegate.promises(A, Configuration { era, certifier: A, live: ClusterSet(3) }).is_some());
    assert_eq!(delegate.told(granted(0, B, A)), Err(Refused::Promised(A)));
    assert_eq!(delegate.told(Command::Unwitnessed(ClusterSet(1))), Ok(()), "on the operator's word");
    delegate.commit();
    assert_eq!(delegate.count(), 2);
}

#[test]
fn failed_renewal_ends_by_declaring_silent_cluster_lost() {
    let mut certifier = Delegate::of(A, 2);
    certifier.told(Command::Renew).unwrap();
    certifier.commit();
    assert_eq!(certifier.told(Command::Migrate(B)), Err(Refused::UnderWay));
    assert_eq!(certifier.told(granted(0, A, B)), Ok(()));
    certifier.commit();
    assert_eq!((certifier.count(), certifier.site.certifies()), (1, true));
}

/// Giving up its office would be answered by nobody in a cluster of one site, which then ended.
#[test]
fn who_renews_keeps_its_office_until_the_era_has_begun() {
    let mut certifier = Delegate::of(A, 2);
    certifier.hears(B, says(B));
    certifier.told(Command::Renew).unwrap();
    certifier.commit();
    assert!(certifier.asks().is_some(), "it waits for B's promise");
    assert!(!certifier.site.wants_another_term());
}

/// A declared C lost; B, which had not heard so, was asked to declare A lost, and then delivered A's era: in B's era C counted as live again, though not admitted.
#[test]
fn lost_cluster_not_revived_by_earlier_takeover() {
    let lost = |cluster| Command::DeclareLost(ClusterSet::default().with(cluster));
    let mut certifier = Delegate::where_it_is(A, 3, false);
    let mut next = Delegate::where_it_is(B, 3, false);
    assert_eq!(certifier.told(lost(C)), Ok(()));
    let without_c = certifier.wanted.proposals.pop().expect("a configuration");
    assert_eq!(next.told(lost(A)), Ok(()));
    next.given(without_c);
    assert_eq!(next.site.configuration().live, ClusterSet::default().with(A).with(B));
    next.commit();
    let begun = next.site.configuration();
    assert_eq!((begun.live, begun.certifier), (ClusterSet::default().with(B), B));
}
