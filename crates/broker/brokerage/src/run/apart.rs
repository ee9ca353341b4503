//! The same workload at processes of their own: sites, desks, fronts, and a loader for each front.
//!
//! A user's commands all go through one loader, so they are executed in the order of the file; dumps of everything come when all else is answered. When all is over a log is read from the sites,
//! and verified; so is the one that a front has written last because it was commanded.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pares_broker::{AuditReport, LogDigest, UserCommand, UserName, Verb, dump_path};
use pares_operator::sites::ChildOutput;
use pares_site::Access;
use tempfile::TempDir;

use self::loading::{Heard, Replied, Sent, start};
use super::faults::{Faults, Struck};
use super::flood::{Flood, FloodSeen};
use super::gaps::Gaps;
use super::lines::NumberedLines;
use super::replies::{Differing, Replies};
use super::{Args, accounts_off, goes_on, quotes};
use crate::audit::ReadLog;
use crate::children::{BrokerPlan, Children, ToldBesides};
use crate::error::{BrokerageError, BrokerageResult, failed, usage};
use crate::figures::{Checked, DeathFigures, QuotesSeen, RunFigures};
use crate::quote_server::QuoteServer;
use crate::tally::Tally;
use crate::{audit, dump, front};

mod loading;

/// After its front has ended, a site has executed what it was asked within this.
const QUIET: Duration = Duration::from_secs(1);
/// As many deaths are said with a failure, the latest.
const DEATHS_SAID: usize = 4;
/// Between two looks at the processes.
const LOOK: Duration = Duration::from_millis(50);

/// A workload, dealt out to loaders.
struct Dealt {
    /// For each loader.
    lines: Vec<Vec<Sent>>,
    /// Dumps of everything, which come last.
    dumps: Vec<Sent>,
    users: Vec<UserName>,
    unreadable: u64,
    /// The file that the last of these dumps names.
    written: Option<String>,
}

/// Runs it.
pub(super) fn measure(args: &Args) -> BrokerageResult<RunFigures> {
    if args.hedge_ms.is_some() {
        return Err(usage("--hedge-ms needs a front without desks"));
    }
    let (quotes, server) = quotes(args)?;
    let plan = args.how_many.plan(args.durability, args.store.clone(), quotes, None);
    let dealt = deal(&args.file, plan.fronts.into())?;
    let scratch = tempfile::tempdir().map_err(BrokerageError::io("making a temporary directory"))?;
    let measured = measure_in(&scratch.path().join("broker"), args, &plan, dealt, server.as_ref());
    measured.map_err(|error| match error {
        BrokerageError::Stopped => {
            remove(scratch);
            error
        }
        _ => {
            let kept = scratch.keep();
            failed(format!("{error}; the output of all processes is kept in {}", kept.display()))
        }
    })
}

/// Removes a directory in which a thread may still begin a log: one that it has begun meanwhile goes too, and it begins none in what is gone.
fn remove(scratch: TempDir) {
    let path = scratch.path().to_owned();
    if scratch.close().is_err() {
        // If that fails too, the system's own cleaning of temporary files has it.
        let _ = std::fs::remove_dir_all(path);
    }
}

fn measure_in(
    dir: &Path,
    args: &Args,
    plan: &BrokerPlan,
    dealt: Dealt,
    server: Option<&QuoteServer>,
) -> BrokerageResult<RunFigures> {
    let (config, places) = plan.settle(dir)?;
    let logs = args.logs.clone().unwrap_or_else(|| dir.join("logs"));
    let told = ToldBesides { logs: Some(logs.clone()), ..ToldBesides::default() };
    let mut children = Children::start(dir, ChildOutput::File, &config, places, told)?;
    let mut apart = Apart {
        children: &mut children,
        dir,
        written: dealt.written.as_ref().map(|name| logs.join(dump_path(None, name))),
        is_quiet: args.json,
        stop: &args.stop,
        faults: None,
        gaps: Gaps::default(),
        replies: Replies::default(),
        off: 0,
        flooded: FloodSeen::default(),
        deaths: Vec::new(),
    };
    let run = apart.run(args, dealt, server);
    run.map_err(|error| match error {
        BrokerageError::Stopped => error,
        _ if apart.deaths.is_empty() => error,
        _ => error.after(&apart.deaths),
    })
}

/// Reads a workload; a user's lines are all dealt to one loader.
fn deal(file: &Path, loaders: usize) -> BrokerageResult<Dealt> {
    let reading = || BrokerageError::io(format!("reading {}", file.display()));
    let mut lines = BufReader::new(std::fs::File::open(file).map_err(reading())?);
    let mut dealt = Dealt {
        lines: (0..loaders).map(|_| Vec::new()).collect(),
        dumps: Vec::new(),
        users: Vec::new(),
        unreadable: 0,
        written: None,
    };
    let mut users = std::collections::BTreeMap::new();
    let (mut line, mut numbered) = (Vec::new(), NumberedLines::default());
    for number in 1.. {
        line.clear();
        if lines.read_until(b'\n', &mut line).map_err(reading())? == 0 {
            break;
        }
        let Some(command) = numbered.parse(&line) else { continue };
        let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        let rest = text.split_once(']').map_or(String::new(), |(_, rest)| rest.trim().to_owned());
        let UserCommand { user, verb, file: written, .. } = command.command;
        let name = user.as_ref().map_or(String::new(), |user| user.as_str().to_owned());
        let sent = Sent { number, user: name, verb, command: rest };
        if user.is_none() && verb == Verb::Dumplog {
            dealt.dumps.push(sent);
            dealt.written = written.or(dealt.written);
        } else {
            let next = users.len() % loaders;
            dealt.lines[*users.entry(user).or_insert(next)].push(sent);
        }
    }
    numbered.tell(file);
    dealt.unreadable = numbered.unreadable;
    dealt.users = users.into_keys().flatten().collect();
    Ok(dealt)
}

struct Apart<'a> {
    children: &'a mut Children,
    dir: &'a Path,
    /// The log of everything that a front writes last, if the workload commands one.
    written: Option<PathBuf>,
    /// Standard output is for figures alone.
    is_quiet: bool,
    stop: &'a AtomicBool,
    faults: Option<Faults>,
    gaps: Gaps,
    replies: Replies,
    /// Accounts that are not what the log says.
    off: usize,
    /// Commands that are in the log, and in no figure.
    flooded: FloodSeen,
    /// The latest deaths of processes, [`DEATHS_SAID`] at most.
    deaths: Vec<String>,
}

impl Apart<'_> {
    fn run(
        &mut self,
        args: &Args,
        dealt: Dealt,
        server: Option<&QuoteServer>,
    ) -> BrokerageResult<RunFigures> {
        let fronts = self.children.places().fronts.clone();
        let window = usize::try_from(args.window).unwrap_or(usize::MAX) / fronts.len();
        self.wait_for_fronts(&fronts)?;
        let flood = if args.flood { Some(Flood::begin(fronts[0])?) } else { None };
        let mut tally = Tally::begin();
        tally.unreadable = dealt.unreadable;
        let (tell, told) = channel();
        for (at, lines) in dealt.lines.into_iter().enumerate() {
            let mut order = fronts.clone();
            order.rotate_left(at);
            start(order, lines, window.max(1), tell.clone())?;
        }
        drop(tell);
        self.faults = args.faults.map(|plan| Ok(Faults::new(plan, self.access()?))).transpose()?;
        self.follow(&told, &mut tally)?;
        flood.map_or(Ok(()), |flood| self.end_flood(flood))?;
        let struck = self.faults.take().map(|faults| faults.end(self.children)).transpose()?;
        let (tell, told) = channel();
        start(fronts.clone(), dealt.dumps, 1, tell)?;
        self.follow(&told, &mut tally)?;
        let took = tally.took();
        self.settle(&fronts)?;
        let checked = self.check(&dealt.users, &tally, server)?;
        let differing = self.replies.against(&checked.report.commands);
        let mut figures = self.figures(&tally, took, dealt.users.len(), server, checked)?;
        figures.deaths = struck.map(|struck| self.deaths(struck, differing, &figures));
        figures.log_file = args.logs.as_ref().and(self.written.clone());
        Ok(figures)
    }

    /// The way to its sites.
    fn access(&self) -> BrokerageResult<Access> {
        front::access(self.dir).map_err(|error| {
            let file = self.dir.join("sites.toml");
            // Another directory, as the error advises, is no help to a run.
            if file.exists() { error } else { failed(format!("{} of this run is gone", file.display())) }
        })
    }

    fn deaths(&self, struck: Struck, differing: Differing, figures: &RunFigures) -> DeathFigures {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        DeathFigures {
            killed: struck.killed,
            stopped: struck.stopped,
            acknowledged_lost: differing.lost,
            done_twice: differing.beyond,
            money_off: self.off as u64,
            max_gap_ms: ms(self.gaps.longest),
            max_gap_silent_ms: ms(self.gaps.silent),
            max_gap_moved_ms: ms(self.gaps.moved),
            gaps_ms: self.gaps.by_kind(),
            elections_ms: struck.elections,
            hits_noted: figures.elements.get("quoteServer").copied().unwrap_or_default(),
        }
    }

    /// Has every front note what no command used; then nothing more happens, so that the log and the accounts are of one moment.
    fn settle(&mut self, fronts: &[SocketAddr]) -> BrokerageResult {
        let (tell, told) = channel();
        for front in fronts {
            start(vec![*front], Vec::new(), 1, tell.clone())?;
        }
        drop(tell);
        self.follow(&told, &mut Tally::begin())?;
        self.children.end_all_but_sites();
        // What they asked for last is executed, or never will be.
        let ended = Instant::now();
        self.look_until(|| ended.elapsed() >= QUIET)
    }

    /// Waits until every front accepts connections.
    fn wait_for_fronts(&mut self, fronts: &[SocketAddr]) -> BrokerageResult {
        for front in fronts {
            while std::net::TcpStream::connect(front).is_err() {
                self.look()?;
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    fn look(&mut self) -> BrokerageResult {
        goes_on(self.stop)?;
        if let Some(faults) = &mut self.faults {
            faults.look(self.children, &mut self.gaps)?;
        }
        for dead in self.children.revive()? {
            if !self.is_quiet {
                pares_text::tell!("{dead}");
            }
            if self.deaths.len() == DEATHS_SAID {
                self.deaths.remove(0);
            }
            self.deaths.push(dead);
        }
        Ok(())
    }

    /// Looks after the processes until that is so.
    fn look_until(&mut self, is_so: impl Fn() -> bool) -> BrokerageResult {
        while !is_so() {
            self.look()?;
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn end_flood(&mut self, flood: Flood) -> BrokerageResult {
        flood.stop();
        self.look_until(|| flood.is_over())?;
        self.flooded = flood.seen()?;
        Ok(())
    }

    /// Counts answers until all loaders have ended.
    fn follow(&mut self, told: &Receiver<Heard>, tally: &mut Tally) -> BrokerageResult {
        let mut looked = Instant::now();
        loop {
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.look()?;
            }
            match told.recv_timeout(LOOK) {
                Ok(Heard { replies, gap, ended, has_moved }) => {
                    if self.faults.is_some() {
                        self.gaps.heard(gap, ended, has_moved);
                    }
                    for Replied { number, verb, took, is_done } in replies {
                        self.replies.heard(number);
                        tally.count(verb, took, is_done);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn check(
        &mut self,
        users: &[UserName],
        tally: &Tally,
        server: Option<&QuoteServer>,
    ) -> BrokerageResult<Checked> {
        let doors = front::doors(&self.access()?)?;
        let path = self.dir.join(super::OWN_DUMP);
        let (own, users) = (path.clone(), users.to_vec());
        let reading = std::thread::Builder::new().name("check".into()).spawn(move || {
            dump::write(doors.clone(), dump::unused_name(), None, &own, |_| ())?;
            Ok::<_, BrokerageError>((audit::replay(&own)?, dump::summaries(doors, users)?))
        });
        let reading = reading.map_err(BrokerageError::io("starting a thread"))?;
        self.look_until(|| reading.is_finished())?;
        let read = reading.join().map_err(|_| failed("the thread that reads the log has panicked"))?;
        let (ReadLog { report, chain, .. }, found) = read?;
        let is_genuine = report.quotes.iter().all(|quote| server.is_none_or(|server| server.gave(quote)));
        let audit_verified = report.count("userCommand") == tally.told() + self.flooded.told
            && report.count("errorEvent") == tally.refused + self.flooded.refused
            && server.is_none_or(|server| report.quotes.len() as u64 <= server.hits())
            && is_genuine;
        let head = self.check_written(&report, &path)?.unwrap_or(chain.head());
        self.off = accounts_off(&found, &report);
        let conserved = self.off == 0;
        Ok(Checked { report, head, audit_verified, conserved })
    }

    /// The log that a front has written adds up, and has every command that the sites have: its head. If the front has died meanwhile, it is the one that was just read from the sites.
    fn check_written(&self, whole: &AuditReport, own: &Path) -> BrokerageResult<Option<LogDigest>> {
        let Some(path) = &self.written else { return Ok(None) };
        if !path.exists() {
            std::fs::copy(own, path).map_err(BrokerageError::io(format!("writing {}", path.display())))?;
        }
        let written = audit::replay(path)?;
        let (found, all) = (written.report.count("userCommand"), whole.count("userCommand"));
        if found == all {
            Ok(Some(written.chain.head()))
        } else {
            Err(failed(format!("{} has {found} commands of {all}", path.display())))
        }
    }

    fn figures(
        &self,
        tally: &Tally,
        took: Duration,
        users: usize,
        server: Option<&QuoteServer>,
        checked: Checked,
    ) -> BrokerageResult<RunFigures> {
        let noted = checked.report.quotes.len() as u64;
        let hits = server.map_or(noted, QuoteServer::hits);
        let quotes = QuotesSeen { hits, faults: hits - noted, hedges: None, slowest: None, last: None };
        let reports = pares_operator::sites::reports(&self.access()?);
        let conflicts = reports.iter().map(|(_, report)| report.work.lost).sum();
        Ok(RunFigures::of(tally, took, users, quotes, conflicts, checked))
    }
}
