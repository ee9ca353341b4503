//! What goes wrong: planned from the seed, carried out when its time comes.

use pares_config::NodeId;

use crate::queue::Action;
use crate::scenario::{MS, US};
use crate::{Fault, Verdict};

use super::{World, gateway_id, index, recorder_id, venue_id};

/// After a fault is over, completion times are excused for this long: clients reconnect, queues drain.
pub(super) const GRACE_NS: u64 = 15 * MS;
/// Calls into the world before a process is killed in the middle.
const CALLS: u64 = 400;

impl World<'_> {
    pub(super) fn plan_faults(&mut self) {
        let kinds: Vec<Fault> = self.scenario.faults.every_ns.keys().copied().collect();
        kinds.into_iter().for_each(|fault| self.plan(fault));
    }

    /// The next fault of a kind.
    fn plan(&mut self, fault: Fault) {
        let mean_ns = self.scenario.faults.every_ns(fault);
        if mean_ns == 0 {
            return;
        }
        let at_ns = self.now_ns + self.random.between(1, 2 * mean_ns);
        if at_ns < self.scenario.duration_ns {
            self.queue.push(at_ns, Action::Fault(fault));
        }
    }

    pub(super) fn on_fault(&mut self, fault: Fault) -> Verdict {
        self.plan(fault);
        self.summary.faults += 1;
        let venue = venue_id(self.random.index(self.scenario.venues));
        let gateway = gateway_id(self.random.index(self.scenario.gateways));
        let recorder = recorder_id(self.random.index(self.scenario.recorders));
        match fault {
            Fault::CrashVenue => self.crash_now_or_midway(venue),
            Fault::PauseVenue => self.pause(venue),
            Fault::CrashVenues => (0..self.scenario.venues).for_each(|n| self.crash(venue_id(n))),
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
            Fault::FailSync => self.fail_sync(gateway, recorder),
            Fault::SlowDisk => self.slow_down(gateway, recorder),
            Fault::Wipe => self.wipe(recorder),
            Fault::JumpClock => self.jump_clock(gateway),
            Fault::FailEngine => self.plan_engine_failure(venue),
            Fault::WipeVenue => self.wipe(venue),
            Fault::WipeGateway => self.wipe(gateway),
            Fault::Rot => self.rot(recorder),
            Fault::RotVenue => self.rot(venue),
            Fault::RotGateway => self.rot(gateway),
            Fault::Exhaust => {
                let node = [venue, gateway, recorder][self.random.index(3)];
                self.exhaust(node);
            }
            Fault::Upgrade => self.upgrade(venue),
            Fault::MoveShard => self.begin_move(),
            _ => return self.on_feed_fault(fault),
        }
        Ok(())
    }

    /// What befalls market data excuses nothing.
    fn on_feed_fault(&mut self, fault: Fault) -> Verdict {
        let publishers = self.config.feed.as_ref().map_or(1, |feed| usize::from(feed.publishers));
        let replayers = self.config.feed.as_ref().map_or(1, |feed| feed.replayers.len());
        let publisher = super::feed::publisher_id(self.random.index(publishers));
        let replayer = super::feed::replayer_id(self.random.index(replayers));
        match fault {
            Fault::CrashPublisher => self.crash_now_or_midway(publisher),
            Fault::PausePublisher => self.pause(publisher),
            Fault::CrashReplayer => self.crash_now_or_midway(replayer),
            Fault::PauseReplayer => self.pause(replayer),
            Fault::FillPublisher => self.fill(publisher),
            Fault::WipePublisher => self.wipe(publisher),
            Fault::RotPublisher => self.rot(publisher),
            Fault::ExhaustReplayer => self.exhaust(replayer),
            Fault::BreakCall => self.break_call(),
            Fault::RestartSubscriber => return self.restart_subscriber(),
            _ => self.forge(),
        }
        Ok(())
    }

    pub(super) fn restart(&mut self, power: bool) -> Verdict {
        if self.restarting {
            return Ok(());
        }
        self.disturb(5 * MS);
        self.take_down(power)
    }

    fn crash_now_or_midway(&mut self, node: NodeId) {
        if self.random.chance(500) {
            return self.crash(node);
        }
        let calls = self.random.below(CALLS) as u32;
        self.machine.lock().fate(node).killed_in = Some(calls);
        // When that will be is open; what comes of it is a death like any other.
        self.out_of_action(node, 6 * MS);
    }

    /// Kills a process, to be started again.
    pub(super) fn crash(&mut self, node: NodeId) {
        if !self.is_up(node) {
            return;
        }
        let down_ns = self.random.between(200 * US, 4 * MS);
        self.kill(node);
        self.out_of_action(node, down_ns);
        self.start_later(node, down_ns);
    }

    /// Briefly, or so long that a window passes by.
    fn pause(&mut self, node: NodeId) {
        let long = self.random.chance(400);
        let for_ns =
            if long { self.random.between(2 * MS, 20 * MS) } else { self.random.between(50 * US, MS) };
        if !self.is_up(node) || self.process(node).is_stopped {
            return;
        }
        match self.random.chance(500) {
            true => self.stop(node, for_ns),
            false => self.process(node).stops_for_ns = Some(for_ns),
        }
        self.out_of_action(node, for_ns);
    }

    /// A process does nothing for a while, or its disk does not. As long as a venue of each shard is left, and a quorum of recorders, that
    /// excuses nothing (invariants I4 and I8).
    pub(super) fn out_of_action(&mut self, node: NodeId, for_ns: u64) {
        let back_ns = self.now_ns + for_ns + 5 * MS;
        let process = self.process(node);
        process.healthy_at_ns = process.healthy_at_ns.max(back_ns);
        let back_of = |world: &Self, node: NodeId| world.processes[&node].healthy_at_ns;
        let enough_back_ns = match node {
            NodeId::Gateway(_) => return self.disturb(for_ns),
            // Nobody who trades notices.
            NodeId::Publisher(_) | NodeId::Replayer(_) | NodeId::Orderer(_) | NodeId::Mirror(_) => return,
            NodeId::Venue(_) => {
                self.disturb_shards();
                let back = (0..self.scenario.venues).map(|n| back_of(self, venue_id(n)));
                back.min().expect("there is a venue")
            }
            NodeId::Recorder(_) => {
                let back = (0..self.scenario.recorders).map(|n| back_of(self, recorder_id(n)));
                let mut back: Vec<u64> = back.collect();
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

    /// One process sees nothing new of another's log for a while.
    fn cut(&mut self) {
        let nodes = self.nodes();
        let (reader, source) = (nodes[self.random.index(nodes.len())], nodes[self.random.index(nodes.len())]);
        let for_ns = self.random.between(200 * US, 10 * MS);
        let Some(log) = self.machine.log(source).filter(|_| reader != source) else { return };
        // Who takes a FIX session reads the other gateways' logs to their ends, and one host's memory is as others see it.
        let are_gateways = matches!((reader, source), (NodeId::Gateway(_), NodeId::Gateway(_)));
        if are_gateways && self.scenario.fix > 0 {
            return;
        }
        let written = log.lock().written;
        self.machine.lock().cut.insert((reader, source), written);
        self.note(
            "process {} is cut off from {} for {} us",
            &[super::number(reader), super::number(source), for_ns / US],
        );
        self.queue.push(self.now_ns + for_ns, Action::Heal { reader, source });
        if !reader.only_tells() && !source.only_tells() {
            self.disturb(for_ns);
        }
    }

    pub(super) fn heal_cut(&mut self, reader: NodeId, source: NodeId) {
        self.machine.lock().cut.remove(&(reader, source));
        self.schedule(reader);
    }

    /// Faults stop: everything runs, clients ask nothing new.
    pub(super) fn on_calm(&mut self) -> Verdict {
        self.check_waits()?;
        self.note("faults stop", &[]);
        self.calm = true;
        self.clients.iter_mut().for_each(|client| client.left = 0);
        self.guests.iter_mut().for_each(|guest| guest.program.calm_down());
        self.heal();
        for node in self.nodes() {
            self.process(node).stops_for_ns = None;
            let life = self.life(node);
            self.resume(node, life);
            self.start(node)?;
        }
        // A node that is asked to mend its log does so when it is started again, which the operator sees to.
        for node in self.rotten.clone() {
            let spare = matches!(node, NodeId::Recorder(_));
            if spare || node.only_tells() || index(node) > 0 || self.rotten.len() == 1 {
                self.crash(node);
            }
        }
        self.queue.push(self.now_ns + super::LOOK_NS, Action::Look);
        Ok(())
    }
}
