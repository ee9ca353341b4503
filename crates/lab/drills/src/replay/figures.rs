//! What a replay gave, and whether that is what it must be.

use pares_load::{LabError, LabResult, Spread, none_of};
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
    pub resync_ms: Option<Spread>,
    /// How long killed venues were away, from the kill.
    pub away_ms: Option<Spread>,
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
            resync_ms: Spread::of(driven.toll.resync_us.iter().copied(), 1e3),
            away_ms: Spread::of(driven.toll.away_us.iter().copied(), 1e3),
            feed: None,
            complaints: complaints(driven),
        }
    }

    /// There was market data.
    pub fn set_feed(&mut self, receivers: Reckoning, compared: Compared) {
        self.complaints.extend(compared.complaints.iter().cloned());
        self.feed = Some(FeedFigures { compared, receivers });
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
            (self.surprises, "answers differed from the expected ones"),
            (self.unexpected_deaths as u64, "nodes died without being killed"),
            (
                if all_at_head { missed } else { 0 },
                "executions of known orders missed the head of their queue",
            ),
        ];
        broken.extend(self.feed.iter().flat_map(|feed| feed.wrongs(self.rows_checked)));
        none_of(broken).map_err(|error| {
            let first = self.complaints.iter().map(|complaint| format!("\n  {complaint}"));
            LabError::Failed(format!("{error}{}", first.collect::<String>()))
        })
    }
}

impl FeedFigures {
    fn wrongs(&self, rows: u64) -> [(u64, &'static str); 7] {
        let Self { compared, receivers: Reckoning { wrongs, .. } } = self;
        [
            (compared.books_differing, "received books differ from the venue's"),
            (compared.rows_differing, "rows differ as received"),
            (rows.abs_diff(compared.rows_compared), "rows were compared with no received book"),
            (wrongs.wrong_while_current, "books of receivers were wrong and called current"),
            (wrongs.books_differing, "books of receivers differ in the end"),
            (wrongs.messages_missing, "a receiver missed messages"),
            (wrongs.messages_differing, "a receiver got altered messages"),
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
