//! A venue's turns, taken one by one.

use super::*;
use crate::duty::Duty;
use crate::testing::{TestWorld, records};
use crate::world::File as _;
use crate::{lanes, repair_asked};
use pares_config::LaneConfig;
use pares_log::Writer;
use pares_sequencer::Sequencer;
use pares_types::{
    Command, Epoch, GatewayId, MemberId, Phase, Position, RecorderId, Request, RequestId, VenueSet,
};
use pares_wire::record::{self, ResultRecord};
use zerocopy::IntoBytes;

const GATEWAY: GatewayId = GatewayId(0);
const VENUE: VenueId = VenueId(0);
const SHARD: ShardId = ShardId(0);
const EPOCH: Epoch = Epoch(2);

/// A system of one venue, with the logs that others would write.
struct Rig {
    world: TestWorld,
    config: SystemConfig,
    gateway: Writer,
    recorder: Writer,
}

fn id(sequence: u64) -> RequestId {
    RequestId::new(GATEWAY, sequence)
}

fn request(sequence: u64, shard: ShardId) -> Request {
    let command = Command::SetPhase(Phase::Continuous);
    Request { member: MemberId(0), shard, command, ..records::request(GATEWAY, sequence) }
}

impl Rig {
    /// With the windows of [`EPOCH`], in which the next position is `first`.
    fn new(first: u64) -> Self {
        let (world, config) = (TestWorld::new(), SystemConfig { venues: 1, ..SystemConfig::default() });
        for &shard in config.shards().unwrap().keys() {
            world.create_window(shard, 64, EPOCH, Position(if shard == SHARD { first } else { 0 })).unwrap();
        }
        let log = |node| world.write_log(node, Config::default().segment_bytes(1 << 20)).unwrap();
        let (gateway, recorder) = (log(NodeId::Gateway(GATEWAY)), log(NodeId::Recorder(RecorderId(0))));
        Self { world, config, gateway, recorder }
    }

    /// The same from position 0 on, in which the gateway has taken these requests.
    fn asked(sequences: impl IntoIterator<Item = u64>) -> Self {
        let mut rig = Self::new(0);
        rig.ask(sequences);
        rig
    }

    /// The gateway says that in this epoch all before that place of its log is answered.
    fn say_answered(&self, epoch: u32, before: Offset) {
        let names = [requests::EPOCH_COUNTER, requests::ANSWERED_OFFSET_COUNTER];
        let counters = self.world.create_counters("gateway-0", &names).unwrap();
        counters.set(0_usize, epoch.into());
        counters.set(1_usize, before.0);
    }

    /// The gateway takes these requests.
    fn ask(&mut self, sequences: impl IntoIterator<Item = u64>) {
        sequences.into_iter().for_each(|sequence| self.write(&request(sequence, SHARD)));
    }

    fn write(&mut self, request: &Request) {
        let bytes = record::request_bytes(request);
        self.gateway.append_with(bytes, |out| record::write_request(out, request)).unwrap();
        self.gateway.publish();
    }

    fn open(&self) -> Result<VenueNode<TestWorld>, NodeError> {
        let (watch, suspect) = Watch::open(&self.world, VENUE, EPOCH)?;
        VenueNode::open(VENUE, &self.config, self.world.clone(), &Arc::new(watch), suspect)
    }

    /// Starts the venue and lets it do what there is to do.
    fn run(&self) -> VenueNode<TestWorld> {
        let mut venue = self.open().unwrap();
        settle(&mut venue);
        venue
    }

    /// The requests whose results the venue has handed out, in order.
    fn handed_out(&self) -> Vec<u64> {
        let all = self.world.payloads(NodeId::Venue(VENUE));
        let sequence = |result: ResultRecord<'_>| result.request_id().unwrap().sequence();
        all.iter().map(|payload| sequence(ResultRecord::read(payload).unwrap())).collect()
    }

    /// A recorder takes all that the venue has handed out.
    fn record(&mut self) {
        for result in self.world.payloads(NodeId::Venue(VENUE)) {
            self.recorder.append(&result).unwrap();
        }
        self.recorder.publish();
    }

    /// A recorder stores a checkpoint at a position, of a shard in which nothing but requests of the gateway happened.
    fn store_checkpoint(&self, position: u64) {
        let requests: Vec<_> = (1..=position).map(|sequence| request(sequence, SHARD)).collect();
        self.world.store_checkpoint(&self.config, SHARD, &requests, Offset::START);
    }

    fn counter(&self, counter: &str) -> u64 {
        self.world.counter("venue-0", counter).unwrap()
    }

    /// Flips a bit of the last record in a node's log.
    fn damage(&self, node: NodeId) {
        let written = self.world.read_log_from_start(node).unwrap().written();
        self.world.flip(node, Offset(written.0 - 52));
    }
}

/// Lets the venue do what there is to do. Logs are looked for now and then only.
fn settle(venue: &mut VenueNode<TestWorld>) {
    for _ in 0..300 {
        venue.work().unwrap();
    }
}

/// A venue executes three requests and ends; `meanwhile` happens, and another begins.
fn restarted(meanwhile: impl FnOnce(&Rig)) -> Rig {
    let rig = Rig::asked(1..4);
    drop(rig.run());
    meanwhile(&rig);
    settle(&mut rig.run());
    rig
}

#[test]
fn what_gateways_ask_is_executed_and_handed_out() {
    let rig = Rig::asked(1..4);
    rig.run();
    assert_eq!((rig.handed_out(), rig.counter("position-0")), (vec![1, 2, 3], 3));
}

#[test]
fn records_followed_and_rehanded_only_for_hash_check() {
    let mut rig = Rig::asked(1..4);
    let mut before = rig.run();
    rig.record();
    settle(&mut before);
    drop(before);
    rig.ask(4..5);
    let venue = rig.run();
    assert_eq!((venue.seats[0].reached, rig.handed_out()), (Position(4), vec![1, 2, 3, 1, 4]));
}

#[test]
fn a_mark_of_this_epoch_and_no_earlier_one_says_where_to_join() {
    for (epoch, expected) in [(EPOCH.0, &[3][..]), (EPOCH.0 - 1, &[1, 2, 3])] {
        let mut rig = Rig::new(0);
        rig.ask(1..3);
        rig.say_answered(epoch, rig.gateway.tail());
        rig.ask(3..4);
        rig.run();
        assert_eq!(rig.handed_out(), expected, "{epoch}");
    }
}

#[test]
fn flipped_bit_in_gateway_log_skipped_repair_requested() {
    let mut rig = Rig::asked(1..3);
    rig.damage(NodeId::Gateway(GATEWAY));
    rig.ask(3..4);
    rig.run();
    assert_eq!((rig.handed_out(), rig.counter("damaged")), (vec![1, 3], 1));
    assert!(repair_asked::is_asked(&rig.world, NodeId::Gateway(GATEWAY)));
}

#[test]
fn records_of_fix_sessions_between_requests_are_ignored() {
    let mut rig = Rig::asked(1..2);
    let mark = record::SessionMark::default();
    let mark = record::SessionMarkRecord { reign: 1, gateway: GATEWAY, logon_ns: 0, mark }.bytes();
    rig.gateway.append(&mark).unwrap();
    rig.gateway.append(record::SpentLogonRecord::new((MemberId(7), 1), (5, 5), 9).as_bytes()).unwrap();
    rig.ask(2..3);
    rig.run();
    assert_eq!((rig.handed_out(), rig.counter("damaged")), (vec![1, 2], 0));
}

#[test]
fn what_is_no_request_of_this_system_is_passed_over() {
    let mut rig = Rig::new(0);
    rig.gateway.append(b"of a later version").unwrap();
    rig.write(&request(1, ShardId(999)));
    rig.write(&Request { id: RequestId::new(GatewayId(64), 9), ..request(9, SHARD) });
    rig.ask(2..3);
    rig.run();
    assert_eq!((rig.handed_out(), rig.counter("damaged")), (vec![2], 3));
}

#[test]
fn a_venue_whose_own_log_is_damaged_begins_another() {
    let rig = restarted(|rig| rig.damage(NodeId::Venue(VENUE)));
    assert_eq!(rig.handed_out(), [1, 2, 3]);
    assert!(rig.world.complaints().contains("damaged-1"), "{}", rig.world.complaints());
}

#[test]
fn a_venue_whose_log_is_none_begins_another() {
    let marks = "venue-0/marks".as_ref();
    let rig = restarted(|rig| std::fs::write(rig.world.real(marks), [7; 8192]).unwrap());
    assert_eq!(rig.handed_out(), [1, 2, 3]);
    assert!(rig.world.real("venue-0/damaged-1/marks".as_ref()).exists());
}

#[test]
fn venue_asked_to_repair_ends_and_rebuilds_at_start() {
    let rig = Rig::asked(1..4);
    let mut venue = rig.run();
    rig.damage(NodeId::Venue(VENUE));
    repair_asked::ask(&rig.world, NodeId::Venue(VENUE));
    let ended = (0..1_000).find_map(|_| venue.work().err());
    assert!(matches!(ended, Some(NodeError::RepairAsked)));
    drop(venue);
    settle(&mut rig.run());
    assert_eq!(rig.handed_out(), [1, 2, 3]);
}

#[test]
fn a_venue_whose_log_lacks_a_segment_begins_another() {
    let rig = restarted(|rig| {
        rig.world.remove_file("venue-0/00000000000000000000.seg".as_ref()).unwrap();
        repair_asked::ask(&rig.world, NodeId::Venue(VENUE));
    });
    assert_eq!(rig.handed_out(), [1, 2, 3]);
}

#[test]
fn panic_outside_engine_ends_venue_blames_no_request() {
    let mut rig = Rig::new(0);
    let mut venue = rig.run();
    rig.ask(1..2);
    assert!(venue.poll_gateways() > 0);
    let bench = venue.begin_step(0).unwrap();
    let ended = venue.end_step(0, bench, (None, None));
    assert!(matches!(ended, Err(NodeError::Panicked)));
    assert_eq!(rig.counter("engine_failures"), 0);
}

#[test]
fn a_venue_asked_to_repair_a_log_that_is_whole_keeps_it() {
    let rig = restarted(|rig| repair_asked::ask(&rig.world, NodeId::Venue(VENUE)));
    assert_eq!((rig.handed_out(), rig.world.complaints().as_str()), (vec![1, 2, 3, 1, 2, 3], ""));
}

#[test]
fn the_newest_checkpoint_of_what_is_recorded_is_the_beginning() {
    for (newest, reached) in [(5, 5), (6, 4)] {
        let rig = Rig::new(5);
        rig.store_checkpoint(4);
        rig.store_checkpoint(newest);
        assert_eq!(rig.open().unwrap().seats[0].reached, Position(reached));
        let told = rig.world.complaints().contains("checkpoints beyond the last recorded position");
        assert_eq!(told, newest > 5, "of a future that did not happen");
    }
}

#[test]
fn a_checkpoint_of_a_recorder_that_is_left_out_is_passed_over() {
    let rig = Rig::new(5);
    rig.store_checkpoint(4);
    let note = crate::left_out::LeftOut::new([(SHARD, EPOCH, Position(2))]);
    note.note(&rig.world, RecorderId(0)).unwrap();
    assert_eq!(rig.open().unwrap().seats[0].reached, Position(0));
}

/// A system of two shards whose recorder has dropped the beginning of the first one, and its checkpoint with it.
fn without_the_first_shards_state() -> Rig {
    let mut rig = Rig::new(6);
    rig.recorder.append(&records::result(1, 5)).unwrap();
    rig.recorder.publish();
    rig
}

#[test]
fn shard_without_state_waits_for_its_checkpoint() {
    let mut rig = without_the_first_shards_state();
    // What an earlier build made of such a shard.
    rig.store_checkpoint(0);
    rig.ask(6..8);
    let mut venue = rig.run();
    assert!(rig.world.complaints().contains("shard 0 cannot start: no checkpoint of it is readable"));
    assert_eq!((rig.counter("shards_away"), rig.counter("resynced"), rig.handed_out()), (1, 1, vec![]));
    for _ in 0..200 {
        rig.world.run_tasks();
        settle(&mut venue);
    }
    assert_eq!((rig.counter("shards_away"), rig.counter("checkpoints"), rig.handed_out()), (1, 0, vec![]));
    rig.store_checkpoint(6);
    rig.world.run_tasks();
    rig.world.run_tasks();
    settle(&mut venue);
    assert_eq!((rig.counter("shards_away"), rig.handed_out()), (0, vec![7]));
    assert_eq!(venue.seats[0].reached, Position(7));
}

#[test]
fn a_shard_of_which_nothing_is_recorded_begins_at_its_beginning() {
    let mut rig = Rig::new(0);
    rig.store_checkpoint(0);
    rig.ask(1..3);
    rig.run();
    assert_eq!((rig.counter("shards_away"), rig.handed_out()), (0, vec![1, 2]));
}

#[test]
fn a_shard_whose_engine_panics_is_restored_and_the_request_void() {
    let rig = Rig::asked(1..4);
    rig.world.poison(Some(id(2)));
    let mut venue = rig.run();
    assert_eq!((rig.counter("engine_failures"), rig.counter("shards_away")), (1, 1));
    rig.world.run_tasks();
    settle(&mut venue);
    assert_eq!((rig.counter("shards_restored"), rig.counter("shards_away")), (1, 0));
    assert_eq!((rig.handed_out(), venue.seats[0].reached), (vec![1, 2, 3], Position(3)));
}

#[test]
fn shard_restore_without_thread_retries_and_reports() {
    let rig = Rig::asked(1..4);
    rig.world.poison(Some(id(2)));
    rig.world.crowd(true);
    let mut venue = rig.run();
    assert_eq!(
        (rig.counter("restore_failures"), rig.world.complaints().contains("not restored after")),
        (1, false)
    );
    for _ in 1..8 {
        rig.world.pass(50_000_000);
        settle(&mut venue);
    }
    assert_eq!(rig.counter("restore_failures"), 8);
    let told = rig.world.complaints();
    assert!(told.contains("shard 0 is not restored after 8 attempts"), "{told}");
    rig.world.crowd(false);
    rig.world.pass(50_000_000);
    settle(&mut venue);
    rig.world.run_tasks();
    settle(&mut venue);
    assert_eq!((rig.counter("shards_away"), venue.seats[0].reached), (0, Position(3)));
}

#[test]
fn a_venue_of_an_earlier_epoch_ends() {
    let mut rig = Rig::new(0);
    let mut venue = rig.run();
    rig.world.create_window(SHARD, 64, Epoch(3), Position(0)).unwrap();
    rig.ask(1..2);
    let ended = (0..200).find_map(|_| venue.work().err());
    assert!(matches!(ended, Some(NodeError::EpochOver)));
}

#[test]
fn a_venue_that_is_shut_out_does_not_start() {
    let rig = Rig::new(0);
    rig.world.note_shut_out(0);
    assert!(matches!(rig.open(), Err(NodeError::ShutOut { .. })));
}

#[test]
fn shut_out_venue_does_not_start_running_one_continues() {
    let rig = Rig::new(0);
    let mut venue = rig.run();
    rig.world.create_file("shut-out".as_ref()).unwrap();
    (0..1_000).for_each(|_| _ = venue.work().unwrap());
    assert_eq!(rig.world.complaints().matches("shut-out").count(), 1, "told once");
    assert!(matches!(rig.open(), Err(NodeError::MaybeShutOut { .. })));
}

#[test]
fn unremovable_repair_request_is_reported_once() {
    let rig = Rig::new(0);
    rig.world.create_file("run/repair-venue-0/in the way".as_ref()).unwrap();
    rig.run();
    let told = rig.world.complaints();
    assert!(told.contains("run/repair-venue-0 cannot be removed"), "{told}");
}

#[test]
fn venue_missing_shard_rereads_rebuilt_gateway_log() {
    let mut rig = Rig::asked(1..4);
    rig.world.poison(Some(id(3)));
    let mut venue = rig.run();
    rig.record();
    let (log, config) = (NodeId::Gateway(GATEWAY), Config::default().segment_bytes(1 << 20));
    let other = rig.world.write_log(NodeId::Gateway(GatewayId(1)), config.clone()).unwrap();
    drop(std::mem::replace(&mut rig.gateway, other));
    let mut anew = rig.world.replace_log(log, config.clone()).unwrap();
    // Nothing lies where it lay: what the new log says is answered is no place of the old one.
    anew.append(b"of another length").unwrap();
    let places = [1, 2, 3].map(|sequence| anew.append(&records::payload(&request(sequence, SHARD))).unwrap());
    anew.complete().unwrap();
    rig.gateway = rig.world.write_log(log, config).unwrap();
    rig.say_answered(EPOCH.0, places[2]);
    rig.ask(4..5);
    rig.world.run_tasks();
    settle(&mut venue);
    rig.world.run_tasks();
    settle(&mut venue);
    assert_eq!((rig.handed_out(), venue.seats[0].reached), (vec![1, 2, 3, 4], Position(4)));
}

#[test]
fn no_checkpoint_begins_while_a_peer_joins() {
    let mut rig = Rig::new(0);
    rig.config = SystemConfig { venues: 2, checkpoint_every: 2, ..rig.config };
    let peer = rig.world.create_counters("venue-1", COUNTERS).unwrap();
    let mut venue = rig.open().unwrap();
    for (resynced, begun) in [(0, 0), (1, 1)] {
        peer.set(super::Counter::Resynced, resynced);
        // As many at once as two intervals for each venue: it is this one's turn.
        let from = 1 + 16 * resynced;
        rig.ask(from..from + 16);
        settle(&mut venue);
        assert_eq!(rig.counter("checkpointing"), begun);
    }
}

/// A system in which venue 0 executes shard 0 and nothing else, whatever the gateway asks.
fn of_one_lane() -> Rig {
    let mut rig = Rig::new(0);
    let lane =
        |shards: std::ops::Range<u16>, venue| LaneConfig { shards: shards.collect(), venues: vec![venue] };
    rig.config = SystemConfig { venues: 2, lanes: vec![lane(0..1, 0), lane(1..10, 1)], ..rig.config };
    rig
}

#[test]
fn a_venue_opens_and_executes_the_shards_of_its_lane_only() {
    let mut rig = of_one_lane();
    rig.ask(1..3);
    rig.write(&request(3, ShardId(1)));
    rig.write(&request(4, ShardId(999)));
    rig.ask(5..6);
    let venue = rig.run();
    assert_eq!(venue.seated().map(Shard::id).collect::<Vec<_>>(), [SHARD]);
    assert_eq!((rig.handed_out(), rig.counter("damaged")), (vec![1, 2, 5], 1));
    assert_eq!(rig.world.counter("venue-0", "position-1"), Some(0));
}

#[test]
fn damage_in_a_request_of_another_lane_is_left_to_its_venues() {
    let mut rig = of_one_lane();
    rig.ask(1..2);
    let mut venue = rig.run();
    // The first that a look finds is read whole.
    rig.ask(2..3);
    rig.write(&request(3, ShardId(1)));
    rig.damage(NodeId::Gateway(GATEWAY));
    rig.ask(4..5);
    settle(&mut venue);
    assert_eq!((rig.handed_out(), rig.counter("damaged")), (vec![1, 2, 4], 0));
}

#[test]
fn records_of_another_lane_move_nothing_here() {
    let mut rig = of_one_lane();
    for position in 0..40 {
        rig.recorder.append(&records::result_of(ShardId(1), EPOCH.0, position)).unwrap();
    }
    rig.recorder.publish();
    rig.ask(1..4);
    let mut venue = rig.run();
    rig.record();
    settle(&mut venue);
    assert_eq!((venue.seats[0].reached, venue.committed.committed(SHARD)), (Position(3), Position(3)));
    assert_eq!(rig.counter("observed"), 0);
}

#[test]
fn checkpoints_of_a_quiet_lane_follow_a_busy_one() {
    let mut rig = of_one_lane();
    rig.config.checkpoint_every = 10;
    let mut venue = rig.open().unwrap();
    let mut busy = rig.world.open_window(ShardId(1)).unwrap().unwrap();
    let mut record = |position: u64| {
        busy.propose(Position(position), &[id(1 + position)], 1, &mut Vec::new()).unwrap();
        busy.raise_recorded(Position(position).next());
    };
    // A tenth of the shards are its own, and so is every tenth of the checkpoints.
    for (recorded, taken) in [(0..190, 0), (190..200, 1)] {
        recorded.for_each(&mut record);
        rig.world.pass(checkpointing::LOOK_NS);
        settle(&mut venue);
        assert_eq!(rig.counter("checkpointing") + rig.counter("checkpoints"), taken);
    }
}

/// The next step is written by which shard 1 comes to that venue.
fn write_step(rig: &Rig, to: VenueId) {
    let placement = lanes::placement(&rig.world, &rig.config).unwrap();
    let seats = placement.seats(ShardId(1)).next(VenueSet::one(to)).unwrap();
    let text = placement.with(ShardId(1), seats, &rig.config).unwrap().text(&rig.config).unwrap();
    rig.world.create_file(std::path::Path::new("lanes")).unwrap().append(text.as_bytes()).unwrap();
}

/// Lets a venue and its tasks do what there is to do.
fn follow(rig: &Rig, venue: &mut VenueNode<TestWorld>) {
    for _ in 0..600 {
        venue.work().unwrap();
        rig.world.run_tasks();
    }
}

#[test]
fn a_shard_comes_to_a_venue_that_skipped_it_and_leaves_again() {
    let mut rig = of_one_lane();
    rig.config.recorders = 1;
    rig.config.quorum = 1;
    let mut venue = rig.run();
    let other = ShardId(1);
    let mut window = rig.world.open_window(other).unwrap().unwrap();
    let mut record = |rig: &mut Rig, positions: std::ops::Range<u64>| {
        for position in positions {
            window.propose(Position(position), &[id(1 + position)], 1, &mut Vec::new()).unwrap();
            rig.recorder.append(&records::result_of(other, EPOCH.0, position)).unwrap();
        }
        rig.recorder.publish();
    };
    record(&mut rig, 0..40);
    settle(&mut venue);
    let seated = |venue: &VenueNode<TestWorld>| venue.seated().map(Shard::id).collect::<Vec<_>>();
    for (seats, said) in [(vec![SHARD], 1), (vec![SHARD, other], 2), (vec![SHARD, other], 3)] {
        write_step(&rig, VENUE);
        follow(&rig, &mut venue);
        assert_eq!((seated(&venue), rig.counter("lanes")), (seats, said));
    }
    assert_eq!(rig.counter("position-1"), 40);
    record(&mut rig, 40..50);
    follow(&rig, &mut venue);
    assert_eq!((rig.counter("position-1"), venue.committed.committed(other)), (50, Position(50)));
    for (seats, said) in [(vec![SHARD, other], 4), (vec![SHARD, other], 5), (vec![SHARD], 6)] {
        write_step(&rig, VenueId(1));
        follow(&rig, &mut venue);
        assert_eq!((seated(&venue), rig.counter("lanes")), (seats, said));
    }
    assert_eq!(rig.counter("position-1"), 0);
}
