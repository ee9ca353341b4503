//! The log alone, replayed.
//!
//! A log that lists what was done proves nothing unless what it lists adds up. So here the accounts are rebuilt from its elements, by other code than that which wrote
//! them. Every movement of cash must be the one that its command makes. No cash and no share may be spent that was not there. In the end
//! each user has, or has spent, as much as he put in.

mod account;
mod element;
mod orders;

use std::collections::{BTreeMap, BTreeSet};

pub use account::ReplayedAccount;
use account::Step;
use element::{Element, Reader, quoted};

use crate::request::StockQuote;

/// A fault of a log, and its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct AuditFault {
    /// The line, from 1; of what a request's elements say together, the first line behind them.
    pub line: u64,
    /// The fault, in words.
    pub what: String,
}

/// What a log holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// Elements of each kind.
    pub elements: BTreeMap<String, u64>,
    /// Every user's account, as the log leaves it.
    pub accounts: BTreeMap<String, ReplayedAccount>,
    /// Numbers of each user's commands; of commands of nobody under the empty name.
    pub commands: BTreeMap<String, BTreeSet<u64>>,
    /// Every quote that was asked for, in the order of the log: who made the keys can check them.
    pub quotes: Vec<StockQuote>,
}

impl AuditReport {
    /// A quote that stands there as one before it does, of that stock, with its key and stamp: the quote server was asked once, and the log says twice.
    #[must_use]
    pub fn quoted_twice(&self) -> Option<&StockQuote> {
        let mut seen = BTreeSet::new();
        self.quotes.iter().find(|quote| !seen.insert((quote.symbol, &quote.key, quote.server_ms)))
    }

    /// How many elements of a kind there are.
    #[must_use]
    pub fn count(&self, kind: &str) -> u64 {
        self.elements.get(kind).copied().unwrap_or_default()
    }
}

/// Replays a log, line by line.
#[derive(Clone, Debug, Default)]
pub struct AuditReplay {
    reader: Reader,
    report: AuditReport,
    /// What the elements since the last command or event of the system say.
    step: Option<Step>,
}

impl AuditReplay {
    /// Takes the next line.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn line(&mut self, line: &str) -> Result<(), AuditFault> {
        let element = self.reader.line(line);
        element
            .and_then(|element| element.map_or(Ok(()), |element| self.element(&element)))
            .map_err(|what| AuditFault { line: self.reader.lines, what })
    }

    /// Takes the next lines, each of which is whole.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn text(&mut self, text: &str) -> Result<(), AuditFault> {
        text.lines().try_for_each(|line| self.line(line))
    }

    /// The log has ended.
    ///
    /// # Errors
    /// If it ends too early, or money is missing.
    pub fn finish(mut self) -> Result<AuditReport, AuditFault> {
        let checked = self.close().and_then(|()| {
            if !self.reader.has_ended {
                return Err("the log is cut off".to_owned());
            }
            let mut accounts = self.report.accounts.iter();
            let missing = accounts.find(|(_, account)| !account.is_conserved());
            missing.map_or(Ok(()), |(user, _)| Err(format!("the money of {} does not add up", quoted(user))))
        });
        match checked {
            Ok(()) => Ok(self.report),
            Err(what) => Err(AuditFault { line: self.reader.lines, what }),
        }
    }

    fn element(&mut self, element: &Element) -> Result<(), String> {
        *self.report.elements.entry(element.name.clone()).or_default() += 1;
        match element.name.as_str() {
            "userCommand" => {
                self.close()?;
                let number = element.number()?;
                let user = element.field("username").unwrap_or_default().to_owned();
                if !self.report.commands.entry(user).or_default().insert(number) {
                    return Err(format!("another command of its user has the number {number}"));
                }
                self.step = Some(Step::of(element, false)?);
                Ok(())
            }
            "systemEvent" => {
                self.close()?;
                self.step = Some(Step::of(element, true)?);
                Ok(())
            }
            "quoteServer" => {
                self.report.quotes.push(element.quote()?);
                Ok(())
            }
            _ => match &mut self.step {
                Some(step) => step.more(element),
                None => Err(format!("{} belongs to no command", element.name)),
            },
        }
    }

    /// Applies what the elements so far say together.
    fn close(&mut self) -> Result<(), String> {
        let Some(step) = self.step.take() else { return Ok(()) };
        match &step.user {
            Some(user) => self.report.accounts.entry(user.clone()).or_default().apply(&step),
            None => step.moves_nothing(),
        }
    }
}
