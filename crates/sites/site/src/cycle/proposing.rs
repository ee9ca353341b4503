//! What the rules want in their cluster's log, in order.
//!
//! A log says no to a caller who may ask again: while its delegate hands over its office, and while too much is proposed and not committed. The rules cannot ask again, for
//! what they propose they have installed, and continue from there; to end the process for that, as if the log were broken, hides how a site really ends, one that is being
//! removed above all. So what the log does not take now waits, and all that comes behind it. Either it is taken later, or the log says that the term is over, and it is lost as
//! anything is that was proposed and not committed. It is no more than the rules hold anyway.

use std::collections::VecDeque;

use pares_cluster::{ClusterLog, EntryError};
use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{LogEntry, LogRole, Term};

use super::Cycle;
use super::effects::payloads;
use crate::application::Application;
use crate::config::number_of;
use crate::error::ProcessError;
use crate::protocol::Between;
use crate::world::{Connections, World};

/// Payloads of a term, with the entries that they hold.
#[derive(Default)]
pub(super) struct Proposals {
    /// The log does not take these yet.
    waiting: VecDeque<(Vec<u8>, Vec<LogEntry>)>,
    /// It has taken these, and not committed them.
    taken: VecDeque<(Vec<u8>, Vec<LogEntry>)>,
    /// The log will never take one of them, and continues as it was: only another term helps.
    refused: Option<EntryError>,
}

impl Proposals {
    /// Another term.
    pub(super) fn begin_again(&mut self) {
        self.waiting.clear();
        self.taken.clear();
    }
}

impl<W: World, A: Application> Cycle<W, A> {
    /// Carries out what the rules want.
    pub(super) fn carry_out(&mut self) {
        let wanted = std::mem::take(&mut self.wanted);
        self.proposals.waiting.extend(payloads(wanted.proposals));
        self.propose();
        for (to, message) in wanted.messages {
            let _ = self.links.send(number_of(to), &Between::Rules(&message.to_bytes()).to_bytes());
        }
        for (id, outcome) in wanted.outcomes {
            self.outcome(id, outcome);
        }
        self.notices.extend(wanted.notices);
    }

    /// Proposes what waits, as long as the log takes it.
    fn propose(&mut self) {
        while let Some((payload, entries)) = self.proposals.waiting.pop_front() {
            match self.log.propose(&payload) {
                Ok(()) => {
                    assert!(self.log.role().leads, "a log takes what its delegate proposes");
                    self.proposals.taken.push_back((payload, entries));
                }
                Err(EntryError::Resigning | EntryError::Backlog { .. }) => {
                    return self.proposals.waiting.push_front((payload, entries));
                }
                Err(error) => return self.cannot_propose(error),
            }
        }
    }

    /// What it proposed is lost, and its office with it: the log will say so, and in which term a member leads again.
    fn cannot_propose(&mut self, error: EntryError) {
        self.proposals.waiting.clear();
        self.site.role(LogRole { term: Term(self.log.role().term), leads: false });
        if !matches!(error, EntryError::NotDelegate { .. }) {
            self.proposals.refused = Some(error);
        }
    }

    /// What a payload holds; what was proposed here need not be read again.
    pub(super) fn entries_of(&mut self, payload: &[u8]) -> Result<Vec<LogEntry>, DecodeError> {
        match self.proposals.taken.pop_front_if(|(taken, _)| taken == payload) {
            Some((_, entries)) => Ok(entries),
            None => Vec::from_bytes(payload),
        }
    }

    /// Where the rules cannot continue in this term: another site leads, or, where there is none, this one after a new start.
    pub(super) fn leave_office(&mut self) -> Result<(), ProcessError> {
        if let Some(error) = self.proposals.refused.take() {
            return Err(ProcessError::Refused(error));
        }
        if self.site.wants_another_term() && self.log.role().leads && self.log.resign().is_none() {
            return Err(ProcessError::Spent);
        }
        Ok(())
    }
}
