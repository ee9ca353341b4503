//! What goes wrong: planned from the seed, carried out when its time comes.

use crate::Broken;
use crate::queue::Action;
use crate::record::NodeId;
use crate::scenario::{MS, US};

use super::World;

/// After a fault is over, completion times are excused for this long: clients reconnect, queues drain.
pub(super) const GRACE_NS: u64 = 15 * MS;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    CrashVenue,
    PauseVenue,
    CrashVenues,
    CrashGateway,
    PauseGateway,
    CrashRecorder,
    PauseRecorder,
    Break,
    Cut,
    Restart,
    Power,
    FillGateway,
    FillVenue,
    FillRecorder,
    FailSync,
    SlowDisk,
    Wipe,
    JumpClock,
    FailEngine,
    WipeVenue,
    WipeGateway,
    Rot,
    Upgrade,
}

/// What befalls a process between stepping the rules and publishing what they did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trap {
    Crash,
    Pause { for_ns: u64 },
}

impl World<'_> {
    pub(super) fn plan_faults(&mut self) {
        use Fault::{
            Break, CrashGateway, CrashRecorder, CrashVenue, CrashVenues, Cut, FailEngine, FailSync,
            FillGateway, FillRecorder, FillVenue, JumpClock, PauseGateway, PauseRecorder, PauseVenue, Power,
            Restart, Rot, SlowDisk, Upgrade, Wipe, WipeGateway, WipeVenue,
        };
        let kinds = [
            CrashVenue,
            PauseVenue,
            CrashVenues,
            CrashGateway,
            PauseGateway,
            CrashRecorder,
            PauseRecorder,
            Break,
            Cut,
            Restart,
            Power,
        ];
        kinds.into_iter().for_each(|fault| self.plan(fault));
        // These came later, and draw only where they are wanted: the seeds that once failed stay the histories they were.
        let later = [
            FillGateway,
            FillVenue,
            FillRecorder,
            FailSync,
            SlowDisk,
            Wipe,
            JumpClock,
            FailEngine,
            WipeVenue,
            WipeGateway,
            Rot,
            Upgrade,
        ];
        let wanted = later.into_iter().filter(|fault| self.mean_ns(*fault) > 0);
        wanted.collect::<Vec<_>>().into_iter().for_each(|fault| self.plan(fault));
    }

    fn mean_ns(&self, fault: Fault) -> u64 {
        let faults = &self.scenario.faults;
        match fault {
            Fault::CrashVenue => faults.venue_crash_ns,
            Fault::PauseVenue => faults.venue_pause_ns,
            Fault::CrashVenues => faults.venues_crash_ns,
            Fault::CrashGateway => faults.gateway_crash_ns,
            Fault::PauseGateway => faults.gateway_pause_ns,
            Fault::CrashRecorder => faults.recorder_crash_ns,
            Fault::PauseRecorder => faults.recorder_pause_ns,
            Fault::Break => faults.break_ns,
            Fault::Cut => faults.cut_ns,
            Fault::Restart => faults.restart_ns,
            Fault::Power => faults.power_ns,
            Fault::FillGateway => faults.gateway_full_ns,
            Fault::FillVenue => faults.venue_full_ns,
            Fault::FillRecorder => faults.recorder_full_ns,
            Fault::FailSync => faults.sync_failure_ns,
            Fault::SlowDisk => faults.slow_disk_ns,
            Fault::Wipe => faults.wipe_ns,
            Fault::JumpClock => faults.clock_jump_ns,
            Fault::FailEngine => faults.engine_failure_ns,
            Fault::WipeVenue => faults.venue_wipe_ns,
            Fault::WipeGateway => faults.gateway_wipe_ns,
            Fault::Rot => faults.rot_ns,
            Fault::Upgrade => faults.other_build_ns,
        }
    }

    /// The next fault of a kind.
    fn plan(&mut self, fault: Fault) {
        let mean_ns = self.mean_ns(fault);
        let at_ns = self.now_ns + self.random.between(1, (2 * mean_ns).max(1));
        if mean_ns > 0 && at_ns < self.scenario.duration_ns {
            self.queue.push(at_ns, Action::Fault(fault));
        }
    }

    pub(super) fn on_fault(&mut self, fault: Fault) -> Result<(), Broken> {
        self.plan(fault);
        self.summary.faults += 1;
        let venue = NodeId::Venue(self.random.index(self.venues.len()));
        let gateway = NodeId::Gateway(self.random.index(self.gateways.len()));
        let recorder = NodeId::Recorder(self.random.index(self.recorders.len()));
        match fault {
            Fault::CrashVenue => self.crash_now_or_midway(venue),
            Fault::PauseVenue => self.pause(venue),
            Fault::CrashVenues => (0..self.venues.len()).for_each(|n| self.crash(NodeId::Venue(n))),
            Fault::CrashGateway => self.crash_now_or_midway(gateway),
            Fault::PauseGateway => self.pause(gateway),
            Fault::CrashRecorder => self.crash_now_or_midway(recorder),
            Fault::PauseRecorder => self.pause(recorder),
            Fault::Break => self.break_one(),
            Fault::Cut => self.cut(),
            Fault::Restart => return self.restart(false),
            Fault::Power => return self.restart(true),
            Fault::FillGateway => self.fill(gateway),
            Fault::FillVenue => self.fill(venue),
            Fault::FillRecorder => self.fill(recorder),
            Fault::FailSync => self.plan_sync_failure(gateway, recorder),
            Fault::SlowDisk => self.slow_down(gateway, recorder),
            Fault::Wipe => self.wipe(recorder),
            Fault::JumpClock => self.jump_clock(gateway),
            Fault::FailEngine => self.plan_engine_failure(venue),
            Fault::WipeVenue => self.wipe_venue(venue),
            Fault::WipeGateway => self.wipe_gateway(gateway),
            Fault::Rot => self.rot(recorder),
            Fault::Upgrade => self.upgrade(venue),
        }
        Ok(())
    }

    pub(super) fn restart(&mut self, power: bool) -> Result<(), Broken> {
        if self.restarting {
            return Ok(());
        }
        self.disturb(5 * MS);
        self.take_down(power)
    }

    fn crash_now_or_midway(&mut self, node: NodeId) {
        match self.random.chance(500) {
            true => self.crash(node),
            false => self.process(node).trap = Some(Trap::Crash),
        }
    }

    /// Kills a process, to be started again.
    pub(super) fn crash(&mut self, node: NodeId) {
        if !self.process(node).up {
            return;
        }
        let down_ns = self.random.between(200 * US, 4 * MS);
        self.kill(node);
        self.out_of_action(node, down_ns);
        let (at_ns, life) = (self.now_ns + down_ns, self.process(node).life);
        self.queue.push(at_ns, Action::Start { node, life });
    }

    /// Briefly, or so long that a window passes by.
    fn pause(&mut self, node: NodeId) {
        let long = self.random.chance(400);
        let for_ns =
            if long { self.random.between(2 * MS, 20 * MS) } else { self.random.between(50 * US, MS) };
        let process = self.process(node);
        if !process.up || process.stopped {
            return;
        }
        match self.random.chance(500) {
            true => self.stop(node, for_ns),
            false => self.process(node).trap = Some(Trap::Pause { for_ns }),
        }
        self.out_of_action(node, for_ns);
    }

    /// A process does nothing for a while, or its disk does not. As long as a venue is left, and a quorum of recorders, that
    /// excuses nothing (invariants I4 and I8).
    pub(super) fn out_of_action(&mut self, node: NodeId, for_ns: u64) {
        let back_ns = self.now_ns + for_ns + 5 * MS;
        let enough_back_ns = match node {
            NodeId::Gateway(_) => return self.disturb(for_ns),
            NodeId::Venue(n) => {
                self.venues[n].healthy_at_ns = self.venues[n].healthy_at_ns.max(back_ns);
                self.disturb_shards();
                self.venues.iter().map(|host| host.healthy_at_ns).min().expect("there is a venue")
            }
            NodeId::Recorder(n) => {
                self.recorders[n].healthy_at_ns = self.recorders[n].healthy_at_ns.max(back_ns);
                let mut back: Vec<u64> = self.recorders.iter().map(|host| host.healthy_at_ns).collect();
                back.sort_unstable();
                back[self.scenario.quorum - 1]
            }
        };
        if enough_back_ns > self.now_ns {
            self.disturb(enough_back_ns - self.now_ns);
        }
    }

    /// Completion times are excused while a fault lasts and a little longer.
    pub(super) fn disturb(&mut self, for_ns: u64) {
        self.disturbed_until_ns = self.disturbed_until_ns.max(self.now_ns + for_ns + GRACE_NS);
    }

    fn cut(&mut self) {
        let index = self.random.index(self.links.len());
        let for_ns = self.random.between(200 * US, 10 * MS);
        self.links[index].cut_until = self.now_ns + for_ns;
        self.note("link {} is cut for {} us", &[index as u64, for_ns / US]);
        self.disturb(for_ns);
    }

    /// Faults stop: everything runs, clients ask nothing new.
    pub(super) fn on_calm(&mut self) -> Result<(), Broken> {
        self.note("faults stop", &[]);
        self.calm = true;
        self.clients.iter_mut().for_each(|client| client.left = 0);
        self.links.iter_mut().for_each(|link| link.cut_until = 0);
        self.heal();
        for recorder in 0..self.recorders.len() {
            let life = self.process(NodeId::Recorder(recorder)).life;
            self.on_noticed(recorder, life);
        }
        for node in self.nodes() {
            self.process(node).trap = None;
            let life = self.process(node).life;
            self.resume(node, life)?;
            self.start(node)?;
        }
        Ok(())
    }
}
