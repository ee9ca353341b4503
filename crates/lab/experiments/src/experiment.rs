//! `pares experiment`: each figure and table of paper 1, section 6, paper 5's plots, paper 3's figure 5, paper 2's figures 4 to 8 and paper 4's 6.2 to 6.4, measured here.
//!
//! A claim to be better than a paper is worth what its figures are worth: taken on a named machine, at a named commit, by a
//! command that any reader can run again. So each experiment writes its data as CSV, its chart as SVG, and a section of
//! `results.md` with the paper's figures beside ours; a section stands between marks of its own and is replaced alone.
//!
//! | module | what |
//! |---|---|
//! | `stage` | a system under load, with its two venues in view |
//! | `availability` | figure 3 |
//! | `joining` | figures 4 and 5 |
//! | `distance` | figure 6 and table 1 |
//! | `latency` | figures 7, 8 and 10 |
//! | `spread` | figure 9 |
//! | `journalling` | paper 5 |
//! | `wice` | paper 3, section 4 |
//! | `swx` | paper 2, sections 4 and 5 |
//! | `daytrading` | paper 4, chapters 5 and 6 |
//! | `report` | CSV and `results.md` |

mod availability;
mod daytrading;
mod distance;
mod joining;
mod journalling;
mod latency;
mod report;
mod spread;
pub(crate) mod stage;
mod swx;
mod wice;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use pares_load::{LabError, LabResult};

pub(crate) use journalling::echo;
use report::Report;
pub(crate) use swx::serve_trader;

/// Arguments of `pares experiment`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = listed())]
pub struct Args {
    /// The experiments to run: one, several, or all
    #[arg(required = true, value_enum, hide_possible_values = true)]
    experiments: Vec<Experiment>,
    /// The directory for CSV and SVG files, with `results.md` beside it [default: docs/results; with --quick pares-quick/results]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Run each only briefly, as a check: the figures mean little, and stay out of docs
    #[arg(long)]
    quick: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// journal: a directory on the disk to measure [default: the temporary directory]
    #[arg(long, help_heading = ALONE)]
    dir: Option<PathBuf>,
    /// table1: measuring time at each rate (the paper: 30)
    #[arg(long, help_heading = ALONE, default_value_t = 0.4)]
    minutes: f64,
    /// wice: virtual seconds at each number of clients
    #[arg(long, help_heading = ALONE, default_value_t = 120, value_parser = clap::value_parser!(u64).range(5..))]
    seconds: u64,
    /// wice: random seed
    #[arg(long, help_heading = ALONE, default_value_t = 1)]
    seed: u64,
    /// wice: use these processor times, as printed by `pares bench tpcc --costs --json`
    #[arg(long, help_heading = ALONE, value_name = "FILE")]
    costs: Option<PathBuf>,
}

/// Over options that one experiment has, which is named with each.
const ALONE: &str = "Options of a single experiment";

/// All experiments, a line each.
fn listed() -> String {
    let line = |experiment: &Experiment| {
        let value = experiment.to_possible_value()?;
        Some(format!("\n  {:10} {}", value.get_name(), value.get_help()?))
    };
    let lines: String = Experiment::value_variants().iter().filter_map(line).collect();
    format!("Experiments:{lines}")
}

/// A figure or table of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Experiment {
    /// Throughput of both venues while one is killed and comes back
    Fig3,
    /// Time for a venue to join, one symbol, by throughput
    Fig4,
    /// Time for a venue to join, each of ten symbols
    Fig5,
    /// Distance between the venues over time
    Fig6,
    /// Largest and mean distance between the venues
    Table1,
    /// Latency by throughput, sequencer on and off, one symbol
    Fig7,
    /// The same with ten symbols
    Fig8,
    /// Distribution of latencies at 1,000 requests per second
    Fig9,
    /// Latency by throughput with two gateways
    Fig10,
    /// Paper 5: the worst write of each second, rolls, and raw writes of the same bytes
    Journal,
    /// Paper 3: DBSM and WICE over two clusters, in virtual time
    Wice,
    /// Paper 2: a member's traders, quick, slow and dead; a server that is filled
    Swx,
    /// Paper 4: workloads of day trading, quote desks, workers with and without work
    Daytrading,
    /// All of these
    All,
}

impl Experiment {
    fn run(self, context: &Context) -> Result<Report, LabError> {
        match self {
            Self::Fig3 => availability::run(context),
            Self::Fig4 => joining::one_symbol(context),
            Self::Fig5 => joining::ten_symbols(context),
            Self::Fig6 => distance::over_time(context),
            Self::Table1 => distance::extremes(context),
            Self::Fig7 => latency::sequencer(context, "fig7", 1),
            Self::Fig8 => latency::sequencer(context, "fig8", 10),
            Self::Fig9 => spread::run(context),
            Self::Fig10 => latency::two_gateways(context),
            Self::Journal => journalling::run(context),
            Self::Wice => match &context.costs {
                Some(file) => wice::costs::run(context, file),
                None => wice::run(context),
            },
            Self::Swx => swx::run(context),
            Self::Daytrading => daytrading::run(context),
            Self::All => unreachable!("replaced by all the others"),
        }
    }
}

/// How and where to run.
struct Context {
    out: PathBuf,
    quick: bool,
    dir: Option<PathBuf>,
    minutes: f64,
    seconds: u64,
    seed: u64,
    /// Measured processor times.
    costs: Option<PathBuf>,
}

impl Context {
    /// Where the tables go.
    fn page(&self) -> PathBuf {
        self.out.with_extension("md")
    }

    /// The time to spend: `full`, or a moment with `--quick`.
    fn time(&self, full: Duration) -> Duration {
        if self.quick { full.min(Duration::from_secs(1)) } else { full }
    }

    /// All of `full`, or its first two with `--quick`.
    fn some<'a, T>(&self, full: &'a [T]) -> &'a [T] {
        if self.quick { &full[..full.len().min(2)] } else { full }
    }

    /// How often to repeat.
    fn rounds(&self, full: usize) -> usize {
        if self.quick { 1 } else { full }
    }
}

/// Runs experiments, writes their files, and prints what they gave.
///
/// # Errors
/// If a system does not come up or a file cannot be written; what was finished before is kept.
pub fn run(args: &Args) -> LabResult {
    let Args { quick, minutes, seconds, seed, .. } = *args;
    let usual = if quick { "pares-quick/results" } else { "docs/results" };
    let out = args.out.clone().unwrap_or_else(|| usual.into());
    let (dir, costs) = (args.dir.clone(), args.costs.clone());
    let context = Context { out, dir, quick, minutes, seconds, seed, costs };
    std::fs::create_dir_all(&context.out)
        .map_err(LabError::io(format!("making the directory {}", context.out.display())))?;
    let mut all = serde_json::Map::new();
    for experiment in chosen(&args.experiments) {
        let report = experiment.run(&context)?;
        report.save(&context)?;
        if !args.json {
            pares_text::say!("{}", report.text());
            pares_text::say!("charts and figures: {}, {}", context.out.display(), context.page().display());
        }
        all.insert(report.name.to_owned(), report.figures);
    }
    if args.json {
        pares_text::say!("{}", serde_json::Value::Object(all));
    }
    Ok(())
}

fn chosen(asked: &[Experiment]) -> Vec<Experiment> {
    let everything = || Experiment::value_variants().iter().copied().filter(|&e| e != Experiment::All);
    match asked.contains(&Experiment::All) {
        true => everything().collect(),
        false => asked.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;

    #[test]
    fn help_names_every_experiment_in_a_line_and_fits_a_screen() {
        let mut command = Args::augment_args(clap::Command::new("experiment"));
        let help = command.render_help().to_string();
        assert!(help.lines().count() <= 40, "{help}");
        for experiment in Experiment::value_variants() {
            let name = experiment.to_possible_value().unwrap().get_name().to_owned();
            let begins = |line: &str| line.trim_start().split(' ').next() == Some(name.as_str());
            assert_eq!(help.lines().filter(|line| begins(line)).count(), 1, "{name}");
        }
    }
}
