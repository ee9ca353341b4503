//! Large values and a cluster that is away: what a site keeps stays within its bounds in bytes.

use std::sync::Arc;

use pares_wice::codec::Coded;
use pares_wice::{
    AbortReason, CertifierTerm, ClusterId, Entry, Era, LogRole, Message, Outcome, Settings, Site, SiteId,
    Status, Term, Transaction, TransactionId, Value, Version, Wanted, Write,
};

const HERE: SiteId = SiteId::new(0, 0);
const BESIDE: SiteId = SiteId::new(0, 1);
const FAR: SiteId = SiteId::new(1, 0);
const VALUE_BYTES: usize = 100 << 10;
/// What one transaction takes, at most.
const ONE: usize = VALUE_BYTES + (2 << 10);
const MOST: usize = 1 << 20;

/// The certifier, whose cluster's log commits when the test says so.
struct Here {
    site: Site,
    wanted: Wanted,
    next: u64,
}

impl Here {
    fn new() -> Self {
        let settings = Settings {
            unstable_bytes_max: MOST,
            pending_bytes_max: 4 * MOST,
            retained_bytes_max: MOST,
            index_bytes_max: 10_000,
            proposed_bytes_max: MOST,
            stream_bytes_max: MOST / 2,
            stream_window_bytes: MOST,
            ..Settings::new(HERE, vec![HERE, BESIDE, FAR])
        };
        let mut site = Site::new(settings, ClusterId(0));
        site.role(LogRole { term: Term(1), leads: true });
        let mut here = Self { site, wanted: Wanted::default(), next: 0 };
        here.site.flush(&mut here.wanted);
        here
    }

    fn transaction(&mut self) -> Transaction {
        self.next += 1;
        let id = TransactionId { client: 1, sequence: self.next };
        let write = Write::put(format!("item/{}", self.next % 20).as_str(), Value::new(vec![7; VALUE_BYTES]));
        Transaction {
            id,
            snapshot: self.site.snapshot().version,
            writes: vec![write],
            ..Transaction::default()
        }
    }

    fn submit(&mut self) {
        let (transaction, snapshot) = (self.transaction(), self.site.snapshot());
        self.site.submit(transaction, snapshot, &mut self.wanted).expect("it is in order");
    }

    /// An initiator that does not know how things are asks.
    fn asked(&mut self) {
        let reign = CertifierTerm { era: Era::default(), term: Term(1) };
        let transaction = self.transaction();
        self.site.receive(BESIDE, Message::Certify { reign, transaction }, &mut self.wanted);
    }

    /// The log commits all that was proposed.
    fn commit(&mut self) {
        for entry in std::mem::take(&mut self.wanted.proposals) {
            self.site.committed(entry, &mut self.wanted);
        }
        self.site.flush(&mut self.wanted);
    }

    /// The other cluster says how far it is.
    fn hears(&mut self, serial: u64, delivered: Version) {
        let status = Status {
            site: FAR,
            term: Term(1),
            serial,
            eras: vec![(Era::default(), Version(0))],
            delivered,
            received: delivered,
            is_whole: true,
            ..Status::default()
        };
        self.site.receive(FAR, Message::Status(status), &mut self.wanted);
        self.site.flush(&mut self.wanted);
    }

    /// The versions sent to the other cluster since it was asked last, and each message's length.
    fn streamed(&mut self) -> (Vec<Version>, Vec<usize>) {
        let sent = std::mem::take(&mut self.wanted.messages).into_iter();
        let streams = sent.filter(|(to, message)| *to == FAR && matches!(message, Message::Stream { .. }));
        let (mut versions, mut lengths) = (Vec::new(), Vec::new());
        for (_, message) in streams {
            lengths.push(message.to_bytes().len());
            if let Message::Stream { entries, .. } = message {
                versions.extend(entries.iter().map(|entry: &Arc<Entry>| entry.version));
            }
        }
        (versions, lengths)
    }
}

#[test]
fn unstable_transactions_refused_before_memory_fills() {
    let mut here = Here::new();
    for _ in 0..100 {
        here.submit();
        here.commit();
        assert!(here.site.held().unstable <= MOST + ONE);
    }
    let behind = Outcome::Aborted(AbortReason::Behind);
    let refused = here.wanted.outcomes.iter().filter(|(_, outcome)| *outcome == behind).count();
    let taken = here.site.delivered().0;
    assert_eq!((refused as u64 + taken, here.site.is_behind()), (100, true));
    assert!((9..=12).contains(&taken), "as many as there is room for: {taken}");
    here.hears(1, here.site.delivered());
    assert_eq!((here.site.held().unstable, here.site.held().pending, here.site.is_behind()), (0, 0, false));
}

#[test]
fn a_certifier_is_silent_when_initiators_go_on_all_the_same() {
    let mut here = Here::new();
    for _ in 0..100 {
        here.asked();
        here.commit();
        assert!(here.site.held().unstable <= 2 * MOST + ONE);
    }
    assert!(here.wanted.messages.iter().all(|(_, message)| !matches!(message, Message::Abort { .. })));
    let before = here.site.delivered();
    here.hears(1, before);
    here.asked();
    here.commit();
    assert_eq!(here.site.delivered(), before.next(), "and goes on when there is room");
}

#[test]
fn a_log_that_does_not_commit_is_not_filled() {
    let mut here = Here::new();
    (0..100).for_each(|_| here.asked());
    let held = here.site.held().proposed;
    assert!((MOST..=MOST + ONE).contains(&held), "{held}");
    here.commit();
    assert_eq!(here.site.held().proposed, 0);
}

#[test]
fn stable_versions_kept_and_remembered_in_bounds() {
    let mut here = Here::new();
    for serial in 1..=200 {
        here.submit();
        here.commit();
        here.hears(serial, here.site.delivered());
        here.site.applied(here.site.stable());
        let held = here.site.held();
        assert!(held.retained <= MOST && held.index <= 10_000 && held.versions == 0, "{held:?}");
    }
    assert_eq!(here.site.delivered(), Version(200));
}

#[test]
fn questions_that_come_early_are_kept_within_bounds() {
    let mut here = Here::new();
    let era = Era { takeovers: 0, number: 1, by: ClusterId(0) };
    for _ in 0..400 {
        let transaction = here.transaction();
        let early = Message::Certify { reign: CertifierTerm { era, term: Term(1) }, transaction };
        here.site.receive(BESIDE, early, &mut here.wanted);
    }
    assert!((15 << 20..=16 << 20).contains(&here.site.held().early));
    here.site.role(LogRole { term: Term(2), leads: true });
    assert_eq!(here.site.held().early, 0);
}

/// A message longer than a frame may be is not sent, and was tried again for ever.
#[test]
fn a_cluster_that_is_behind_is_sent_messages_that_fit() {
    let mut here = Here::new();
    for _ in 0..40 {
        here.asked();
        here.commit();
    }
    let end = here.site.delivered();
    here.streamed();
    let mut received = Version(0);
    for serial in 1.. {
        here.hears(serial, received);
        let (versions, lengths) = here.streamed();
        assert!(lengths.iter().all(|bytes| *bytes <= MOST / 2), "{lengths:?}");
        assert!(lengths.iter().sum::<usize>() <= MOST + MOST / 2, "{lengths:?}");
        let Some(last) = versions.last() else { break };
        received = *last;
    }
    assert_eq!(received, end);
}
