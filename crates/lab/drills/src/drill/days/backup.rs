//! A copy of a running system. The promise: what was answered before the copy was begun is in it; what is in it is what the system has, hashes
//! of the state included; and a system started from it continues from there.
//!
//! ```text
//!  members trade | copied, while nodes are killed | ... the day ends
//!   answered so far ->  restored into an empty directory -> compared -> started ... has all that was answered, and trades
//! ```

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use pares_archive::{Backup, back_up, restore_backup};
use pares_load::{
    LabError, LabResult, Numbers, Records, ScratchDirectory, ScratchSystem, failed, none_of, print_figures,
};
use pares_node::{Layout, NodeId};
use pares_types::{BusinessDay, Command};
use serde::Serialize;

use super::members::Notes;
use super::{Drill, EVE, name};

/// Orders of all members together between two looks whether the copy is done.
const MEANWHILE: u64 = 400;

/// Arguments of `pares drill backup`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Orders before the copy begins, all members together
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    requests: u64,
    /// The parent directory for the system's files and the copies [default: the temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the drill gave.
#[derive(Clone, Copy, Debug, Serialize)]
struct Outcome {
    drill: &'static str,
    /// Orders answered before the copy was begun.
    requests: u64,
    /// Nodes killed while it was made.
    kills: u64,
    /// Files of the copy, MiB.
    backup_mib: f64,
    /// Until it was made, and until its hashes were verified in an empty directory, seconds.
    backup_seconds: f64,
    restore_seconds: f64,
    /// Positions in the copy.
    positions: u64,
    /// Of those, how many are not the same, with the state's hash, in the system that was copied.
    differing: u64,
    /// Orders answered before the copy was begun that are not in the system started from it.
    lost: u64,
    /// Orders executed twice there, and positions that are not the same in all its recorders' logs.
    duplicated: u64,
}

/// Runs the drill and prints what it gave.
///
/// # Errors
/// If the system fails, or the promise was broken.
pub(in crate::drill) fn run(args: &Args) -> LabResult {
    let scratch = ScratchDirectory::create(args.dir.as_deref())?;
    let mut drill = Drill::start(&scratch)?;
    drill.pass_day(1, args.requests / 2)?;
    drill.ask(Command::BeginDay { day: BusinessDay(EVE.0 + 2) })?;
    drill.trade(args.requests / 2)?;
    let outcome = drill.copy_and_compare(scratch.path())?;
    print_figures(args.json, &outcome);
    none_of([
        (outcome.differing, "positions differ"),
        (outcome.lost, "lost"),
        (outcome.duplicated, "doubled"),
    ])
}

impl Drill {
    fn copy_and_compare(mut self, scratch: &Path) -> Result<Outcome, LabError> {
        let (before, requests, kills) = (self.members.answered().clone(), self.members.count(), self.kills);
        let begun = Instant::now();
        let backup = self.copy_while_trading(&scratch.join("backup"))?;
        let (backup_seconds, kills) = (begun.elapsed().as_secs_f64(), self.kills - kills);
        let restored = scratch.join("restored");
        let begun = Instant::now();
        restore_backup(&scratch.join("backup"), &restored).map_err(failed("restoring"))?;
        let restore_seconds = begun.elapsed().as_secs_f64();
        self.end_second_day()?;
        let mut copy = Records::new(&Layout::new(&restored), &self.config, Notes::default());
        let positions = copy.furthest()?.values().map(|position| position.0).sum();
        let differing = copy.differing_from(&self.records);
        let (lost, duplicated) = self.go_on_from(&restored, copy, &before)?;
        let backup_mib = backup.bytes() as f64 / f64::from(1 << 20);
        Ok(Outcome {
            drill: "backup",
            requests,
            kills,
            backup_mib,
            backup_seconds,
            restore_seconds,
            positions,
            differing,
            lost,
            duplicated,
        })
    }

    /// A venue, a recorder and a gateway are killed while the copy is made, if it takes long enough.
    fn copy_while_trading(&mut self, to: &Path) -> Result<Backup, LabError> {
        let (from, to) = (self.layout.root().to_owned(), to.to_owned());
        let recorders: Vec<String> = self.config.recorder_ids().map(name).collect();
        let gateways: Vec<String> =
            self.config.gateway_ids().map(|id| NodeId::Gateway(id).to_string()).collect();
        let copying = thread::spawn(move || back_up(&from, &to, &recorders, &gateways));
        let mut part = 0;
        while part == 0 || !copying.is_finished() {
            self.kill(part, 1)?;
            self.trade(MEANWHILE)?;
            part += 1;
        }
        copying.join().expect("a copy does not panic").map_err(failed("copying"))
    }

    fn end_second_day(&mut self) -> LabResult {
        self.finish()?;
        self.ask(Command::EndDay { day: BusinessDay(EVE.0 + 2) })?;
        self.await_level()
    }

    /// Starts the copy in the system's place and trades there. What it has lost of what was answered before, and what it has twice.
    fn go_on_from(
        &mut self,
        restored: &Path,
        mut records: Records<Notes>,
        before: &Numbers,
    ) -> Result<(u64, u64), LabError> {
        self.end();
        self.system = Some(ScratchSystem::start(&self.config, Some(restored.to_owned()))?);
        self.trade(MEANWHILE)?;
        self.finish()?;
        records.await_level(&mut self.system().supervisor)?;
        let lost = records.notes().map(|notes| notes.missing(before)).max().unwrap_or(0);
        let twice = records.notes().map(|notes| notes.twice).max().unwrap_or(0);
        let (_, differing) = records.differing(|_, _| false);
        Ok((lost, twice + differing))
    }
}
