//! Runs of a recorder's log, made and looked into.

use pares_config::NodeId;
use pares_types::{Epoch, GatewayId, Position, Request, ShardId, Status};

use super::run::Run;
use super::starts::start;
use super::*;
use crate::testing::TestWorld;
use crate::testing::records::{bid, request, result_to};

const RECORDER: RecorderId = RecorderId(0);
const LOG: NodeId = NodeId::Recorder(RECORDER);

/// Names of several members, scattered.
fn name(number: u64) -> (MemberId, ClientOrderId) {
    (MemberId((number % 7) as u32 + 1), ClientOrderId(number.wrapping_mul(0x9E37_79B9) % 100_000))
}

fn order(number: u64, reason: Reason) -> Vec<u8> {
    let (member, client_order_id) = name(number);
    let request = Request { member, client_order_id, command: bid(), ..request(GatewayId(0), number + 1) };
    let status = if reason == Reason::None { Status::Resting } else { Status::Refused };
    result_to(&request, (Epoch(1), number), (status, reason))
}

/// A log of so many orders, and where each lies.
fn recorded(world: &TestWorld, numbers: std::ops::Range<u64>) -> Vec<u64> {
    let orders: Vec<_> = numbers.map(|number| order(number, Reason::None)).collect();
    world.publish(LOG, &orders).into_iter().map(|offset| offset.0).collect()
}

fn found(world: &TestWorld, number: u64) -> Vec<u64> {
    let (dir, (member, client_order_id)) = (dir_of(RECORDER), name(number));
    let mut found = Vec::new();
    for stretch in stretches(world, &dir, Kind::Names).unwrap() {
        let (run, file) = Run::open(world, (&dir, Kind::Names), stretch).unwrap();
        found.extend(run.find(&file, key_of_name(member, client_order_id)).unwrap());
    }
    found
}

fn files(world: &TestWorld) -> Vec<String> {
    world.list(&dir_of(RECORDER)).unwrap()
}

#[test]
fn whatever_is_in_a_whole_run_is_found_where_it_lies() {
    let world = TestWorld::new();
    let places = recorded(&world, 0..3_500);
    world.index();
    assert_eq!(files(&world).len(), 6, "the rest is not a run yet");
    for (number, &place) in (0..3_000).zip(&places) {
        assert_eq!(found(&world, number), [place], "{number}");
    }
    assert!(found(&world, 3_000).is_empty() && found(&world, 9_999).is_empty());
}

#[test]
fn the_log_grows_and_so_does_the_index() {
    let world = TestWorld::new();
    recorded(&world, 0..1_500);
    world.index();
    let places = recorded(&world, 1_500..2_100);
    world.index();
    assert_eq!((files(&world).len(), found(&world, 1_600)), (4, vec![places[100]]));
}

#[test]
fn lost_or_damaged_run_is_rebuilt_others_stay() {
    let world = TestWorld::new();
    let places = recorded(&world, 0..3_500);
    world.index();
    let before = files(&world);
    // One of names, one of streams.
    for (file, at) in [(1, 20), (1, 5_000), (4, 5_000), (4, 24_120)] {
        let path = dir_of(RECORDER).join(&before[file]);
        let bytes = || std::fs::read(world.real(&path)).unwrap();
        let whole = bytes();
        world.spoil(&path, at);
        world.index();
        assert_eq!((files(&world), bytes()), (before.clone(), whole), "{at}");
    }
    for file in [1, 4] {
        world.remove_file(&dir_of(RECORDER).join(&before[file])).unwrap();
        world.index();
        assert_eq!((files(&world), found(&world, 1_500)), (before.clone(), vec![places[1_500]]));
    }
}

#[test]
fn runs_of_what_the_log_lost_go() {
    let world = TestWorld::new();
    recorded(&world, 0..2_500);
    world.index();
    world.rename("recorder-0/index".as_ref(), "kept".as_ref()).unwrap();
    world.remove_dir("recorder-0");
    recorded(&world, 0..1_200);
    world.rename("kept".as_ref(), "recorder-0/index".as_ref()).unwrap();
    world.index();
    assert_eq!(files(&world).len(), 2);
}

/// The member of that order wants to be told what it was answered.
fn wanted(number: u64) -> Wanted {
    Wanted {
        session: pares_gateway::SessionId(0),
        member: name(number).0,
        shard: ShardId(0),
        next: number / 7 + 1,
        recorder: RECORDER,
        elsewhere: true,
        later: 0,
    }
}

fn stream_of(world: &TestWorld, number: u64) -> StreamStart {
    start(world, 1, &wanted(number)).unwrap()
}

#[test]
fn stream_read_from_wanted_message_or_unindexed_part() {
    let world = TestWorld::new();
    let places = recorded(&world, 0..3_500);
    world.index();
    for (number, &place) in (0..).zip(&places) {
        let from = number.min(3_000);
        let offset = if number < 3_000 { place } else { places[3_000] };
        // Of the member's orders, which are seven apart.
        let counted = if number < 3_000 { number / 7 } else { (3_000_u64 - number % 7).div_ceil(7) };
        let start =
            StreamStart { recorder: RECORDER, offset: Offset(offset), position: Position(from), counted };
        assert_eq!(stream_of(&world, number), start, "{number}");
    }
    let other = Wanted { member: MemberId(9), ..wanted(9) };
    let behind = StreamStart {
        offset: Offset(places[3_000]),
        position: Position(3_000),
        ..StreamStart::beginning(RECORDER)
    };
    assert_eq!(start(&world, 1, &other), Ok(behind), "who was told nothing so far");
    let of_another_shard = Wanted { shard: ShardId(1), ..wanted(9) };
    assert_eq!(start(&world, 1, &of_another_shard), Ok(StreamStart::beginning(RECORDER)));
}

#[test]
fn a_stream_whose_runs_are_lost_is_read_from_where_another_ends() {
    let world = TestWorld::new();
    let places = recorded(&world, 0..3_500);
    world.index();
    let files = files(&world);
    let from = |number| stream_of(&world, number).offset.0;
    world.spoil(&dir_of(RECORDER).join(&files[5]), 5_000);
    assert_eq!([from(2_990), from(1_990)], [places[2_000], places[1_990]]);
    world.remove_file(&dir_of(RECORDER).join(&files[4])).unwrap();
    assert_eq!([from(2_990), from(1_990), from(500)], [places[1_000], places[1_000], places[500]]);
    files[3..].iter().for_each(|file| _ = world.remove_file(&dir_of(RECORDER).join(file)));
    assert_eq!(from(2_990), 0);
    world.index();
    assert_eq!(from(2_990), places[2_990]);
}

#[test]
fn refusals_that_stand_behind_another_answer_are_not_indexed() {
    for (reason, is_row) in [
        (Reason::DuplicateRequest, false),
        (Reason::TooOld, false),
        (Reason::UnknownOrder, true),
        (Reason::None, true),
    ] {
        let payload = order(5, reason);
        let row = row_of_name(&ResultRecord::read(&payload).unwrap(), Offset(64)).unwrap();
        assert_eq!(row.is_some(), is_row, "{reason:?}");
    }
}
