//! Paper 4, tables 5.2 and figures 6.2 to 6.4: a day trading system under its workload.
//!
//! The paper has a workload file, a quote server of the course and thirteen machines. The files are not ours to give, so a workload is drawn that is made as they were
//! (`pares broker generate`), and the quote server is a stand-in with the delays that were measured of it. Our figures are those of real runs on a site of this machine. What the paper's own design does with the
//! same commands and the same delays is computed, by the numbers that the paper gives of it.
//!
//! | module | what |
//! |---|---|
//! | `runs` | workloads, run: quote delays, hedging, flow control, users |
//! | `desks` | figure 6.2: one quote desk or many |
//! | `workers` | figures 6.3 and 6.4: the paper's workers, computed |
//! | `pictures` | charts |

mod desks;
mod pictures;
mod runs;
mod workers;

use std::path::Path;

use pares_broker::{StockSymbol, WorkloadLine};
use pares_brokerage::{BrokerageError, WorkloadArgs};
use pares_load::{LabError, ScratchDirectory};

use super::Context;
use super::report::Report;

/// What a workload is made of.
#[derive(Clone, Copy, Debug)]
struct Size {
    commands: u64,
    users: u64,
    stocks: u64,
}

/// As the course's files of 100 users, and of 1,200.
const MEDIUM: Size = Size { commands: 100_000, users: 100, stocks: 981 };
const LARGE: Size = Size { commands: 1_200_000, users: 1_200, stocks: 2_773 };

impl Size {
    /// A small part of it with `--quick`.
    fn within(self, context: &Context) -> Self {
        let Self { commands, users, stocks } = self;
        let part = if context.quick { 40 } else { 1 };
        Self { commands: commands / part, users: users.min(commands / part / 20), stocks: stocks / part + 1 }
    }

    fn write(self, path: &Path) -> Result<(), LabError> {
        let Self { commands, users, stocks } = self;
        pares_brokerage::generate(&WorkloadArgs::of(path, commands, users, stocks)).map_err(failed)
    }
}

fn failed(error: BrokerageError) -> LabError {
    LabError::Failed(error.to_string())
}

/// For each command of a workload the stock whose quote it needs.
fn quotes_needed(path: &Path) -> Result<Vec<Option<StockSymbol>>, LabError> {
    let reading = LabError::io(format!("reading {}", path.display()));
    let text = std::fs::read_to_string(path).map_err(reading)?;
    let needed = |line: &str| {
        let command = WorkloadLine::parse(line.as_bytes()).ok()?.command;
        command.symbol.filter(|_| command.verb.needs_quote())
    };
    Ok(text.lines().map(needed).collect())
}

/// Runs the experiment.
///
/// # Errors
/// If a run fails, or a log does not add up.
pub fn run(context: &Context) -> Result<Report, LabError> {
    let scratch = ScratchDirectory::create(None)?;
    let (medium, large) = (scratch.path().join("medium"), scratch.path().join("large"));
    MEDIUM.within(context).write(&medium)?;
    LARGE.within(context).write(&large)?;
    let desks = desks::run(&quotes_needed(&medium)?);
    let workers = workers::run(&quotes_needed(&large)?);
    let runs = runs::run(context, &medium, &large, scratch.path())?;
    let charts = pictures::write(context, &desks, &workers, &runs)?;
    Ok(Report {
        name: "daytrading",
        title: "Paper 4, table 5.2 and figures 6.2 to 6.4: day trading",
        paper: "Twelve workers execute commands from memory, one after the other, and wait for each quote (26,100 commands a second on average, 45,000 at most). A quote manager asks again after \
                20 ms, 25, 35, .. More quote managers, which hear each other's quotes, make it slower (figure 6.2). Commands are loaded in sections of 3,300 to one worker after the other, \
                whatever they have left: the backlog grows until all quotes are there; with eight workers it stays, with twelve they run out of work (figures 6.3, 6.4). Logs are stored six minutes later.",
        here: "One site and one front on this machine, each command stored (`disk`) before its reply, the log complete and verified at the end of each run. Workloads are drawn as the course's were, the quote \
               server is the stand-in with the delays that were measured. The paper's workers are computed, from its own numbers (3,600 commands a second each, 28,800 a second loaded) with the same workload \
               and delays: its curves are in its pictures alone."
            .into(),
        charts,
        grids: vec![runs::table(&runs), runs::times(&runs), desks::table(&desks), workers::table(&workers, &runs)],
        figures: serde_json::json!({ "runs": runs, "desks": desks, "workers": workers }),
    })
}
