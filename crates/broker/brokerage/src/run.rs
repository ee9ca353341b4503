//! `pares broker run`: a workload, from its file to a log that was verified.
//!
//! ```text
//!   file --read ahead; of each user his share--> floor .. replies
//!   DUMPLOG: the log to a file, by a thread, while commands continue
//!   the end: hits that nobody used are noted; the log is replayed alone, and held against the accounts
//! ```

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use pares_broker::{
    AccountSummary, AuditReport, ReplayedAccount, UserCommand, UserName, WorkloadLine, dump_path,
};
use pares_front::{FRONT_OPEN_MAX, FairFeed};
use pares_operator::init::promise;
use pares_os::process::stop_on_signals;
use pares_site::config::Promise;
use pares_text::progress;

use crate::audit::ReadLog;
use crate::dump::Dumps;
use crate::error::{BrokerageError, BrokerageResult, failed, usage};
use crate::figures::{Checked, QuotesSeen, RunFigures};
use crate::floor::Floor;
use crate::quote_server::{Behaviour, QuoteServer, unreached};
use crate::tally::Tally;
use crate::up::HowMany;
use crate::{audit, dump, picture};

mod apart;
mod faults;
mod flood;
mod gaps;
mod lines;
mod replies;

pub use faults::FaultPlan;
pub use gaps::GapTimes;
use lines::{NumberedLines, lines_of};

/// The name of the log that is written if the workload ends without a dump.
const OWN_DUMP: &str = "audit.xml";

/// Most lines that are read before the site continues.
const FED_MAX: usize = 1_000;
/// Lines that are read and that the front does not have yet.
const AHEAD_MAX: usize = FRONT_OPEN_MAX;

/// Arguments of `pares broker run`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The workload file: lines of `[n] COMMAND,user,..`
    pub file: PathBuf,
    /// What a reply survives: `os` the death of processes, `disk` a power loss
    #[arg(long, default_value = "disk", value_parser = promise)]
    pub durability: Promise,
    /// Keep the accounts in this PostgreSQL database, created if missing and kept: postgres://USER@HOST/NAME. One run per database.
    /// Separate sites have one each: {cluster} and {number} in it stand for the site's
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The quote server [default: a simulated one in this process, with the next three options]
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["seed", "instant", "bad_per_mille"])]
    pub quote_server: Option<SocketAddr>,
    #[command(flatten)]
    /// How the stand-in behaves.
    pub behaviour: Behaviour,
    /// With one of these the sites, fronts and desks are processes of their own
    #[command(flatten)]
    pub how_many: HowMany,
    /// Repeat an unanswered quote request after this many milliseconds, then after twice as long, at most six times; each costs 5 cents, and moves the price
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub hedge_ms: Option<u64>,
    /// Most unanswered commands at a time; each user gets a share, and the file is read ahead meanwhile
    #[arg(long, default_value_t = FRONT_OPEN_MAX as u64, value_parser = clap::value_parser!(u64).range(1..=FRONT_OPEN_MAX as u64))]
    pub window: u64,
    /// The directory for DUMPLOG, empty or new [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Overwrite files in that directory
    #[arg(long, requires = "logs")]
    pub force: bool,
    /// Draw replies and waiting commands over time, as SVG
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// How processes of its own are killed, and started again.
    #[arg(skip)]
    pub faults: Option<FaultPlan>,
    /// Add a user who floods the first front, if fronts are separate processes; in the log, but in no figure
    #[arg(long)]
    pub flood: bool,
    /// It ends when this is set.
    #[arg(skip)]
    pub stop: Arc<AtomicBool>,
}

impl Args {
    /// Runs the workload in `file` against a stand-in that behaves like that; the rest is as without options.
    #[must_use]
    pub fn of(file: PathBuf, durability: Promise, behaviour: Behaviour) -> Self {
        Self {
            file,
            durability,
            store: None,
            quote_server: None,
            behaviour,
            how_many: HowMany::default(),
            hedge_ms: None,
            window: FRONT_OPEN_MAX as u64,
            logs: None,
            force: false,
            picture: None,
            json: false,
            faults: None,
            flood: false,
            stop: <_>::default(),
        }
    }
}

impl Args {
    /// Whether nothing would be overwritten unasked, the picture has a place, and there is a quote server.
    fn can_begin(&self) -> BrokerageResult {
        let has_entries = |dir: &PathBuf| std::fs::read_dir(dir).is_ok_and(|mut all| all.next().is_some());
        if let Some(logs) = self.logs.as_ref().filter(|logs| !self.force && has_entries(logs)) {
            return Err(usage(format!(
                "{} is not empty, and its logs could be overwritten: name another --logs, or use --force",
                logs.display()
            )));
        }
        if let Some(path) = &self.picture {
            picture::can_draw(path).map_err(|error| {
                let path = path.display();
                usage(format!("{path} cannot be written ({error}): name another --picture"))
            })?;
        }
        let why = self.quote_server.and_then(unreached);
        why.map_or(Ok(()), |why| {
            Err(usage(format!("{why}: every command that needs a quote would be refused")))
        })
    }
}

/// Whether nobody has pressed Ctrl-C.
fn goes_on(stop: &AtomicBool) -> BrokerageResult {
    if stop.load(Ordering::Relaxed) { Err(BrokerageError::Stopped) } else { Ok(()) }
}

/// Runs a workload, and prints what it came to.
///
/// # Errors
/// If it cannot be run, or its log does not add up.
pub fn run(args: &Args) -> BrokerageResult {
    // A process that a signal ends would leave its temporary directory behind.
    let stop = stop_on_signals().map_err(BrokerageError::io("installing a signal handler"))?;
    let figures = measure(&Args { stop, ..args.clone() })?;
    match args.json {
        true => pares_text::say!("{}", serde_json::to_string(&figures).map_err(failed)?),
        false => figures.print(),
    }
    if let Some(path) = &args.picture {
        picture::draw(&figures, path).map_err(BrokerageError::io(format!("drawing {}", path.display())))?;
    }
    match figures.audit_verified && figures.conserved {
        false => Err(failed("the log does not add up")),
        true if figures.commands == 0 => Err(failed(format!(
            "{}: none of its lines is a command; `pares broker generate` writes a workload",
            args.file.display()
        ))),
        true => Ok(()),
    }
}

/// Runs a workload: what it came to.
///
/// # Errors
/// If it cannot be run, or its log does not add up.
pub fn measure(args: &Args) -> BrokerageResult<RunFigures> {
    args.can_begin()?;
    if args.how_many.is_told() {
        return apart::measure(args);
    }
    if args.flood {
        return Err(usage("--flood needs fronts in separate processes (--fronts)"));
    }
    let reading = || BrokerageError::io(format!("reading {}", args.file.display()));
    let bar = progress::rate("commands", lines_of(&args.file).map_err(reading())?);
    let lines = BufReader::new(File::open(&args.file).map_err(reading())?);
    let scratch = tempfile::tempdir().map_err(BrokerageError::io("making a temporary directory"))?;
    let logs = args.logs.clone().unwrap_or_else(|| scratch.path().join("logs"));
    std::fs::create_dir_all(&logs).map_err(BrokerageError::io(format!("making {}", logs.display())))?;
    let (quotes, server) = quotes(args)?;
    let hedge = args.hedge_ms.map(Duration::from_millis);
    let floor = Floor::alone(scratch.path(), args.durability, args.store.as_deref(), quotes, hedge)?;
    let mut running = Running::begin(floor, logs, bar, args.stop.clone())?;
    running.feed(lines, args.window)?;
    let (took, last_quote) = (running.tally.took(), running.floor.latest_quote);
    running.bar.finish_and_clear();
    running.lines.tell(&args.file);
    running.settle()?;
    let checked = running.check(server.as_ref())?;
    let mut figures = running.figures(took, last_quote, checked)?;
    figures.log_file = args.logs.as_ref().and(running.whole.map(|(path, _)| path));
    Ok(figures)
}

/// Where quotes are asked for, and the stand-in there if none was named.
fn quotes(args: &Args) -> BrokerageResult<(SocketAddr, Option<QuoteServer>)> {
    if let Some(address) = args.quote_server {
        return Ok((address, None));
    }
    let server = stand_in(args.behaviour)?;
    Ok((server.address(), Some(server)))
}

fn stand_in(behaviour: Behaviour) -> BrokerageResult<QuoteServer> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    QuoteServer::start(any, behaviour.settings()).map_err(BrokerageError::io("starting the quote server"))
}

struct Running {
    floor: Floor,
    lines: NumberedLines,
    ahead: FairFeed<WorkloadLine>,
    tally: Tally,
    bar: ProgressBar,
    stop: Arc<AtomicBool>,
    logs: PathBuf,
    dumps: Dumps,
    /// The latest dump of everything, and how many requests there were before it.
    whole: Option<(PathBuf, u64)>,
}

impl Running {
    fn begin(floor: Floor, logs: PathBuf, bar: ProgressBar, stop: Arc<AtomicBool>) -> BrokerageResult<Self> {
        let dumps = Dumps::of(vec![floor.address()?.into()]);
        let ahead = FairFeed::new(FRONT_OPEN_MAX);
        let (lines, tally) = (NumberedLines::default(), Tally::begin());
        Ok(Self { floor, lines, ahead, tally, bar, stop, logs, dumps, whole: None })
    }

    /// All commands, each of them with its reply.
    fn feed(&mut self, mut lines: impl BufRead, window: u64) -> BrokerageResult {
        self.ahead.set_room(usize::try_from(window).unwrap_or(usize::MAX));
        let mut has_more = true;
        while has_more || self.ahead.held() > 0 || self.floor.front.open() > 0 {
            has_more = has_more && self.read_ahead(&mut lines)?;
            while let Some(command) = self.ahead.take() {
                let arrival = self.floor.arrives(command)?;
                self.tally.arrived(arrival);
            }
            self.turn()?;
        }
        Ok(())
    }

    /// Reads some lines; whether there are more.
    fn read_ahead(&mut self, lines: &mut impl BufRead) -> BrokerageResult<bool> {
        let mut line = Vec::new();
        for _ in 0..FED_MAX.min(AHEAD_MAX - self.ahead.held()) {
            line.clear();
            let count = lines.read_until(b'\n', &mut line);
            if count.map_err(BrokerageError::io("reading the workload"))? == 0 {
                return Ok(false);
            }
            if let Some(command) = self.lines.parse(&line) {
                self.ahead.push(command.command.user.clone().as_ref(), command);
            }
            self.tally.unreadable = self.lines.unreadable;
        }
        Ok(true)
    }

    fn turn(&mut self) -> BrokerageResult {
        goes_on(&self.stop)?;
        for told in self.floor.turn()? {
            self.ahead.done(told.command().and_then(|command| command.user.as_ref()));
            if let Some((command, reply)) = told.command().zip(told.reply.as_ref()) {
                self.tally.note(told.arrival, command.verb, reply);
            }
            if let Some(command) = told.dump() {
                self.dump(command.clone());
            }
        }
        if self.tally.look(|| self.floor.front.backlog()) {
            self.bar.set_position(self.tally.told());
        }
        self.dumps.progress().map_or(Ok(()), |(_, written)| written.map(drop))
    }

    /// A dump was commanded.
    fn dump(&mut self, command: UserCommand) {
        let Some(name) = command.file else { return };
        let path = self.logs.join(dump_path(command.user.as_ref(), &name));
        if command.user.is_none() {
            self.whole = Some((path.clone(), self.floor.submitted));
        }
        self.dumps.push(0, command.user, path);
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
            self.dumps.push(0, None, path);
        }
        while !self.dumps.is_idle() {
            self.dumps.progress().map_or(Ok(()), |(_, written)| written.map(drop))?;
            self.floor.turn_site()?;
        }
        Ok(())
    }

    /// Waits for a thread that asks the site.
    fn wait_for<T>(&mut self, thread: JoinHandle<T>) -> BrokerageResult<T> {
        while !thread.is_finished() {
            self.floor.turn_site()?;
        }
        thread.join().map_err(|_| failed("a thread that reads has panicked"))
    }

    fn check(&mut self, server: Option<&QuoteServer>) -> BrokerageResult<Checked> {
        let path = self.whole.as_ref().map(|(path, _)| path.clone()).unwrap_or_default();
        let ReadLog { report, chain, .. } = audit::replay(&path)?;
        let site = self.floor.address()?.into();
        let users: Vec<UserName> = self.floor.users.iter().cloned().collect();
        let found = self.wait_for(std::thread::spawn(move || dump::summaries(vec![site], users)))??;
        let desk = self.floor.front.desk();
        let quotes = report.quotes.len() as u64;
        let is_genuine = report.quotes.iter().all(|quote| server.is_none_or(|server| server.gave(quote)));
        let audit_verified = report.count("userCommand") == self.tally.told()
            && report.count("errorEvent") == self.tally.refused
            && quotes == desk.hits() - desk.faults()
            && is_genuine;
        let conserved = accounts_off(&found, &report) == 0;
        Ok(Checked { report, head: chain.head(), audit_verified, conserved })
    }

    fn figures(
        &self,
        took: Duration,
        last_quote: Option<Instant>,
        checked: Checked,
    ) -> BrokerageResult<RunFigures> {
        let (desk, hedges) = (self.floor.front.desk(), self.floor.quoting.hedges());
        let quotes = QuotesSeen {
            hits: desk.hits() + hedges.unwrap_or_default(),
            faults: desk.faults(),
            hedges,
            slowest: self.floor.slowest_quote,
            last: last_quote,
        };
        let conflicts = self.floor.report()?.work.lost;
        Ok(RunFigures::of(&self.tally, took, self.floor.users.len(), quotes, conflicts, checked))
    }
}

/// Accounts that are not what the log says. A user without an account has nothing in the log either.
fn accounts_off(found: &std::collections::BTreeMap<String, AccountSummary>, report: &AuditReport) -> usize {
    let nothing = AccountSummary::default();
    let is_off = |(user, told): &(&String, &ReplayedAccount)| !told.is(found.get(*user).unwrap_or(&nothing));
    let unknown = found.keys().filter(|user| !report.accounts.contains_key(*user)).count();
    report.accounts.iter().filter(is_off).count() + unknown
}

#[cfg(test)]
mod tests;
