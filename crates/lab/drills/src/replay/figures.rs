//! What a replay gave, and whether that is what it must be.

use pares_load::{LabError, LabResult};
use serde::Serialize;

use crate::feed::Reckoning;

use super::driver::Driven;
use super::market::Compared;
use super::records::Findings;

/// What a replay gave.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    /// Events of the recording.
    pub events: u64,
    /// Published rows (or implied books) compared with the exchange's.
    pub rows_checked: u64,
    /// Rows that differed.
    pub mismatched_rows: u64,
    /// Executions of visible orders.
    pub executions: u64,
    /// Of those, of orders whose submission was replayed.
    pub executions_of_known_orders: u64,
    /// Of those, filled by the exchange as the very order named.
    pub executions_at_head_of_queue: u64,
    /// Venues killed.
    pub kills: u64,
    /// Commands without an answer, or whose answer no recorder holds at its place.
    pub lost: u64,
    /// Answers, requests or names met twice, or never asked for.
    pub duplicated: u64,
    /// Of the executions of known orders, those at the head of their queue, percent.
    pub percent_at_head: f64,
    /// Commands sent.
    pub commands: u64,
    /// Records in a recorder's log.
    pub recorded: u64,
    /// Places at which the recorders disagree.
    pub recorder_disagreements: u64,
    /// Answers that were not as expected.
    pub surprises: u64,
    /// Nodes that died without being killed.
    pub unexpected_deaths: usize,
    /// Instruments of the day.
    pub instruments: usize,
    /// From the first command to the last answer.
    pub seconds: f64,
    /// Of that, how long the flow was held until a killed venue was back.
    pub held_seconds: f64,
    /// Commands per second while the flow was not held.
    pub commands_per_second: u64,
    /// How long killed venues needed to resynchronise, from the start of their processes.
    pub resync_ms: Option<Summary>,
    /// How long killed venues were away, from the kill.
    pub away_ms: Option<Summary>,
    /// What came of the market data, if there was any.
    pub feed: Option<FeedFigures>,
    #[serde(skip)]
    complaints: Vec<String>,
}

/// What came of the market data.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FeedFigures {
    /// The books that the messages make, against the venue's and the published rows.
    #[serde(flatten)]
    pub compared: Compared,
    /// What receivers got of the messages.
    pub receivers: Reckoning,
}

/// A list of times in short, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// How many.
    pub count: usize,
    /// The shortest.
    pub min: f64,
    /// The median (of an even number, the upper one).
    pub median: f64,
    /// The longest.
    pub max: f64,
}

impl Summary {
    /// Of times in microseconds; `None` of none.
    #[must_use]
    pub fn of(times_us: &[u64]) -> Option<Self> {
        let mut sorted = times_us.to_vec();
        sorted.sort_unstable();
        let ms = |us: u64| us as f64 / 1_000.0;
        let (first, last) = (*sorted.first()?, *sorted.last()?);
        let median = ms(sorted[sorted.len() / 2]);
        Some(Self { count: sorted.len(), min: ms(first), median, max: ms(last) })
    }
}

impl Figures {
    /// The figures of a day that was driven and compared.
    #[must_use]
    pub fn new(driven: &Driven, findings: &Findings) -> Self {
        let report = driven.replay.report();
        let (took, held) = (driven.took.as_secs_f64(), driven.held.as_secs_f64());
        let (at_head, known) = (report.executions_at_head_of_queue, report.executions_of_known_orders);
        Self {
            events: report.events,
            rows_checked: report.rows_checked,
            mismatched_rows: report.mismatched_rows,
            executions: report.executions,
            executions_of_known_orders: known,
            executions_at_head_of_queue: at_head,
            kills: driven.toll.kills,
            lost: findings.lost,
            duplicated: report.duplicated + report.unasked + findings.duplicated + findings.unasked,
            percent_at_head: if known == 0 { 100.0 } else { at_head as f64 * 100.0 / known as f64 },
            commands: report.commands,
            recorded: findings.recorded,
            recorder_disagreements: findings.disagreements,
            surprises: report.surprises,
            unexpected_deaths: driven.toll.deaths.len(),
            instruments: driven.survey.instruments_len(),
            seconds: took,
            held_seconds: held,
            commands_per_second: (report.commands as f64 / (took - held).max(1e-9)) as u64,
            resync_ms: Summary::of(&driven.toll.resync_us),
            away_ms: Summary::of(&driven.toll.away_us),
            feed: None,
            complaints: complaints(driven),
        }
    }

    /// There was market data.
    pub fn set_feed(&mut self, receivers: Reckoning, compared: Compared) {
        self.complaints.extend(compared.complaints.iter().cloned());
        self.feed = Some(FeedFigures { compared, receivers });
    }

    /// Prints the figures for people.
    pub fn print(&self) {
        let line = |what: &str, figure: u64, note: &str| pares_text::say!("{what:<30} {figure:>10}   {note}");
        let known = match self.executions_of_known_orders {
            0 => "no executed order was known".to_owned(),
            _ => format!("{:.2} % of known ones at the head of their queue", self.percent_at_head),
        };
        let instruments = format!("instruments: {}", self.instruments);
        line("events", self.events, &instruments);
        line("published rows compared", self.rows_checked, &format!("{} differed", self.mismatched_rows));
        line("executions", self.executions, "");
        line("  of known orders", self.executions_of_known_orders, "");
        line("  at the head of the queue", self.executions_at_head_of_queue, &known);
        let speed = format!("{} per second, {:.1} s in all", self.commands_per_second, self.seconds);
        line("commands", self.commands, &speed);
        let agree = format!("the recorders differ at {} places", self.recorder_disagreements);
        line("records", self.recorded, &agree);
        line("venues killed", self.kills, &self.returns());
        line("lost", self.lost, "");
        line("duplicated", self.duplicated, "");
        if let Some(FeedFigures { compared, receivers }) = &self.feed {
            let books = format!("{} differed from the venue's", compared.books_differing);
            line("received books compared", compared.books_compared, &books);
            let rows = format!("{} differed", compared.rows_differing);
            line("published rows, as received", compared.rows_compared, &rows);
            pares_text::say!("receivers, while lines lost {} packets", receivers.packets_lost);
            receivers.tell();
        }
    }

    fn returns(&self) -> String {
        let (Some(resync), Some(away)) = (self.resync_ms, self.away_ms) else { return String::new() };
        format!(
            "resynchronised in {:.1} ms (median; longest {:.1}), away {:.1} ms; the flow waited {:.1} s",
            resync.median, resync.max, away.median, self.held_seconds,
        )
    }

    /// Whether the day was reproduced; `all_at_head`: whether every known execution must be at the
    /// head of its queue.
    ///
    /// # Errors
    /// What was not.
    pub fn verdict(&self, all_at_head: bool) -> LabResult {
        let missed = self.executions_of_known_orders - self.executions_at_head_of_queue;
        let mut broken = vec![
            (self.mismatched_rows, "rows differ from what was published"),
            (self.lost, "commands are lost"),
            (self.duplicated, "answers or records are duplicated"),
            (self.recorder_disagreements, "places are recorded differently by the recorders"),
            (self.surprises, "answers were not as expected"),
            (self.unexpected_deaths as u64, "nodes died that nobody killed"),
            (
                if all_at_head { missed } else { 0 },
                "executions of known orders missed the head of their queue",
            ),
        ];
        broken.extend(self.feed.iter().flat_map(|feed| feed.wrongs(self.rows_checked)));
        let broken = broken.iter().filter(|(count, _)| *count > 0);
        let broken: Vec<String> = broken.map(|(count, what)| format!("{count} {what}")).collect();
        if broken.is_empty() {
            return Ok(());
        }
        let first = self.complaints.iter().map(|complaint| format!("\n  {complaint}"));
        Err(LabError::Failed(format!("{}{}", broken.join(", "), first.collect::<String>())))
    }
}

impl FeedFigures {
    fn wrongs(&self, rows: u64) -> [(u64, &'static str); 7] {
        let Self { compared, receivers } = self;
        [
            (compared.books_differing, "received books differ from the venue's"),
            (compared.rows_differing, "rows differ as received"),
            (rows.abs_diff(compared.rows_compared), "rows were compared with no received book"),
            (receivers.wrong_while_current, "books of receivers were wrong and called current"),
            (receivers.books_differing, "books of receivers differ in the end"),
            (receivers.messages_missing, "messages never came to a receiver"),
            (receivers.messages_differing, "messages came to a receiver as others"),
        ]
    }
}

/// The first things that went wrong, in words.
fn complaints(driven: &Driven) -> Vec<String> {
    const SHOWN: usize = 3;
    let checker = driven.replay.checker();
    let rows = checker.mismatches().iter().take(SHOWN).map(|mismatch| {
        let (row, found) = (&mismatch.row, &mismatch.found);
        format!("event {}: published {:?}, found {found:?}", row.event, row.published)
    });
    let answers = checker.surprises().iter().take(SHOWN).map(|surprise| {
        let (command, expect) = (&surprise.step.command, &surprise.step.expect);
        format!("{command:?}: expected {expect:?}, got {:?} {:?}", surprise.outcome, surprise.events)
    });
    rows.chain(answers).chain(driven.toll.deaths.iter().take(SHOWN).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_needs_no_order() {
        let summary = Summary { count: 3, min: 1.0, median: 2.5, max: 9.0 };
        assert_eq!(Summary::of(&[9_000, 1_000, 2_500]), Some(summary));
        assert_eq!(Summary::of(&[]), None);
    }
}
