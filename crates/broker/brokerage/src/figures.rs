//! What a run came to, for programs and for people.

use std::collections::BTreeMap;

use pares_text::{Table, grouped};
use serde::Serialize;

use crate::tally::{BacklogSample, CommandTimes};

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
    /// When the last quote came, seconds since the first command.
    pub last_quote_s: Option<f64>,
    /// Replies a second after that; none if the run was over within a tenth of a second.
    pub after_quotes_per_s: Option<f64>,
    /// The longest time from a question to its answer.
    pub slowest_quote_ms: f64,
    /// Questions to the quote server.
    pub hits: u64,
    /// Those of them that asked again what was asked already.
    pub hedges: u64,
    /// Questions that brought no quote.
    pub quote_faults: u64,
    /// What the questions cost.
    pub dollars: String,
    /// Executions that lost against a concurrent transaction.
    pub conflicts: u64,
    /// From arrival to reply, by command.
    pub times: BTreeMap<&'static str, CommandTimes>,
    /// Replies in each tenth of a second.
    pub per_100ms: Vec<u64>,
    /// What waited, about once in each tenth of a second.
    pub backlog: Vec<BacklogSample>,
    /// Elements of the log, by kind.
    pub elements: BTreeMap<String, u64>,
    /// The log alone adds up, and has one entry for each command and one for each quote, with its key.
    pub audit_verified: bool,
    /// Each account is what the log says, and each user's money adds up.
    pub conserved: bool,
}

impl RunFigures {
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

    fn lines(&self) -> Vec<(&'static str, String)> {
        let after = self.after_quotes_per_s.map_or("-".into(), |rate| grouped(rate as u64));
        let last = self.last_quote_s.map_or("-".into(), |at| format!("{at:.3} s"));
        let most = |count: fn(&BacklogSample) -> usize| {
            grouped(self.backlog.iter().map(count).max().unwrap_or_default() as u64)
        };
        let (users, quotes) = (most(|sample| sample.for_users), most(|sample| sample.for_quotes));
        let elements = self.elements.iter().map(|(kind, count)| format!("{} {kind}", grouped(*count)));
        let cost = format!(
            "{}, {} without a quote, {} of them hedges",
            grouped(self.hits),
            self.quote_faults,
            self.hedges
        );
        vec![
            ("commands", format!("{} of {} users", grouped(self.commands), self.users)),
            ("done, refused", format!("{}, {}", grouped(self.done), grouped(self.refused))),
            ("seconds", format!("{:.3}", self.seconds)),
            ("commands/s", grouped(self.commands_per_s as u64)),
            ("best second", grouped(self.best_second)),
            ("last quote came", format!("{last}, then {after} commands/s")),
            ("slowest quote", format!("{:.0} ms", self.slowest_quote_ms)),
            ("hits", format!("{cost}: ${}", self.dollars)),
            ("waited at most", format!("{quotes} for quotes, {users} for their user's earlier ones")),
            ("conflicts", self.conflicts.to_string()),
            ("log", elements.collect::<Vec<_>>().join(", ")),
            ("log verified", self.audit_verified.to_string()),
            ("conserved", self.conserved.to_string()),
        ]
    }
}
