//! `pares bench book`: our book beside published ones, over the same orders, in the same minutes.
//!
//! What a book does in a second depends on the orders and on the machine, and this machine belongs to others too; so the orders are
//! those of a public comparison ([`pares_flow::BookScenario`]), every engine gets them in every round, and the figures are the
//! median and the best of the rounds. The figure that counts is the *worst* of the ten scenarios: it is the day on which an
//! exchange is needed. A figure is worth nothing from a book that is wrong, so before anything is timed, the obviously right book
//! and the fast one must say the same about the beginning of each stream, report by report.

mod contest;
mod instruments;
mod peers;
mod plot;

use std::path::PathBuf;

use pares_flow::BookScenario;
use pares_load::{LabResult, print_figures};
use serde::Serialize;

use contest::Contest;
use instruments::InstrumentFigures;

/// Arguments of `pares bench book`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// `static`, `normal`, `swing-25`, `swing-40`, `flash-crash`, `churn`, `sweep`, `far`, `amends`, `misses` or `all`
    #[arg(long, default_value = "all", value_parser = scenarios)]
    scenario: Scenarios,
    /// Rounds; every engine runs once in each round
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Time limit of a run, seconds; an engine that exceeds it skips the other rounds of the scenario
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Only our own book
    #[arg(long)]
    no_peers: bool,
    /// Spread the normal flow over these numbers of instruments instead (for example 10,10000)
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    instruments: Vec<u32>,
    /// Draw the figures as SVG, with a CSV file beside it
    #[arg(long, num_args = 0..=1, default_missing_value = "docs/results/book.svg", value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What `--scenario` names.
#[derive(Clone, Debug)]
struct Scenarios(Vec<BookScenario>);

fn scenarios(text: &str) -> Result<Scenarios, String> {
    if text == "all" {
        return Ok(Scenarios(BookScenario::ALL.to_vec()));
    }
    let names = || BookScenario::ALL.map(|scenario| scenario.name).join(", ");
    let named = BookScenario::named(text).ok_or_else(|| format!("one of all, {}", names()))?;
    Ok(Scenarios(vec![named]))
}

/// One engine over one stream.
#[derive(Clone, Debug, Serialize)]
pub struct EngineFigures {
    /// Its name.
    pub engine: String,
    /// How often the stream was timed.
    pub runs: usize,
    /// Messages after which it was stopped, as its time was up; its figures are of those.
    pub stopped_at: Option<u64>,
    /// Million messages per second, the median.
    pub mmsg_per_s: f64,
    /// And the best.
    pub mmsg_per_s_best: f64,
    /// Nanoseconds per message at the median.
    pub ns_per_message: f64,
    /// Half of the messages took at most so long, one reading of the clock included.
    pub p50_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// 999 of 1,000.
    pub p999_ns: u64,
    /// Whether it makes the trades our book makes, over the beginning of the stream.
    pub trades_agree: bool,
    /// Trades it makes there.
    pub trades: u64,
    /// Shares it trades there.
    pub shares: u64,
}

/// One stream.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioFigures {
    /// Its name.
    pub scenario: &'static str,
    /// Messages in it.
    pub messages: usize,
    /// Messages in its beginning, over which all are compared.
    pub compared: usize,
    /// Orders resting at the end of it.
    pub resting: u64,
    /// Trades in all of it.
    pub trades: u64,
    /// Every engine.
    pub engines: Vec<EngineFigures>,
}

/// An engine's worst scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Worst {
    /// The engine.
    pub engine: String,
    /// The scenario.
    pub scenario: &'static str,
    /// Its median there.
    pub worst_mmsg_per_s: f64,
}

/// All that was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figures {
    /// What one reading of the clock adds to a message's time.
    pub clock_ns: u64,
    /// Per scenario.
    pub scenarios: Vec<ScenarioFigures>,
    /// Per engine.
    pub worst: Vec<Worst>,
    /// What is to be known about engines: name and note.
    pub notes: Vec<(String, String)>,
    /// With many instruments.
    pub instruments: Option<InstrumentFigures>,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If our two books disagree, a peer cannot be built or run, or a file cannot be written.
pub fn run(args: &Args) -> LabResult {
    let figures = measure(args)?;
    if let Some(path) = &args.plot {
        plot::save(&figures, path)?;
    }
    print_figures(args.json, &figures);
    Ok(())
}

/// Runs the benchmark.
///
/// # Errors
/// See [`run`].
pub(crate) fn measure(args: &Args) -> Result<Figures, pares_load::LabError> {
    let figures = Figures { clock_ns: pares_books::clock_ns(), ..Figures::default() };
    if !args.instruments.is_empty() {
        let instruments = Some(instruments::measure(&args.instruments, args.runs));
        return Ok(Figures { instruments, ..figures });
    }
    let mut contest = Contest::new(!args.no_peers, args.seconds)?;
    let scenarios = args.scenario.0.iter().map(|scenario| contest.hold(scenario, args.runs));
    let scenarios = scenarios.collect::<Result<Vec<_>, _>>()?;
    Ok(Figures { worst: worst(&scenarios), notes: contest.notes(), scenarios, ..figures })
}

fn worst(scenarios: &[ScenarioFigures]) -> Vec<Worst> {
    let names = scenarios.first().map(|first| &first.engines).into_iter().flatten().map(|e| &e.engine);
    let of_engine = |name: &String| {
        let everywhere = scenarios.iter().flat_map(|s| s.engines.iter().map(move |e| (s.scenario, e)));
        let own = everywhere.filter(|(_, figures)| figures.engine == *name);
        let (scenario, figures) = own.min_by(|a, b| a.1.mmsg_per_s.total_cmp(&b.1.mmsg_per_s))?;
        Some(Worst { engine: name.clone(), scenario, worst_mmsg_per_s: figures.mmsg_per_s })
    };
    names.filter_map(of_engine).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(scenario: &'static str, speeds: [f64; 2]) -> ScenarioFigures {
        let engine = |(name, mmsg_per_s): (&str, f64)| EngineFigures {
            engine: name.into(),
            runs: 1,
            stopped_at: None,
            mmsg_per_s,
            mmsg_per_s_best: mmsg_per_s,
            ns_per_message: 1e3 / mmsg_per_s,
            p50_ns: 1,
            p99_ns: 2,
            p999_ns: 3,
            trades_agree: true,
            trades: 0,
            shares: 0,
        };
        let engines = ["a", "b"].into_iter().zip(speeds).map(engine).collect();
        ScenarioFigures { scenario, messages: 0, compared: 0, resting: 0, trades: 0, engines }
    }

    #[test]
    fn the_worst_scenario_is_each_engines_own() {
        let worst = worst(&[scenario("x", [3.0, 9.0]), scenario("y", [5.0, 2.0])]);
        let of = |w: &Worst| (w.engine.clone(), w.scenario, w.worst_mmsg_per_s);
        assert_eq!(
            worst.iter().map(of).collect::<Vec<_>>(),
            [("a".into(), "x", 3.0), ("b".into(), "y", 2.0)]
        );
    }

    #[test]
    fn a_scenario_is_named_or_all_are() {
        assert_eq!(scenarios("all").unwrap().0.len(), 10);
        assert_eq!(scenarios("swing-40").unwrap().0[0].name, "swing-40");
        assert!(scenarios("calm").unwrap_err().contains("flash-crash"));
    }
}
