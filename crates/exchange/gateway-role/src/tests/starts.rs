//! A gateway that starts from shards' checkpoints, and looks on disk for what lies before them.

use std::path::Path;

use pares_config::{NodeId, SignOnSetting, SystemConfig};
use pares_log::Offset;
use pares_roles::NodeError;
use pares_roles::durable_log;
use pares_roles::duty::Duty;
use pares_roles::testing::TestWorld;
use pares_roles::testing::records::request;
use pares_roles::world::World;
use pares_sequencer::Sequencer;
use pares_types::{
    ClientOrderId, Command, Entry, Epoch, GatewayId, InstrumentId, Key, MemberId, Position, Reason,
    RecorderId, Registration, Reply, Request, ShardId, Status, Timestamp,
};
use pares_wire::frame::GatewayFrame;

use super::resuming::order_of;
use super::rig::{EPOCH, Rig, SELF, answered, buy, config, rejected, result, result_of, start_anew};

const LOG: NodeId = NodeId::Recorder(RecorderId(0));
const SHARD: ShardId = ShardId(0);
/// The epoch of the next start.
const NEXT: Epoch = Epoch(EPOCH.0 + 1);

/// Recorder 0 has a checkpoint of the first shard, behind these requests, and one of the other, which is quiet; replay starts at `from`.
fn checkpoints(world: &TestWorld, requests: &[Request], from: Offset) {
    checkpoint(world, SHARD, requests, from);
    checkpoint(world, ShardId(1), &[], from);
}

fn checkpoint(world: &TestWorld, id: ShardId, requests: &[Request], from: Offset) {
    let position = world.store_checkpoint(&config(), id, requests, from);
    let mut window = world.open_window(id).unwrap().unwrap();
    let ids: Vec<_> = requests.iter().map(|request| request.id).collect();
    window.propose(Position(0), &ids, ids.len(), &mut Vec::new()).unwrap();
    window.raise_recorded(position);
}

/// Orders of the first shard are taken in and committed; those of the first `taken` are in a checkpoint, and nothing before is whole.
fn lived(orders: u64, taken: usize) -> Rig {
    let (mut rig, _) = Rig::of(1..=orders);
    let requests = rig.commit_all();
    let end = rig.world.read_log_from_start(LOG).unwrap().written();
    let from = rig.world.places(LOG).get(taken).copied().unwrap_or(end);
    checkpoints(&rig.world, &requests[..taken], from);
    rig
}

/// An order of that name is recorded and in a checkpoint, and the gateway has started again.
fn lived_with_name(name: u64) -> Rig {
    let (mut rig, _) = Rig::of([name]);
    let requests = rig.commit_all();
    checkpoints(&rig.world, &requests, Offset::START);
    rig.restart(|_| {}).unwrap()
}

fn repeats(frames: &[GatewayFrame]) -> Vec<u64> {
    let name = |frame: &GatewayFrame| match frame {
        GatewayFrame::Reply(Reply::Answer(answer)) if answer.repeat => Some(answer.client_order_id.0),
        _ => None,
    };
    frames.iter().filter_map(name).collect()
}

/// A client asks, and the gateway has the time it needs.
fn ask(rig: &mut Rig, client: usize, name: u64) -> Vec<GatewayFrame> {
    let mut told = rig.ask(client, &buy(name, 1));
    rig.world.run_tasks();
    rig.settle();
    told.extend(rig.told(client));
    told
}

#[test]
fn gateway_start_skips_records_before_checkpoint() {
    let flip_first = |world: &TestWorld| world.flip(LOG, Offset(100));
    let rig = lived(5, 3).restart(flip_first).unwrap();
    assert_eq!(rig.world.complaints(), "");
    assert_eq!(rig.journalled().len(), 5);
    let next = rig.restart(|_| {}).map(|mut rig| {
        let client = rig.sign_on(7);
        rig.ask(client, &buy(6, 1));
        rig.journalled()[5].id.sequence()
    });
    assert_eq!(next.unwrap(), 6);
}

#[test]
fn repeat_before_checkpoint_gets_first_answer() {
    let mut rig = lived(5, 5).restart(|_| {}).unwrap();
    let client = rig.sign_on(7);
    for name in [2, 5, 2] {
        assert_eq!(repeats(&ask(&mut rig, client, name)), [name]);
    }
    assert_eq!(rig.journalled().len(), 5, "nothing was asked again");
}

/// Its number is below one that was used; only its shard can say.
#[test]
fn who_is_late_and_not_found_is_taken_in() {
    let mut rig = lived_with_name(9);
    let client = rig.sign_on(7);
    assert!(answered(&ask(&mut rig, client, 3)).is_empty());
    assert_eq!(rig.journalled().len(), 2);
}

#[test]
fn endless_old_name_lookups_leave_others_room() {
    let mut rig = lived_with_name(1 << 40);
    let (greedy, other) = (rig.sign_on(7), rig.sign_on(7));
    let told = (1..=34_000).map(|name| rejected(&rig.ask(greedy, &buy(name, 1)))).collect::<Vec<_>>();
    assert_eq!(told.last(), Some(&Some(Reason::Overloaded)));
    assert_eq!(rejected(&rig.ask(other, &buy(50_000, 1))), None);
}

#[test]
fn damaged_checkpoint_costs_full_record_read() {
    let damage = |world: &TestWorld| world.spoil(Path::new("recorder-0/checkpoints/0-3.ckpt"), 200);
    let mut rig = lived(5, 3).restart(damage).unwrap();
    assert_eq!(rig.gateway.work().map(|_| rig.counter("names")).unwrap(), 5);
}

#[test]
fn a_checkpoint_of_a_future_that_did_not_happen_is_passed_over() {
    let rig = lived(5, 3);
    let mut rig = rig.restart(|world| start_anew(world, NEXT, 2)).unwrap();
    rig.settle();
    assert_eq!(rig.counter("names"), 5, "read from the beginning");
}

/// A recorder names a checkpoint when it alone has all below. The next life of the windows begins behind what any has.
#[test]
fn checkpoint_below_quorum_is_skipped() {
    let mut rig = Rig::with(SystemConfig { quorum: 2, ..config() });
    let client = rig.sign_on(7);
    rig.enter(client, 1..=5);
    let requests = rig.commit_all();
    let all = |to: usize| (0..).zip(&requests[..to]).map(|(at, one)| result(one, at)).collect::<Vec<_>>();
    rig.world.publish(NodeId::Recorder(RecorderId(1)), &all(3));
    checkpoints(&rig.world, &requests, Offset::START);
    let mut rig = rig.restart(|_| {}).unwrap();
    let client = rig.sign_on(7);
    assert_eq!(repeats(&ask(&mut rig, client, 3)), [3], "two recorders have it");
    assert!(answered(&ask(&mut rig, client, 5)).is_empty(), "one has it");
    rig.world.publish(NodeId::Recorder(RecorderId(1)), &all(5)[3..]);
    rig.settle();
    let told = answered(&rig.told(client));
    assert!(!told.is_empty(), "and then another");
}

/// The other recorder is being filled: it has no checkpoint, and so many records of the log, which begins where the first recorder's begins; the rest was dropped.
/// Behind the log's beginning, how far the gateway counts the record as committed; and what it says of that.
fn beside_one_that_is_filled(records: usize) -> (u64, String) {
    let rig = Rig::with(SystemConfig { quorum: 2, ..config() });
    let (begins, requests) = drop_beginning(&rig, 20_000);
    let from = begins.0 as usize;
    let filled = (begins.0..).zip(&requests[from..from + records]).map(|(at, one)| result(one, at));
    rig.world.publish(NodeId::Recorder(RecorderId(1)), &filled.collect::<Vec<_>>());
    for position in [from - 1, from + 10, 20_000] {
        rig.world.store_checkpoint(&config(), SHARD, &requests[..position], Offset::START);
    }
    let mut rig = rig.restart(|world| start_anew(world, NEXT, 20_000)).unwrap();
    rig.settle();
    (rig.gateway.rules.committed(SHARD).0 - begins.0, rig.world.complaints())
}

#[test]
fn oldest_continuing_checkpoint_used_after_drop() {
    let (committed, said) = beside_one_that_is_filled(15);
    assert_eq!(committed, 15, "both recorders show what follows the checkpoint up to there");
    assert!(said.contains("are confirmed by only one recorder's checkpoint"), "{said}");
}

#[test]
fn sole_checkpoint_commitment_is_warned_about() {
    let (committed, said) = beside_one_that_is_filled(4);
    assert_eq!(committed, 10, "the other recorder has not come so far, and nothing else is told of");
    assert!(said.contains("Do not replace recorders' disks"), "{said}");
}

/// Makes an empty log in the place of the gateway's.
fn empty(world: &TestWorld) {
    world.remove_dir(SELF.to_string());
    drop(world.write_log(SELF, durable_log(&config())).unwrap());
}

#[test]
fn gateway_missing_checkpointed_log_stays_out_one_life() {
    let lost = lived(5, 5).restart(empty).err();
    assert!(matches!(lost, Some(NodeError::LogLost { .. })), "{lost:?}");
    let anew = |world: &TestWorld| {
        empty(world);
        start_anew(world, NEXT, 5);
    };
    let mut rig = lived(5, 5).restart(anew).unwrap();
    let client = rig.sign_on(7);
    rig.ask(client, &buy(6, 1));
    assert_eq!(rig.journalled()[0].id.sequence(), 6, "no number is used twice");
}

/// Which of its numbers are of this life nobody can tell.
#[test]
fn gateway_without_log_stays_out_if_record_unreadable() {
    let lost = lived(5, 5).restart(|world| {
        empty(world);
        world.flip(LOG, Offset(100));
    });
    assert!(matches!(lost.as_ref().err(), Some(NodeError::LogLost { .. })), "{:?}", lost.err());
}

/// Requests of the gateway are in a checkpoint, and the record begins behind most of them.
fn dropped(requests: u64) -> Rig {
    let rig = Rig::new();
    let (_, requests) = drop_beginning(&rig, requests);
    rig.world.store_checkpoint(&config(), SHARD, &requests, Offset::START);
    rig
}

/// Recorder 0 has had so many requests of the gateway; with which position its log begins now.
fn drop_beginning(rig: &Rig, requests: u64) -> (Position, Vec<Request>) {
    let requests: Vec<_> = (0..requests).map(|at| order_of(GatewayId(0), at)).collect();
    rig.world.publish(LOG, &(0..).zip(&requests).map(|(at, one)| result(one, at)).collect::<Vec<_>>());
    let places = rig.world.places(LOG);
    assert!(rig.world.release(LOG, *places.last().unwrap()) > places[0]);
    (pares_roles::recorder::beginning(&rig.world, LOG, SHARD).unwrap(), requests)
}

/// Of its earlier requests only the checkpoint tells.
#[test]
fn power_cut_gateway_starts_with_truncated_record() {
    let in_life = |epoch| {
        move |world: &TestWorld| {
            empty(world);
            start_anew(world, epoch, 20_000);
        }
    };
    let same = dropped(20_000).restart(in_life(EPOCH)).err();
    assert!(matches!(same, Some(NodeError::LogLost { .. })), "{same:?}");
    let mut rig = dropped(20_000).restart(in_life(NEXT)).unwrap();
    let client = rig.sign_on(7);
    rig.ask(client, &buy(1, 1));
    assert_eq!(rig.journalled()[0].id.sequence(), 20_001, "no number is used twice");
}

/// The exchange changes its register, through another gateway.
pub(super) fn registered(sequence: u64, (member, session): (u32, u16), entry: Entry) -> Request {
    let change = Registration { member: MemberId(member), session, entry };
    Request {
        member: MemberId(0),
        client_order_id: ClientOrderId(1 << 48 | sequence),
        instrument: InstrumentId(0),
        command: Command::Register(change),
        ..request(GatewayId(1), sequence)
    }
}

/// Sessions 1 and 2 of member 7 get keys; a checkpoint is taken; then the second is revoked and a third gets one.
fn changed_register() -> Rig {
    let rig = Rig::with(SystemConfig { sign_on: SignOnSetting::Required, ..config() });
    let key = |number| Entry::SetKey(Key::Ed25519([number; 32]));
    let entries = [(0, Entry::AddMember), (1, key(1)), (2, key(2)), (2, Entry::RevokeKey), (3, key(3))];
    let asked = |(sequence, (session, entry))| registered(sequence, (7, session), entry);
    let requests: Vec<Request> = (1..).zip(entries).map(asked).collect();
    let results = (0..).zip(&requests).map(|(at, request)| result_of(request, at, Status::Accepted));
    rig.world.publish(LOG, &results.collect::<Vec<_>>());
    checkpoints(&rig.world, &requests[..3], rig.world.places(LOG)[3]);
    rig
}

/// Who signs on with which key at the gateway.
fn let_in(rig: &mut Rig) -> Vec<Option<Key>> {
    rig.look_around();
    let rules = &mut rig.gateway.rules;
    (1..=4).map(|session| rules.key_to_prove((MemberId(7), session), None, Timestamp(9)).unwrap()).collect()
}

/// The checkpoint holds the register. Whichever of its bits is flipped, the gateway reads the record instead, and lets in whom it should.
#[test]
fn a_damaged_register_lets_nobody_in_or_out() {
    let key = |number| Some(Key::Ed25519([number; 32]));
    let expected = [key(1), None, key(3), None];
    let mut rig = changed_register().restart(|_| {}).unwrap();
    assert_eq!(let_in(&mut rig), expected, "whole");
    let path = rig.world.real(Path::new("recorder-0/checkpoints/0-3.ckpt"));
    let whole = std::fs::read(&path).unwrap();
    let is_key = |window: &[u8]| window == [2; 32];
    assert!(whole.windows(32).any(is_key), "the revoked key lies in the checkpoint");
    // One bit of every third byte: all of them would take a minute.
    for at in (0..whole.len()).step_by(3) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&path, &damaged).unwrap();
        rig = rig.restart(|_| {}).unwrap();
        assert_eq!(let_in(&mut rig), expected, "a bit of byte {at} is flipped");
    }
}
