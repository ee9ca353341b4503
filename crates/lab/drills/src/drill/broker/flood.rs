//! One user floods a front. The promise: the others' 99th percentile is what it was, within a tenth.
//!
//! The same workload is run with the flood and without, by turns, since a machine is not always as fast; each time few commands are under way, so that what others wait for is the flood and not themselves.
//! What the rules do, without the machine, is tested by counts of turns (`a_user_who_floods_a_front_does_not_slow_the_others`).

use pares_brokerage::{RunArgs, RunFigures, measure};
use pares_load::{LabError, LabResult, ScratchDirectory};
use pares_text::grouped;
use serde::Serialize;

use super::{Args, failed, workload};

/// Commands at a time without a reply, of all loaders but the one that floods.
const WINDOW: u64 = 60;
/// Pairs of runs; the figure is that of the middle one.
const PAIRS: usize = 3;

#[derive(Clone, Copy, Debug, Serialize)]
struct FloodFigures {
    /// Of each run.
    commands: u64,
    /// Commands of the user who floods, while the others had theirs executed.
    flood_commands: u64,
    quiet_p99_ms: f64,
    flooded_p99_ms: f64,
    flood_p99_ratio: f64,
    audit_verified: bool,
}

/// Runs the pairs and prints what they gave.
pub(super) fn run(args: &Args) -> LabResult {
    let scratch = ScratchDirectory::create(None)?;
    let quiet = RunArgs { window: WINDOW, ..workload(args, &scratch)? };
    let flooded = RunArgs { flood: true, ..quiet.clone() };
    let pair = || Ok(figures(&measure(&quiet).map_err(failed)?, &measure(&flooded).map_err(failed)?));
    let mut pairs = (0..PAIRS).map(|_| pair()).collect::<Result<Vec<_>, LabError>>()?;
    pairs.sort_by(|one, other| one.flood_p99_ratio.total_cmp(&other.flood_p99_ratio));
    let figures = FloodFigures {
        audit_verified: pairs.iter().all(|figures| figures.audit_verified),
        ..pairs[PAIRS / 2]
    };
    match args.json {
        true => pares_text::say!("{}", serde_json::to_string(&figures).expect("figures are plain numbers")),
        false => figures.print(),
    }
    if figures.audit_verified { Ok(()) } else { Err(failed("a log does not add up")) }
}

fn figures(quiet: &RunFigures, flooded: &RunFigures) -> FloodFigures {
    let logged = flooded.elements.get("userCommand").copied().unwrap_or_default();
    FloodFigures {
        commands: flooded.commands,
        flood_commands: logged.saturating_sub(flooded.commands),
        quiet_p99_ms: quiet.p99_ms,
        flooded_p99_ms: flooded.p99_ms,
        flood_p99_ratio: flooded.p99_ms / quiet.p99_ms,
        audit_verified: quiet.audit_verified && flooded.audit_verified,
    }
}

impl FloodFigures {
    fn print(&self) {
        let (commands, flood) = (grouped(self.commands), grouped(self.flood_commands));
        pares_text::say!("{commands} commands of others, {flood} of one user who floods");
        let Self { quiet_p99_ms, flooded_p99_ms, flood_p99_ratio, .. } = self;
        pares_text::say!(
            "99 of a hundred of the others within {flooded_p99_ms:.1} ms, {quiet_p99_ms:.1} ms without: {flood_p99_ratio:.2} times"
        );
    }
}
