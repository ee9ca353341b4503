//! What goes wrong, and what the operator does about it.

use super::run::{Event, Member};
use super::servers::node_of;
use crate::Verdict;
use crate::scenario::MS;

/// Calls into the world before a server is killed in the middle.
const CALLS: u64 = 200;
/// A trader that reads nothing for so long is cut off meanwhile, ns.
const SLOW_NS: u64 = 6_500 * MS;

impl Member<'_> {
    pub(super) fn plan_fault(&mut self) {
        let every_ns = self.plan.fault_every_ns;
        if every_ns > 0 {
            let pause_ns = self.random.between(1, 2 * every_ns);
            self.push(self.now_ns + pause_ns, Event::Fault);
        }
    }

    pub(super) fn on_fault(&mut self) -> Verdict {
        if self.is_calm {
            return Ok(());
        }
        self.plan_fault();
        if self.is_down {
            return Ok(());
        }
        self.summary.faults += 1;
        let server = self.random.below(self.plan.servers.into()) as u16;
        match self.random.below(100) {
            0..25 => self.kill_in_the_middle(server),
            25..35 => {
                self.kill(server)?;
                let down_ns = self.random.between(MS, 100 * MS);
                self.start_later(server, down_ns);
            }
            35..45 => self.stop(server),
            45..60 => self.break_one(),
            60..72 => return self.lose_disk(server),
            72..80 => self.fill_disk(server),
            80..90 => return self.restart(false),
            90..95 => return self.restart(true),
            _ => {
                let trader = self.random.index(self.traders.len());
                let for_ns =
                    if self.random.chance(300) { SLOW_NS } else { self.random.between(MS, 300 * MS) };
                self.pause_reading(trader, for_ns);
            }
        }
        Ok(())
    }

    fn kill_in_the_middle(&mut self, server: u16) {
        let calls = self.random.below(CALLS) as u32;
        self.machine.lock().fate(node_of(server)).killed_in = Some(calls);
        self.schedule(server);
    }

    /// SIGSTOP, and SIGCONT later.
    fn stop(&mut self, server: u16) {
        let for_ns = self.random.between(MS, 200 * MS);
        self.note("server {} stops for {} ms", &[server.into(), for_ns / MS]);
        let life = self.life(server);
        self.server(server).is_stopped = true;
        self.push(self.now_ns + for_ns, Event::Resume { server, life });
    }

    fn fill_disk(&mut self, server: u16) {
        let for_ns = self.random.between(MS, 100 * MS);
        self.note("the disk of server {} is full for {} ms", &[server.into(), for_ns / MS]);
        self.machine.lock().fate(node_of(server)).is_full = true;
        self.push(self.now_ns + for_ns, Event::Relief { server });
    }

    pub(super) fn relieve(&mut self, server: u16) {
        self.machine.lock().fate(node_of(server)).is_full = false;
        self.schedule(server);
    }

    /// A server's disk is lost. If what was decided may have been on that alone, the operator restarts everything, now or soon.
    fn lose_disk(&mut self, server: u16) -> Verdict {
        let is_spare = self.can_do_without(server);
        if !is_spare && self.random.chance(500) {
            return Ok(());
        }
        self.kill(server)?;
        self.wipe(server);
        let down_ns = self.random.between(MS, 20 * MS);
        self.start_later(server, down_ns);
        if !is_spare {
            let for_ns = self.random.between(5 * MS, 60 * MS);
            self.push(self.now_ns + for_ns, Event::Repair);
        }
        Ok(())
    }

    /// Everything dies and starts again; the window may be gone, and with `power` what was not synced.
    pub(super) fn restart(&mut self, power: bool) -> Verdict {
        self.is_down = true;
        self.note("everything dies; power fails: {}", &[power.into()]);
        for server in 0..self.plan.servers {
            self.kill(server)?;
        }
        let mut state = self.machine.lock();
        if power {
            for log in state.logs.values() {
                log.lock().power_failed(&mut self.random);
            }
            state.files.power_failed(&mut self.random);
        }
        if power || self.random.chance(300) {
            state.windows.clear();
        }
        drop(state);
        if power {
            self.boot += 4;
            self.forget_logs();
        }
        let down_ns = self.random.between(MS, 20 * MS);
        self.push(self.now_ns + down_ns, Event::BeginEpoch);
        Ok(())
    }

    /// Faults are over, but for a trader that reads nothing.
    pub(super) fn calm_down(&mut self) {
        self.is_calm = true;
        self.note("faults stop", &[]);
        for server in 0..self.plan.servers {
            self.machine.lock().fate(node_of(server)).killed_in = None;
            self.relieve(server);
        }
        if self.plan.fault_every_ns > 0 && self.random.chance(250) {
            self.follow_anew(SLOW_NS);
        }
    }
}
