//! What is checked after each step, and in the end.

use std::collections::BTreeMap;
use std::rc::Rc;

use pares_config::{NodeId, SystemConfig};
use pares_orderer::message::take_state;
use pares_orderer::{Ordered, Placed};
use pares_sequencer::{ProposeError, Sequencer};
use pares_types::{HostId, Position, RequestId, ShardId};
use pares_wire::record::{ORDERS_STATE, RequestRecord, VERSION};

use super::host::OneHost;
use super::nodes::COMMITTED;
use super::{EVERYWHERE, MIRRORED, ONE, QUORUM, RECORDED};
use crate::memory::log::Log;
use crate::memory::reader::scan;
use crate::record::Record;
use crate::{Verdict, broken, must};

/// Positions looked at in one window at once.
const BATCH_MAX: usize = 4_096;

/// What was decided in a shard, and what came of it.
#[derive(Default)]
struct Place {
    id: Option<RequestId>,
    record: Option<Rc<Record>>,
}

/// How far a log was looked at: which it was, and up to where.
type Looked = (u64, u64);

/// What the hosts have shown so far.
pub(super) struct Reference {
    shards: Vec<ShardId>,
    quorum: usize,
    truth: BTreeMap<(ShardId, u64), Place>,
    places: BTreeMap<RequestId, (ShardId, u64)>,
    looked: BTreeMap<(HostId, NodeId), Looked>,
    /// By recorder, the next position of each shard.
    recorded: BTreeMap<(NodeId, ShardId), u64>,
    /// What a quorum has.
    committed: BTreeMap<ShardId, u64>,
    /// By host: which life of its windows was looked at, where it began, and up to where it was.
    windows: BTreeMap<(HostId, ShardId), (u32, u64, u64)>,
    /// Requests in gateways' logs.
    pub(super) journalled: u64,
}

impl Reference {
    pub(super) fn new(config: &SystemConfig) -> Self {
        Self {
            shards: config.shards().expect("legal shards").into_keys().collect(),
            quorum: config.quorum.into(),
            truth: BTreeMap::new(),
            places: BTreeMap::new(),
            looked: BTreeMap::new(),
            recorded: BTreeMap::new(),
            committed: BTreeMap::new(),
            windows: BTreeMap::new(),
            journalled: 0,
        }
    }

    /// Looks at all that is new.
    pub(super) fn look(&mut self, hosts: &[OneHost]) -> Verdict {
        for host in hosts {
            self.look_at_logs(host)?;
        }
        self.count_quorums()?;
        for host in hosts {
            self.look_at_windows(host)?;
            self.look_at_answers(host)?;
            self.look_at_mirrors(host, hosts)?;
        }
        Ok(())
    }

    fn learn(&mut self, (shard, position): (ShardId, u64), id: RequestId, by: &str) -> Verdict {
        let known = *self.truth.entry((shard, position)).or_default().id.get_or_insert(id);
        must(known == id, ONE, || {
            format!("{by} has {id} at position {position} of shard {shard}, and it is {known}")
        })?;
        let place = *self.places.entry(id).or_insert((shard, position));
        must(place == (shard, position), ONE, || {
            format!("{by} has {id} at position {position} of shard {shard}, and it is at {place:?}")
        })
    }

    /// Gives what is new in a node's own log, as far as readers may see it, and durable if it is to be.
    fn news(
        &mut self,
        host: &OneHost,
        node: NodeId,
        only_durable: bool,
    ) -> Result<Vec<Vec<u8>>, crate::Broken> {
        let Some(log) = host.machine.log(node) else { return Ok(Vec::new()) };
        let (identity, end) = {
            let state = log.lock();
            (state.identity, if only_durable { state.durable } else { state.written })
        };
        let (of, from) = *self.looked.get(&(host.id, node)).unwrap_or(&(identity, 0));
        if of != identity || end < from {
            return broken(QUORUM, format!("{node} had {from} bytes, and has another log or {end}"));
        }
        let mut found = Vec::new();
        let next = if end > from {
            scan(&log, from.max(1), end, |_, payload| found.push(payload.to_vec()))
        } else {
            from
        };
        self.looked.insert((host.id, node), (identity, next));
        Ok(found)
    }

    fn look_at_logs(&mut self, host: &OneHost) -> Verdict {
        for &node in host.nodes.keys() {
            match node {
                NodeId::Gateway(_) => self.journalled += self.news(host, node, false)?.len() as u64,
                NodeId::Recorder(_) => {
                    let records = self.news(host, node, true)?;
                    let results = records.iter().filter_map(|payload| Record::of(payload));
                    results.into_iter().try_for_each(|record| self.on_record(node, record))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn on_record(&mut self, recorder: NodeId, record: Rc<Record>) -> Verdict {
        let (shard, position) = (record.shard(), record.position.0);
        let next = self.recorded.entry((recorder, shard)).or_default();
        must(*next == position, RECORDED, || {
            format!("{recorder} has position {position} of shard {shard} where {next} is next")
        })?;
        *next += 1;
        self.learn((shard, position), record.request.id, &recorder.to_string())?;
        let place = self.truth.entry((shard, position)).or_default();
        let known = place.record.get_or_insert_with(|| Rc::clone(&record));
        must(*known == record, RECORDED, || {
            format!("{recorder} has at position {position} of shard {shard} {record:?}, another {known:?}")
        })
    }

    /// What is recorded at a quorum stays so.
    fn count_quorums(&mut self) -> Verdict {
        for &shard in &self.shards {
            let mut next: Vec<u64> =
                self.recorded.iter().filter(|((_, of), _)| *of == shard).map(|(_, &next)| next).collect();
            next.sort_unstable();
            let now = next.len().checked_sub(self.quorum).map_or(0, |at| next[at]);
            let before = self.committed.entry(shard).or_default();
            must(now >= *before, QUORUM, || {
                format!("a quorum had {before} positions of shard {shard}, and has {now}")
            })?;
            *before = now;
        }
        Ok(())
    }

    fn committed(&self, shard: ShardId) -> u64 {
        self.committed.get(&shard).copied().unwrap_or_default()
    }

    fn look_at_windows(&mut self, host: &OneHost) -> Verdict {
        let has_venue = host.nodes.keys().any(|node| matches!(node, NodeId::Venue(_)));
        for shard in self.shards.clone().into_iter().filter(|_| has_venue && host.is_started) {
            let Some(mut window) = host.machine.window(shard) else { continue };
            let (life, recorded) = (window.epoch().0, window.recorded().0);
            let known = self.windows.get(&(host.id, shard)).filter(|(of, ..)| *of == life);
            let (_, first, mut at) = known.copied().unwrap_or((life, recorded, recorded));
            // A life begins behind what any recorder has: that is final, though no quorum may have it yet.
            must(recorded <= self.committed(shard).max(first), QUORUM, || {
                format!(
                    "host {} takes shard {shard} for recorded up to {recorded}, and no quorum has it",
                    host.id
                )
            })?;
            loop {
                let mut decided = Vec::new();
                match window.propose(Position(at), &[], BATCH_MAX, &mut decided) {
                    Err(ProposeError::TooFarBehind { oldest }) if oldest.0 > at => {
                        at = oldest.0;
                        continue;
                    }
                    _ => {}
                }
                for id in &decided {
                    self.learn((shard, at), *id, &format!("host {}", host.id))?;
                    at += 1;
                }
                if decided.is_empty() {
                    break;
                }
            }
            self.windows.insert((host.id, shard), (life, first, at));
        }
        Ok(())
    }

    fn look_at_answers(&self, host: &OneHost) -> Verdict {
        for node in host.nodes.keys().filter(|node| matches!(node, NodeId::Gateway(_))) {
            for &shard in &self.shards {
                let told =
                    host.machine.counter(&node.to_string(), &format!("{COMMITTED}-{shard}")).unwrap_or(0);
                must(told <= self.committed(shard), QUORUM, || {
                    format!("{node} has answered up to {told} of shard {shard}, and no quorum has it")
                })?;
            }
        }
        Ok(())
    }

    fn look_at_mirrors(&mut self, host: &OneHost, hosts: &[OneHost]) -> Verdict {
        let logs: Vec<(NodeId, Log)> =
            host.machine.lock().logs.iter().map(|(&node, log)| (node, log.clone())).collect();
        for (node, log) in logs {
            let mirror = log.lock();
            if !mirror.is_mirror {
                continue;
            }
            let source = hosts.iter().find(|other| other.nodes.contains_key(&node));
            let Some(source) = source.and_then(|source| source.machine.log(node)) else {
                return broken(MIRRORED, format!("host {} has {node}, whose host has none", host.id));
            };
            let source = source.lock();
            let looked = self.looked.get(&(host.id, node)).filter(|(of, _)| *of == mirror.identity);
            let from = looked.map_or(mirror.released, |&(_, to)| to.min(mirror.written));
            let (from, to) = (from as usize, mirror.written as usize);
            let is_same =
                source.written >= mirror.written && source.bytes.get(from..to) == mirror.bytes.get(from..to);
            must(is_same, MIRRORED, || {
                format!("host {} has of {node} what lies between {from} and {to} otherwise", host.id)
            })?;
            must(mirror.durable <= source.durable.max(mirror.released + 64), MIRRORED, || {
                format!(
                    "host {} calls {node} durable up to {}, and it is up to {}",
                    host.id, mirror.durable, source.durable
                )
            })?;
            self.looked.insert((host.id, node), (mirror.identity, mirror.written));
        }
        Ok(())
    }

    /// What is missing of all that was asked; none if it is ordered, executed and recorded everywhere.
    pub(super) fn missing(&self, hosts: &[OneHost]) -> Option<String> {
        let ends: BTreeMap<ShardId, u64> =
            self.shards.iter().map(|&shard| (shard, self.end_of(shard))).collect();
        let ordered: u64 = ends.values().sum();
        if ordered != self.journalled {
            return Some(format!("{} requests are journalled and {ordered} ordered", self.journalled));
        }
        for host in hosts {
            if !host.is_whole() {
                return Some(format!("host {} is not up", host.id));
            }
            for (&node, (&shard, &end)) in
                host.nodes.keys().flat_map(|node| ends.iter().map(move |end| (node, end)))
            {
                let has = match node {
                    NodeId::Recorder(_) => self.recorded.get(&(node, shard)).copied().unwrap_or(0),
                    NodeId::Venue(_) => {
                        host.machine.counter(&node.to_string(), &format!("position-{shard}")).unwrap_or(0)
                    }
                    NodeId::Gateway(_) => {
                        host.machine.counter(&node.to_string(), &format!("{COMMITTED}-{shard}")).unwrap_or(0)
                    }
                    _ => end,
                };
                if has != end {
                    return Some(format!("{node} has {has} of {end} positions of shard {shard}"));
                }
            }
        }
        None
    }

    fn end_of(&self, shard: ShardId) -> u64 {
        let last = self.truth.range((shard, 0)..=(shard, u64::MAX)).next_back();
        last.map_or(0, |((_, position), _)| position + 1)
    }

    /// Once nothing is missing: nobody has halted, and each orders log is the order.
    pub(super) fn check_end(&mut self, hosts: &[OneHost]) -> Verdict {
        for host in hosts {
            for node in host.nodes.keys().filter(|node| matches!(node, NodeId::Recorder(_))) {
                let halted = host.machine.counter(&node.to_string(), "halted_shards");
                must(halted == Some(0), EVERYWHERE, || format!("{node} has halted {halted:?} shards"))?;
            }
            self.check_orders(host)?;
        }
        Ok(())
    }

    fn check_orders(&mut self, host: &OneHost) -> Verdict {
        let node = host.orderer();
        let Some(log) = host.machine.log(node) else {
            return broken(EVERYWHERE, format!("{node} has no log"));
        };
        let (mut ordered, mut placed) = (Ordered::new(self.shards.iter().copied()), Vec::new());
        let (released, written) = {
            let state = log.lock();
            (state.released, state.written)
        };
        let mut has_past = released == 0;
        scan(&log, released.max(1), written, |_, payload| {
            if let Some((_, state)) =
                payload.strip_prefix(&[ORDERS_STATE, VERSION]).and_then(|state| state.split_first())
            {
                (ordered, has_past) = (take_state(state).expect("a state").1, true);
            } else if let (true, Ok(request)) = (has_past, RequestRecord::read(payload)) {
                placed.push((request.id, request.shard, ordered.place(request.id, request.shard)));
            }
        });
        for (id, shard, place) in placed {
            let Placed::At(position) = place else {
                return broken(ONE, format!("{node} has written down {id} of shard {shard} twice"));
            };
            self.learn((shard, position.0), id, &node.to_string())?;
        }
        Ok(())
    }
}
