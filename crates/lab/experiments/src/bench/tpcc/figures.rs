//! What the benchmark gave: as JSON, and as a table.

use std::collections::BTreeMap;
use std::time::Duration;

use pares_load::{LabError, LabResult};
use pares_text::{Table, count};
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
    /// What users were told and is not there, or is there twice or untold.
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
        let counts = [
            ("never answered", self.unanswered),
            ("lost or repeated", self.lost_and_repeated),
            ("sites differing", self.sites_differing),
        ];
        let mut wrong: Vec<String> = counts
            .iter()
            .filter(|(_, count)| *count != 0)
            .map(|(what, count)| format!("{count} {what}"))
            .collect();
        wrong.extend(self.broken.iter().cloned());
        if wrong.is_empty() { Ok(()) } else { Err(LabError::Failed(format!("broken: {}", wrong.join("; ")))) }
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

    /// A table and some lines.
    pub(super) fn print(&self) {
        let Self { clusters, sites, rtt_ms, store, warehouses, customers, items, clients, think, .. } = self;
        let (clusters, sites) = (count((*clusters).into(), "cluster"), count((*sites).into(), "site"));
        pares_text::say!(
            "{clusters} of {sites}, round trip {rtt_ms} ms, store {store}; {warehouses} warehouses, {customers} customers a district, \
             {items} items; {clients} users a cluster, think {think}, a year's takings in {}. Not an audited TPC-C result\n",
            self.year_to_date
        );
        pares_text::say!("{}", self.latencies().render());
        let Self { new_orders_per_minute, rolled_back, refused, unanswered, .. } = self;
        pares_text::say!(
            "{} transactions a second, {new_orders_per_minute} new orders a minute; {rolled_back} rolled back, {refused} refused, {unanswered} unanswered",
            self.all.transactions_per_s,
        );
        self.print_processors();
        pares_text::say!(
            "consistency conditions {}, lost and repeated {}, sites differing {}",
            if self.consistency { "hold at every site" } else { "BROKEN" },
            self.lost_and_repeated,
            self.sites_differing
        );
    }

    fn print_processors(&self) {
        pares_text::say!(
            "processor time of all sites: {} us an update, {} us a read, {} % of a processor without load; {} executions an update",
            self.cpu_us_per_update,
            self.cpu_us_per_read,
            self.idle_cpu_percent,
            self.executions_per_update
        );
        for (kind, KindCost { execute_us, apply_us }) in &self.costs {
            pares_text::say!(
                "{kind:>14}: {execute_us} us where it is executed, {apply_us} us at each other site"
            );
        }
    }

    fn latencies(&self) -> Table {
        let mut table = Table::new([
            "users",
            ">a second",
            "p50 / p99 ms: new order",
            "payment",
            "delivery",
            "order status",
            "stock level",
        ]);
        for (cluster, seen) in self.by_cluster.iter().enumerate() {
            let times =
                Kind::ALL.map(|kind| format!("{} / {}", seen.p50_ms[kind.name()], seen.p99_ms[kind.name()]));
            let begins = [format!("cluster {cluster}"), seen.transactions_per_s.to_string()];
            table.row(begins.into_iter().chain(times).collect());
        }
        table
    }
}
