//! What the drill found, by scenario and together.

use pares_isolation::bank::Imbalance;
use pares_isolation::{Anomalies, Anomaly};
use pares_load::{LabResult, none_of};
use pares_wice::Isolation;
use serde::{Serialize, Serializer};

macro_rules! counts {
    ($($(#[$is:meta])* $name:ident,)*) => {
        /// What was found in one history, or in all.
        #[derive(Clone, Debug, Default, Serialize)]
        pub(super) struct Found {
            $($(#[$is])* pub(super) $name: u64,)*
        }

        impl Found {
            fn counts(&mut self) -> impl Iterator<Item = &mut u64> {
                [$(&mut self.$name),*].into_iter()
            }
        }
    };
}

counts! {
    /// Transactions asked, of lists and of the bank.
    transactions,
    ok,
    failed,
    unknown,
    g0,
    g1a,
    g1b,
    g1c,
    g_single,
    g_nonadjacent,
    /// Write skew: allowed under snapshot isolation.
    g2_item,
    lost_updates,
    /// Done, and missing at the end.
    lost_appends,
    incompatible_orders,
    duplicate_elements,
    phantom_elements,
    internal,
    /// Elements appended twice: the drill's own fault.
    unusable,
    /// Reads of a session without what it had written.
    read_your_writes,
    /// Reads of a session that go back behind what it had read.
    monotonic_reads,
    /// Snapshots of all accounts: how many, and with another sum, another number of accounts, one below zero.
    snapshots,
    total_off,
    incomplete,
    negative,
    /// Sites whose content at the end is not that of the first.
    sites_differing,
}

impl Found {
    pub(super) fn note(&mut self, anomalies: &Anomalies, bank: Imbalance) {
        let count = |anomaly| anomalies.count(anomaly);
        self.g0 = count(Anomaly::G0);
        self.g1a = count(Anomaly::G1a);
        self.g1b = count(Anomaly::G1b);
        self.g1c = count(Anomaly::G1c);
        self.g_single = count(Anomaly::GSingle);
        self.g_nonadjacent = count(Anomaly::GNonadjacent);
        self.g2_item = count(Anomaly::G2Item);
        self.lost_updates = count(Anomaly::LostUpdate);
        self.lost_appends = count(Anomaly::LostAppend);
        self.incompatible_orders = count(Anomaly::IncompatibleOrders);
        self.duplicate_elements = count(Anomaly::DuplicateElement);
        self.phantom_elements = count(Anomaly::PhantomElement);
        self.internal = count(Anomaly::Internal);
        self.unusable = count(Anomaly::Unusable);
        self.read_your_writes = count(Anomaly::ReadYourWrites);
        self.monotonic_reads = count(Anomaly::MonotonicReads);
        (self.total_off, self.incomplete, self.negative) = (bank.total_off, bank.incomplete, bank.negative);
    }

    /// What is never allowed, apart from write skew.
    pub(super) fn forbidden(&self) -> u64 {
        let sessions = self.read_your_writes + self.monotonic_reads;
        let cycles = self.g0 + self.g1a + self.g1b + self.g1c + self.g_single + self.g_nonadjacent;
        let lists = self.lost_updates + self.lost_appends + self.incompatible_orders + self.internal;
        let elements = self.duplicate_elements + self.phantom_elements + self.unusable;
        sessions
            + cycles
            + lists
            + elements
            + self.total_off
            + self.incomplete
            + self.negative
            + self.sites_differing
    }
}

/// One scenario.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Scenario {
    pub(super) scenario: &'static str,
    #[serde(flatten)]
    pub(super) found: Found,
}

fn by_name<S: Serializer>(isolation: &Isolation, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(isolation)
}

/// All of it.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Figures {
    pub(super) drill: &'static str,
    pub(super) rtt_ms: u64,
    #[serde(serialize_with = "by_name")]
    pub(super) isolation: Isolation,
    #[serde(flatten)]
    pub(super) all: Found,
    pub(super) scenarios: Vec<Scenario>,
}

impl Figures {
    /// Sums up.
    pub(super) fn settle(&mut self) {
        for scenario in &mut self.scenarios {
            let counts = scenario.found.counts();
            self.all.counts().zip(counts).for_each(|(all, one)| *all += *one);
        }
    }

    /// Whether all that is promised was so.
    pub(super) fn verdict(&self) -> LabResult {
        let skew = if self.isolation == Isolation::Serialisable { self.all.g2_item } else { 0 };
        none_of([(self.all.forbidden() + skew, "anomalies that this isolation forbids")])
    }
}
