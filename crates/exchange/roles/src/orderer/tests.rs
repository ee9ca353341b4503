//! Three hosts' orderers, turn by turn, each in a world of its own; the gateways' logs are written at each, as mirrors would.

mod lost;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use super::*;
use crate::testing::{TestWorld, records};
use crate::venue::{ANSWERED_OFFSET_COUNTER, VenueNode, Watch};
use crate::whole_file;
use pares_cluster::memory::Disk;
use pares_config::HostConfig;
use pares_log::{Config, Writer};
use pares_sequencer::Sequencer;
use pares_types::{GatewayId, RecorderId, Request, VenueId};
use pares_wire::record::{ORDERS_STATE, RequestRecord, ResultRecord, schema};

const SHARD: ShardId = ShardId(0);
/// The life of the hosts' windows.
const LIFE: Epoch = Epoch(3);

fn config() -> SystemConfig {
    let host = |id: u8| {
        let at = |port: u16| std::net::SocketAddr::from(([127, 0, 0, id + 1], port));
        let (gateways, venues) = (vec![id.into()], vec![id.into()]);
        let (name, recorder) = (id.to_string(), id.into());
        let (publishers, replayers) = (Vec::new(), Vec::new());
        HostConfig { name, orders: at(1), mirror: at(2), gateways, venues, recorder, publishers, replayers }
    };
    SystemConfig {
        venues: 3,
        recorders: 3,
        quorum: 2,
        gateways: (1..4).map(|id| std::net::SocketAddr::from(([127, 0, 0, id], 7100))).collect(),
        hosts: (0..3).map(host).collect(),
        ..records::config()
    }
}

type Inbox = Rc<RefCell<VecDeque<(HostId, Vec<u8>)>>>;

/// One host's end of a network that loses nothing.
struct End(HostId, Vec<Inbox>);

impl Peers for End {
    fn send(&mut self, to: HostId, message: Vec<u8>) {
        self.1[usize::from(to.0)].borrow_mut().push_back((self.0, message));
    }
    fn receive(&mut self) -> Option<(HostId, Vec<u8>)> {
        self.1[usize::from(self.0.0)].borrow_mut().pop_front()
    }
    fn ended(&mut self) -> Option<HostId> {
        None
    }
}

type Node = OrdererNode<TestWorld, End, Disk>;

struct Host {
    world: TestWorld,
    gateways: Vec<Writer>,
    disk: Disk,
    node: Option<Node>,
}

struct Rig {
    config: SystemConfig,
    hosts: Vec<Host>,
    inboxes: Vec<Inbox>,
    /// So often a node ended to begin behind a copy.
    copies: u64,
}

impl Rig {
    fn new() -> Self {
        let config = config();
        let host = |id| {
            let world = TestWorld::new();
            for &shard in config.shards().unwrap().keys() {
                world.create_window(shard, config.window as usize, LIFE, Position(0)).unwrap();
            }
            let log =
                |id| world.write_log(NodeId::Gateway(id), Config::default().segment_bytes(1 << 20)).unwrap();
            let gateways = config.gateway_ids().map(log).collect();
            let (path, text) = first_life(HostId(id));
            whole_file::write(&world, &path, &text).unwrap();
            Host { world, gateways, disk: Disk::new(), node: None }
        };
        let mut rig = Self { hosts: (0..3).map(host).collect(), inboxes: vec![], config, copies: 0 };
        rig.inboxes = (0..3).map(|_| Inbox::default()).collect();
        (0..3).for_each(|index| rig.start(index));
        rig
    }

    fn start(&mut self, index: usize) {
        let (id, host) = (HostId(index as u8), &mut self.hosts[index]);
        self.inboxes[index].borrow_mut().clear();
        let end = End(id, self.inboxes.clone());
        let Host { world, disk, .. } = host;
        let journal = |is_new| {
            if is_new {
                *disk = Disk::new();
            }
            Ok(disk.clone())
        };
        let opened = OrdererNode::open(id, &self.config, world.clone(), end, journal);
        host.node = Some(opened.unwrap_or_else(|error| panic!("{error}")));
    }

    fn kill(&mut self, index: usize) {
        self.hosts[index].node = None;
        self.hosts[index].disk.crash(u64::MAX);
    }

    /// A gateway is asked for this, and its log is mirrored.
    fn ask(&mut self, request: &Request) {
        for host in &mut self.hosts {
            let writer = &mut host.gateways[usize::from(request.id.gateway().0)];
            writer.append(&records::payload(request)).unwrap();
            writer.publish();
        }
    }

    fn step(&mut self) {
        for index in 0..3 {
            let host = &mut self.hosts[index];
            host.world.pass(100_000);
            if let Some(Err(error)) = host.node.as_mut().map(Duty::work) {
                let error = error.to_string();
                assert!(error.contains("copy") || error.contains("older than it was"), "{error}");
                self.copies += 1;
                self.kill(index);
                self.start(index);
            }
        }
    }

    /// Until all vote, and then a request of gateway 0 is ordered by all hosts.
    fn run_until_whole(&mut self, sequence: u64) {
        self.run_until(|rig| (0..3).all(|index| rig.counter(index, "votes") == 1));
        self.ask(&request(0, sequence));
        let last = Some(request(0, sequence).id);
        self.run_until(|rig| (0..3).all(|index| rig.hosts[index].ordered(index).last().copied() == last));
    }

    fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..20_000 {
            if done(self) {
                return;
            }
            self.step();
        }
        panic!("it never comes to that");
    }

    /// Until those that are up have so many positions of the shard in their windows.
    fn run_to(&mut self, position: u64) {
        let has = |host: &Host| host.node.is_none() || host.window().undecided() == Position(position);
        self.run_until(|rig| rig.hosts.iter().all(has));
    }

    fn leader(&self) -> Option<usize> {
        self.hosts.iter().position(|host| host.node.as_ref().is_some_and(|node| node.orderer.role().leads))
    }

    fn counter(&self, index: usize, counter: &str) -> u64 {
        self.hosts[index].world.counter(&format!("orderer-{index}"), counter).unwrap()
    }
}

impl Host {
    fn window(&self) -> pares_sequencer::LocalWindow {
        self.world.open_window(SHARD).unwrap().unwrap()
    }

    /// The sequences of the requests in its orders log.
    fn ordered(&self, index: usize) -> Vec<RequestId> {
        let log = self.world.payloads(NodeId::Orderer(HostId(index as u8)));
        let requests = log.iter().filter(|payload| schema(payload) != Some(ORDERS_STATE));
        requests.map(|payload| RequestRecord::read(payload).unwrap().id).collect()
    }

    /// What its window holds from a position on.
    fn decided(&self, from: u64) -> Vec<RequestId> {
        let mut decided = Vec::new();
        self.window().propose(Position(from), &[], 10_000, &mut decided).unwrap();
        decided
    }
}

fn request(gateway: u16, sequence: u64) -> Request {
    records::request(GatewayId(gateway), sequence)
}

/// Three hosts that have ordered so many requests of each gateway.
fn running(each: u64) -> (Rig, usize) {
    let mut rig = Rig::new();
    for sequence in 1..=each {
        (0..3).for_each(|gateway| rig.ask(&request(gateway, sequence)));
    }
    rig.run_to(3 * each);
    let leader = rig.leader().unwrap();
    (rig, leader)
}

#[test]
fn all_hosts_write_down_one_order_and_put_it_into_their_windows() {
    let (rig, leader) = running(10);
    let first = rig.hosts[0].ordered(0);
    assert_eq!(first.len(), 30);
    for (index, host) in rig.hosts.iter().enumerate() {
        assert_eq!(host.ordered(index), first);
        assert_eq!(host.decided(0), first);
        assert_eq!((rig.counter(index, "ordered"), rig.counter(index, "pending")), (30, 0));
        assert_eq!(rig.counter(index, "leads"), u64::from(index == leader));
    }
}

#[test]
fn the_others_continue_when_the_leader_dies_and_it_joins_again() {
    let (mut rig, leader) = running(5);
    rig.kill(leader);
    (6..=20).for_each(|sequence| rig.ask(&request(1, sequence)));
    rig.run_to(30);
    assert_ne!(rig.leader().unwrap(), leader);
    rig.start(leader);
    rig.run_to(30);
    let orders: Vec<_> = rig.hosts.iter().enumerate().map(|(index, host)| host.ordered(index)).collect();
    assert!(orders.iter().all(|order| *order == orders[0]));
    assert!((0..3).all(|index| rig.hosts[index].decided(0) == orders[0]));
}

#[test]
fn what_was_not_recorded_is_in_the_windows_next_life() {
    let (mut rig, _) = running(5);
    let order = rig.hosts[0].ordered(0);
    rig.kill(0);
    rig.hosts[0].world.create_window(SHARD, 1_024, Epoch(LIFE.0 + 1), Position(7)).unwrap();
    for &shard in rig.config.shards().unwrap().keys().filter(|shard| **shard != SHARD) {
        rig.hosts[0].world.create_window(shard, 1_024, Epoch(LIFE.0 + 1), Position(0)).unwrap();
    }
    rig.start(0);
    assert_eq!(rig.hosts[0].decided(7), order[7..]);
    (6..=8).for_each(|sequence| rig.ask(&request(0, sequence)));
    rig.run_to(18);
    assert_eq!(rig.hosts[0].decided(7), rig.hosts[1].decided(7));
}

#[test]
fn its_log_begins_at_a_state_before_which_all_is_recorded() {
    let (mut rig, _) = running(1);
    let mut next = 2;
    while rig.counter(0, ANSWERED_OFFSET_COUNTER) < 3 << 20 {
        (0..200).for_each(|more| rig.ask(&request(2, next + more)));
        next += 200;
        rig.run_to(next + 1);
        for host in &rig.hosts {
            host.window().follow_record(host.window().undecided());
        }
        rig.step();
    }
    let log = rig.hosts[0].world.payloads(NodeId::Orderer(HostId(0)));
    assert!((log.len() as u64) < next, "its beginning is released");
    rig.kill(0);
    rig.start(0);
    (0..3).for_each(|more| rig.ask(&request(2, next + more)));
    rig.run_to(next + 4);
    assert_eq!(rig.hosts[0].ordered(0)[..].last_chunk::<9>(), rig.hosts[1].ordered(1)[..].last_chunk::<9>());
}

#[test]
fn a_venue_executes_what_the_hosts_have_ordered() {
    let mut rig = Rig::new();
    let (world, id) = (rig.hosts[0].world.clone(), VenueId(0));
    let (watch, suspect) = Watch::open(&world, id, LIFE).unwrap();
    let mut venue = VenueNode::open(id, &rig.config, world.clone(), &Arc::new(watch), suspect).unwrap();
    (1..=4).for_each(|sequence| rig.ask(&request(1, sequence)));
    rig.run_to(4);
    (0..300).for_each(|_| _ = venue.work().unwrap());
    let results = world.payloads(NodeId::Venue(id));
    let told = |result: &Vec<u8>| {
        let result = ResultRecord::read(result).unwrap();
        (result.epoch(), result.position(), result.request_id().unwrap())
    };
    let expected: Vec<_> =
        (0..).zip(rig.hosts[0].ordered(0)).map(|(p, id)| (Epoch(1), Position(p), id)).collect();
    assert_eq!(results.iter().map(told).collect::<Vec<_>>(), expected);
}

#[test]
fn a_message_of_another_version_is_ignored() {
    let (mut rig, _) = running(1);
    rig.inboxes[0].borrow_mut().push_back((HostId(1), vec![9, 9]));
    rig.step();
    assert_eq!(rig.counter(0, "ignored"), 1);
}

#[test]
fn a_venue_follows_a_record_that_its_window_has_not_heard_of() {
    let mut rig = Rig::new();
    rig.kill(0);
    let (world, id) = (rig.hosts[0].world.clone(), VenueId(0));
    let (watch, suspect) = Watch::open(&world, id, LIFE).unwrap();
    let mut venue = VenueNode::open(id, &rig.config, world.clone(), &Arc::new(watch), suspect).unwrap();
    // Gateway 0's requests 1 to 3 are executed at other hosts, and recorded.
    (0..2).for_each(|recorder| {
        _ = world.publish(NodeId::Recorder(RecorderId(recorder)), &records::results(0..3))
    });
    (0..300).for_each(|_| _ = venue.work().unwrap());
    assert_eq!(rig.hosts[0].window().recorded(), Position(3));
    (1..=5).for_each(|sequence| rig.ask(&request(0, sequence)));
    rig.start(0);
    rig.run_to(5);
    (0..300).for_each(|_| _ = venue.work().unwrap());
    assert_eq!(world.results(NodeId::Venue(id)), [(1, 0), (1, 3), (1, 4)], "position 0 for its hash");
}

#[test]
fn who_missed_what_is_let_go_of_continues_behind_a_copy() {
    let (mut rig, leader) = running(1);
    let away = (leader + 1) % 3;
    rig.kill(away);
    let mut next = 2;
    while (0..3).any(|index| index != away && rig.counter(index, ANSWERED_OFFSET_COUNTER) < 1 << 20) {
        (0..200).for_each(|more| rig.ask(&request(2, next + more)));
        next += 200;
        rig.run_to(next + 1);
        rig.hosts.iter().for_each(|host| host.window().follow_record(Position(next + 1)));
        rig.step();
    }
    rig.start(away);
    rig.run_until(|rig| rig.copies == 1);
    for _ in 0..2 {
        rig.kill(away);
        rig.start(away);
        rig.ask(&request(0, next));
        next += 1;
        rig.run_to(next + 1);
    }
    assert_eq!(rig.hosts[away].decided(next), rig.hosts[leader].decided(next));
}
