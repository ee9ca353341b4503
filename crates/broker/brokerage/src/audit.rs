//! `pares broker audit`: a log, replayed alone, or written.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use pares_broker::{AuditReplay, AuditReport, ReplayedAccount, StockQuote};
use pares_text::grouped;
use serde::Serialize;

use crate::error::{BrokerageError, BrokerageResult, failed};

pub mod dump;

/// Arguments of `pares broker audit verify`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The log, as written by DUMPLOG
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[cfg(test)]
impl Args {
    pub(crate) fn of(file: &Path) -> Self {
        Self { file: file.to_owned(), json: false }
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
}

impl Verified {
    fn of(report: &AuditReport) -> Self {
        let sum = |of: &dyn Fn(&ReplayedAccount) -> i128| report.accounts.values().map(of).sum();
        Self {
            elements: report.elements.clone(),
            users: report.accounts.len(),
            added_cents: sum(&|account| account.added_cents),
            spent_cents: sum(&|account| account.spent_cents),
            received_cents: sum(&|account| account.received_cents),
            cash_cents: sum(&|account| account.cash_cents),
            held_cents: sum(&|account| account.held_cents()),
        }
    }
}

/// Verifies a log, and says what it holds.
///
/// # Errors
/// The first thing that is wrong.
pub fn run(args: &Args) -> BrokerageResult {
    let verified = Verified::of(&replay(&args.file)?);
    if args.json {
        pares_text::say!("{}", serde_json::to_string(&verified).map_err(failed)?);
        return Ok(());
    }
    for (kind, count) in &verified.elements {
        pares_text::say!("{kind:>20}  {:>12}", grouped(*count));
    }
    let users = verified.users;
    let cents = |cents: i128| format!("{}.{:02}", cents / 100, (cents % 100).abs());
    pares_text::say!("{:>20}  {users:>12}", "users");
    for (what, sum) in [
        ("added", verified.added_cents),
        ("cash", verified.cash_cents),
        ("held", verified.held_cents),
        ("spent", verified.spent_cents),
        ("received", verified.received_cents),
    ] {
        pares_text::say!("{what:>20}  {:>12}", cents(sum));
    }
    pares_text::say!("it adds up");
    Ok(())
}

/// Replays the log at `path`.
pub(crate) fn replay(path: &Path) -> BrokerageResult<AuditReport> {
    let reading = || BrokerageError::io(format!("reading {}", path.display()));
    let mut lines = BufReader::with_capacity(1 << 16, File::open(path).map_err(reading())?);
    let (mut replay, mut line) = (AuditReplay::default(), String::new());
    let wrong = |fault| failed(format!("{}: {fault}", path.display()));
    while lines.read_line(&mut line).map_err(reading())? > 0 {
        replay.line(&line).map_err(wrong)?;
        line.clear();
    }
    let report = replay.finish().map_err(wrong)?;
    match report.quoted_twice() {
        None => Ok(report),
        Some(StockQuote { symbol, key, .. }) => {
            let log = path.display();
            Err(failed(format!("{log}: contains the quote of {symbol} with the key {key} twice")))
        }
    }
}

#[cfg(test)]
mod tests {
    use pares_broker::{LOG_BEGIN, LOG_END};

    use super::*;

    fn quote(symbol: &str, key: &str) -> String {
        format!(
            "<quoteServer>\n<timestamp>1680000000000</timestamp>\n<server>q</server>\n<transactionNum>1</transactionNum>\n\
             <price>5.00</price>\n<stockSymbol>{symbol}</stockSymbol>\n<username>jo</username>\n\
             <quoteServerTime>1680000000000</quoteServerTime>\n<cryptokey>{key}</cryptokey>\n</quoteServer>\n"
        )
    }

    #[test]
    fn a_log_in_which_a_quote_stands_twice_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let replayed = |quotes: &[String]| {
            std::fs::write(file.path(), format!("{LOG_BEGIN}{}{LOG_END}", quotes.concat())).unwrap();
            replay(file.path())
        };
        let (first, other) = (quote("S", "k1"), quote("S", "k2"));
        assert_eq!(replayed(&[first.clone(), other.clone()]).unwrap().quotes.len(), 2);
        let refused = replayed(&[first.clone(), other, first]).unwrap_err().to_string();
        assert!(refused.ends_with("contains the quote of S with the key k1 twice"), "{refused}");
    }
}
