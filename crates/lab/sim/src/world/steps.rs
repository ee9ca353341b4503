//! Duty cycles and tasks: called as the processes that ship call them, and killed or stopped in the middle.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pares_config::NodeId;
use pares_roles::NodeError;
use pares_roles::duty::Duty;
use pares_roles::world::Next;

use crate::Verdict;
use crate::memory::host::Killed;
use crate::queue::Action;
use crate::scenario::US;

use super::{Memory, World};

/// Duty cycles without anything to do before a process sleeps.
const YIELDS: u32 = 4;

/// How a call into a process ended.
pub(crate) enum Ended<T> {
    Back(T),
    /// It was killed in the middle.
    Killed,
}

/// Calls into a process, which may be killed in the middle; an assertion of the rules continues to unwind.
pub(crate) fn call<T>(act: impl FnOnce() -> T) -> Ended<T> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(done) => Ended::Back(done),
        Err(payload) if payload.is::<Killed>() => Ended::Killed,
        Err(payload) => resume_unwind(payload),
    }
}

impl Memory {
    fn duty(&mut self) -> &mut dyn Duty {
        match self {
            Self::Gateway(node) => node.as_mut(),
            Self::Venue(node) => node.as_mut(),
            Self::Recorder(node) => node.as_mut(),
            Self::Publisher(node) => node.as_mut(),
            Self::Replayer(node) => node.as_mut(),
        }
    }
}

impl World<'_> {
    pub(super) fn on_step(&mut self, node: NodeId, life: u32, plan: u64) -> Verdict {
        let current = self.life(node) == life;
        let process = self.process(node);
        if !current || process.plan != plan || process.is_stopped || process.is_syncing {
            return Ok(());
        }
        self.step(node)
    }

    pub(super) fn step(&mut self, node: NodeId) -> Verdict {
        let away = self.away_of(node);
        let process = self.process(node);
        process.planned_ns = 0;
        let Some(mut memory) = process.memory.take() else { return Ok(()) };
        let stops_for_ns = process.stops_for_ns.take();
        // What is sent on a line is seen at once, and so is the log that it is in.
        if stops_for_ns.is_some() && !node.only_tells() {
            self.hide(node);
        }
        let worked = call(|| memory.duty().work());
        let sleep_ns = match &worked {
            Ended::Back(Ok(_)) => u64::try_from(memory.duty().sleep_max().as_nanos()).unwrap_or(u64::MAX),
            _ => 0,
        };
        // A process that is gone only drops what it held; its handles do nothing any more.
        let over = !matches!(worked, Ended::Back(Ok(_)));
        if over {
            self.end_life(node);
        } else {
            self.process(node).memory = Some(memory);
        }
        self.take_effects()?;
        match worked {
            Ended::Back(Ok(work)) => {
                self.plan_next(node, work, sleep_ns);
                self.note_away(node, &away);
                if let Some(for_ns) = stops_for_ns {
                    self.stop(node, for_ns);
                }
                self.check_process(node)
            }
            Ended::Back(Err(error)) => self.on_exit(node, &error),
            Ended::Killed => {
                self.on_killed(node);
                Ok(())
            }
        }
    }

    /// When a process steps again: at once while there is work, then a few times more, then when something rings.
    fn plan_next(&mut self, node: NodeId, work: usize, sleep_ns: u64) {
        let process = self.process(node);
        process.idle = if work > 0 { 0 } else { process.idle + 1 };
        let idle = process.idle;
        if idle <= YIELDS {
            if idle >= YIELDS - 1
                && let Some(memory) = &mut process.memory
            {
                memory.duty().look_everywhere();
            }
            self.schedule(node);
        } else {
            self.process(node).idle = 0;
            self.plan_step(node, sleep_ns.max(20 * US));
        }
    }

    /// A duty cycle, soon.
    pub(super) fn schedule(&mut self, node: NodeId) {
        let pause_ns = self.random.between(US, 12 * US);
        self.plan_step(node, pause_ns);
    }

    fn plan_step(&mut self, node: NodeId, pause_ns: u64) {
        let (at_ns, life) = (self.now_ns + pause_ns, self.life(node));
        let process = self.process(node);
        let is_planned = process.planned_ns > 0 && process.planned_ns <= at_ns;
        if process.memory.is_none() || process.is_stopped || process.is_syncing || is_planned {
            return;
        }
        (process.plan, process.planned_ns) = (process.plan + 1, at_ns);
        let plan = process.plan;
        self.queue.push(at_ns, Action::Step { node, life, plan });
    }

    pub(super) fn on_task(&mut self, number: u64, plan: u64) -> Verdict {
        let Some(job) = self.jobs.get_mut(&number).filter(|job| job.plan == plan) else { return Ok(()) };
        let (node, life, name) = (job.node, job.life, job.name);
        if self.life(node) != life {
            self.jobs.remove(&number);
            return Ok(());
        }
        if self.process(node).is_stopped || self.process(node).is_syncing {
            self.plan_task(number, 200 * US);
            return Ok(());
        }
        let Some(mut task) = self.jobs.get_mut(&number).and_then(|job| job.task.take()) else {
            return Ok(());
        };
        let next = call(&mut task);
        if let Some(job) = self.jobs.get_mut(&number) {
            job.task = Some(task);
        }
        self.take_effects()?;
        match next {
            Ended::Killed => {
                self.end_life(node);
                self.on_killed(node);
            }
            Ended::Back(Next::Done) => drop(self.jobs.remove(&number)),
            Ended::Back(Next::Again) => {
                let pause_ns = self.random.between(5 * US, 60 * US);
                self.plan_task(number, pause_ns);
            }
            Ended::Back(Next::After(pause)) => {
                let pause_ns = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
                self.plan_task(number, pause_ns);
            }
            Ended::Back(Next::Sleep) => {}
        }
        if name == "rebuild" {
            self.schedule(node);
        }
        Ok(())
    }

    /// Has a task continue after a while; an earlier plan is void.
    pub(super) fn plan_task(&mut self, number: u64, pause_ns: u64) {
        let at_ns = self.now_ns.saturating_add(pause_ns);
        if let Some(job) = self.jobs.get_mut(&number) {
            job.plan += 1;
            let plan = job.plan;
            self.queue.push(at_ns, Action::Task { number, plan });
        }
    }

    /// A process has ended by itself, with a reason.
    fn on_exit(&mut self, node: NodeId, error: &NodeError) -> Verdict {
        if let Some(told) = self.exit_is_broken(node, error) {
            return Err(told);
        }
        self.trace.say(self.now_ns, &format!("{node} ends: {error}"));
        self.summary.exits += 1;
        self.on_killed(node);
        Ok(())
    }
}
