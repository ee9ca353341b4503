//! What the drill found, by scenario and together.

use pares_isolation::bank::Imbalance;
use pares_isolation::{Anomalies, Anomaly};
use pares_load::{LabError, LabResult};
use pares_text::Table;
use pares_wice::Isolation;
use serde::{Serialize, Serializer};

/// What was found in one history, or in all.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Found {
    /// Transactions asked, of lists and of the bank.
    pub(super) transactions: u64,
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) unknown: u64,
    pub(super) g0: u64,
    pub(super) g1a: u64,
    pub(super) g1b: u64,
    pub(super) g1c: u64,
    pub(super) g_single: u64,
    pub(super) g_nonadjacent: u64,
    /// Write skew: allowed under snapshot isolation.
    pub(super) g2_item: u64,
    pub(super) lost_updates: u64,
    /// Done, and missing at the end.
    pub(super) lost_appends: u64,
    pub(super) incompatible_orders: u64,
    pub(super) duplicate_elements: u64,
    pub(super) phantom_elements: u64,
    pub(super) internal: u64,
    /// Elements appended twice: the drill's own fault.
    pub(super) unusable: u64,
    /// Reads of a session without what it had written.
    pub(super) read_your_writes: u64,
    /// Reads of a session that go back behind what it had read.
    pub(super) monotonic_reads: u64,
    /// Snapshots of all accounts: how many, and with another sum, another number of accounts, one below zero.
    pub(super) snapshots: u64,
    pub(super) total_off: u64,
    pub(super) incomplete: u64,
    pub(super) negative: u64,
    /// Sites whose content at the end is not that of the first.
    pub(super) sites_differing: u64,
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

    fn counts(&mut self) -> [&mut u64; 25] {
        [
            &mut self.transactions,
            &mut self.ok,
            &mut self.failed,
            &mut self.unknown,
            &mut self.g0,
            &mut self.g1a,
            &mut self.g1b,
            &mut self.g1c,
            &mut self.g_single,
            &mut self.g_nonadjacent,
            &mut self.g2_item,
            &mut self.lost_updates,
            &mut self.lost_appends,
            &mut self.incompatible_orders,
            &mut self.duplicate_elements,
            &mut self.phantom_elements,
            &mut self.internal,
            &mut self.unusable,
            &mut self.read_your_writes,
            &mut self.monotonic_reads,
            &mut self.snapshots,
            &mut self.total_off,
            &mut self.incomplete,
            &mut self.negative,
            &mut self.sites_differing,
        ]
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
            self.all.counts().into_iter().zip(counts).for_each(|(all, one)| *all += *one);
        }
    }

    pub(super) fn print(&self) {
        let mut table = Table::new([
            "scenario",
            ">done",
            ">not done",
            ">unknown",
            ">forbidden",
            ">write skew",
            ">own writes missed",
            ">gone back",
            ">snapshots",
        ]);
        for Scenario { scenario, found, .. } in &self.scenarios {
            let numbers = [
                found.ok,
                found.failed,
                found.unknown,
                found.forbidden(),
                found.g2_item,
                found.read_your_writes,
                found.monotonic_reads,
                found.snapshots,
            ];
            let cells = numbers.into_iter().map(pares_text::grouped);
            table.row([(*scenario).to_owned()].into_iter().chain(cells).collect());
        }
        pares_text::say!("{}", table.render());
    }

    /// Whether all that is promised was so.
    pub(super) fn verdict(&self) -> LabResult {
        let skew = if self.isolation == Isolation::Serialisable { self.all.g2_item } else { 0 };
        match self.all.forbidden() + skew {
            0 => Ok(()),
            count => Err(LabError::Failed(format!("{count} anomalies that this isolation forbids"))),
        }
    }
}
