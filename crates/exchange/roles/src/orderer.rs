//! A host's orderer: reads all gateways' logs, agrees with the other hosts on the order, and writes it down for the host's venues.
//!
//! ```text
//!  gateways' logs, own and mirrored --> Orderer <--peers--> the other hosts' orderers
//!                                          | ordered
//!                                          v
//!                    orders log --publish--> windows: the ids at their positions --ring--> venues
//! ```
//! On one host a venue decides a position itself, in the window. Here the window is where a venue finds what the hosts have decided, and the orderer the only
//! one that proposes in it. The bodies come before: a venue reads one log, this one's, where every request lies in the order decided.
//!
//! It keeps two things: the replicated log's journal, whose promises it must never forget ([`life`]), and the orders log, which has a state now and then, so that a
//! restart reads the last state and what follows it.
//!
//! The node that connects the hosts gives it [`Peers`]; everything else is the [`World`]'s.
//!
//! Invariants that it asserts:
//!
//! - Nothing is in a window that is not published in the orders log, and what is in a window is what was ordered.
//! - The positions of a shard are written down one after the other.
//! - The orders log is released up to a state, all before which is recorded.

mod life;
mod orders_log;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use pares_cluster::{Beginning, Incarnation, Journal, JournalError, MemberId, Replica, ReplicaConfig};
use pares_config::{NodeId, SystemConfig};
use pares_log::AppendError;
use pares_orderer::{OrderSink, Orderer, OrdererConfig};
use pares_types::{Epoch, HostId, Position, RequestId, ShardId};

use crate::counters::counters;
use crate::duty::{Duty, SLEEP_MAX};
use crate::repair_asked::{self, RepairWatch};
use crate::venue::requests::Requests;
use crate::world::{Counters, Ring, World};
use crate::{NodeError, epoch};
use life::{Life, Opened};
use orders_log::{OrdersLog, StateOf};
use slots::Slots;

pub use life::first_life;

/// The replicated log's unit of time. An idle orderer wakes as often; what is urgent has deadlines of its own.
const TICK_NS: u64 = 5_000_000;
/// Silence after which a member stands whose own requests do not tell it that nothing is decided, in ticks.
const ELECTION_TICKS: std::ops::Range<u32> = 20..40;
const HEARTBEAT_TICKS: u32 = 4;
const COPY_TICKS: u32 = 2;
/// Requests read from one gateway's log, or messages of peers, before the rest is looked at.
const BATCH_MAX: usize = 512;

counters! {
    AnsweredOffset "answered_offset" "Offset in the orders log where joining venues start to read; only of the epoch in `epoch`."
    InEpoch "epoch" "The life of this host's windows that it writes in."
    Leads "leads" "1 while it leads."
    Votes "votes" "1 while its vote counts."
    Term "term" "The lead's number."
    Elections "elections" "Times it stood for the lead."
    Needless "needless" "Times it need not have: who led was there."
    Ordered "ordered" "Requests ordered."
    Repeats "repeats" "Requests committed more than once, and ordered once."
    Strange "strange" "Bodies that were committed and are no requests of this system."
    Pending "pending" "Requests that wait to be ordered."
    PatienceUs "patience_us" "How long its requests may be undecided before it stands, in microseconds."
    DecisionP50 "decision_p50_us" "Half of the requests it reads are decided within so many microseconds."
    DecisionP99 "decision_p99_us" "99 of a hundred are."
    DecisionP999 "decision_p999_us" "999 of a thousand are; its patience is four times that."
    Left "left" "Requests that the window had no room for: venues have them from the record."
    Ignored "ignored" "Messages of peers that it did not understand."
    Damaged "damaged" "Records of gateways skipped because they could not be read."
    UnreadableLogs "unreadable_logs" "Logs of others that cannot be read just now."
}

/// The connections to the other hosts' orderers. Nothing here waits.
pub trait Peers {
    /// Sends a message, or loses it.
    fn send(&mut self, to: HostId, message: Vec<u8>);
    /// The next message that has come.
    fn receive(&mut self) -> Option<(HostId, Vec<u8>)>;
    /// A host whose connection has ended since this was last asked.
    fn ended(&mut self) -> Option<HostId>;
}

/// An orderer's state.
pub struct OrdererNode<W: World, P, J> {
    world: W,
    life: Life,
    orderer: Orderer<Replica<J>>,
    peers: P,
    requests: Requests<W>,
    orders: Orders<W>,
    venues: Vec<NodeId>,
    ringer: W::Ringer,
    counters: W::Counters,
    lookout: RepairWatch,
}

/// Where the order goes.
struct Orders<W: World> {
    log: OrdersLog<W>,
    /// None at a host without venues.
    slots: BTreeMap<ShardId, Slots<W::Window>>,
    appended: usize,
    failed: Option<AppendError>,
}

/// An orderer's effects.
struct Effects<'a, W: World, P> {
    orders: &'a mut Orders<W>,
    peers: &'a mut P,
}

impl<W: World, P: Peers> OrderSink for Effects<'_, W, P> {
    fn send(&mut self, to: HostId, message: Vec<u8>) {
        self.peers.send(to, message);
    }

    fn ordered(&mut self, shard: ShardId, position: Position, id: RequestId, body: &[u8]) {
        let Orders { log, slots, appended, failed, .. } = &mut *self.orders;
        // Once the log has a gap nothing follows it: the process ends, and its next one is given the same entries again.
        if failed.is_some() {
            return;
        }
        *failed = log.append(body).err();
        if failed.is_none() {
            *appended += 1;
            slots.get_mut(&shard).into_iter().for_each(|slots| slots.push(position, id));
        }
    }
}

impl<W: World, P: Peers, J: Journal> OrdererNode<W, P, J> {
    /// Opens the orders log of a host and the replicated log, and continues behind what is in them. `journal` opens the latter's journal; with `true` a new one,
    /// because what the one before promised may be lost.
    ///
    /// # Errors
    /// If the system was not started, or one of the logs cannot be read or do not belong together.
    pub fn open(
        host: HostId,
        config: &SystemConfig,
        world: W,
        peers: P,
        journal: impl FnMut(bool) -> Result<J, JournalError>,
    ) -> Result<Self, NodeError> {
        let node = NodeId::Orderer(host);
        let life = epoch::current(&world, config)?;
        // Before the log is touched: what an earlier process told of it is true no longer.
        let counters = world.create_counters(&node.to_string(), COUNTERS);
        let counters = counters.map_err(NodeError::io("making an orderer's counters"))?;
        let lookout = repair_asked::done(&world, node);
        let venues: Vec<NodeId> =
            NodeId::at(config, Some(host)).into_iter().filter(|at| matches!(at, NodeId::Venue(_))).collect();
        assert!(usize::from(host.0) < config.hosts.len(), "an orderer is of a host of the system");
        let seed = u64::from_le_bytes(*world.random().first_chunk().expect("32 bytes"));
        let settings = |config: &_, id, log: &_| log_config(config, (id, seed), log);
        let Opened { life: disk, log, ordered, behind, replica } =
            Opened::open(&world, (host, config), settings, journal)?;
        let mut slots = BTreeMap::new();
        for shard in config.shards()?.into_keys().filter(|_| !venues.is_empty()) {
            slots.insert(shard, Slots::new(epoch::window(&world, shard)?, config.window));
        }
        for (shard, position, id) in behind {
            slots.get_mut(&shard).into_iter().for_each(|slots| slots.push_unless_recorded(position, id));
        }
        let rules = rules((host, disk.0.incarnation), config, seed);
        let orderer = Orderer::new(replica, rules, (ordered, log.applied()), world.mono_ns());
        let logs = config.gateway_ids().map(NodeId::Gateway).collect();
        let requests = Requests::new(&world, config, epoch::of_records(&world, config)?, logs);
        let orders = Orders { log, slots, appended: 0, failed: None };
        let ringer = world.ringer();
        let mut node =
            Self { world, life: disk, orderer, peers, requests, orders, venues, ringer, counters, lookout };
        node.begin(life)?;
        Ok(node)
    }

    /// The connections.
    pub fn peers(&mut self) -> &mut P {
        &mut self.peers
    }

    /// Hands out what was ordered by an earlier process, and says from where on it lies in the log.
    fn begin(&mut self, life: Epoch) -> Result<(), NodeError> {
        self.tell_recorded();
        self.hand_out()?;
        self.keep()?;
        self.counters.set(Counter::InEpoch, life.0.into());
        Ok(())
    }

    fn tell_recorded(&mut self) {
        for (&shard, slots) in &self.orders.slots {
            self.orderer.on_recorded(shard, slots.recorded());
        }
    }

    /// Takes what the other hosts' orderers say. Says how much that was.
    fn hear(&mut self) -> Result<usize, NodeError> {
        let now_ns = self.world.mono_ns();
        let mut heard = 0;
        while heard < BATCH_MAX
            && let Some((from, message)) = self.peers.receive()
        {
            heard += 1;
            let mut effects = Effects { orders: &mut self.orders, peers: &mut self.peers };
            if let Some((beginning, ordered)) = self.orderer.receive(now_ns, (from, &message), &mut effects) {
                self.orders.log.put_state(&beginning, &ordered, StateOf::Other)?;
                return Err(NodeError::Refused(format!(
                    "this host lacked what the others have let go of, or all that its disk had; it has a copy of what \
                     host {from} has ordered now, and its orderer continues behind that when it starts again"
                )));
            }
        }
        // Behind what they had said.
        while let Some(host) = self.peers.ended() {
            self.orderer.lost(now_ns, host);
        }
        Ok(heard)
    }

    /// Takes what gateways were asked. Says how much that was.
    fn read(&mut self) -> usize {
        let now_ns = self.world.mono_ns();
        let rooms: BTreeMap<NodeId, usize> =
            self.requests.logs().map(|log| (log, room(&self.orderer, log))).collect();
        let orderer = &mut self.orderer;
        let read = self.requests.poll(
            |log| rooms[&log].min(BATCH_MAX),
            &[],
            |request, record| {
                orderer.take(now_ns, request, record);
                orderer.ordered().next(request.shard).is_some()
            },
        );
        if read > 0 {
            self.counters.set(Counter::Damaged, self.requests.damaged());
        }
        read
    }

    /// Has the log take a cycle, publishes what it has ordered, and puts it into the windows. Says how much that was.
    fn order(&mut self) -> Result<usize, NodeError> {
        let mut effects = Effects { orders: &mut self.orders, peers: &mut self.peers };
        let cycled = self.orderer.cycle(self.world.mono_ns(), &mut effects);
        // What came before a failure is in the log, whole, and found there by the next process.
        let there_is_more = cycled.map_err(|error| self.life.ended_by(&self.world, error))?;
        if let Some(error) = self.orders.failed {
            return Err(error.into());
        }
        Ok(self.hand_out()? + usize::from(there_is_more))
    }

    fn hand_out(&mut self) -> Result<usize, NodeError> {
        let appended = std::mem::take(&mut self.orders.appended);
        if appended > 0 {
            self.orders.log.publish();
        }
        let mut decided = 0;
        for slots in self.orders.slots.values_mut() {
            decided += slots.flush()?;
        }
        assert!(self.orders.failed.is_none(), "nothing is put into a window behind a gap in the orders log");
        if decided > 0 {
            self.venues.iter().for_each(|&venue| self.ringer.ring(venue));
        }
        Ok(appended + decided)
    }

    /// Writes down a state now and then, and releases what lies before one that nobody needs any more.
    fn keep(&mut self) -> Result<(), NodeError> {
        assert_eq!(self.orders.appended, 0, "a state is of all that is published");
        if self.orders.log.is_state_due()
            && let Some(beginning) = self.orderer.beginning()
        {
            self.orders.log.put_state(&beginning, self.orderer.ordered(), StateOf::Own)?;
            if let Some(index) = self.orders.log.outdated() {
                self.orderer.let_go(index);
            }
        }
        let Self { orders: Orders { log, slots, .. }, orderer, .. } = self;
        let of_all = |shard| orderer.recorded(shard);
        let answered = log.release(|shard| slots.get(&shard).map_or_else(|| of_all(shard), Slots::recorded));
        self.counters.set(Counter::AnsweredOffset, answered.0);
        Ok(())
    }

    fn show(&self) {
        let Self { orderer, counters, .. } = self;
        let (role, counts, impatience) = (orderer.role(), orderer.counts(), orderer.impatience());
        counters.set(Counter::Leads, role.leads.into());
        counters.set(Counter::Votes, orderer.votes().into());
        counters.set(Counter::Term, role.term);
        counters.set(Counter::Elections, impatience.elections());
        counters.set(Counter::Needless, impatience.needless());
        counters.set(Counter::Ordered, counts.ordered);
        counters.set(Counter::Repeats, counts.repeats);
        counters.set(Counter::Strange, counts.strange);
        counters.set(Counter::Pending, orderer.pending_len() as u64);
        counters.set(Counter::PatienceUs, impatience.patience_ns() / 1_000);
        let decisions =
            [(Counter::DecisionP50, 500), (Counter::DecisionP99, 990), (Counter::DecisionP999, 999)];
        decisions.into_iter().for_each(|(counter, part)| counters.set(counter, impatience.decision_us(part)));
        counters.set(Counter::Left, self.orders.slots.values().map(Slots::left).sum());
        counters.set(Counter::Ignored, counts.ignored);
        counters.set(Counter::UnreadableLogs, self.requests.unreadable() as u64);
    }
}

fn room<J: Journal>(orderer: &Orderer<Replica<J>>, log: NodeId) -> usize {
    match log {
        NodeId::Gateway(gateway) => orderer.room(gateway),
        _ => 0,
    }
}

fn log_config<W: World>(
    config: &SystemConfig,
    (id, seed): (MemberId, u64),
    log: &OrdersLog<W>,
) -> ReplicaConfig {
    let hosts = u8::try_from(config.hosts.len()).expect("checked: at most 9");
    assert!(id.number < hosts, "an orderer is a member of the log of its system's hosts");
    let config = ReplicaConfig {
        database: "orders".to_owned(),
        election_ticks: ELECTION_TICKS,
        heartbeat_ticks: HEARTBEAT_TICKS,
        copy_ticks: COPY_TICKS,
        id,
        seed,
        applied: log.applied().0,
        ..ReplicaConfig::new(id.number, hosts)
    };
    match log.copied() {
        Some(beginning) => config.again_behind(beginning.clone()),
        None if id.incarnation == Incarnation(0) => config,
        // Nobody's log, until there is a copy behind which it begins.
        None => ReplicaConfig { beginning: Beginning::default(), ..config },
    }
}

fn rules((host, incarnation): (HostId, Incarnation), config: &SystemConfig, seed: u64) -> OrdererConfig {
    OrdererConfig {
        host,
        incarnation,
        hosts: u8::try_from(config.hosts.len()).expect("checked: at most 9"),
        seed,
        gateways: u16::try_from(config.gateways.len()).expect("checked: at most 16"),
        window: config.window.into(),
        pending_max: config.in_flight_max + BATCH_MAX,
        tick_ns: TICK_NS,
    }
}

impl<W: World, P: Peers, J: Journal> Duty for OrdererNode<W, P, J> {
    fn work(&mut self) -> Result<usize, NodeError> {
        self.lookout.is_due(&self.world)?;
        self.tell_recorded();
        let taken = self.hear()? + self.read();
        let ordered = self.order()?;
        self.keep()?;
        self.show();
        Ok(taken + ordered)
    }

    fn look_everywhere(&mut self) {
        self.requests.look();
    }

    fn sleep_max(&self) -> Duration {
        let left_ns = self.orderer.deadline_ns().saturating_sub(self.world.mono_ns());
        Duration::from_nanos(left_ns).min(SLEEP_MAX)
    }

    /// All that it promised is on the device, and its next process continues in whichever boot.
    fn stop(&mut self) -> Result<(), NodeError> {
        assert_eq!(self.orders.appended, 0, "an end in order leaves nothing unpublished");
        self.orders.log.sync()?;
        let settled = self.orderer.log_mut().settle();
        settled.map_err(|error| NodeError::Refused(error.to_string()))?;
        self.life.note(&self.world, None)
    }
}
