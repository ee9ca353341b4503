//! What the recorders hold, against what the client received.
//!
//! The client's answers alone prove little: they may come from one recorder while the other has
//! something else, or from a venue's memory. So both recorders' logs are read from their beginning, and every
//! record is held against the others at its position, and against the answer given for it.

use std::collections::{BTreeSet, HashMap};

use pares_load::{LabError, LogNotes, Records};
use pares_node::Supervisor;
use pares_types::{ClientOrderId, MemberId, Outcome, Request, RequestId};

use super::driver::MEMBER;
use super::ledger::{AnswerLedger, Fate, Place};

/// What the comparison found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Positions recorded.
    pub recorded: u64,
    /// Commands sent that were not answered, or whose answer is not what is recorded at its place.
    pub lost: u64,
    /// Requests or names recorded at two places.
    pub duplicated: u64,
    /// Places at which the recorders' logs differ, or that one of them lacks.
    pub disagreements: u64,
    /// Records of commands that the client did not send.
    pub unasked: u64,
}

/// What one log says of the replay's commands.
#[derive(Clone, Debug, Default)]
struct NameNotes {
    requests: HashMap<RequestId, (ClientOrderId, MemberId, Place)>,
    names: HashMap<ClientOrderId, Place>,
    duplicated: BTreeSet<RequestId>,
}

impl LogNotes for NameNotes {
    fn note(&mut self, place: Place, request: &Request, _: &Outcome) {
        let (id, name) = (request.id, request.client_order_id);
        let known = self.requests.insert(id, (name, request.member, place)).is_some();
        if self.names.insert(name, place).is_some() || known {
            self.duplicated.insert(id);
        }
    }
}

/// Waits until the recorders are level, and compares their logs with each other and with the ledger.
///
/// # Errors
/// If a log cannot be read through.
pub fn compare(supervisor: &mut Supervisor, ledger: &AnswerLedger) -> Result<Findings, LabError> {
    let mut records = Records::new(supervisor.layout(), supervisor.config(), NameNotes::default());
    records.await_level(supervisor)?;
    Ok(findings(&records, ledger))
}

fn findings(records: &Records<NameNotes>, ledger: &AnswerLedger) -> Findings {
    let mut all = NameNotes::default();
    for notes in records.notes() {
        all.duplicated.extend(&notes.duplicated);
        for (&id, &(name, member, place)) in &notes.requests {
            let request = all.requests.entry(id).or_insert((name, member, place)).2;
            if request != place || *all.names.entry(name).or_insert(place) != place {
                all.duplicated.insert(id);
            }
        }
    }
    let is_lost = |(name, fate): &(ClientOrderId, Fate)| match *fate {
        Fate::Unanswered => true,
        Fate::Rejected => false,
        Fate::Answered(place) => all.names.get(name) != Some(&place),
    };
    let is_unasked =
        |(name, member, _): &&(ClientOrderId, MemberId, Place)| *member != MEMBER || !ledger.has(*name);
    let (recorded, disagreements) = records.differing(|_, _| false);
    Findings {
        recorded,
        lost: ledger.iter().filter(is_lost).count() as u64,
        duplicated: all.duplicated.len() as u64,
        disagreements,
        unasked: all.requests.values().filter(is_unasked).count() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_node::{Layout, SystemConfig};
    use pares_types::{Position, Reason, ShardId};

    use crate::recorded::{self, write_log};

    /// Name (and request number), position, shares executed: enough to tell records apart.
    type Entry = (u64, u64, u64);

    const PLACE: Place = (ShardId(0), Position(0));

    /// What two recorders have, read through.
    fn read(logs: [&[Entry]; 2]) -> Result<Records<NameNotes>, LabError> {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        for (recorder, entries) in (0..).zip(logs) {
            let entry = |&(name, position, executed): &Entry| recorded::Entry {
                name,
                position,
                venue: recorder,
                reason: Reason::Requested,
                executed,
            };
            write_log(&layout, recorder, entries.iter().map(entry));
        }
        let mut records = Records::new(&layout, &SystemConfig::default(), NameNotes::default());
        records.furthest().map(|_| records)
    }

    /// What is found in these two logs after one command was sent and met that fate.
    fn findings(fate: Fate, logs: [&[Entry]; 2]) -> Findings {
        let mut ledger = AnswerLedger::default();
        ledger.on_sent(AnswerLedger::FIRST);
        ledger.on_fate(AnswerLedger::FIRST, fate);
        super::findings(&read(logs).unwrap(), &ledger)
    }

    #[test]
    fn what_is_lost_doubled_differing_or_unasked_is_found() {
        const ONE: &[Entry] = &[(1, 0, 0)];
        const TWICE: &[Entry] = &[(1, 0, 0), (1, 1, 0)];
        let elsewhere = Fate::Answered((ShardId(0), Position(5)));
        for (what, fate, logs, [recorded, lost, duplicated, disagreements, unasked]) in [
            ("logs that agree but for the venue", Fate::Answered(PLACE), [ONE, ONE], [1, 0, 0, 0, 0]),
            ("an answer that nobody recorded", Fate::Answered(PLACE), [&[], &[]], [0, 1, 0, 0, 0]),
            ("no answer", Fate::Unanswered, [ONE, ONE], [1, 1, 0, 0, 0]),
            ("a command that was rejected", Fate::Rejected, [&[], &[]], [0; 5]),
            ("an answer recorded elsewhere", elsewhere, [ONE, ONE], [1, 1, 0, 0, 0]),
            ("a request at two positions", Fate::Answered(PLACE), [TWICE, TWICE], [2, 1, 1, 0, 0]),
            ("the same in two logs", Fate::Answered(PLACE), [ONE, &[(2, 0, 0), (1, 1, 0)]], [2, 0, 1, 2, 1]),
            ("recorders that differ", Fate::Answered(PLACE), [ONE, &[(1, 0, 7)]], [1, 0, 0, 1, 0]),
            ("a recorder that lacks a place", Fate::Answered(PLACE), [ONE, &[]], [1, 0, 0, 1, 0]),
            ("a command nobody sent", Fate::Answered(PLACE), [&[(1, 0, 0), (2, 1, 0)], ONE], [2, 0, 0, 1, 1]),
        ] {
            let found = findings(fate, logs);
            assert_eq!(found, Findings { recorded, lost, duplicated, disagreements, unasked }, "{what}");
        }
    }

    #[test]
    fn a_log_that_has_a_place_twice_or_not_at_all_is_damaged() {
        assert!(read([&[(1, 0, 0), (1, 0, 0)], &[]]).is_err());
        assert!(read([&[(1, 1, 0)], &[]]).is_err());
    }
}
