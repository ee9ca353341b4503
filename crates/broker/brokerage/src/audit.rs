//! `pares broker audit`: a log, replayed alone and held against its head, or written.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use pares_broker::{
    AuditFault, AuditReplay, AuditReport, BrokerRead, LogDigest, LogHead, ReplayedAccount, StockQuote,
};
use pares_keys::{from_hex, to_hex};
use pares_site::Client;
use pares_text::{grouped, shown};
use serde::Serialize;

use crate::error::{BrokerageError, BrokerageResult, failed};

mod chain;
pub mod dump;
pub mod head;

pub(crate) use chain::LogChain;

/// So much is said of what a line of a log holds, characters.
const SHOWN_MAX: usize = 200;

/// Arguments of `pares broker audit verify`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The log, as written by DUMPLOG
    file: PathBuf,
    /// The head that was noted when the log was written: a file changed since is an error
    #[arg(long, value_name = "HASH", value_parser = digest)]
    head: Option<LogDigest>,
    /// Ask the sites of the broker in this directory whether a log with this head was written
    #[arg(long, conflicts_with = "head")]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[cfg(test)]
impl Args {
    pub(crate) fn of(file: &Path) -> Self {
        Self { file: file.to_owned(), head: None, dir: None, json: false }
    }
}

/// Reads a head.
fn digest(text: &str) -> Result<LogDigest, String> {
    from_hex(text).map(LogDigest).ok_or_else(|| "a head has 64 hexadecimal digits".into())
}

/// What the head of a log was held against, without a difference.
enum Proof {
    Nothing,
    Head,
    /// Of this log; and of the one of the same user, or of everything, that was written last.
    Sites(LogHead, Option<LogHead>),
}

impl Proof {
    fn word(&self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Head => "head",
            Self::Sites(..) => "sites",
        }
    }

    fn verdict(&self) -> String {
        match self {
            Self::Nothing => "it adds up; not proven: without its head (--head or --dir) a file that was changed consistently, \
                              cut or emptied adds up too"
                .into(),
            Self::Head => "it adds up, and has this head: no element was changed, added or removed".into(),
            Self::Sites(head, latest) => {
                let later = latest.as_ref().filter(|latest| latest.digest != head.digest).map(head::in_words);
                let later = later.map_or(String::new(), |later| format!("; a later one is {later}"));
                format!("it adds up, and no element was changed, added or removed: {}{later}", head::in_words(head))
            }
        }
    }
}

/// What a log that adds up holds. Sums are in cents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Verified {
    elements: std::collections::BTreeMap<String, u64>,
    users: usize,
    added_cents: i128,
    spent_cents: i128,
    received_cents: i128,
    cash_cents: i128,
    held_cents: i128,
    head: String,
    /// `none`, `head` or `sites`: what the head was held against.
    proof: &'static str,
    /// By the sites: whose log it is, none: of everything.
    log_user: Option<String>,
    /// By the sites: when it was written, ms since 1970.
    written_ms: Option<u64>,
    /// By the sites: the head of the log of the same user, or of everything, that was written last.
    latest_head: Option<String>,
}

impl Verified {
    fn of(log: &ReadLog, proof: &Proof) -> Self {
        let report = &log.report;
        let (kept, latest) = match proof {
            Proof::Sites(head, latest) => (Some(head), latest.as_ref()),
            Proof::Nothing | Proof::Head => (None, None),
        };
        let sum = |of: &dyn Fn(&ReplayedAccount) -> i128| report.accounts.values().map(of).sum();
        Self {
            elements: report.elements.clone(),
            users: report.accounts.len(),
            added_cents: sum(&|account| account.added_cents),
            spent_cents: sum(&|account| account.spent_cents),
            received_cents: sum(&|account| account.received_cents),
            cash_cents: sum(&|account| account.cash_cents),
            held_cents: sum(&|account| account.held_cents()),
            head: to_hex(&log.chain.head().0),
            proof: proof.word(),
            log_user: kept.and_then(|head| head.user.as_ref()).map(|user| user.as_str().to_owned()),
            written_ms: kept.map(|head| head.time_ms),
            latest_head: latest.map(|head| to_hex(&head.digest.0)),
        }
    }

    fn print(&self) {
        for (kind, count) in &self.elements {
            pares_text::say!("{kind:>20}  {:>12}", grouped(*count));
        }
        let cents = |cents: i128| format!("{}.{:02}", cents / 100, (cents % 100).abs());
        pares_text::say!("{:>20}  {:>12}", "users", self.users);
        for (what, sum) in [
            ("added", self.added_cents),
            ("cash", self.cash_cents),
            ("held", self.held_cents),
            ("spent", self.spent_cents),
            ("received", self.received_cents),
        ] {
            pares_text::say!("{what:>20}  {:>12}", cents(sum));
        }
        pares_text::say!("{:>20}  {}", "head", self.head);
    }
}

/// Verifies a log, and says what it holds.
///
/// # Errors
/// The first thing that is wrong; that it has another head, or none that the sites keep.
pub fn run(args: &Args) -> BrokerageResult {
    let log = read(&args.file, args.head)?;
    let proof = match (&args.dir, args.head) {
        (Some(dir), _) => log.proven_by(&mut head::sites(dir)?)?,
        (None, Some(head)) => log.proven_by_head(head)?,
        (None, None) => Proof::Nothing,
    };
    let verified = Verified::of(&log, &proof);
    if args.json {
        pares_text::say!("{}", serde_json::to_string(&verified).map_err(failed)?);
    } else {
        verified.print();
        pares_text::say!("{}", proof.verdict());
    }
    Ok(())
}

/// A log that adds up.
pub(crate) struct ReadLog {
    path: PathBuf,
    pub(crate) report: AuditReport,
    pub(crate) chain: LogChain,
    /// The first elements of it have the head that was looked for.
    covered: Option<u64>,
}

impl ReadLog {
    fn proven_by_head(&self, head: LogDigest) -> BrokerageResult<Proof> {
        let (path, elements) = (self.path.display(), self.chain.elements());
        match self.covered {
            _ if self.chain.head() == head => Ok(Proof::Head),
            Some(covered) => Err(failed(format!(
                "{path}: only its first {covered} elements have this head: {} behind them are not proven",
                elements - covered
            ))),
            None => Err(failed(format!(
                "{path}: its {elements} elements have the head {}, not this one: the file was changed, or is another log",
                to_hex(&self.chain.head().0)
            ))),
        }
    }

    fn proven_by(&self, sites: &mut Client) -> BrokerageResult<Proof> {
        let digest = self.chain.head();
        let Some(kept) = head::kept(sites, &BrokerRead::Head { digest })? else {
            return Err(failed(format!(
                "{}: no log with its head {} was written by DUMPLOG or `audit dump`: the file was changed, or is of another broker",
                self.path.display(),
                to_hex(&digest.0)
            )));
        };
        let latest = head::kept(sites, &BrokerRead::LatestHead { user: kept.user.clone() })?;
        Ok(Proof::Sites(kept, latest))
    }
}

/// Replays the log at `path`.
pub(crate) fn replay(path: &Path) -> BrokerageResult<ReadLog> {
    read(path, None)
}

/// The same; it also says how many elements have the head that is `sought`.
fn read(path: &Path, sought: Option<LogDigest>) -> BrokerageResult<ReadLog> {
    let reading = || BrokerageError::io(format!("reading {}", path.display()));
    let mut lines = BufReader::with_capacity(1 << 16, File::open(path).map_err(reading())?);
    let (mut replay, mut line) = (AuditReplay::default(), String::new());
    let (mut chain, mut covered) = (LogChain::default(), None);
    let wrong =
        |fault: AuditFault| failed(format!("{}: {}", path.display(), shown(&fault.to_string(), SHOWN_MAX)));
    while lines.read_line(&mut line).map_err(reading())? > 0 {
        replay.line(&line).map_err(wrong)?;
        chain.line(&line);
        covered = covered.or_else(|| (sought == Some(chain.head())).then(|| chain.elements()));
        line.clear();
    }
    let report = replay.finish().map_err(wrong)?;
    match report.quoted_twice() {
        None => Ok(ReadLog { path: path.to_owned(), report, chain, covered }),
        Some(StockQuote { symbol, key, .. }) => {
            let (log, key) = (path.display(), shown(key, SHOWN_MAX));
            Err(failed(format!("{log}: contains the quote of {symbol} with the key {key} twice")))
        }
    }
}

#[cfg(test)]
mod tests;
