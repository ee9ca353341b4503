//! What processes did since the simulator last looked, and when others feel it.

use pares_config::NodeId;
use pares_log::Offset;
use pares_types::RequestId;
use pares_wire::record::{self, RequestRecord, SessionMarkRecord};

use crate::Verdict;
use crate::memory::machine::Effect;
use crate::queue::Action;
use crate::record::Record;
use crate::scenario::{MS, US};

use super::{Job, World, index};

/// The longest that one of the slow syncs takes which happen on any disk.
pub(super) const SLOW_SYNC_NS: u64 = 4 * MS;

impl World<'_> {
    pub(super) fn take_effects(&mut self) -> Verdict {
        loop {
            let effects = std::mem::take(&mut self.machine.lock().effects);
            if effects.is_empty() {
                break;
            }
            for effect in effects {
                self.take_effect(effect)?;
            }
        }
        self.send_frames();
        self.send_to_subscribers();
        Ok(())
    }

    fn take_effect(&mut self, effect: Effect) -> Verdict {
        match effect {
            Effect::Ring(node) => self.schedule(node),
            Effect::Sync(node, to) => self.begin_sync(node, to),
            Effect::Spawn(node, job, name, task) => {
                let life = self.life(node);
                self.jobs.insert(job, Job { node, life, name, task: Some(task), plan: 0 });
                let pause_ns = self.random.between(20 * US, 800 * US);
                self.plan_task(job, pause_ns);
            }
            Effect::Wake(job) => {
                let pause_ns = self.random.between(5 * US, 100 * US);
                self.plan_task(job, pause_ns);
            }
            Effect::Appended(node, offset, payload) => return self.on_appended(node, offset, &payload),
            Effect::Packet(packet) => return self.on_line(&packet),
            Effect::Answer(to, packet) => return self.on_answer(to, &packet),
            Effect::Told(node, what) => self.trace.say(self.now_ns, &format!("{node}: {what}")),
        }
        Ok(())
    }

    fn on_appended(&mut self, node: NodeId, offset: Offset, payload: &[u8]) -> Verdict {
        if let (NodeId::Gateway(_), Some(record::REQUEST)) = (node, record::schema(payload)) {
            let request = RequestRecord::read(payload).expect("a gateway writes requests that can be read");
            self.journalled[index(node)].insert(request.id, offset.0);
            self.check_signed_on(index(node), &request)?;
            let words = [
                index(node) as u64,
                request.id.to_bits(),
                request.member.0.into(),
                request.client_order_id.0,
            ];
            self.note("gateway {} takes in {id}: member {} request {}", &words);
        }
        if let (NodeId::Gateway(_), Some(record::SESSION_MARK)) = (node, record::schema(payload)) {
            let SessionMarkRecord { reign, mark, .. } = SessionMarkRecord::read(payload).expect("its own");
            let words = [index(node) as u64, mark.member.0.into(), mark.out_max, reign.into()];
            self.note("gateway {} marks member {}: up to {}, reign {}", &words);
        }
        if let NodeId::Publisher(_) = node {
            return self.check_published(node, payload);
        }
        let Some(record) = Record::of(payload) else { return Ok(()) };
        let words =
            [index(node) as u64, record.shard().0.into(), record.position.0, record.request.id.to_bits()];
        match node {
            NodeId::Venue(_) => self.note("venue {} executes shard {} position {}: {id}", &words),
            _ => self.note("recorder {} takes shard {} position {}: {id}", &words),
        }
        self.note_key(&record);
        if let NodeId::Recorder(_) = node {
            self.note_copies(&record);
        }
        self.check_void(&record)?;
        self.check_guards(&record)?;
        self.ledger.on_record(&record)
    }

    /// Whether a gateway's log has the request where a death, or a loss of power, takes nothing.
    pub(super) fn is_journalled(&self, gateway: usize, request: RequestId) -> bool {
        let Some(&offset) = self.journalled[gateway].get(&request) else { return false };
        let Some(log) = self.machine.log(super::gateway_id(gateway)) else { return false };
        let state = log.lock();
        offset < if self.is_disk() { state.synced } else { state.written }
    }

    /// A sync takes some 100 us, now and then milliseconds. Its process waits for it, if it waits for devices at all.
    fn begin_sync(&mut self, node: NodeId, to: u64) {
        let most =
            if self.random.chance(self.scenario.faults.slow_sync_permille) { SLOW_SYNC_NS } else { 200 * US };
        let most = if self.is_slow(node) { 10 * MS } else { most };
        let at_ns = self.now_ns + self.random.between(30 * US, most);
        let life = self.life(node);
        // A gateway's log is synced by a task beside it.
        self.process(node).is_syncing = matches!(node, NodeId::Recorder(_));
        self.queue.push(at_ns, Action::Synced { node, life, to });
    }

    /// The device has it, whether or not the process still lives; a loss of power has ended the life.
    pub(super) fn on_synced(&mut self, node: NodeId, life: u32, to: u64) {
        if self.life(node) != life {
            return;
        }
        if let Some(log) = self.machine.log(node) {
            log.lock().end_sync(to);
        }
        self.process(node).is_syncing = false;
        self.wake_readers(node);
        self.schedule(node);
    }

    /// What others wait for of that node can be seen now.
    pub(super) fn wake_readers(&mut self, node: NodeId) {
        for reader in self.nodes() {
            if reader != node {
                self.schedule(reader);
            }
        }
    }
}
