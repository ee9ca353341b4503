//! What the recorders hold at the end of a drill, against what its clients received.

use pares_load::{LabError, LoadPlan, LogNotes, Numbers, Observed, Records};
use pares_node::Supervisor;
use pares_types::{Outcome, Position, Reason, Request, ShardId};

use super::diverge::Trace;

/// What the recorders' logs hold in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Agreement {
    /// Records, of one recorder.
    pub(super) records: u64,
    /// Positions that are not the same in all recorders' logs, or missing in some; without those that a wrong venue left behind.
    pub(super) differing: u64,
    /// Requests that were executed at a second position.
    pub(super) executed_twice: u64,
    /// Requests that were answered and are in no record.
    pub(super) acknowledged_lost: u64,
}

/// What one log says of the load's requests.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadNotes {
    /// Those that are recorded.
    recorded: Numbers,
    members: u32,
    first_client_order_id: u64,
    executed_twice: u64,
    last_sequence: u64,
}

impl LoadNotes {
    /// None yet; requests of the plan's members are expected, with names from the plan's first.
    pub(super) fn of(plan: &LoadPlan) -> Self {
        let (members, first_client_order_id) = (plan.members, plan.first_client_order_id);
        Self { members, first_client_order_id, ..Self::default() }
    }
}

impl LogNotes for LoadNotes {
    fn note(&mut self, _: (ShardId, Position), request: &Request, outcome: &Outcome) {
        self.last_sequence = self.last_sequence.max(request.id.sequence());
        let of_load = (1..=self.members).contains(&request.member.0);
        if of_load && outcome.reason != Reason::DuplicateRequest {
            let number = request.client_order_id.0 - self.first_client_order_id;
            self.executed_twice += u64::from(!self.recorded.insert(number));
        }
    }
}

/// The highest number of a recorded request, among those of its gateway.
pub(super) fn last_sequence(records: &mut Records<LoadNotes>) -> Result<u64, LabError> {
    records.furthest()?;
    Ok(records.notes().map(|notes| notes.last_sequence).max().unwrap_or(0))
}

/// Waits until the recorders are level, and compares.
pub(super) fn agreement(
    records: &mut Records<LoadNotes>,
    supervisor: &mut Supervisor,
    observed: &Observed,
    trace: &Trace,
) -> Result<Agreement, LabError> {
    records.await_level(supervisor)?;
    Ok(compare(records, &observed.answered(), trace))
}

fn compare(found: &Records<LoadNotes>, answered: &Numbers, trace: &Trace) -> Agreement {
    let (records, differing) = found.differing(|shard, position| trace.covers(shard, position));
    let missing = found.notes().map(|notes| answered.count_missing_in(&notes.recorded));
    Agreement {
        records,
        differing,
        executed_twice: found.notes().map(|notes| notes.executed_twice).max().unwrap_or(0),
        acknowledged_lost: missing.max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_node::{Layout, SystemConfig};

    use crate::recorded::{Entry, write_log};

    /// What one recorder has: at each position a member's request, as a venue wrote it.
    fn log(recorder: u16, layout: &Layout, entries: &[(u64, u16, Reason)]) {
        let entry = |(position, &(name, venue, reason))| Entry { name, position, venue, reason, executed: 0 };
        write_log(layout, recorder, (0..).zip(entries).map(entry));
    }

    fn compare(ours: &[(u64, u16, Reason)], theirs: &[(u64, u16, Reason)], answered: &[u64]) -> Agreement {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        log(0, &layout, ours);
        log(1, &layout, theirs);
        let blank = LoadNotes { members: 2, first_client_order_id: 1, ..LoadNotes::default() };
        let mut records = Records::new(&layout, &SystemConfig::default(), blank);
        records.furthest().unwrap();
        let mut numbers = Numbers::default();
        answered.iter().for_each(|&name| assert!(numbers.insert(name - 1)));
        super::compare(&records, &numbers, &Trace::default())
    }

    const NONE: Reason = Reason::None;

    #[test]
    fn who_wrote_a_record_is_no_difference() {
        let found = compare(&[(1, 0, NONE), (2, 0, NONE)], &[(1, 1, NONE), (2, 0, NONE)], &[1, 2]);
        assert_eq!(found, Agreement { records: 2, ..Agreement::default() });
    }

    #[test]
    fn another_request_outcome_or_end_is_a_difference() {
        let ours = [(1, 0, NONE), (2, 0, NONE), (3, 0, NONE)];
        let refused = [(1, 0, Reason::UnknownOrder), (2, 0, NONE), (3, 0, NONE)];
        let swapped = [(1, 0, NONE), (3, 0, NONE), (2, 0, NONE)];
        for (theirs, differing) in [(&swapped[..], 2), (&refused, 1), (&ours[..2], 1)] {
            assert_eq!(compare(&ours, theirs, &[]).differing, differing);
        }
    }

    #[test]
    fn what_was_answered_must_be_in_every_log() {
        let ours = [(1, 0, NONE), (2, 0, NONE)];
        for (theirs, answered, lost) in
            [(&ours[..], &[1, 2][..], 0), (&ours[..1], &[1, 2], 1), (&ours, &[1, 2, 3, 4], 2)]
        {
            assert_eq!(compare(&ours, theirs, answered).acknowledged_lost, lost);
        }
    }

    #[test]
    fn a_second_position_counts_unless_it_was_refused_as_a_repeat() {
        for (reason, twice) in [(NONE, 1), (Reason::DuplicateRequest, 0)] {
            let log = [(1, 0, NONE), (1, 0, reason)];
            assert_eq!(compare(&log, &log, &[1]).executed_twice, twice);
        }
    }
}
