//! Real runs of workloads: quote delays, hedging, flow control, users.

use std::path::{Path, PathBuf};

use pares_brokerage::{Behaviour, RunArgs, RunFigures, measure};
use pares_front::FRONT_OPEN_MAX;
use pares_load::LabError;
use pares_operator::init::promise;
use pares_text::{grouped, progress};
use serde::Serialize;

use super::super::Context;
use super::super::report::Grid;
use super::{MEDIUM, Size, failed};

/// Paper 4, table 5.2: commands, and half of their times, microseconds.
const PAPER_US: [(&str, f64, f64); 15] = [
    ("ADD", 24.9, 54.3),
    ("BUY", 217.5, 488.2),
    ("CANCEL_BUY", 25.7, 53.9),
    ("CANCEL_SELL", 27.3, 50.4),
    ("CANCEL_SET_BUY", 21.5, 46.8),
    ("CANCEL_SET_SELL", 21.5, 46.8),
    ("COMMIT_BUY", 27.1, 55.8),
    ("COMMIT_SELL", 25.7, 39.4),
    ("DISPLAY_SUMMARY", 21.3, 45.9),
    ("QUOTE", 213.1, 809.8),
    ("SELL", 220.7, 455.4),
    ("SET_BUY_AMOUNT", 22.2, 47.5),
    ("SET_BUY_TRIGGER", 22.0, 47.7),
    ("SET_SELL_AMOUNT", 22.1, 47.9),
    ("SET_SELL_TRIGGER", 22.0, 47.6),
];
/// Commands without a reply at a time where times of single ones are wanted.
const FEW: u64 = 8;

/// How a run is made, beside its workload.
#[derive(Clone, Copy, Debug)]
struct Setting {
    name: &'static str,
    durability: &'static str,
    is_instant: bool,
    hedge_ms: Option<u64>,
    window: u64,
    /// Another number of users than the workload has.
    users: Option<u64>,
    is_large: bool,
}

const USUAL: Setting = Setting {
    name: "quotes take 0 to 4 s",
    durability: "disk",
    is_instant: false,
    hedge_ms: None,
    window: FRONT_OPEN_MAX as u64,
    users: None,
    is_large: false,
};
const INSTANT: Setting = Setting { name: "quotes at once", is_instant: true, ..USUAL };
const ALONE: Setting = Setting { name: "quotes at once, 8 commands at a time", window: FEW, ..INSTANT };
const SETTINGS: [Setting; 12] = [
    USUAL,
    Setting { name: "asked again after 30 ms", hedge_ms: Some(30), ..USUAL },
    Setting { name: "asked again after 300 ms", hedge_ms: Some(300), ..USUAL },
    INSTANT,
    Setting { name: "quotes at once, `os`", durability: "os", ..INSTANT },
    ALONE,
    Setting { name: "at most 1,000 commands at a time", window: 1_000, ..USUAL },
    Setting { name: "at most 20,000 commands at a time", window: 20_000, ..USUAL },
    Setting { name: "10 users", users: Some(10), ..USUAL },
    Setting { name: "1,000 users", users: Some(1_000), ..USUAL },
    Setting { name: "at most 200,000 commands at a time", is_large: true, ..USUAL },
    Setting { name: "at most 20,000 commands at a time", window: 20_000, is_large: true, ..USUAL },
];

/// A run, and what came of it.
#[derive(Clone, Debug, Serialize)]
struct Run {
    name: &'static str,
    is_large: bool,
    /// With a small part of the workload, and quotes at once whatever the name says.
    #[serde(skip)]
    is_quick: bool,
    figures: RunFigures,
}

impl Run {
    /// How it was made, for people.
    fn how(&self) -> String {
        let quick = if self.is_quick { " [--quick: a small part, quotes at once]" } else { "" };
        format!("{}{quick}", self.name)
    }
}

/// All runs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Runs(Vec<Run>);

impl Runs {
    /// Those of the large workload.
    pub(super) fn large(&self) -> impl Iterator<Item = (&'static str, &RunFigures)> {
        self.0.iter().filter(|run| run.is_large).map(|run| (run.name, &run.figures))
    }

    /// Those of the other that are called so.
    pub(super) fn named(&self, names: &[&str]) -> impl Iterator<Item = (&'static str, &RunFigures)> {
        let found = move |run: &&Run| !run.is_large && names.contains(&run.name);
        self.0.iter().filter(found).map(|run| (run.name, &run.figures))
    }
}

/// Runs all of them.
///
/// # Errors
/// If one fails, or its log does not add up.
pub(super) fn run(context: &Context, medium: &Path, large: &Path, scratch: &Path) -> Result<Runs, LabError> {
    let mut runs = Vec::new();
    for setting in progress::over("daytrading: runs", SETTINGS) {
        let file = match (setting.is_large, setting.users) {
            (true, _) => large.to_owned(),
            (false, None) => medium.to_owned(),
            (false, Some(users)) => other_users(context, users, scratch)?,
        };
        let figures = measure(&arguments(context, setting, file)).map_err(failed)?;
        if !(figures.audit_verified && figures.conserved) {
            return Err(LabError::Failed(format!("{}: the log does not add up", setting.name)));
        }
        runs.push(Run { name: setting.name, is_large: setting.is_large, is_quick: context.quick, figures });
    }
    Ok(Runs(runs))
}

fn other_users(context: &Context, users: u64, scratch: &Path) -> Result<PathBuf, LabError> {
    let path = scratch.join(format!("users-{users}"));
    let size = Size { users, ..MEDIUM }.within(context);
    size.write(&path)?;
    Ok(path)
}

fn arguments(context: &Context, setting: Setting, file: PathBuf) -> RunArgs {
    let behaviour = Behaviour { seed: 1, instant: setting.is_instant || context.quick, bad_per_mille: 0 };
    let durability = promise(setting.durability).expect("a constant promise is one");
    let Setting { hedge_ms, window, .. } = setting;
    RunArgs { hedge_ms, window, ..RunArgs::of(file, durability, behaviour) }
}

/// All runs, a line each.
pub(super) fn table(runs: &Runs) -> Grid {
    let most = |run: &Run, count: fn(&pares_brokerage::BacklogSample) -> usize| {
        grouped(run.figures.backlog.iter().flatten().map(count).max().unwrap_or_default() as u64)
    };
    let whole = |rate: f64| grouped(rate as u64);
    let workload = |run: &Run| {
        format!("{} commands, {} users", grouped(run.figures.commands), grouped(run.figures.users as u64))
    };
    let refused = |of: &RunFigures| of.refused as f64 / of.commands.max(1) as f64 * 100.0;
    let last_quote = |run: &Run| run.figures.last_quote_s.map_or("-".into(), |at| format!("{at:.2}"));
    Grid::of(
        &runs.0,
        &[
            ("workload", &workload),
            ("how", &Run::how),
            (">seconds", &|run| format!("{:.2}", run.figures.seconds)),
            (">commands/s", &|run| whole(run.figures.commands_per_s)),
            (">best second", &|run| grouped(run.figures.best_second)),
            (">last quote came, s", &last_quote),
            (">commands/s after it", &|run| run.figures.after_quotes_per_s.map_or("-".into(), whole)),
            (">most commands waiting for quotes", &|run| most(run, |sample| sample.for_quotes)),
            (">for their user's earlier ones", &|run| most(run, |sample| sample.for_users)),
            (">questions", &|run| format!("{}, ${}", grouped(run.figures.hits), run.figures.dollars)),
            (">refused", &|run| format!("{:.1} %", refused(&run.figures))),
        ],
    )
}

/// Table 5.2: times of single commands.
pub(super) fn times(runs: &Runs) -> Grid {
    let mut rows = Vec::new();
    for (_, figures) in runs.named(&[ALONE.name]) {
        for (command, p50_us, p99_us) in PAPER_US {
            let Some(times) = figures.times.get(command) else { continue };
            rows.push(vec![
                command.to_owned(),
                format!("{p50_us:.0} / {p99_us:.0}"),
                format!("{:.0} / {:.0}", times.p50_ms * 1e3, times.p99_ms * 1e3),
                grouped(times.count),
            ]);
        }
    }
    let head = vec![
        "command",
        ">the paper, in memory: p50 / p99, us",
        ">here, from arrival to a reply that is stored, 8 at a time: p50 / p99, us",
        ">counted",
    ];
    Grid { head, rows }
}
