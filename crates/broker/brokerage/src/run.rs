//! `pares broker run`: a workload, from its file to a log that was verified.
//!
//! ```text
//!   file --at most so many commands without a reply--> floor .. replies
//!   DUMPLOG: the log to a file, by a thread, while commands go on
//!   the end: hits that nobody used are noted; the log is replayed alone, and held against the accounts
//! ```

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use pares_broker::{
    AccountSummary, AuditReport, BrokerReply, UserCommand, UserName, Verb, WorkloadLine, dollars,
};
use pares_front::{FRONT_OPEN_MAX, HIT_MILLS};
use pares_operator::init::promise;
use pares_site::config::Promise;
use pares_text::grouped;
use serde::Serialize;

use crate::dump::Dumps;
use crate::error::{BrokerageError, BrokerageResult, failed};
use crate::floor::{Floor, Told};
use crate::quote_server::{Behaviour, QuoteServer};
use crate::tally::Tally;
use crate::{audit, dump};

/// The name of the log that is written if the workload ends without a dump.
const OWN_DUMP: &str = "audit.xml";

/// Most lines that are read before the site goes on.
const FED_MAX: usize = 1_000;

/// Arguments of `pares broker run`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The workload: lines of `[n] COMMAND,user,..`
    file: PathBuf,
    /// What a reply promises: `os` survives the death of processes, `disk` the loss of power
    #[arg(long, default_value = "disk", value_parser = promise)]
    durability: Promise,
    /// The quote server; without, a stand-in of this process, which behaves as the next three say
    #[arg(long, value_name = "ADDRESS")]
    quote_server: Option<SocketAddr>,
    #[command(flatten)]
    behaviour: Behaviour,
    /// Commands without a reply at a time
    #[arg(long, default_value_t = FRONT_OPEN_MAX as u64, value_parser = clap::value_parser!(u64).range(1..=FRONT_OPEN_MAX as u64))]
    window: u64,
    /// Where DUMPLOG writes; without, a temporary directory
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What a run came to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunFigures {
    /// Commands with a reply.
    pub(crate) commands: u64,
    pub(crate) done: u64,
    pub(crate) refused: u64,
    /// Lines that are no command.
    pub(crate) unreadable: u64,
    pub(crate) users: usize,
    /// From the first command to the last reply.
    pub(crate) seconds: f64,
    pub(crate) commands_per_s: f64,
    pub(crate) best_second: u64,
    pub(crate) slowest_quote_ms: f64,
    /// Questions to the quote server, and how many of them brought no quote.
    pub(crate) hits: u64,
    pub(crate) quote_faults: u64,
    pub(crate) dollars: String,
    /// Executions that lost against a concurrent transaction.
    pub(crate) conflicts: u64,
    /// Elements of the log, by kind.
    pub(crate) elements: std::collections::BTreeMap<String, u64>,
    /// The log alone adds up, and has one entry for each command and one for each quote, with its key.
    pub(crate) audit_verified: bool,
    /// Each account is what the log says, and each user's money adds up.
    pub(crate) conserved: bool,
}

/// Runs a workload, and prints what it came to.
///
/// # Errors
/// If it cannot be run, or its log does not add up.
pub fn run(args: &Args) -> BrokerageResult {
    let figures = measure(args)?;
    match args.json {
        true => pares_text::say!("{}", serde_json::to_string(&figures).map_err(failed)?),
        false => figures.print(),
    }
    if figures.audit_verified && figures.conserved { Ok(()) } else { Err(failed("the log does not add up")) }
}

impl RunFigures {
    fn print(&self) {
        let Self { seconds, slowest_quote_ms, best_second, users, .. } = self;
        let lines = [
            ("commands", format!("{} of {users} users", grouped(self.commands))),
            ("done, refused", format!("{}, {}", grouped(self.done), grouped(self.refused))),
            ("seconds", format!("{seconds:.3}")),
            (
                "commands/s",
                format!("{} (best second {})", grouped(self.commands_per_s as u64), grouped(*best_second)),
            ),
            ("slowest quote", format!("{slowest_quote_ms:.0} ms")),
            (
                "hits",
                format!("{}, {} without a quote, ${}", grouped(self.hits), self.quote_faults, self.dollars),
            ),
            ("conflicts", self.conflicts.to_string()),
            ("log verified", self.audit_verified.to_string()),
            ("conserved", self.conserved.to_string()),
        ];
        for (what, figure) in lines {
            pares_text::say!("{what:>14}  {figure}");
        }
    }
}

pub(crate) fn measure(args: &Args) -> Result<RunFigures, BrokerageError> {
    let reading = BrokerageError::io(format!("reading {}", args.file.display()));
    let lines = BufReader::new(File::open(&args.file).map_err(reading)?);
    let scratch = tempfile::tempdir().map_err(BrokerageError::io("making a temporary directory"))?;
    let logs = args.logs.clone().unwrap_or_else(|| scratch.path().join("logs"));
    std::fs::create_dir_all(&logs).map_err(BrokerageError::io(format!("making {}", logs.display())))?;
    let server = match args.quote_server {
        Some(_) => None,
        None => Some(stand_in(args.behaviour)?),
    };
    let quotes = server.as_ref().map(QuoteServer::address).or(args.quote_server);
    let quotes = quotes.ok_or_else(|| failed("no quote server"))?;
    let floor = Floor::open(scratch.path(), args.durability, quotes)?;
    let mut running = Running::begin(floor, logs)?;
    running.feed(lines, args.window)?;
    let took = running.tally.took();
    running.settle()?;
    let checked = running.check(server.as_ref())?;
    Ok(running.figures(took, checked))
}

fn stand_in(behaviour: Behaviour) -> Result<QuoteServer, BrokerageError> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    QuoteServer::start(any, behaviour.settings()).map_err(BrokerageError::io("starting the quote server"))
}

/// What the checks came to.
struct Checked {
    report: AuditReport,
    audit_verified: bool,
    conserved: bool,
}

struct Running {
    floor: Floor,
    tally: Tally,
    logs: PathBuf,
    dumps: Dumps,
    /// The latest dump of everything, and how many requests there were before it.
    whole: Option<(PathBuf, u64)>,
}

impl Running {
    fn begin(floor: Floor, logs: PathBuf) -> Result<Self, BrokerageError> {
        let dumps = Dumps::of(floor.address()?);
        Ok(Self { floor, tally: Tally::begin(), logs, dumps, whole: None })
    }

    /// All commands, each of them with its reply.
    fn feed(&mut self, mut lines: impl BufRead, window: u64) -> BrokerageResult {
        let (mut line, mut has_more) = (Vec::new(), true);
        while has_more || self.floor.front.open() > 0 {
            for _ in 0..FED_MAX {
                if !has_more || self.floor.front.open() as u64 >= window {
                    break;
                }
                line.clear();
                let count = lines.read_until(b'\n', &mut line);
                has_more = count.map_err(BrokerageError::io("reading the workload"))? > 0;
                match WorkloadLine::parse(&line) {
                    Ok(command) => self.floor.arrives(command)?,
                    Err(_) => self.tally.unreadable += u64::from(!line.trim_ascii().is_empty()),
                }
            }
            self.turn()?;
        }
        Ok(())
    }

    fn turn(&mut self) -> BrokerageResult {
        for Told { command, reply } in self.floor.turn()? {
            self.tally.note(&reply);
            if command.verb == Verb::Dumplog && !matches!(reply, BrokerReply::Refused { .. }) {
                self.dump(command);
            }
        }
        self.dumps.progress().map(|_| ())
    }

    /// A dump was commanded.
    fn dump(&mut self, command: UserCommand) {
        let Some(name) = command.file else { return };
        let path = self.logs.join(name);
        if command.user.is_none() {
            self.whole = Some((path.clone(), self.floor.submitted));
        }
        self.dumps.push(command.user, path);
    }

    /// No more commands: waits for what is under way, and has what nobody used noted.
    fn settle(&mut self) -> BrokerageResult {
        for _ in 0..2 {
            self.floor.close();
            while !self.floor.front.is_idle() {
                self.turn()?;
            }
        }
        if self.whole.as_ref().is_none_or(|(_, submitted)| *submitted != self.floor.submitted) {
            let path = self.logs.join(OWN_DUMP);
            self.whole = Some((path.clone(), self.floor.submitted));
            self.dumps.push(None, path);
        }
        while self.dumps.progress()? {
            self.floor.turn_site()?;
        }
        Ok(())
    }

    /// Waits for a thread that asks the site.
    fn wait_for<T>(&mut self, thread: JoinHandle<T>) -> Result<T, BrokerageError> {
        while !thread.is_finished() {
            self.floor.turn_site()?;
        }
        thread.join().map_err(|_| failed("a thread that reads has panicked"))
    }

    fn check(&mut self, server: Option<&QuoteServer>) -> Result<Checked, BrokerageError> {
        let path = self.whole.as_ref().map(|(path, _)| path.clone()).unwrap_or_default();
        let report = audit::replay(&path)?;
        let site = self.floor.address()?;
        let users: Vec<UserName> = self.floor.users.iter().cloned().collect();
        let found = self.wait_for(std::thread::spawn(move || dump::summaries(site, users)))??;
        let desk = self.floor.front.desk();
        let quotes = report.quotes.len() as u64;
        let is_genuine = report.quotes.iter().all(|quote| server.is_none_or(|server| server.gave(quote)));
        let audit_verified = report.count("userCommand") == self.tally.told()
            && report.count("errorEvent") == self.tally.refused
            && quotes == desk.hits() - desk.faults()
            && is_genuine;
        let conserved = is_as_told(&found, &report);
        Ok(Checked { report, audit_verified, conserved })
    }

    fn figures(&self, took: Duration, checked: Checked) -> RunFigures {
        let (tally, desk) = (&self.tally, self.floor.front.desk());
        RunFigures {
            commands: tally.told(),
            done: tally.done,
            refused: tally.refused,
            unreadable: tally.unreadable,
            users: self.floor.users.len(),
            seconds: took.as_secs_f64(),
            commands_per_s: tally.told() as f64 / took.as_secs_f64(),
            best_second: tally.best_second(),
            slowest_quote_ms: self.floor.slowest_quote.as_secs_f64() * 1e3,
            hits: desk.hits(),
            quote_faults: desk.faults(),
            dollars: dollars(desk.hits() * HIT_MILLS / 10),
            conflicts: self.floor.report().work.lost,
            elements: checked.report.elements,
            audit_verified: checked.audit_verified,
            conserved: checked.conserved,
        }
    }
}

/// Whether each account is what the log says. A user without an account has nothing in the log either.
fn is_as_told(found: &std::collections::BTreeMap<String, AccountSummary>, report: &AuditReport) -> bool {
    let nothing = AccountSummary::default();
    report.accounts.iter().all(|(user, told)| audit::is_as_told(found.get(user).unwrap_or(&nothing), told))
        && found.keys().all(|user| report.accounts.contains_key(user))
}

#[cfg(test)]
mod tests;
