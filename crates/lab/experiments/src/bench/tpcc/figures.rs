//! What the benchmark gave. It is not an audited TPC-C result.

use std::collections::BTreeMap;
use std::time::Duration;

use pares_load::{LabError, LabResult, none_of};
use pares_tpcc::Kind;
use serde::Serialize;

use super::clients::Told;
use super::{Args, Think};

/// By kind of transaction.
pub(super) type ByKind<T> = BTreeMap<&'static str, T>;

/// What the users of a cluster saw, or those of all.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Seen {
    /// All kinds.
    pub(super) transactions_per_s: f64,
    /// From the question to the answer.
    pub(super) p50_ms: ByKind<f64>,
    pub(super) p99_ms: ByKind<f64>,
}

/// Processor time of one transaction.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct KindCost {
    /// At the site that executes it.
    pub(super) execute_us: f64,
    /// At each other site.
    pub(super) apply_us: f64,
}

/// All of it.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Figures {
    pub(super) bench: &'static str,
    pub(super) clusters: u8,
    pub(super) sites: u8,
    pub(super) rtt_ms: u64,
    pub(super) store: &'static str,
    pub(super) warehouses: u32,
    /// Of each district.
    pub(super) customers: u32,
    pub(super) items: u32,
    /// Of each cluster.
    pub(super) clients: u32,
    pub(super) think: &'static str,
    /// Where payments add up a year's takings.
    pub(super) year_to_date: &'static str,
    pub(super) seconds: f64,
    /// What making the initial database took.
    pub(super) population_s: f64,
    #[serde(flatten)]
    pub(super) all: Seen,
    pub(super) new_orders_per_minute: f64,
    pub(super) by_cluster: Vec<Seen>,
    /// Answers of *done* while it was measured.
    pub(super) done: u64,
    pub(super) rolled_back: u64,
    pub(super) refused: u64,
    pub(super) unanswered: u64,
    /// Executions at all sites for each update.
    pub(super) executions_per_update: f64,
    /// Processor time of all sites together, without what they use when nobody asks.
    pub(super) cpu_us_per_update: f64,
    pub(super) cpu_us_per_read: f64,
    /// What all sites together use when nobody asks, percent of a processor.
    pub(super) idle_cpu_percent: f64,
    /// By kind, if that was measured.
    #[serde(skip_serializing_if = "ByKind::is_empty")]
    pub(super) costs: ByKind<KindCost>,
    /// What users received and is not there, or is there twice, or is there and was reported to no user.
    pub(super) lost_and_repeated: u64,
    /// Whether all conditions hold at every site.
    pub(super) consistency: bool,
    /// The first of those that do not.
    pub(super) broken: Vec<String>,
    /// Sites whose content is not that of the first.
    pub(super) sites_differing: u64,
}

/// A number to the hundredth.
pub(super) fn hundredth(number: f64) -> f64 {
    if number.is_finite() { (number * 100.0).round() / 100.0 } else { 0.0 }
}

impl Seen {
    /// What users of some clusters saw in that time.
    pub(super) fn of(told: &Told, measured: Duration, is_such: impl Fn(u8) -> bool) -> Self {
        let count = told.count(|cluster, _| is_such(cluster));
        let mut seen =
            Self { transactions_per_s: hundredth(count as f64 / measured.as_secs_f64()), ..Self::default() };
        for kind in Kind::ALL {
            let times = told.times(|cluster, other| is_such(cluster) && other == kind);
            let at = |quantile| hundredth(times.value_at_quantile(quantile) as f64 / 1e3);
            seen.p50_ms.insert(kind.name(), at(0.5));
            seen.p99_ms.insert(kind.name(), at(0.99));
        }
        seen
    }
}

impl Figures {
    /// Whether the promises were kept.
    ///
    /// # Errors
    /// What was not.
    pub(super) fn verdict(&self) -> LabResult {
        none_of([
            (self.unanswered, "never answered"),
            (self.lost_and_repeated, "lost or repeated"),
            (self.sites_differing, "sites differing"),
        ])?;
        match self.broken.is_empty() {
            true => Ok(()),
            false => Err(LabError::Failed(format!("broken: {}", self.broken.join("; ")))),
        }
    }

    /// Before anything has happened.
    pub(super) fn begun(args: &Args, store: &'static str) -> Self {
        Self {
            bench: "tpcc",
            clusters: args.clusters,
            sites: args.sites,
            rtt_ms: args.rtt_ms,
            store,
            warehouses: args.warehouses,
            customers: args.customers,
            items: args.items,
            clients: args.clients,
            think: match args.think {
                Think::None => "none",
                Think::Paper => "paper",
                Think::Standard => "standard",
            },
            year_to_date: if args.ytd_in_rows { "rows" } else { "counters" },
            seconds: args.seconds,
            ..Self::default()
        }
    }

    /// What users of the mix saw.
    pub(super) fn seen(&mut self, told: &Told, measured: Duration) {
        self.all = Seen::of(told, measured, |_| true);
        let cluster = |cluster: u8| Seen::of(told, measured, move |other| other == cluster);
        self.by_cluster = (0..self.clusters).map(cluster).collect();
        self.done = told.count(|_, _| true);
        let new_orders = told.count(|_, kind| kind == Kind::NewOrder);
        self.new_orders_per_minute = hundredth(new_orders as f64 * 60.0 / measured.as_secs_f64());
    }
}
