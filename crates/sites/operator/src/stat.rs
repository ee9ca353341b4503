//! `pares site stat`: what the sites of this machine are doing, read from outside.
//!
//! Nobody is asked: each site's figures lie in a mapped file of its directory, and what its log does in the marks of that log. So a live, a stopped and a dead site can all be looked at,
//! and looking costs them nothing. `pares site status` asks, and knows of all sites.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use pares_log::MarksReader;
use pares_os::{CountersReader, Quantiles};
use pares_site::config::directory_of;
use pares_site::{SitesConfig, site_figures};
use pares_text::{self as text, Table};
use pares_wice::SiteId;
use rustix::process::{Pid, test_kill_process};
use serde_json::{Map, Value, json};

use crate::error::{OperatorError, OperatorResult, usage};
use crate::sites;

/// Between two looks of `--watch`.
const EVERY: Duration = Duration::from_secs(1);
/// Counters that are 0 as long as all is well, and what it means that they are not.
const WRONG_UNLESS_0: [(&str, &str); 4] = [
    ("recalling", "is reading its log"),
    ("differing", "differs from another site"),
    ("behind", "refuses requests: too many are unstable or undecided"),
    ("is_filling", "is receiving a copy of the items"),
];

/// Arguments of `pares site stat`.
#[derive(clap::Args)]
pub struct Args {
    /// One JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Refresh every second until Ctrl-C (with --json: one object per line)
    #[arg(long)]
    watch: bool,
}

/// One site of this machine.
struct Looked {
    site: SiteId,
    is_up: bool,
    /// Empty if they cannot be read, and why.
    counters: Vec<(String, u64)>,
    unread: Option<String>,
    log: Option<LogTimes>,
}

/// What its log has done, and how long that took.
struct LogTimes {
    records: u64,
    bytes: u64,
    append: Quantiles,
    sync: Quantiles,
}

impl Args {
    /// Prints the state of this machine's sites.
    ///
    /// # Errors
    /// If no site has its directory here, none runs, or one is not well.
    pub fn run(&self, config: &SitesConfig, dir: &Path) -> OperatorResult {
        loop {
            let all: Vec<Looked> =
                sites::all(config).into_iter().filter_map(|site| look(config, dir, site)).collect();
            if all.is_empty() {
                return Err(usage(format!("no site has run in {} on this machine", dir.display())));
            }
            if self.watch && !self.json && std::io::stdout().is_terminal() {
                let _ = write!(std::io::stdout(), "\x1b[2J\x1b[H");
            }
            text::print(&if self.json { as_json(dir, &all).to_string() } else { as_tables(&all) });
            if !self.watch {
                return judge(&all);
            }
            std::thread::sleep(EVERY);
        }
    }
}

/// The sites of this machine that run, by their own figures.
pub(crate) fn running(config: &SitesConfig, dir: &Path) -> Vec<SiteId> {
    let looked = sites::all(config).into_iter().filter_map(|site| look(config, dir, site));
    looked.filter(|looked| looked.is_up).map(|looked| looked.site).collect()
}

/// A site that has run here; without figures if they cannot be read, or are another's.
fn look(config: &SitesConfig, dir: &Path, site: SiteId) -> Option<Looked> {
    let own = directory_of(dir, site);
    let (counters, unread) = match site_figures(&own, &config.identity, site) {
        Ok(figures) => (named(&figures), None),
        Err(why) if own.join("log").exists() => (Vec::new(), Some(why)),
        Err(_) => return None,
    };
    let process = counters.iter().find(|(name, _)| name == "process").map_or(0, |(_, id)| *id);
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    let is_up = process.is_some_and(|process| test_kill_process(process).is_ok());
    let log = MarksReader::open(&own.join("log")).ok().map(|marks| LogTimes {
        records: marks.stats().appends,
        bytes: marks.stats().payload_bytes,
        append: Quantiles::of(&marks.append_latency()),
        sync: Quantiles::of(&marks.sync_latency()),
    });
    Some(Looked { site, is_up, counters, unread, log })
}

fn named(figures: &CountersReader) -> Vec<(String, u64)> {
    figures.iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Looked {
    fn state(&self) -> &'static str {
        match (&self.unread, self.is_up) {
            (Some(_), _) => "unknown",
            (None, true) => "up",
            (None, false) => "down",
        }
    }
}

/// Whether all sites of this machine run and are well.
fn judge(all: &[Looked]) -> OperatorResult {
    if all.iter().all(|looked| looked.state() == "down") {
        return Err(OperatorError::NotRunning(
            "no site of this machine is running: these are the figures of the last run".into(),
        ));
    }
    let wrong: Vec<String> = all.iter().flat_map(complaints).collect();
    if wrong.is_empty() { Ok(()) } else { Err(OperatorError::Unhealthy(wrong.join("; "))) }
}

fn complaints(looked: &Looked) -> Vec<String> {
    let name = sites::name(looked.site);
    if let Some(why) = &looked.unread {
        return vec![format!("{name} was run here: {why}")];
    }
    if !looked.is_up {
        return vec![format!("{name} is down")];
    }
    let value =
        |wanted: &str| looked.counters.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value);
    let raised =
        WRONG_UNLESS_0.into_iter().filter(|(counter, _)| value(counter).is_some_and(|value| value > 0));
    let mut all: Vec<String> = raised.map(|(_, what)| format!("{name} {what}")).collect();
    if value("takes_part") == Some(0) {
        all.push(format!("{name} does not participate: `pares site status` shows why"));
    }
    all
}

fn as_tables(all: &[Looked]) -> String {
    let names: Vec<String> = all.iter().map(|looked| format!(">{}", sites::name(looked.site))).collect();
    let mut table = Table::new(std::iter::once("site").chain(names.iter().map(String::as_str)));
    let states = all.iter().map(|looked| looked.state().to_owned());
    table.row(std::iter::once("state".to_owned()).chain(states).collect());
    let longest = all.iter().map(|looked| &looked.counters).max_by_key(|counters| counters.len());
    for (counter, _) in longest.into_iter().flatten() {
        let value = |looked: &Looked| {
            let found = looked.counters.iter().find(|(name, _)| name == counter);
            found.map_or("-".into(), |(_, value)| text::grouped(*value))
        };
        table.row(std::iter::once(counter.clone()).chain(all.iter().map(value)).collect());
    }
    format!("{}\n{}", table.render(), logs_table(all).render())
}

fn logs_table(all: &[Looked]) -> Table {
    let mut table = Table::new([
        "log",
        ">records",
        ">payload",
        ">append p50",
        ">p99",
        ">max",
        ">syncs",
        ">sync p50",
        ">p99",
        ">max",
    ]);
    for (looked, log) in all.iter().filter_map(|looked| Some((looked, looked.log.as_ref()?))) {
        let times = |times: Quantiles| {
            [times.p50, times.p99, times.max].map(|time| time.map_or("-".into(), text::duration))
        };
        let mut cells = vec![sites::name(looked.site), text::grouped(log.records), text::bytes(log.bytes)];
        cells.extend(times(log.append));
        cells.push(text::grouped(log.sync.count));
        cells.extend(times(log.sync));
        table.row(cells);
    }
    table
}

fn as_json(dir: &Path, all: &[Looked]) -> Value {
    let times = |times: Quantiles| json!({ "count": times.count, "p50": times.p50, "p99": times.p99, "max": times.max });
    let log = |log: &LogTimes| json!({ "records": log.records, "payload_bytes": log.bytes, "append_ns": times(log.append), "sync_ns": times(log.sync) });
    let site = |looked: &Looked| {
        let counters: Map<String, Value> =
            looked.counters.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({
            "site": sites::name(looked.site),
            "state": looked.state(),
            "counters": counters,
            "log": looked.log.as_ref().map(log),
        })
    };
    json!({ "dir": dir.display().to_string(), "sites": all.iter().map(site).collect::<Vec<_>>() })
}
