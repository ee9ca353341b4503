//! Paper 3, section 4: its figure 5, in virtual time, and where our rules go beyond it.
//!
//! The paper's evaluation simulates servers, clients and networks around the real protocol; so does `pares-tpcc`. The paper's curves
//! are not in its text, only what it says of them, so that is what is compared: R1 to R5. Where something does not come out as
//! said, what the paper leaves open is varied until it does, or until nothing is left to vary.
//!
//! | module | what |
//! |---|---|
//! | [`figure`] | figure 5 a to f |
//! | [`verdicts`] | R1 to R5 |
//! | [`unknowns`] | what the paper leaves open |
//! | [`beyond`] | B1 to B7 |
//! | [`costs`] | with processor times that were measured |

mod beyond;
pub(super) mod costs;
mod figure;
mod unknowns;
mod verdicts;

use indicatif::ProgressBar;
use pares_load::LabError;
use pares_text::progress;
use pares_tpcc::{RunResult, Setting};
use serde::Serialize;

use super::Context;
use super::report::{Grid, Report};

/// Something the paper says, or that is to be better than the paper, and whether it is so.
#[derive(Clone, Debug, Serialize)]
struct Verdict {
    name: &'static str,
    rule: String,
    found: String,
    passed: bool,
}

/// Virtual seconds until clients and queues have settled.
const WARMUP_SECONDS: u64 = 40;

/// How much is simulated.
struct Scope {
    seed: u64,
    /// Virtual seconds a point of the figure.
    seconds: u64,
    warmup_seconds: u64,
    bar: ProgressBar,
}

impl Scope {
    fn new(context: &Context, runs: usize) -> Self {
        let (seconds, warmup_seconds) = match context.quick {
            true => (context.seconds.min(10), 10),
            false => (context.seconds, WARMUP_SECONDS),
        };
        Self { seed: context.seed, seconds, warmup_seconds, bar: progress::steps("wice", runs as u64) }
    }

    /// With this scope's seed and time; a point beside the figure gets half of the time.
    fn setting(&self, setting: Setting, is_beside: bool) -> Setting {
        let seconds = if is_beside { (self.seconds / 2).max(5) } else { self.seconds };
        Setting { seed: self.seed, seconds, warmup_seconds: self.warmup_seconds, ..setting }
    }

    /// Runs one setting.
    fn run(&self, setting: &Setting) -> Result<RunResult, LabError> {
        let outcome = pares_tpcc::run(setting)
            .map_err(|violation| LabError::Failed(format!("not one-copy snapshot isolation: {violation}")));
        self.bar.inc(1);
        outcome
    }
}

/// Runs the experiment.
///
/// # Errors
/// If a history is not one-copy snapshot isolation, or a file cannot be written.
pub fn run(context: &Context) -> Result<Report, LabError> {
    let scope = Scope::new(context, figure::RUNS + unknowns::RUNS + beyond::RUNS);
    let points = figure::run(&scope)?;
    let charts = figure::write(context, &points)?;
    let unknowns = unknowns::run(&scope, &points)?;
    let verdicts = verdicts::judge(&points, &unknowns);
    let beyond = beyond::run(&scope)?;
    scope.bar.finish_and_clear();
    let figures = serde_json::json!({
        "seed": scope.seed,
        "seconds": scope.seconds,
        "points": points,
        "unknowns": unknowns,
        "reproduced": verdicts,
        "beaten": beyond,
    });
    Ok(Report {
        name: "wice",
        title: "Paper 3, figure 5: DBSM and WICE over two clusters",
        paper: "Six servers in two clusters, 400 ms apart and back; 60 to 6,000 TPC-C clients. DBSM CLUSTER exhausts its processors at 6,000, \
                \"safe\" up to 4,000; DBSM over the long link: high abort rate and rising latency in both clusters; WICE: in C_A the abort rate of \
                DBSM CLUSTER and latency close to 400 ms, in C_B fewer aborts than DBSM; \"up to 2 times less latency\". The curves are not in the \
                text.",
        here: here(&scope),
        charts,
        grids: vec![figure::grid(&points), grid(&verdicts), unknowns::grid(&unknowns), grid(&beyond)],
        figures,
    })
}

fn here(scope: &Scope) -> String {
    format!(
        "The same in virtual time (`pares-tpcc`), {} s a point after {} s of warming up, half of it beside the figure, seed {}; WICE is `pares-wice` itself, every \
         history is checked for one-copy snapshot isolation. What the paper does not give: clients only think (with keying times nothing saturates), \
         one warehouse for ten clients, write sets of 4 KiB, applying costs 2 % of executing and comes first on the processor, a waiter for a row loses when the holder commits \
         (PostgreSQL), aborted transactions are sent again at once by the client. Latency is from (last) submission to answer, update transactions; aborts are \
         in percent of their executions. *DBSM* orders by logical clocks, 2 t_max for everybody as the paper says of it; *DBSM (sequencer)* by a sequencer in C_A \
         that collects acknowledgements, as toolkits do: 2 t_max from C_A, 4 t_max from C_B. {}\n\n{}",
        scope.seconds,
        scope.warmup_seconds,
        scope.seed,
        "The tables: the figure, what the paper says of it (R), what it leaves open, what was to be better (B).",
        FINDINGS,
    )
}

/// What does not come out as the paper says, and why.
const FINDINGS: &str = "\
*R2c*: with one warehouse for ten clients the conflicts on a row do not depend on the number of clients, so DBSM's abort rate is flat to 4,000. It rises with \
the clients where the database keeps the size it has for 6,000 (R2d). *R4a, R5a*: if DBSM takes 2 t_max, as the paper says, a server of C_B holds rows \
for the same 400 ms under DBSM and under WICE (to the certifier and back). The clients of a warehouse are at one server, nearly every abort is \
a wait for such a row, and certification itself refuses next to nothing: so C_B is no better off with WICE, whatever resubmission, locality, database or applying are set to; and where waiters take turns \
nobody is aborted at all. It is better off where DBSM takes longer than that: ordered by a sequencer it holds C_B's rows for 800 ms, twice as long as WICE, with twice the latency and \
twice the aborts (R4b, R5b), and write sets of 12 KiB fill the link where DBSM sends them to three servers and WICE once (R4c). With 600 warehouses and a sequencer all that the paper says holds at once, \
but for DBSM's aborts and latency being alike in both clusters. With keying times, or applying at 10 %, the knee is elsewhere than the paper has it: clients only thought, and applying was cheap. \
Readers of the newest version in C_A wait for nearly the whole round trip (*read-only*), which the paper does not mention; B5 ends that. Another seed (2) gives the same verdicts.";

/// Verdicts as a table.
fn grid(verdicts: &[Verdict]) -> Grid {
    let row = |verdict: &Verdict| {
        let passed = if verdict.passed { "yes" } else { "**no**" };
        vec![verdict.name.to_owned(), verdict.rule.clone(), verdict.found.clone(), passed.to_owned()]
    };
    Grid { head: vec!["", "what is to be so", "found", "so"], rows: verdicts.iter().map(row).collect() }
}

/// `1.23 / 4.56`: C_A, C_B.
fn both(outcome: &RunResult, value: impl Fn(&pares_tpcc::SideResult) -> f64, digits: usize) -> String {
    let [a, b] = [0, 1].map(|side| value(&outcome.sides[side]));
    format!("{a:.digits$} / {b:.digits$}")
}
