//! Member servers: born, stepped, killed, stopped; and the start of everything.

use std::path::Path;

use pares_config::{DurabilitySetting, NodeId};
use pares_desk::item::TraderId;
use pares_member::config::{stream, submissions};
use pares_member::sources::{CopiedReport, DropCopy, Sources};
use pares_member::{MemberConfig, MemberServer, start};
use pares_roles::NodeError;
use pares_roles::duty::Duty;
use pares_roles::world::World as _;
use pares_types::{Position, ShardId};

use super::MemberPlan;
use super::check::ENDED;
use super::run::{Event, Member};
use crate::memory::host::Host;
use crate::memory::machine::Effect;
use crate::memory::reader::scan;
use crate::memory::sockets::MemorySockets;
use crate::scenario::{MS, US};
use crate::world::steps::{Ended, call};
use crate::{Bug, Verdict, broken};

/// Duty cycles without anything to do before a server sleeps.
const YIELDS: u32 = 4;
/// Between two reports of the exchange, ns.
const REPORT_NS: u64 = 25 * MS;

/// A server, or the place where one should be.
#[derive(Default)]
pub(super) struct Server {
    pub(super) node: Option<Box<MemberServer<Host, MemorySockets>>>,
    pub(super) is_stopped: bool,
    plan: u64,
    planned_ns: u64,
    idle: u32,
    /// Which log of the stream was looked at, and up to where.
    looked: (u64, u64),
    /// The position after the last that it has published.
    pub(super) next: u64,
}

pub(super) fn node_of(server: u16) -> NodeId {
    submissions(server)
}

pub(super) fn server_of(node: NodeId) -> u16 {
    match node {
        NodeId::Gateway(id) => id.0,
        NodeId::Recorder(id) => id.0,
        _ => unreachable!("a member has servers only"),
    }
}

pub(super) fn config(plan: &MemberPlan) -> MemberConfig {
    let quorum = if plan.bug == Some(Bug::TellBeforeQuorum) { 1 } else { plan.quorum };
    let durability = if plan.disk { DurabilitySetting::Disk } else { DurabilitySetting::Os };
    MemberConfig { quorum, window: 16, durability, ..MemberConfig::local(plan.servers.into()) }
}

/// The exchange's reports, the same for every server.
struct Reports {
    host: Host,
    next: u64,
    last: u64,
}

impl DropCopy for Reports {
    fn next(&mut self) -> Option<CopiedReport> {
        let number = self.next;
        let is_there = number <= self.last && number * REPORT_NS <= self.host.now_ns();
        self.next += u64::from(is_there);
        is_there.then(|| CopiedReport { shard: ShardId(0), number, frame: number.to_le_bytes().to_vec() })
    }
}

impl Member<'_> {
    /// Everything is down: the window's next life begins, and all servers with it.
    pub(super) fn begin_epoch(&mut self) -> Verdict {
        let host = Host::supervisor(&self.machine);
        let config = config(&self.plan);
        let begun = start::begin(&host, &config, self.boot);
        self.take_effects();
        let begun = begun.and_then(|epoch| Ok((epoch, start::stream_number(&host)?)));
        let (epoch, stream) = begun
            .or_else(|error| broken(ENDED, format!("everything is down and does not start: {error}")))?;
        let window = self.machine.window(start::SHARD).expect("an epoch has a window");
        let first = pares_sequencer::Sequencer::recorded(&window);
        self.note("epoch {}: stream {} goes on at {}", &[epoch.0.into(), stream, first.0]);
        (0..self.plan.servers).try_for_each(|server| self.look_at_log(server))?;
        self.reference.begin(stream, first, &mut self.summary)?;
        self.summary.epochs += 1;
        (self.is_down, self.has_wiped) = (false, false);
        for server in 0..self.plan.servers {
            let down_ns = self.random.below(5 * MS);
            self.start_later(server, down_ns);
        }
        Ok(())
    }

    pub(super) fn start_later(&mut self, server: u16, down_ns: u64) {
        let life = self.life(server);
        self.push(self.now_ns + down_ns, Event::Start { server, life });
    }

    pub(super) fn life(&self, server: u16) -> u32 {
        self.machine.lock().fate(node_of(server)).life
    }

    pub(super) fn server(&mut self, server: u16) -> &mut Server {
        &mut self.servers[usize::from(server)]
    }

    /// A server finds its logs and continues.
    pub(super) fn start(&mut self, server: u16) -> Verdict {
        if self.is_down || self.server(server).node.is_some() {
            return Ok(());
        }
        self.note("server {} starts", &[server.into()]);
        let host = Host::new(&self.machine, node_of(server));
        let (config, last) = (config(&self.plan), self.plan.reports);
        let opened = call(|| {
            let sockets = MemorySockets::new(&host);
            let mut node = MemberServer::open(server, &config, host.clone(), sockets)?;
            let next = node.copied_to(ShardId(0))?.next;
            let reports = Reports { next, host: host.clone(), last };
            Ok(node.with_sources(Sources { reports: Some(Box::new(reports)), ..Sources::default() }))
        });
        match opened {
            Ended::Back(Ok(node)) => {
                self.server(server).node = Some(Box::new(node));
                self.machine.lock().fate(node_of(server)).listens = true;
                self.look_at_log(server)?;
                self.take_effects();
                self.schedule(server);
                Ok(())
            }
            Ended::Back(Err(error)) => self.on_exit(server, &error),
            Ended::Killed => self.died(server),
        }
    }

    fn on_exit(&mut self, server: u16, error: &NodeError) -> Verdict {
        let is_full = self.machine.lock().fate(node_of(server)).is_full;
        let text = format!("server {server} ends: {error}");
        self.trace.say(self.now_ns, &text);
        // Only a disk can have had what nobody has.
        if self.has_wiped && start::is_anew_asked(&Host::supervisor(&self.machine)) {
            self.summary.anew += 1;
            return self.restart(false);
        }
        if is_full { self.died(server) } else { broken(ENDED, text) }
    }

    /// A server is dead; it is started again.
    fn died(&mut self, server: u16) -> Verdict {
        self.end_life(server)?;
        let down_ns = self.random.between(MS, 30 * MS);
        self.start_later(server, down_ns);
        Ok(())
    }

    /// The process is over: what it held is free.
    pub(super) fn end_life(&mut self, server: u16) -> Verdict {
        let behind = self.server(server).next < self.reference.next();
        let was_up = self.server(server).node.take().is_some();
        self.summary.killed_behind += u64::from(was_up && behind);
        let node = node_of(server);
        let mut state = self.machine.lock();
        let fate = state.fate(node);
        (fate.life, fate.killed_in, fate.listens) = (fate.life + 1, None, false);
        let logs = [state.logs.get(&node).cloned(), state.logs.get(&stream(server)).cloned()];
        state.net.drop_all_of(node);
        drop(state);
        for log in logs.into_iter().flatten() {
            let torn = self.random.chance(200);
            log.lock().process_died(&mut self.random, torn);
        }
        let server = self.server(server);
        (server.is_stopped, server.planned_ns) = (false, 0);
        self.take_effects();
        Ok(())
    }

    pub(super) fn kill(&mut self, server: u16) -> Verdict {
        self.note("server {} is killed", &[server.into()]);
        self.end_life(server)
    }

    /// Its disk is replaced by an empty one.
    pub(super) fn wipe(&mut self, server: u16) {
        self.note("server {} loses its disk", &[server.into()]);
        let mut state = self.machine.lock();
        state.logs.remove(&submissions(server));
        state.logs.remove(&stream(server));
        for log in [submissions(server), stream(server)] {
            state.files.remove_all(Path::new(&log.to_string()));
        }
        drop(state);
        self.summary.wiped += 1;
        self.has_wiped = true;
        self.reference.on_wiped(server);
    }

    pub(super) fn on_step(&mut self, server: u16, plan: u64) -> Verdict {
        let one = self.server(server);
        if one.plan != plan || one.is_stopped {
            return Ok(());
        }
        one.planned_ns = 0;
        let Some(mut node) = one.node.take() else { return Ok(()) };
        let worked = call(|| node.work());
        let sleep_ns = u64::try_from(node.sleep_max().as_nanos()).unwrap_or(u64::MAX);
        if let Ended::Back(Ok(_)) = worked {
            self.server(server).node = Some(node);
        } else {
            self.died(server)?;
        }
        self.look_at_log(server)?;
        self.take_effects();
        match worked {
            Ended::Back(Ok(work)) => self.plan_next(server, work, sleep_ns),
            Ended::Back(Err(error)) => return self.on_exit(server, &error),
            Ended::Killed => self.note("server {} dies in the middle", &[server.into()]),
        }
        Ok(())
    }

    fn plan_next(&mut self, server: u16, work: usize, sleep_ns: u64) {
        let one = self.server(server);
        one.idle = if work > 0 { 0 } else { one.idle + 1 };
        if one.idle <= YIELDS {
            self.schedule(server);
        } else {
            one.idle = 0;
            self.plan_step(server, sleep_ns.max(20 * US));
        }
    }

    /// A duty cycle, soon.
    pub(super) fn schedule(&mut self, server: u16) {
        let pause_ns = self.random.between(2 * US, 30 * US);
        self.plan_step(server, pause_ns);
    }

    fn plan_step(&mut self, server: u16, pause_ns: u64) {
        let at_ns = self.now_ns + pause_ns;
        let one = self.server(server);
        let is_planned = one.planned_ns > 0 && one.planned_ns <= at_ns;
        if one.node.is_none() || one.is_stopped || is_planned {
            return;
        }
        (one.plan, one.planned_ns) = (one.plan + 1, at_ns);
        let plan = one.plan;
        self.push(at_ns, Event::Step { server, plan });
    }

    pub(super) fn resume(&mut self, server: u16, life: u32) {
        if self.life(server) == life {
            let one = self.server(server);
            (one.is_stopped, one.planned_ns) = (false, 0);
            self.schedule(server);
        }
    }

    /// What a server has published of the stream since it was last looked at.
    fn look_at_log(&mut self, server: u16) -> Verdict {
        let Some(log) = self.machine.log(stream(server)) else { return Ok(()) };
        let (identity, written) = {
            let state = log.lock();
            (state.identity, state.written)
        };
        let one = &mut self.servers[usize::from(server)];
        if one.looked.0 != identity {
            (one.looked, one.next) = ((identity, 0), 0);
        }
        let (mut verdict, reference) = (Ok(()), &mut self.reference);
        let to = scan(&log, one.looked.1, written, |_, record| {
            if verdict.is_ok() {
                verdict = reference.on_record(server, record);
                one.next += 1;
            }
        });
        one.looked.1 = to.min(written);
        verdict
    }

    /// Power failed: which server has what is looked up again.
    pub(super) fn forget_logs(&mut self) {
        self.servers.iter_mut().for_each(|one| one.looked.1 = 0);
        self.servers.iter_mut().for_each(|one| one.next = 0);
        if !self.plan.disk {
            self.reference.on_power_failed();
        }
    }

    pub(super) fn take_effects(&mut self) {
        let effects = std::mem::take(&mut self.machine.lock().effects);
        for effect in effects {
            match effect {
                Effect::Ring(node) => self.schedule(server_of(node)),
                Effect::Told(node, what) => self.trace.say(self.now_ns, &format!("{node}: {what}")),
                _ => {}
            }
        }
        self.carry();
    }

    /// Whether every server is up and has all of the stream, and all reports are in it.
    pub(super) fn are_servers_done(&self) -> bool {
        let next = self.reference.next();
        let reported = self.reference.reported(TraderId::of_shard(ShardId(0)));
        reported == self.plan.reports && self.servers.iter().all(|one| one.node.is_some() && one.next == next)
    }

    /// Whether another server has all that may have been decided.
    pub(super) fn can_do_without(&self, server: u16) -> bool {
        let Some(window) = self.machine.window(start::SHARD) else { return false };
        let has_all = |one: &Server| Position(one.next) >= window.undecided();
        (0..self.plan.servers).any(|other| other != server && has_all(&self.servers[usize::from(other)]))
    }
}
