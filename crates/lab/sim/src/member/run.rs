//! The event loop.

use pares_flow::Random;
use pares_flow::Schedule;

use super::check::{PLACED, Reference};
use super::servers::Server;
use super::traders::TraderEnd;
use super::wires::Wires;
use super::{MemberPlan, Summary};
use crate::engine::Poison;
use crate::memory::machine::Machine;
use crate::memory::seam::Seam;
use crate::scenario::MS;
use crate::trace::{Trace, Watcher};
use crate::{Broken, Failure, Verdict, caught, must, same};

/// Once faults have stopped, everything must be placed within this.
const DRAIN_NS: u64 = 30_000 * MS;
const LOOK_NS: u64 = 11_370_000;

#[derive(Debug)]
pub(super) enum Event {
    /// A duty cycle: of several planned for a server only the last counts.
    Step { server: u16, plan: u64 },
    /// A dead server starts.
    Start { server: u16, life: u32 },
    /// A stopped one continues.
    Resume { server: u16, life: u32 },
    /// A full disk has room again.
    Relief { server: u16 },
    /// Bytes reach a server.
    Bytes { connection: usize, bytes: Vec<u8> },
    /// A server learns that the other end is gone.
    HangUp { connection: usize },
    /// Bytes reach a trader.
    ToTrader { trader: usize, connection: usize, bytes: Vec<u8> },
    /// A trader's connection is gone.
    Lost { trader: usize, connection: usize },
    /// A trader does what is due.
    Act { trader: usize },
    /// A trader reads again.
    Carry,
    /// Something goes wrong.
    Fault,
    /// The operator restarts everything.
    Repair,
    /// Everything is down: the window's next life begins.
    BeginEpoch,
    /// Faults stop.
    Calm,
    /// Is all at rest?
    Look,
}

pub(super) struct Member<'a> {
    pub(super) plan: MemberPlan,
    pub(super) now_ns: u64,
    queue: Schedule<Event>,
    pub(super) random: Random,
    pub(super) machine: Machine,
    pub(super) servers: Vec<Server>,
    pub(super) traders: Vec<TraderEnd>,
    pub(super) wires: Wires,
    pub(super) reference: Reference,
    pub(super) summary: Summary,
    pub(super) trace: Trace<'a>,
    pub(super) is_down: bool,
    /// Which boot of the host it is.
    pub(super) boot: u128,
    /// Whether a disk was lost since everything was started.
    pub(super) has_wiped: bool,
    pub(super) is_calm: bool,
}

/// Runs one seed.
///
/// # Errors
/// The first invariant found broken.
pub fn run(plan: &MemberPlan) -> Result<Summary, Box<Failure>> {
    run_watched(plan, None)
}

/// Runs one seed, giving each line of the trace to `watch`.
///
/// # Errors
/// As [`run`].
pub fn run_traced(plan: &MemberPlan, watch: &mut dyn FnMut(&str)) -> Result<Summary, Box<Failure>> {
    run_watched(plan, Some(watch))
}

/// Runs one seed twice: both must be the same history.
///
/// # Errors
/// As [`run`], or that they differ.
pub fn run_twice(plan: &MemberPlan) -> Result<Summary, Box<Failure>> {
    same((run(plan)?, run(plan)?)).map_err(|broken| failure(plan, broken, Vec::new()))
}

fn run_watched(plan: &MemberPlan, watcher: Watcher<'_>) -> Result<Summary, Box<Failure>> {
    let mut member = Member::new(plan, watcher);
    match caught(|| member.run()) {
        Ok(()) => Ok(member.summary()),
        Err(broken) => Err(failure(plan, broken, member.trace.last_lines())),
    }
}

fn failure(plan: &MemberPlan, broken: Broken, trace: Vec<String>) -> Box<Failure> {
    Failure::of((MemberPlan::NAME, plan.seed), broken, trace)
}

/// Some who submit, and one who only follows.
fn traders(plan: &MemberPlan) -> Vec<TraderEnd> {
    let submissions = |trader| if trader < plan.traders { plan.submissions } else { 0 };
    (1..=plan.traders).map(|trader| TraderEnd::new(trader, submissions(trader))).collect()
}

impl<'a> Member<'a> {
    fn new(plan: &MemberPlan, watcher: Watcher<'a>) -> Self {
        Self {
            plan: *plan,
            now_ns: 0,
            queue: Schedule::default(),
            random: Random::new(plan.seed),
            machine: Machine::new(Seam::new(plan.bug, Poison::default(), plan.seed), false),
            servers: (0..plan.servers).map(|_| Server::default()).collect(),
            traders: traders(plan),
            wires: Wires::new(),
            reference: Reference::new(plan.quorum),
            summary: Summary::default(),
            trace: Trace::new(watcher),
            is_down: true,
            boot: 1,
            has_wiped: false,
            is_calm: false,
        }
    }

    fn summary(&self) -> Summary {
        let cut_off = |server| self.machine.counter(&format!("member-{server}"), "cut_off").unwrap_or(0);
        Summary {
            too_slow: (0..self.plan.servers).map(cut_off).sum(),
            submitted: self.reference.submitted(),
            positions: self.summary.positions + self.reference.next(),
            repeats: self.reference.repeats(),
            took_ns: self.now_ns,
            trace_hash: self.trace.hash(),
            ..self.summary
        }
    }

    pub(super) fn note(&mut self, template: &'static str, words: &[u64]) {
        self.trace.note(self.now_ns, template, words);
    }

    pub(super) fn push(&mut self, at_ns: u64, event: Event) {
        self.queue.push(at_ns, event);
    }

    fn run(&mut self) -> Verdict {
        self.push(0, Event::BeginEpoch);
        for trader in 0..self.traders.len() {
            let at_ns = self.random.below(20 * MS);
            self.push(at_ns, Event::Act { trader });
        }
        self.plan_fault();
        self.push(self.plan.faulty_ns, Event::Calm);
        while let Some((at_ns, event)) = self.queue.pop() {
            self.now_ns = at_ns;
            self.machine.lock().now_ns = at_ns;
            if let Event::Look = event {
                if self.are_servers_done() && self.are_traders_done() {
                    return self.check_end();
                }
                self.look_on()?;
                continue;
            }
            self.act_on(event)?;
        }
        unreachable!("traders always act")
    }

    fn act_on(&mut self, event: Event) -> Verdict {
        match event {
            Event::Step { server, plan } => return self.on_step(server, plan),
            Event::Start { server, life } if self.life(server) == life => return self.start(server),
            Event::Start { .. } | Event::Look => {}
            Event::Resume { server, life } => self.resume(server, life),
            Event::Relief { server } => self.relieve(server),
            Event::Bytes { connection, bytes } => self.on_bytes(connection, &bytes),
            Event::HangUp { connection } => self.hang_up(connection),
            Event::ToTrader { trader, connection, bytes } => {
                return self.on_bytes_to(trader, connection, &bytes);
            }
            Event::Lost { trader, connection } => self.lose(trader, connection),
            Event::Act { trader } => return self.act(trader),
            Event::Carry => self.carry(),
            Event::Fault => return self.on_fault(),
            Event::Repair if !self.is_down => return self.restart(false),
            Event::Repair => {}
            Event::BeginEpoch => return self.begin_epoch(),
            Event::Calm => {
                self.calm_down();
                self.push(self.now_ns, Event::Look);
            }
        }
        Ok(())
    }

    fn look_on(&mut self) -> Verdict {
        let calm_ns = self.now_ns - self.plan.faulty_ns;
        must(calm_ns <= DRAIN_NS, PLACED, || self.unplaced())?;
        self.push(self.now_ns + LOOK_NS, Event::Look);
        Ok(())
    }

    fn unplaced(&self) -> String {
        let servers: Vec<_> =
            self.servers.iter().map(|one| (one.node.is_some(), one.is_stopped, one.next)).collect();
        let traders: Vec<_> = self
            .traders
            .iter()
            .map(|one| (&one.connection, one.rules.unplaced(), one.rules.next()))
            .collect();
        let missing = self.reference.missing();
        format!(
            "servers (up, stopped, next) {servers:?}, traders (connection, unplaced, next) {traders:?}, missing {missing:?}, stream {}",
            self.reference.next()
        )
    }

    fn check_end(&self) -> Verdict {
        let missing = self.reference.missing();
        must(missing.is_none(), PLACED, || format!("its trader does not find {missing:?}"))
    }
}
