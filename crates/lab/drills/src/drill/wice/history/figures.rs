//! What the drill found, by scenario and together.

use pares_isolation::bank::Imbalance;
use pares_isolation::{Anomalies, Anomaly};
use pares_load::{LabResult, none_of};
use pares_wice::Isolation;
use serde::{Serialize, Serializer};

macro_rules! counts {
    (
        { $($(#[$is:meta])* $name:ident,)* }
        anomalies { $($(#[$found:meta])* $field:ident: $anomaly:ident,)* }
    ) => {
        /// What was found in one history, or in all.
        #[derive(Clone, Debug, Default, Serialize)]
        pub(super) struct Found {
            $($(#[$is])* pub(super) $name: u64,)*
            $($(#[$found])* pub(super) $field: u64,)*
            #[serde(flatten)]
            pub(super) snapshots: Snapshots,
            /// Sites whose content at the end is not that of the first.
            pub(super) sites_differing: u64,
        }

        impl Found {
            fn counts(&mut self) -> impl Iterator<Item = &mut u64> {
                let Snapshots { snapshots, total_off, incomplete, negative } = &mut self.snapshots;
                let rest = [snapshots, total_off, incomplete, negative, &mut self.sites_differing];
                [$(&mut self.$name,)* $(&mut self.$field),*].into_iter().chain(rest)
            }

            pub(super) fn note(&mut self, anomalies: &Anomalies, bank: Imbalance) {
                $(self.$field = anomalies.count(Anomaly::$anomaly);)*
                let Imbalance { total_off, incomplete, negative } = bank;
                self.snapshots = Snapshots { total_off, incomplete, negative, ..self.snapshots };
            }

            /// What is never allowed, apart from write skew.
            pub(super) fn forbidden(&self) -> u64 {
                let Snapshots { total_off, incomplete, negative, .. } = self.snapshots;
                let anomalies = [$(self.$field),*].iter().sum::<u64>() - self.g2_item;
                anomalies + total_off + incomplete + negative + self.sites_differing
            }
        }
    };
}

counts! {
    {
        /// Transactions asked, of lists and of the bank.
        transactions,
        ok,
        failed,
        unknown,
    }
    anomalies {
        g0: G0,
        g1a: G1a,
        g1b: G1b,
        g1c: G1c,
        g_single: GSingle,
        g_nonadjacent: GNonadjacent,
        /// Write skew: allowed under snapshot isolation.
        g2_item: G2Item,
        lost_updates: LostUpdate,
        /// Done, and missing at the end.
        lost_appends: LostAppend,
        incompatible_orders: IncompatibleOrders,
        duplicate_elements: DuplicateElement,
        phantom_elements: PhantomElement,
        internal: Internal,
        /// Elements appended twice: the drill's own fault.
        unusable: Unusable,
        /// Reads of a session without what it had written.
        read_your_writes: ReadYourWrites,
        /// Reads of a session that go back behind what it had read.
        monotonic_reads: MonotonicReads,
    }
}

/// Snapshots of all accounts: how many, and with another sum, another number of accounts, one below zero.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Snapshots {
    pub(super) snapshots: u64,
    total_off: u64,
    incomplete: u64,
    negative: u64,
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
