//! The clock: in each step every host takes one, and what is new is checked.

use std::net::SocketAddr;

use pares_config::{DurabilitySetting, HostConfig, InstrumentConfig, SystemConfig};
use pares_flow::Random;

use super::check::Reference;
use super::host::OneHost;
use super::wires::{SharedWires, Wires};
use super::{ENDED, EVERYWHERE, HostsPlan, HostsSummary};
use crate::scenario::{MS, US};
use crate::trace::{Trace, Watcher};
use crate::{Failure, Verdict, broken, caught, must, same};

const STEP_NS: u64 = 100 * US;
/// Once faults have stopped, everything must be everywhere within this.
const DRAIN_NS: u64 = 5_000 * MS;
/// Steps between two looks at whether it is.
const LOOK_EVERY: u64 = 20;

pub(super) struct Hosts<'a> {
    plan: HostsPlan,
    config: SystemConfig,
    pub(super) now_ns: u64,
    pub(super) random: Random,
    pub(super) hosts: Vec<OneHost>,
    pub(super) wires: SharedWires,
    reference: Reference,
    pub(super) summary: HostsSummary,
    pub(super) trace: Trace<'a>,
}

/// Runs one seed.
///
/// # Errors
/// The first invariant found broken.
pub fn run(plan: &HostsPlan) -> Result<HostsSummary, Box<Failure>> {
    run_watched(plan, None)
}

/// Runs one seed, giving each line of the trace to `watch`.
///
/// # Errors
/// As [`run`].
pub fn run_traced(plan: &HostsPlan, watch: &mut dyn FnMut(&str)) -> Result<HostsSummary, Box<Failure>> {
    run_watched(plan, Some(watch))
}

/// Runs one seed twice: both must be the same history.
///
/// # Errors
/// As [`run`], or that they differ.
pub fn run_twice(plan: &HostsPlan) -> Result<HostsSummary, Box<Failure>> {
    same((run(plan)?, run(plan)?))
        .map_err(|broken| Failure::of((HostsPlan::NAME, plan.seed), broken, Vec::new()))
}

fn run_watched(plan: &HostsPlan, watcher: Watcher<'_>) -> Result<HostsSummary, Box<Failure>> {
    let mut hosts = Hosts::new(plan, watcher);
    match caught(|| hosts.run()) {
        Ok(()) => Ok(hosts.summary()),
        Err(broken) => {
            hosts.say_what_was_told();
            Err(Failure::of((HostsPlan::NAME, plan.seed), broken, hosts.trace.last_lines()))
        }
    }
}

/// The system's settings, the same at all hosts.
fn config(plan: &HostsPlan) -> SystemConfig {
    let trading = plan.hosts - u8::from(plan.has_witness);
    let host = |id: u8| {
        let at = |port: u16| SocketAddr::from(([127, 0, 0, id + 1], port));
        let nodes = if id < trading { vec![u16::from(id)] } else { Vec::new() };
        HostConfig {
            name: format!("host-{id}"),
            orders: at(7_151),
            mirror: at(7_152),
            gateways: nodes.clone(),
            venues: nodes,
            recorder: id.into(),
            publishers: Vec::new(),
            replayers: Vec::new(),
        }
    };
    let instrument = |shard: u16| {
        let settings = InstrumentConfig::new(u32::from(shard) + 1, &format!("SIM{shard}"));
        InstrumentConfig { shard: Some(shard), orders_max: 32, ..settings }
    };
    SystemConfig {
        durability: if plan.disk { DurabilitySetting::Disk } else { DurabilitySetting::Os },
        venues: trading.into(),
        recorders: plan.hosts.into(),
        quorum: u16::from(plan.hosts) / 2 + 1,
        gateways: (0..trading).map(|id| SocketAddr::from(([127, 0, 0, id + 1], 7_100))).collect(),
        hosts: (0..plan.hosts).map(host).collect(),
        window: plan.window,
        checkpoint_every: plan.checkpoint_every,
        in_flight_max: 256,
        index_rows: 64,
        instruments: (0..plan.shards).map(instrument).collect(),
        ..SystemConfig::default()
    }
}

impl<'a> Hosts<'a> {
    fn new(plan: &HostsPlan, watcher: Watcher<'a>) -> Self {
        let (config, mut random) = (config(plan), Random::new(plan.seed));
        let wires = Wires::new(random.fork(), plan.loss_percent, plan.bug);
        let host = |id| OneHost::new(id, plan, &config, (wires.clone(), random.fork()));
        Self {
            plan: *plan,
            now_ns: 0,
            hosts: config.host_ids().map(host).collect(),
            reference: Reference::new(&config),
            random,
            wires,
            config,
            summary: HostsSummary::default(),
            trace: Trace::new(watcher),
        }
    }

    fn summary(&self) -> HostsSummary {
        let counter = |host: &OneHost, node: &str, counter| {
            host.machine.counter(&format!("{node}-{}", host.id), counter).unwrap_or(0)
        };
        let sum = |of: &dyn Fn(&OneHost) -> u64| self.hosts.iter().map(of).sum();
        HostsSummary {
            requests: self.reference.journalled,
            restarts: sum(&|host| host.starts - 1),
            terms: self.hosts.iter().map(|host| counter(host, "orderer", "term")).max().unwrap_or(0),
            copies: sum(&|host| host.copies),
            checkpoints: sum(&|host| counter(host, "recorder", "checkpoints")),
            took_ns: self.now_ns,
            trace_hash: self.trace.hash(),
            ..self.summary
        }
    }

    pub(super) fn note(&mut self, template: &'static str, words: &[u64]) {
        self.trace.note(self.now_ns, template, words);
    }

    fn run(&mut self) -> Verdict {
        while self.now_ns < self.plan.faulty_ns {
            if self.random.below(self.plan.fault_every_ns) < STEP_NS {
                self.strike();
            }
            self.step()?;
        }
        self.calm_down();
        for step in 0..DRAIN_NS / STEP_NS {
            if step % LOOK_EVERY == 0 && self.reference.missing(&self.hosts).is_none() {
                return self.reference.check_end(&self.hosts);
            }
            self.step()?;
        }
        broken(EVERYWHERE, self.reference.missing(&self.hosts).unwrap_or_default())
    }

    fn step(&mut self) -> Verdict {
        self.now_ns += STEP_NS;
        self.wires.borrow_mut().now_ns = self.now_ns;
        for at in 0..self.hosts.len() {
            let ended = self.hosts[at].step(&self.plan, &self.config);
            self.say_what_was_told();
            ended.or_else(|what| must(false, ENDED, || what))?;
        }
        self.reference.look(&self.hosts)
    }

    fn say_what_was_told(&mut self) {
        for host in &mut self.hosts {
            for told in host.told.drain(..) {
                self.trace.say(self.now_ns, &told);
            }
        }
    }
}
