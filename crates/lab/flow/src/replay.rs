//! A recorded day, start to end: hands out commands, takes answers, and reports.
//!
//! ```text
//!  loop { while few are in flight { send(replay.next_command()?) }   take answers -> replay.on_answer() }
//! ```
//! Commands must reach the exchange in the order handed out: one connection does; two need a pause at
//! each change of member.

use pares_types::{ClientOrderId, Event, Outcome};

use crate::actions::Actions;
use crate::check::Checker;
use crate::command::{Action, FlowCommand};
use crate::recorded::{RecordedEvents, SourceError};
use crate::translate::{Tally, TranslatorConfig};

/// A day being replayed.
#[derive(Debug)]
pub struct Replay<S> {
    actions: Actions<S>,
    checker: Checker,
}

/// What a replay showed. Final once [`Replay::next_command`] gave nothing and nothing is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayReport {
    /// Events of the recording.
    pub events: u64,
    /// Published rows compared with the exchange's book.
    pub rows_checked: u64,
    /// Rows that differed.
    pub mismatched_rows: u64,
    /// Executions of visible orders.
    pub executions: u64,
    /// Of those, of orders whose submission was replayed.
    pub executions_of_known_orders: u64,
    /// Of those, filled by the exchange as the very order named: it was at the head of its queue.
    pub executions_at_head_of_queue: u64,
    /// Commands handed out.
    pub commands: u64,
    /// Commands without an answer.
    pub lost: u64,
    /// Answers that came again.
    pub duplicated: u64,
    /// Answers to commands never handed out.
    pub unasked: u64,
    /// Answers that were not as expected (refusals, fills of other orders).
    pub surprises: u64,
    /// How the recording was translated.
    pub tally: Tally,
}

impl<S: RecordedEvents> Replay<S> {
    /// A replay of `source` from its first event.
    ///
    /// # Panics
    /// If `config.levels` is 0, or differs from what the source publishes.
    #[must_use]
    pub fn new(source: S, config: TranslatorConfig) -> Self {
        Self { actions: Actions::new(source, config), checker: Checker::new() }
    }

    /// The next command to send; `None` at the end of the day.
    ///
    /// # Errors
    /// [`SourceError`] if the recording cannot be read on; what was handed out stays valid.
    pub fn next_command(&mut self) -> Result<Option<FlowCommand>, SourceError> {
        while let Some(action) = self.actions.next_action()? {
            let command = match &action {
                Action::Send(step) => Some(step.command),
                Action::Check(_) => None,
            };
            self.checker.expect(action);
            if command.is_some() {
                return Ok(command);
            }
        }
        Ok(None)
    }

    /// Takes the answer to one command (see [`Checker::on_answer`]).
    pub fn on_answer(&mut self, client_order_id: ClientOrderId, outcome: &Outcome, events: &[Event]) {
        self.checker.on_answer(client_order_id, outcome, events);
    }

    /// Commands handed out and not answered.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.checker.unanswered()
    }

    /// Events translated so far, for progress and for timing kills.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.actions.tally().events
    }

    /// When the last event translated happened, nanoseconds after midnight, for keeping the recorded pace.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        self.actions.time_ns()
    }

    /// The checker, for its lists of first mismatches and surprises.
    #[must_use]
    pub fn checker(&self) -> &Checker {
        &self.checker
    }

    /// The source, for its own counts.
    #[must_use]
    pub fn source(&self) -> &S {
        self.actions.source()
    }

    /// What the replay showed so far.
    #[must_use]
    pub fn report(&self) -> ReplayReport {
        let (tally, counts) = (*self.actions.tally(), self.checker.counts());
        ReplayReport {
            events: tally.events,
            rows_checked: counts.rows_checked,
            mismatched_rows: counts.mismatched_rows,
            executions: tally.executions,
            executions_of_known_orders: tally.executions_of_known_orders,
            executions_at_head_of_queue: counts.fills_of_known_orders_at_head,
            commands: counts.commands,
            lost: self.checker.unanswered(),
            duplicated: counts.duplicated,
            unasked: counts.unasked,
            surprises: counts.surprises,
            tally,
        }
    }
}
