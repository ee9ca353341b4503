//! Hosts with an orderer each, the gateways' logs that they see, and a network.

mod checks;

use std::collections::{BTreeMap, BTreeSet};

use pares_cluster::memory::Disk;
use pares_cluster::{Beginning, ClusterLog, Incarnation, LogError, MemberId, Replica, ReplicaConfig};
use pares_random::Random;
use pares_types::{GatewayId, HostId, Position, RequestId, ShardId};
use pares_wire::record::RequestRecord;

use super::request_body;
use crate::orderer::Defect;
use crate::{OrderSink, Ordered, Orderer, OrdererConfig, OrdererCounts, Placed};

pub(super) const MS: u64 = 1_000_000;
pub(super) const STEP_NS: u64 = 50_000;
pub(super) const GATEWAYS: u16 = 3;
pub(super) const WINDOW: u64 = 64;
pub(super) const PENDING_MAX: usize = 256;
const SHARDS: u16 = 2;

/// What an orderer tells its host.
#[derive(Default)]
struct Told {
    outbox: Vec<(HostId, Vec<u8>)>,
    ordered: Vec<(ShardId, Position, RequestId)>,
}

impl OrderSink for Told {
    fn send(&mut self, to: HostId, message: Vec<u8>) {
        self.outbox.push((to, message));
    }
    fn ordered(&mut self, shard: ShardId, position: Position, id: RequestId, body: &[u8]) {
        assert_eq!(RequestRecord::read(body).unwrap().id, id);
        self.ordered.push((shard, position, id));
    }
}

struct Host {
    orderer: Option<Orderer<Replica<Disk>>>,
    disk: Disk,
    incarnation: Incarnation,
    /// What its orders log has: the last state with its place, and what was ordered since.
    state: (Ordered, (u64, u64)),
    since: Vec<(ShardId, RequestId)>,
    lives: u64,
    stopped_to: u64,
    /// How far it has read each gateway's log, and how late it sees it.
    read: Vec<usize>,
    late_ns: Vec<u64>,
}

/// A message under way.
type Packet = (u8, usize, Vec<u8>);

pub(super) struct World {
    hosts: Vec<Host>,
    defect: Option<Defect>,
    pub(super) random: Random,
    pub(super) now_ns: u64,
    pub(super) delay_ns: u64,
    loss_percent: u64,
    underway: BTreeMap<(u64, u64), Packet>,
    sent: u64,
    /// Who is not heard by whom.
    cuts: BTreeSet<(usize, usize)>,
    /// By gateway: when each request was asked, and its shard.
    logs: Vec<Vec<(u64, u16)>>,
    truth: BTreeMap<(ShardId, Position), RequestId>,
    places: BTreeMap<RequestId, (ShardId, Position)>,
    recorded: Vec<u64>,
    held: Option<ShardId>,
    dead_elections: u64,
    pub(super) copies: u64,
    pub(super) losses: u64,
    /// Who led in each term.
    leaders: BTreeMap<u64, usize>,
}

impl World {
    pub(super) fn new(hosts: u8, seed: u64, defect: Option<Defect>) -> Self {
        let shards = || (0..SHARDS).map(ShardId);
        let host = |_| Host {
            orderer: None,
            disk: Disk::new(),
            incarnation: Incarnation(0),
            state: (Ordered::new(shards()), (0, 0)),
            since: Vec::new(),
            lives: 0,
            stopped_to: 0,
            read: vec![0; GATEWAYS.into()],
            late_ns: vec![0; GATEWAYS.into()],
        };
        let mut random = Random::new(seed);
        let loss_percent = random.below(20);
        let mut world = Self {
            hosts: (0..hosts).map(host).collect(),
            defect,
            random,
            now_ns: 0,
            delay_ns: MS / 2,
            loss_percent,
            underway: BTreeMap::new(),
            sent: 0,
            cuts: BTreeSet::new(),
            logs: vec![Vec::new(); GATEWAYS.into()],
            truth: BTreeMap::new(),
            places: BTreeMap::new(),
            recorded: vec![0; SHARDS.into()],
            held: None,
            dead_elections: 0,
            copies: 0,
            losses: 0,
            leaders: BTreeMap::new(),
        };
        (0..hosts.into()).for_each(|host| world.start(host));
        world
    }

    pub(super) fn start(&mut self, index: usize) {
        self.open(index, None);
    }

    /// Opens a host's orderer, behind a copy of what is ordered elsewhere if there is one.
    fn open(&mut self, index: usize, behind: Option<Beginning>) {
        let (count, seed) = (self.hosts.len() as u8, self.random.next_u64());
        let host = &mut self.hosts[index];
        let (mut ordered, applied) = host.state.clone();
        for &(shard, id) in &host.since {
            assert!(matches!(ordered.place(id, shard), Placed::At(_)));
        }
        let number = index as u8;
        let config = ReplicaConfig {
            seed,
            applied: applied.0,
            id: MemberId { number, incarnation: host.incarnation },
            // Half of what ships: storms are short.
            election_ticks: 10..20,
            heartbeat_ticks: 2,
            copy_ticks: 2,
            ..ReplicaConfig::new(number, count)
        };
        let config = match behind {
            Some(beginning) => config.again_behind(beginning),
            None if host.incarnation == Incarnation(0) => config,
            None => ReplicaConfig { beginning: Beginning::default(), ..config },
        };
        let replica = Replica::open(host.disk.clone(), &config).unwrap();
        let config = OrdererConfig {
            host: HostId(number),
            incarnation: host.incarnation,
            hosts: count,
            seed,
            gateways: GATEWAYS,
            window: WINDOW,
            pending_max: PENDING_MAX,
            tick_ns: 5 * MS,
        };
        let mut orderer = Orderer::new(replica, config, (ordered, applied), self.now_ns);
        orderer.defect = self.defect;
        host.orderer = Some(orderer);
        host.read.fill(0);
        host.lives += 1;
    }

    /// Its process is killed: what was published of its logs is there. Some of the last cycle was not.
    pub(super) fn kill(&mut self, index: usize, is_noticed: bool) {
        let lost = self.random.below(4) as usize;
        self.kill_process(index);
        let since = &mut self.hosts[index].since;
        since.truncate(since.len().saturating_sub(lost));
        let others = self.hosts.iter_mut().filter_map(|host| host.orderer.as_mut());
        others.filter(|_| is_noticed).for_each(|other| other.lost(self.now_ns, HostId(index as u8)));
    }

    /// Its disk is replaced by an empty one, if all others vote under the names that they have: of three, one may be lost at a time.
    pub(super) fn lose_disk(&mut self, index: usize) {
        let own = |(host, at): (&Host, u8)| MemberId { number: at, incarnation: host.incarnation };
        let names: BTreeSet<MemberId> = self.hosts.iter().zip(0..).map(own).collect();
        let knows = |host: &mut Host| {
            host.orderer.as_mut().is_some_and(|orderer| orderer.log_mut().members().voters == names)
        };
        if !self.hosts.iter_mut().all(knows) {
            return;
        }
        self.kill_process(index);
        // What it has sent is lost with its connections.
        self.underway.retain(|_, (from, ..)| usize::from(*from) != index);
        self.losses += 1;
        let keeps = self.defect == Some(Defect::KeepsName);
        let host = &mut self.hosts[index];
        (host.disk, host.since) = (Disk::new(), Vec::new());
        host.state = (Ordered::new((0..SHARDS).map(ShardId)), (0, 0));
        host.incarnation = Incarnation(if keeps { 0 } else { self.losses });
    }

    fn kill_process(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        if let Some(orderer) = host.orderer.take() {
            self.dead_elections += orderer.impatience().elections();
            host.disk.crash(u64::MAX);
        }
    }

    pub(super) fn stop(&mut self, index: usize, for_ns: u64) {
        self.hosts[index].stopped_to = self.now_ns + for_ns;
    }

    pub(super) fn cut(&mut self, index: usize, both_ways: bool) {
        for other in 0..self.hosts.len() {
            self.cuts.insert((index, other));
            if both_ways {
                self.cuts.insert((other, index));
            }
        }
    }

    pub(super) fn heal(&mut self) {
        self.cuts.clear();
    }

    pub(super) fn save(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let Some(orderer) = &mut host.orderer else { return };
        let Some(beginning) = orderer.beginning() else { return };
        let applied = (beginning.index, beginning.term);
        (host.state, host.since) = ((orderer.ordered().clone(), applied), Vec::new());
        orderer.let_go(beginning.index.saturating_sub(4));
    }

    pub(super) fn slow_gateway(&mut self, index: usize, late_ns: u64) {
        let gateway = self.random.index(GATEWAYS.into());
        self.hosts[index].late_ns[gateway] = late_ns;
    }

    pub(super) fn calm(&mut self) {
        self.heal();
        self.loss_percent = 0;
        for index in 0..self.hosts.len() {
            self.hosts[index].stopped_to = 0;
            self.hosts[index].late_ns.fill(0);
            if !self.is_up(index) {
                self.start(index);
            }
        }
    }

    pub(super) fn hold_recorded(&mut self, shard: ShardId) {
        self.held = Some(shard);
        self.recorded[usize::from(shard.0)] = 0;
    }

    pub(super) fn release_recorded(&mut self) {
        self.held = None;
    }

    pub(super) fn is_up(&self, index: usize) -> bool {
        self.hosts[index].orderer.is_some()
    }

    pub(super) fn orderer(&mut self, index: usize) -> &mut Orderer<Replica<Disk>> {
        self.hosts[index].orderer.as_mut().unwrap()
    }

    pub(super) fn next(&self, index: usize, shard: ShardId) -> u64 {
        self.hosts[index].orderer.as_ref().unwrap().ordered().next(shard).unwrap().0
    }

    fn up(&self) -> impl Iterator<Item = (usize, &Orderer<Replica<Disk>>)> {
        self.hosts.iter().enumerate().filter_map(|(index, host)| Some((index, host.orderer.as_ref()?)))
    }

    pub(super) fn leader(&self) -> Option<usize> {
        let leads = self.up().filter(|(_, orderer)| orderer.role().leads);
        leads.max_by_key(|(_, orderer)| orderer.role().term).map(|(index, _)| index)
    }

    pub(super) fn counts(&self) -> Vec<OrdererCounts> {
        self.up().map(|(_, orderer)| orderer.counts()).collect()
    }

    pub(super) fn term(&self) -> u64 {
        self.up().map(|(_, orderer)| orderer.role().term).max().unwrap_or_default()
    }

    pub(super) fn elections(&self) -> u64 {
        self.dead_elections + self.up().map(|(_, orderer)| orderer.impatience().elections()).sum::<u64>()
    }

    pub(super) fn truth_len(&self) -> usize {
        self.truth.len()
    }

    /// A gateway numbers and journals a request.
    pub(super) fn ask(&mut self) {
        let gateway = self.random.index(GATEWAYS.into());
        let shard = self.random.below(SHARDS.into()) as u16;
        self.logs[gateway].push((self.now_ns, shard));
    }

    pub(super) fn run_until(&mut self, steps: u64, done: impl Fn(&Self) -> bool) -> Result<bool, String> {
        for _ in 0..steps {
            if done(self) {
                return Ok(true);
            }
            self.step()?;
        }
        Ok(done(self))
    }

    pub(super) fn step(&mut self) -> Result<(), String> {
        self.now_ns += STEP_NS;
        self.record();
        let later = self.underway.split_off(&(self.now_ns + 1, 0));
        let due = std::mem::replace(&mut self.underway, later);
        for ((at, number), (from, to, message)) in due {
            if self.hosts[to].stopped_to > self.now_ns {
                // It waits in the socket.
                self.underway.insert((self.hosts[to].stopped_to.max(at + 1), number), (from, to, message));
            } else if let Some(orderer) = &mut self.hosts[to].orderer {
                let mut told = Told::default();
                let copy = orderer.receive(self.now_ns, (HostId(from), &message), &mut told);
                told.outbox.into_iter().for_each(|(other, answer)| self.send(to, other, answer));
                if let Some((beginning, ordered)) = copy {
                    self.take_copy(to, beginning, ordered);
                }
            }
        }
        (0..self.hosts.len()).try_for_each(|index| self.turn(index))
    }

    /// Another's state, because the log here lacks what all others have let go of.
    fn take_copy(&mut self, index: usize, beginning: Beginning, ordered: Ordered) {
        let host = &mut self.hosts[index];
        (host.state, host.since) = ((ordered, (beginning.index, beginning.term)), Vec::new());
        self.copies += 1;
        self.kill_process(index);
        self.open(index, Some(beginning));
    }

    fn record(&mut self) {
        for shard in (0..SHARDS).map(ShardId).filter(|shard| self.held != Some(*shard)) {
            let last = self.truth.range((shard, Position(0))..=(shard, Position(u64::MAX))).next_back();
            let ordered = last.map_or(0, |((_, position), _)| position.0 + 1);
            self.recorded[usize::from(shard.0)] =
                ordered.saturating_sub(WINDOW / 4).max(self.recorded[usize::from(shard.0)]);
        }
    }

    fn turn(&mut self, index: usize) -> Result<(), String> {
        let host = &mut self.hosts[index];
        let Some(orderer) = host.orderer.as_mut().filter(|_| host.stopped_to <= self.now_ns) else {
            return Ok(());
        };
        // The first host has no venues: the others tell it.
        for (shard, recorded) in (0..).map(ShardId).zip(&self.recorded).filter(|_| index > 0) {
            orderer.on_recorded(shard, Position(*recorded));
        }
        for gateway in 0..usize::from(GATEWAYS) {
            let id = GatewayId(gateway as u16);
            while let Some(&(asked_ns, shard)) = self.logs[gateway].get(host.read[gateway])
                && asked_ns + host.late_ns[gateway] <= self.now_ns
                && orderer.room(id) > 0
            {
                host.read[gateway] += 1;
                let body = request_body(id.0, host.read[gateway] as u64, shard);
                orderer.take(self.now_ns, &RequestRecord::read(&body).unwrap(), &body);
            }
        }
        let mut told = Told::default();
        match orderer.cycle(self.now_ns, &mut told) {
            // It knows that it has forgotten: others must find out what it does before.
            Err(LogError::Forgotten { .. }) if self.defect == Some(Defect::KeepsName) => {
                self.kill_process(index);
                return Ok(());
            }
            cycled => drop(cycled.map_err(|error| error.to_string())?),
        }
        let role = orderer.role();
        host.since.extend(told.ordered.iter().map(|(shard, _, id)| (*shard, *id)));
        told.outbox.into_iter().for_each(|(to, message)| self.send(index, to, message));
        self.check_lead(index, role)?;
        told.ordered.into_iter().try_for_each(|(shard, position, id)| self.check(shard, position, id))
    }

    fn send(&mut self, from: usize, to: HostId, message: Vec<u8>) {
        let to = usize::from(to.0);
        let copies = 1 + u64::from(self.random.percent(self.loss_percent / 2));
        for _ in 0..copies {
            let delay = self.delay_ns / 4 + self.random.below(self.delay_ns);
            if !self.cuts.contains(&(from, to)) && !self.random.percent(self.loss_percent) {
                self.sent += 1;
                self.underway.insert((self.now_ns + delay, self.sent), (from as u8, to, message.clone()));
            }
        }
    }
}
