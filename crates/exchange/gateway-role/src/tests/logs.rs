//! Logs that rot, get lost, or hold what this build does not know; and shards that stand still.

use std::path::Path;

use pares_config::{NodeId, SystemConfig};
use pares_roles::duty::Duty;
use pares_roles::testing::TestWorld;
use pares_roles::testing::records::payload;
use pares_roles::venue::{ANSWERED_OFFSET_COUNTER, EPOCH_COUNTER};
use pares_roles::world::World;
use pares_roles::{NodeError, repair_asked};
use pares_types::{Reason, Request};

use super::rig::{EPOCH, PEER, Rig, SELF, answered, buy, config, open, rejected};
use super::sockets::Net;

/// Orders of a member, taken in by another gateway.
fn of_peer(names: std::ops::RangeInclusive<u64>) -> Vec<Request> {
    let (rig, _) = Rig::of(names);
    let id =
        |request: &Request| pares_types::RequestId::new(pares_types::GatewayId(1), request.id.sequence());
    rig.journalled().into_iter().map(|request| Request { id: id(&request), ..request }).collect()
}

/// A gateway that member 7 asked for an order, which is recorded.
fn recorded() -> (Rig, usize, Vec<Request>) {
    let (mut rig, client) = Rig::of([1]);
    let requests = rig.commit_all();
    assert_eq!(answered(&rig.told(client)), [1]);
    (rig, client, requests)
}

fn names(requests: &[Request]) -> Vec<u64> {
    requests.iter().map(|request| request.client_order_id.0).collect()
}

#[test]
fn damage_in_other_gateway_log_skipped_and_reported() {
    let mut rig = Rig::new();
    rig.world.publish(PEER, &of_peer(1..=3).iter().map(payload).collect::<Vec<_>>());
    rig.world.flip(PEER, rig.world.places(PEER)[1]);
    rig.look_around();
    assert_eq!((rig.counter("damaged"), rig.counter("names")), (1, 2));
    assert!(
        rig.world.complaints().contains("gateway-1 is damaged") && repair_asked::is_asked(&rig.world, PEER)
    );
}

#[test]
fn unknown_records_of_other_gateway_are_counted() {
    let mut rig = Rig::new();
    rig.world.publish(PEER, &[vec![0xff; 64], vec![0xfe; 64], payload(&of_peer(1..=1)[0])]);
    rig.look_around();
    assert_eq!((rig.counter("damaged"), rig.counter("names")), (2, 1));
    assert_eq!(rig.world.complaints().matches("skipping record").count(), 2);
}

#[test]
fn damaged_log_rebuilt_without_reusing_numbers() {
    for damaged in [0, 1, 2] {
        let (rig, _) = Rig::of(1..=3);
        let before = rig.journalled();
        let at = rig.world.places(SELF)[damaged];
        let mut rig = rig.restart(|world| world.flip(SELF, at)).unwrap();
        let client = rig.sign_on(7);
        rig.enter(client, 1..=3);
        let after = rig.journalled();
        let whole: Vec<_> = before.iter().filter(|one| **one != before[damaged]).copied().collect();
        assert_eq!(after[..2], whole, "{:?}", names(&after));
        assert!(after[2..].iter().all(|one| one.id.sequence() > 3), "{after:?}");
        assert_eq!(names(&after[4..]), [damaged as u64 + 1], "the lost one is taken in again");
        assert!(rig.world.complaints().contains("rebuilt its log from the 2 intact requests"));
        let again = rig.restart(|_| {}).unwrap().journalled();
        assert_eq!(again, after);
    }
}

#[test]
fn log_with_lost_marks_rebuilt_without_reusing_numbers() {
    let (rig, _) = Rig::of([1]);
    let lose_marks = |world: &TestWorld| {
        std::fs::write(world.real(Path::new(&format!("{SELF}/marks"))), [7; 4_096]).unwrap();
    };
    let mut rig = rig.restart(lose_marks).unwrap();
    let client = rig.sign_on(7);
    rig.ask(client, &buy(2, 1));
    let after = rig.journalled();
    assert_eq!(after[0].id.sequence(), 1, "it is whole, and kept");
    assert!(after.len() > 1 && after[1..].iter().all(|one| one.id.sequence() > 1 << 32), "{after:?}");
    assert!(rig.world.open_file(Path::new("gateway-0/damaged-1/marks")).is_ok());
}

#[test]
fn who_is_asked_to_repair_its_log_ends_and_reads_it_through() {
    let mut rig = Rig::new();
    repair_asked::ask(&rig.world, SELF);
    let end = (0..300).find_map(|_| rig.gateway.work().err());
    assert!(matches!(end, Some(NodeError::RepairAsked)));
    let rig = rig.restart(|_| {}).unwrap();
    assert!(!repair_asked::is_asked(&rig.world, SELF));
}

#[test]
fn rotten_answered_request_does_not_stop_start() {
    let (rig, ..) = recorded();
    let mut rig = rig.restart(|world| world.flip(SELF, world.places(SELF)[0])).unwrap();
    let client = rig.sign_on(7);
    assert_eq!(answered(&rig.ask(client, &buy(1, 1))), [1]);
}

/// What may befall a gateway's log while its system runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Removed,
    Moved,
    /// Its files are removed, its directory is not.
    Emptied,
    /// An older copy of it lies in its place.
    Older,
}

fn lose(world: &TestWorld, loss: Loss) {
    let (log, away) = (Path::new("gateway-0"), Path::new("away"));
    match loss {
        Loss::Removed => world.remove_dir(log),
        Loss::Moved => world.rename(log, away).unwrap(),
        Loss::Emptied => {
            world.list(log).unwrap().iter().for_each(|file| world.remove_file(&log.join(file)).unwrap())
        }
        Loss::Older => {
            world.remove_dir(log);
            world.rename(Path::new("older"), log).unwrap();
        }
    }
}

fn copy(world: &TestWorld, from: &str, to: &str) {
    std::fs::create_dir(world.real(Path::new(to))).unwrap();
    // The next segment may just be in the making.
    let files = world.list(Path::new(from)).unwrap().into_iter().filter(|file| !file.ends_with("tmp"));
    for file in files {
        std::fs::copy(world.real(&Path::new(from).join(&file)), world.real(&Path::new(to).join(&file)))
            .unwrap();
    }
}

/// What comes of a restart of a gateway that took in three requests, of which so many were recorded, and lost its log.
fn after_loss(loss: Loss, recorded: usize) -> (TestWorld, Option<NodeError>) {
    let (mut rig, client) = Rig::of([1]);
    copy(&rig.world, "gateway-0", "older");
    rig.enter(client, 2..=3);
    let requests = rig.journalled();
    rig.commit(&requests[..recorded]);
    let world = rig.world.clone();
    (world, rig.restart(|world| lose(world, loss)).err())
}

#[test]
fn a_gateway_whose_log_is_lost_stays_away_whatever_was_recorded() {
    for recorded in 0..=3 {
        for loss in [Loss::Removed, Loss::Moved, Loss::Emptied, Loss::Older] {
            let (world, ended) = after_loss(loss, recorded);
            // That an older log lies in its place only the record can tell.
            let is_seen = loss != Loss::Older || recorded > 1;
            let is_refused = matches!(ended, Some(NodeError::LogLost { .. }));
            assert_eq!(is_refused, is_seen, "{loss:?}, {recorded} recorded: {ended:?}");
            if loss != Loss::Older {
                let again = open(&world, &config(), &Net::default()).err();
                assert!(matches!(again, Some(NodeError::LogLost { .. })), "{loss:?}: the next process too");
            }
        }
    }
}

#[test]
fn a_gateway_whose_log_is_back_goes_on() {
    let (world, _) = after_loss(Loss::Moved, 0);
    world.rename(Path::new("away"), Path::new("gateway-0")).unwrap();
    open(&world, &config(), &Net::default()).unwrap();
}

#[test]
fn the_epoch_is_told_before_the_offset_that_is_of_it() {
    let (rig, ..) = recorded();
    assert!(rig.counter(ANSWERED_OFFSET_COUNTER) > 0);
    let mut rig = rig.restart(|_| {}).unwrap();
    assert_eq!((rig.counter(EPOCH_COUNTER), rig.counter(ANSWERED_OFFSET_COUNTER)), (u64::from(EPOCH.0), 0));
    rig.gateway.work().unwrap();
    assert!(rig.counter(ANSWERED_OFFSET_COUNTER) > 0);
}

#[test]
fn a_shard_that_is_halted_leaves_room_for_the_others() {
    let mut rig = Rig::with(SystemConfig { in_flight_max: 64, ..config() });
    let client = rig.sign_on(7);
    let told: Vec<_> = (1..=40).map(|name| rejected(&rig.ask(client, &buy(name, 1)))).collect();
    assert_eq!(told.iter().position(|reason| *reason == Some(Reason::Overloaded)), Some(32));
    assert_eq!(rejected(&rig.ask(client, &buy(41, 2))), None);
}

#[test]
fn repeat_waits_for_missing_record_then_answers() {
    let (mut rig, client, _) = recorded();
    let (log, away) = (Path::new("recorder-0"), Path::new("away"));
    rig.world.rename(log, away).unwrap();
    assert!(answered(&rig.ask(client, &buy(1, 1))).is_empty());
    rig.world.rename(away, log).unwrap();
    rig.settle();
    assert_eq!(answered(&rig.told(client)), [1]);
}

#[test]
fn rotten_repeat_is_repaired_and_answered_from_new_log() {
    let (mut rig, client, requests) = recorded();
    let recorder = NodeId::Recorder(pares_types::RecorderId(0));
    for _ in 0..2 {
        rig.world.flip(recorder, rig.world.places(recorder)[0]);
        assert!(answered(&rig.ask(client, &buy(1, 1))).is_empty());
        assert!(repair_asked::is_asked(&rig.world, recorder), "nobody else reads that record again");
        repair_asked::done(&rig.world, recorder);
        rig.world.remove_dir("recorder-0");
        rig.commit(&requests);
        assert_eq!(answered(&rig.told(client)), [1]);
    }
}

#[test]
fn skipped_request_is_accepted_on_repeat() {
    let (mut rig, client) = Rig::of(1..=2);
    let requests = rig.journalled();
    rig.commit(&requests[1..]);
    assert_eq!(answered(&rig.told(client)), [2]);
    rig.ask(client, &buy(1, 1));
    assert_eq!(names(&rig.journalled()), [1, 2, 1]);
}

#[test]
fn a_log_of_another_gateway_in_its_place_is_refused_with_a_word() {
    let rig = Rig::new();
    let world = rig.world.clone();
    drop(rig);
    world.publish(SELF, &of_peer(1..=3).iter().map(payload).collect::<Vec<_>>());
    let refused = open(&world, &config(), &Net::default()).err().unwrap().to_string();
    assert!(refused.contains("gateway-0 has requests of gateway-1"), "{refused}");
}
