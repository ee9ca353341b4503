//! What a run came to, for programs and for people.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pares_broker::{AuditReport, LogDigest, dollars};
use pares_front::HIT_MILLS;
use pares_keys::to_hex;
use pares_text::{Table, grouped};
use serde::Serialize;

use crate::run::GapTimes;
use crate::tally::{BacklogSample, CommandTimes, Tally};

/// A run sees its quotes. A field is empty if only other processes saw them, or there were none.
pub(crate) struct QuotesSeen {
    /// Questions to the quote server.
    pub(crate) hits: u64,
    /// Those of them that brought no quote.
    pub(crate) faults: u64,
    pub(crate) hedges: Option<u64>,
    pub(crate) slowest: Option<Duration>,
    /// When the last quote came.
    pub(crate) last: Option<Instant>,
}

/// What deaths of processes came to.
#[derive(Clone, Debug, Serialize)]
pub struct DeathFigures {
    /// Processes that were killed.
    pub killed: u64,
    /// Processes that were stopped for a while.
    pub stopped: u64,
    /// Commands with a reply that are not in the log.
    pub acknowledged_lost: u64,
    /// Entries of commands in the log beyond one for each reply.
    pub done_twice: u64,
    /// Users whose cash, shares or holds are not what the log says.
    pub money_off: u64,
    /// Longest time in which users of a front that lived had commands and no reply; but for the times of what was stopped.
    pub max_gap_ms: f64,
    /// The same while something was stopped.
    pub max_gap_silent_ms: f64,
    /// The same where the front died, and they continued at another.
    pub max_gap_moved_ms: f64,
    /// The longest such time of each fault, where the front lived, by what was killed or stopped.
    pub gaps_ms: BTreeMap<&'static str, GapTimes>,
    /// From the loss of a site that certified until another one did.
    pub elections_ms: GapTimes,
    /// Questions to the quote server that are in the log.
    pub hits_noted: u64,
}

/// What the checks of a log came to.
pub(crate) struct Checked {
    pub(crate) report: AuditReport,
    pub(crate) head: LogDigest,
    pub(crate) audit_verified: bool,
    pub(crate) conserved: bool,
}

/// What a run came to.
#[derive(Clone, Debug, Serialize)]
pub struct RunFigures {
    /// Commands with a reply.
    pub commands: u64,
    /// Those that were done.
    pub done: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Lines that are no command.
    pub unreadable: u64,
    /// Users who gave commands.
    pub users: usize,
    /// From the first command to the last reply.
    pub seconds: f64,
    /// Commands in these seconds.
    pub commands_per_s: f64,
    /// The most replies within a second.
    pub best_second: u64,
    /// When the last quote came, seconds since the first command; none if none came, or who ran it does not see quotes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_quote_s: Option<f64>,
    /// Replies a second after that; none if the run was over within a tenth of a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_quotes_per_s: Option<f64>,
    /// The longest time from a question to its answer; none as above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest_quote_ms: Option<f64>,
    /// Questions to the quote server.
    pub hits: u64,
    /// Those of them that asked again what was asked already; none if desks asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hedges: Option<u64>,
    /// Questions that brought no quote.
    pub quote_faults: u64,
    /// What the questions cost.
    pub dollars: String,
    /// Executions that lost against a concurrent transaction.
    pub conflicts: u64,
    /// From arrival to reply, by command.
    pub times: BTreeMap<&'static str, CommandTimes>,
    /// Of a hundred commands, whatever they were, 99 had their reply within this.
    pub p99_ms: f64,
    /// Replies in each tenth of a second.
    pub per_100ms: Vec<u64>,
    /// What waited, about once in each tenth of a second; none if it was elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog: Option<Vec<BacklogSample>>,
    /// Elements of the log, by kind.
    pub elements: BTreeMap<String, u64>,
    /// The log alone adds up, and has one entry for each command and one for each quote, with its key.
    pub audit_verified: bool,
    /// Where the log was written; none if it is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_file: Option<PathBuf>,
    /// The hash of its last element: who notes it finds every later change of the file.
    pub log_head: String,
    /// Each account is what the log says, and each user's money adds up.
    pub conserved: bool,
    /// What deaths came to, if processes were killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deaths: Option<DeathFigures>,
}

impl RunFigures {
    /// Those of a run that took so long.
    pub(crate) fn of(
        tally: &Tally,
        took: Duration,
        users: usize,
        quotes: QuotesSeen,
        conflicts: u64,
        checked: Checked,
    ) -> Self {
        let QuotesSeen { hits, faults, hedges, slowest, last } = quotes;
        Self {
            commands: tally.told(),
            done: tally.done,
            refused: tally.refused,
            unreadable: tally.unreadable,
            users,
            seconds: took.as_secs_f64(),
            commands_per_s: tally.told() as f64 / took.as_secs_f64(),
            best_second: tally.best_second(),
            last_quote_s: last.map(|at| tally.since_began(at).as_secs_f64()),
            after_quotes_per_s: last.and_then(|at| tally.per_second_after(at, took)),
            slowest_quote_ms: slowest.map(|slowest| slowest.as_secs_f64() * 1e3),
            hits,
            hedges,
            quote_faults: faults,
            dollars: dollars(hits * HIT_MILLS / 10),
            conflicts,
            times: tally.times(),
            p99_ms: tally.p99_ms(),
            per_100ms: tally.slots().to_vec(),
            backlog: tally.backlog(),
            elements: checked.report.elements,
            audit_verified: checked.audit_verified,
            log_file: None,
            log_head: to_hex(&checked.head.0),
            conserved: checked.conserved,
            deaths: None,
        }
    }

    /// Prints them.
    pub(crate) fn print(&self) {
        for (what, figure) in self.lines() {
            pares_text::say!("{what:>16}  {figure}");
        }
        let mut table = Table::new(["command", ">count", ">p50 ms", ">p99 ms", ">max ms"]);
        for (command, times) in &self.times {
            let ms = |ms: f64| format!("{ms:.2}");
            let CommandTimes { count, p50_ms, p99_ms, max_ms } = *times;
            table.row(vec![(*command).to_owned(), grouped(count), ms(p50_ms), ms(p99_ms), ms(max_ms)]);
        }
        pares_text::say!("\n{}", table.render().trim_end());
    }

    /// What is not known from here has no line.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let elements = self.elements.iter().map(|(kind, count)| format!("{} {kind}", grouped(*count)));
        let lines = [
            ("commands", Some(format!("{} of {} users", grouped(self.commands), self.users))),
            ("done, refused", Some(format!("{}, {}", grouped(self.done), grouped(self.refused)))),
            ("unreadable", (self.unreadable > 0).then(|| grouped(self.unreadable))),
            ("seconds", Some(format!("{:.3}", self.seconds))),
            ("commands/s", Some(grouped(self.commands_per_s as u64))),
            ("best second", Some(grouped(self.best_second))),
            ("last quote came", self.last_quote()),
            ("slowest quote", self.slowest_quote_ms.map(|ms| format!("{ms:.0} ms"))),
            ("hits", Some(self.cost())),
            ("waited at most", self.most_waiting()),
            ("conflicts", Some(self.conflicts.to_string())),
            ("log", Some(elements.collect::<Vec<_>>().join(", "))),
            ("log verified", Some(self.verified())),
            ("conserved", Some(self.conserved.to_string())),
        ];
        lines.into_iter().filter_map(|(what, figure)| Some((what, figure?))).collect()
    }

    fn verified(&self) -> String {
        let path = self.log_file.as_ref().map(|path| format!(", {}, head {}", path.display(), self.log_head));
        format!("{}{}", self.audit_verified, path.unwrap_or_default())
    }

    fn last_quote(&self) -> Option<String> {
        let after = self.after_quotes_per_s.map(|rate| format!(", then {} commands/s", grouped(rate as u64)));
        self.last_quote_s.map(|at| format!("{at:.3} s{}", after.unwrap_or_default()))
    }

    fn cost(&self) -> String {
        let (hits, faults, dollars) = (grouped(self.hits), self.quote_faults, &self.dollars);
        let hedges = self.hedges.map_or(String::new(), |hedges| format!(", {hedges} of them hedges"));
        format!("{hits}, {faults} without a quote{hedges}: ${dollars}")
    }

    fn most_waiting(&self) -> Option<String> {
        let most = |count: fn(&BacklogSample) -> usize| {
            Some(grouped(self.backlog.as_ref()?.iter().map(count).max()? as u64))
        };
        let (users, quotes) = (most(|sample| sample.for_users)?, most(|sample| sample.for_quotes)?);
        Some(format!("{quotes} for quotes, {users} for earlier commands of their user"))
    }
}
