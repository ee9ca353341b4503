//! A server's one processor, shared evenly by all that want it.
//!
//! In turn would be simpler and wrong: a Delivery of 144 ms would hold up everything behind it, where an operating
//! system takes the processor from it after some milliseconds. Sharing is followed in *served* time: how much
//! of the processor each job has had since the beginning. It runs 1/n as fast while n jobs run, so a job ends when
//! served time reaches what it was at its arrival plus its work, whatever comes and goes meanwhile. Updates from other sites
//! have priority (paper section 2.1): they are done first, one after another.

use std::collections::{BTreeMap, VecDeque};

use crate::queue::Nanos;

/// Served time is kept in 256ths of a nanosecond.
const FINE: u32 = 8;

/// Whose job it is; unique among the jobs of a processor.
pub(crate) type JobId = u64;

/// A processor. Every change is followed by a question for [`Processor::next_end`].
#[derive(Debug, Default)]
pub(crate) struct Processor<J> {
    served: u64,
    at: Nanos,
    jobs: BTreeMap<(u64, JobId), J>,
    /// Done first, in turn: what is left of each, ns.
    urgent: VecDeque<(Nanos, J)>,
    busy: Nanos,
    made: JobId,
}

/// Where a running job is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64, JobId);

impl<J> Processor<J> {
    pub(crate) fn new() -> Self {
        Self { served: 0, at: 0, jobs: BTreeMap::new(), urgent: VecDeque::new(), busy: 0, made: 0 }
    }

    /// Begins a job of `work` ns.
    pub(crate) fn begin(&mut self, now: Nanos, work: Nanos, job: J) -> Ticket {
        self.advance(now);
        self.made += 1;
        let ticket = Ticket(self.served + (work << FINE), self.made);
        self.jobs.insert((ticket.0, ticket.1), job);
        ticket
    }

    /// Adds a job of `work` ns that is done before all that share.
    pub(crate) fn begin_urgent(&mut self, now: Nanos, work: Nanos, job: J) {
        self.advance(now);
        self.urgent.push_back((work, job));
    }

    /// Stops a job that shares; says how much of it had not been done, ns. 0 if it has ended.
    pub(crate) fn stop(&mut self, now: Nanos, ticket: Ticket) -> Nanos {
        self.advance(now);
        match self.jobs.remove(&(ticket.0, ticket.1)) {
            Some(_) => ticket.0.saturating_sub(self.served) >> FINE,
            None => 0,
        }
    }

    /// When the next job ends if nothing changes.
    pub(crate) fn next_end(&self) -> Option<Nanos> {
        if let Some((left, _)) = self.urgent.front() {
            return Some(self.at + left);
        }
        let (&(end, _), _) = self.jobs.first_key_value()?;
        let left = end.saturating_sub(self.served) * self.jobs.len() as u64;
        Some(self.at + left.div_ceil(1 << FINE))
    }

    /// A job that has ended by `now`.
    pub(crate) fn ended(&mut self, now: Nanos) -> Option<J> {
        self.advance(now);
        if let Some((left, _)) = self.urgent.front() {
            return if *left == 0 { self.urgent.pop_front().map(|(_, job)| job) } else { None };
        }
        let entry = self.jobs.first_entry()?;
        (entry.key().0 <= self.served).then(|| entry.remove())
    }

    /// How long it has worked, ns.
    pub(crate) fn busy(&self) -> Nanos {
        self.busy
    }

    fn advance(&mut self, now: Nanos) {
        let passed = now - self.at;
        self.at = now;
        if let Some((left, _)) = self.urgent.front_mut() {
            // Nobody looks later than at its end, since its end is an event.
            *left -= passed;
            self.busy += passed;
        } else if !self.jobs.is_empty() {
            self.busy += passed;
            self.served += (passed << FINE) / self.jobs.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_jobs_share_and_the_shorter_ends_first() {
        let mut processor = Processor::new();
        processor.begin(0, 100, "long");
        processor.begin(0, 10, "short");
        assert_eq!(processor.next_end(), Some(20));
        assert_eq!(processor.ended(20), Some("short"));
        assert_eq!(processor.ended(20), None);
        assert_eq!(processor.next_end(), Some(110));
        assert_eq!(processor.ended(110), Some("long"));
        assert_eq!((processor.next_end(), processor.busy()), (None, 110));
    }

    #[test]
    fn urgent_jobs_come_first() {
        let mut processor = Processor::new();
        processor.begin(0, 100, "shares");
        processor.begin_urgent(40, 10, "urgent");
        assert_eq!(processor.next_end(), Some(50));
        assert_eq!(processor.ended(50), Some("urgent"));
        assert_eq!(processor.next_end(), Some(110));
        assert_eq!(processor.ended(110), Some("shares"));
    }

    #[test]
    fn a_stopped_job_leaves_the_processor_to_the_others() {
        let mut processor = Processor::new();
        let stopped = processor.begin(0, 100, "stopped");
        processor.begin(0, 100, "other");
        assert_eq!(processor.stop(50, stopped), 75);
        assert_eq!(processor.next_end(), Some(125));
        assert_eq!(processor.stop(60, stopped), 0, "it is gone");
    }
}
