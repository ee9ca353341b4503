//! Holds each answer against what was expected, and each published row against the mirrored book.
//!
//! Commands are in flight when rows come due, so both wait here in one line, in the order they were
//! handed out; the front is settled as soon as its answers are in:
//!
//! ```text
//!  front                                     back
//!   [send 7: answered] [send 8: waiting] [row 3] [send 9: answered] ...
//!        settled now        holds all behind it
//! ```
//! Answers may thus arrive late, in any order, or twice; the mirror sees them in the order sent.

use std::collections::VecDeque;

use pares_types::{ClientOrderId, Event, Outcome, Status};

use crate::command::{Action, Expectation, FlowStep, RowCheck};
use crate::mirror::BookMirror;
use crate::recorded::Depth;

/// How many mismatches and surprises are kept for the report; all are counted.
const KEPT: usize = 10;

/// A row that differed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What was published.
    pub row: RowCheck,
    /// What the exchange's answers add up to.
    pub found: Depth,
}

/// An answer that was not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discrepancy {
    /// What was sent and expected.
    pub step: FlowStep,
    /// What came.
    pub outcome: Outcome,
    /// What happened on the book.
    pub events: Vec<Event>,
}

#[derive(Debug)]
enum Due {
    Answer { step: FlowStep, answer: Option<(Outcome, Vec<Event>)> },
    Row(RowCheck),
}

/// Counts what agreed and what did not.
#[derive(Debug, Default)]
pub struct Checker {
    due: VecDeque<Due>,
    mirror: BookMirror,
    counts: Counts,
    mismatches: Vec<Mismatch>,
    surprises: Vec<Discrepancy>,
    /// First client order id not handed out yet; below it, an answer to nothing due is a repeat.
    issued_below: ClientOrderId,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) commands: u64,
    pub(crate) answered: u64,
    pub(crate) duplicated: u64,
    pub(crate) unasked: u64,
    pub(crate) surprises: u64,
    pub(crate) rows_checked: u64,
    pub(crate) mismatched_rows: u64,
    pub(crate) fills_at_head: u64,
    pub(crate) fills_of_known_orders_at_head: u64,
}

impl Checker {
    /// A checker that expects nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes what was handed out, in order.
    ///
    /// # Panics
    /// If client order ids do not ascend.
    pub fn expect(&mut self, action: Action) {
        let due = match action {
            Action::Send(step) => {
                let id = step.command.client_order_id;
                assert!(id >= self.issued_below, "client order ids ascend");
                self.issued_below = ClientOrderId(id.0 + 1);
                self.counts.commands += 1;
                Due::Answer { step, answer: None }
            }
            Action::Check(row) => Due::Row(row),
        };
        self.due.push_back(due);
        self.settle();
    }

    /// Takes the answer to one command. Of `events` only [`Event::Fill`] is used, and of that the
    /// resting order's client order id and the quantity.
    pub fn on_answer(&mut self, client_order_id: ClientOrderId, outcome: &Outcome, events: &[Event]) {
        let was_issued = client_order_id < self.issued_below;
        match self.answer_slot(client_order_id) {
            Some(slot @ None) => {
                *slot = Some((*outcome, events.to_vec()));
                self.counts.answered += 1;
                self.settle();
            }
            _ if was_issued => self.counts.duplicated += 1,
            _ => self.counts.unasked += 1,
        }
    }

    /// Commands handed out and not answered.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.counts.commands - self.counts.answered
    }

    /// The book as answered so far.
    #[must_use]
    pub fn mirror(&self) -> &BookMirror {
        &self.mirror
    }

    /// The first rows that differed.
    #[must_use]
    pub fn mismatches(&self) -> &[Mismatch] {
        &self.mismatches
    }

    /// The first answers that were not as expected.
    #[must_use]
    pub fn surprises(&self) -> &[Discrepancy] {
        &self.surprises
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    fn answer_slot(&mut self, id: ClientOrderId) -> Option<&mut Option<(Outcome, Vec<Event>)>> {
        // In order almost always: the front is found at once.
        self.due.iter_mut().find_map(|due| match due {
            Due::Answer { step, answer } if step.command.client_order_id == id => Some(answer),
            _ => None,
        })
    }

    fn settle(&mut self) {
        while !matches!(self.due.front(), None | Some(Due::Answer { answer: None, .. })) {
            match self.due.pop_front() {
                Some(Due::Answer { step, answer: Some((outcome, events)) }) => {
                    self.settle_answer(step, outcome, events);
                }
                Some(Due::Row(row)) => self.settle_row(row),
                _ => unreachable!("the front was just seen to be settled"),
            }
        }
    }

    fn settle_answer(&mut self, step: FlowStep, outcome: Outcome, events: Vec<Event>) {
        self.mirror.apply(&step.command, &outcome, &events);
        if !is_as_expected(&step.expect, &outcome, &events) {
            self.counts.surprises += 1;
            if self.surprises.len() < KEPT {
                self.surprises.push(Discrepancy { step, outcome, events });
            }
        } else if let Expectation::Fills { known, .. } = step.expect {
            self.counts.fills_at_head += 1;
            self.counts.fills_of_known_orders_at_head += u64::from(known);
        }
    }

    fn settle_row(&mut self, row: RowCheck) {
        self.counts.rows_checked += 1;
        let found = self.mirror.top(row.instrument, row.levels);
        if found != row.published {
            self.counts.mismatched_rows += 1;
            if self.mismatches.len() < KEPT {
                self.mismatches.push(Mismatch { row, found });
            }
        }
    }
}

fn is_as_expected(expect: &Expectation, outcome: &Outcome, events: &[Event]) -> bool {
    let fills = || {
        events.iter().filter_map(|event| match *event {
            Event::Fill { resting_client_order_id, quantity, .. } => {
                Some((resting_client_order_id, quantity))
            }
            _ => None,
        })
    };
    match *expect {
        Expectation::Rests { remaining } => {
            outcome.status == Status::Resting && outcome.remaining == remaining && fills().next().is_none()
        }
        Expectation::Fills { resting, quantity, .. } => {
            outcome.status == Status::Filled
                && outcome.executed == quantity
                && fills().eq(std::iter::once((resting, quantity)))
        }
        Expectation::Cancelled => outcome.status == Status::Cancelled && fills().next().is_none(),
    }
}
