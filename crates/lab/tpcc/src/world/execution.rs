//! A transaction at the site that executes it: it takes its rows, has the processor, and asks to commit.

use std::rc::Rc;

use super::clients::{Answer, Ask};
use super::{Event, Replication, World};
use crate::item::Written;
use crate::locks::Holder;
use crate::network::Site;
use crate::processor::Ticket;
use crate::queue::Nanos;
use crate::server::{Executed, Job, locked};
use crate::setting::{ReadsOf, Resubmit, Waiters};
use crate::tally::Cause;

/// How far an execution is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// For rows.
    Waiting,
    /// Has the processor, or a part of it.
    Executing(Ticket),
    /// Executed; certification decides.
    Committing,
    /// Certification decides, and can only say no: an update from another site has taken its rows. Until it is known,
    /// the client receives no answer (the paper answers at once, and can be wrong: fault 5).
    Doomed,
    /// It commits, whatever comes: it is in the commit order at its site.
    Certified,
    /// A reader, until what it has read is stable.
    Reading,
}

/// An execution.
#[derive(Debug)]
pub(crate) struct Running {
    pub(super) ask: Ask,
    pub(super) site: Site,
    pub(super) snapshot: u64,
    pub(super) writes: Rc<[Written]>,
    pub(super) stage: Stage,
    /// In the database of its site.
    pub(super) installed: bool,
    /// Known to be stable everywhere.
    pub(super) stable: bool,
}

impl World {
    pub(super) fn execute_at(&mut self, site: Site, ask: Ask) {
        self.holders += 1;
        let holder = self.holders;
        let server = &self.servers[site];
        let reads_only = ask.request.kind.reads_only();
        let stale = reads_only && self.setting.reads == ReadsOf::Stable;
        let snapshot = if stale { server.visible.min(server.stable) } else { server.visible };
        let writes: Rc<[Written]> = ask.request.writes(&self.books, self.setting.deltas).into();
        let home = self.home_side(ask.client);
        self.counts[home].again += u64::from(ask.tries > 0);
        self.checker.reads(site, snapshot);
        let stage = Stage::Waiting;
        let running = Running { ask, site, snapshot, writes, stage, installed: false, stable: false };
        self.running.insert(holder, running);
        self.take_rows(holder);
    }

    fn take_rows(&mut self, holder: Holder) {
        let running = &self.running[&holder];
        let site = running.site;
        let writes = Rc::clone(&running.writes);
        if !self.servers[site].locks.take(holder, locked(&writes)) {
            return;
        }
        let now = self.now();
        let visible = self.servers[site].visible;
        let takes_turns = self.takes_turns(holder);
        let running = self.running.get_mut(&holder).expect("found above");
        if takes_turns && !running.ask.request.kind.reads_only() {
            running.snapshot = visible;
        }
        let work = running.ask.request.work;
        let ticket = self.servers[site].processor.begin(now, work, Job::Execute(holder));
        running.stage = Stage::Executing(ticket);
        self.ask_processor(site);
    }

    /// Asks to be woken when the processor's next job ends.
    pub(super) fn ask_processor(&mut self, site: Site) {
        let server = &mut self.servers[site];
        server.asked += 1;
        let asked = server.asked;
        if let Some(at) = server.processor.next_end() {
            self.queue.push(at, Event::Processor { site, asked });
        }
    }

    pub(super) fn on_processor(&mut self, site: Site, asked: u64) {
        if self.servers[site].asked != asked {
            return;
        }
        let now = self.now();
        while let Some(job) = self.servers[site].processor.ended(now) {
            match job {
                Job::Execute(holder) => self.on_executed(holder),
                Job::Apply(version) => self.log_version(site, version),
            }
        }
        self.ask_processor(site);
    }

    fn on_executed(&mut self, holder: Holder) {
        let running = self.running.get_mut(&holder).expect("jobs of aborted transactions are stopped");
        let request = Rc::clone(&running.ask.request);
        if request.kind.reads_only() {
            running.stage = Stage::Reading;
            let needed = (running.snapshot, holder);
            let site = running.site;
            self.servers[site].readers.insert(needed);
            self.answer_readers(site);
        } else if request.rolls_back || running.writes.is_empty() {
            let running = self.remove(holder);
            self.on_rolled_back(&running.ask);
        } else {
            running.stage = Stage::Committing;
            let executed = Executed {
                holder,
                site: running.site,
                number: running.ask.number,
                attempt: running.ask.attempt,
                snapshot: running.snapshot,
                writes: Rc::clone(&running.writes),
                apply_work: self.setting.apply_work(request.kind, request.work),
            };
            self.ask_to_commit(Rc::new(executed));
        }
    }

    fn ask_to_commit(&mut self, executed: Rc<Executed>) {
        match &self.replication {
            Replication::Dbsm(_) => self.broadcast(executed),
            Replication::Wice(_) => self.submit(&executed),
        }
    }

    /// Readers whose snapshot is stable by now are answered.
    pub(super) fn answer_readers(&mut self, site: Site) {
        for holder in self.servers[site].served_readers() {
            let running = self.running.remove(&holder).expect("readers wait until they are answered");
            self.checker.answers_reader(running.snapshot);
            self.answer(site, running.answer());
        }
    }

    /// An execution ends without a commit: those that waited for its rows continue.
    fn remove(&mut self, holder: Holder) -> Running {
        let running = self.running.remove(&holder).expect("what ends was running");
        let waited = self.servers[running.site].locks.give(holder, locked(&running.writes));
        for waiter in waited {
            self.go_on(waiter);
        }
        running
    }

    /// An update from another site takes the rows of `holder`, which can only fail now.
    pub(super) fn overrun(&mut self, holder: Holder) {
        let Some(running) = self.running.get_mut(&holder) else { return };
        match (running.stage, &self.replication) {
            // It comes earlier in the order; its rows are written before.
            (Stage::Certified, _) => {}
            (Stage::Committing | Stage::Doomed, Replication::Wice(_)) => {
                running.stage = Stage::Doomed;
                let (site, writes) = (running.site, Rc::clone(&running.writes));
                let waited = self.servers[site].locks.give(holder, locked(&writes));
                waited.into_iter().for_each(|waiter| self.go_on(waiter));
            }
            _ => self.abort(holder, Cause::Overrun),
        }
    }

    fn go_on(&mut self, waiter: Holder) {
        if self.running.get(&waiter).is_some_and(|running| running.stage == Stage::Waiting) {
            self.take_rows(waiter);
        }
    }

    /// Transactions that waited for rows whose holder has committed have lost, or continue, as the setting has it.
    pub(super) fn end_waiting(&mut self, waited: Vec<Holder>) {
        for waiter in waited {
            if self.running.get(&waiter).is_none_or(|waiter| waiter.stage != Stage::Waiting) {
                continue;
            }
            match self.takes_turns(waiter) {
                true => self.go_on(waiter),
                false => self.abort(waiter, Cause::Waited),
            }
        }
    }

    /// Whether an execution takes its snapshot only when it has its rows. A request that was sent to the certifier's cluster does: several that
    /// lost to the same one come there together, and would lose to each other.
    fn takes_turns(&self, holder: Holder) -> bool {
        let again = self.running[&holder].ask.tries > 0;
        self.setting.waiters == Waiters::TakeTurns || (again && self.setting.resubmit == Resubmit::Certifier)
    }

    /// Aborts an execution that has not been certified.
    pub(super) fn abort(&mut self, holder: Holder, cause: Cause) {
        let used = self.stop(holder);
        let running = self.remove(holder);
        self.on_aborted(running.site, running.ask, cause, used);
    }

    /// Takes the processor from an execution; says how much of it was used, ns.
    fn stop(&mut self, holder: Holder) -> Nanos {
        let now = self.now();
        let running = &self.running[&holder];
        let (site, work) = (running.site, running.ask.request.work);
        match running.stage {
            Stage::Waiting => 0,
            Stage::Executing(ticket) => {
                let left = self.servers[site].processor.stop(now, ticket);
                self.ask_processor(site);
                work.saturating_sub(left)
            }
            Stage::Committing | Stage::Doomed | Stage::Certified | Stage::Reading => work,
        }
    }
}

impl Running {
    pub(super) fn answer(&self) -> Answer {
        let Ask { client, sent, first_sent, .. } = self.ask;
        Answer { client, kind: self.ask.request.kind, sent, first_sent }
    }
}
