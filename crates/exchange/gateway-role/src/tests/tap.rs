//! A gateway's tap has what its connections said, and costs nobody anything if it cannot be written.

use std::path::Path;
use std::sync::Arc;

use pares_config::SystemConfig;
use pares_doors::Doors;
use pares_log::{Config, Reader};
use pares_port::{TapClose, TapEntry, TapLoss};
use pares_roles::testing::TestWorld;
use pares_roles::world::World;
use pares_tap::{Tape, TapeEnd, TapedConnection, TapedMeaning, TapedPiece, TapedRole, TapedTalk};
use pares_types::GatewayId;
use pares_wire::frame;

use super::rig::{Rig, buy, config, sign_on};
use crate::tap::Tap;
use crate::types::session;

fn taped() -> Rig {
    Rig::with(SystemConfig { tap: true, ..config() })
}

/// A connection, the bytes that came and went, and what they say.
struct Taped {
    connection: TapedConnection,
    bytes: [Vec<u8>; 2],
    said: Vec<TapedMeaning>,
}

fn read(rig: &Rig) -> Vec<Taped> {
    let (tape, all) = tape(rig);
    let connections = tape.connections.into_iter();
    connections.zip(all).map(|(connection, (_, taped))| Taped { connection, ..taped }).collect()
}

fn tape(rig: &Rig) -> (Tape, Vec<(TapedTalk, Taped)>) {
    let mut reader = Reader::at_start(&rig.world.real(Path::new("tap/gateway-0"))).unwrap();
    let (mut tape, mut all) = (Tape::default(), Vec::<(TapedTalk, Taped)>::new());
    while let Some(record) = reader.next().unwrap() {
        let entry = TapEntry::read(record.payload).unwrap();
        let Some(index) = tape.take(&entry) else { continue };
        let connection = tape.connections[index].clone();
        if index == all.len() {
            let taped = Taped { connection, bytes: Default::default(), said: Vec::new() };
            all.push((TapedTalk::new(entry.door), taped));
        }
        let (talk, taped) = &mut all[index];
        if let Some(piece) = TapedPiece::of(&entry) {
            taped.bytes[usize::from(!piece.is_in)].extend_from_slice(piece.bytes);
            talk.take(&piece, |one| taped.said.push(one));
        }
    }
    for (talk, taped) in &mut all {
        talk.finish(|one| taped.said.push(one));
    }
    (tape, all)
}

#[test]
fn tap_holds_traffic_with_identity_and_end() {
    let mut rig = taped();
    let mut request = Vec::new();
    frame::write_request(&mut request, &buy(1, 1));
    let client = rig.net.connect();
    rig.net.send(client, &[sign_on(7), request.clone()].concat());
    rig.settle();
    let heard = rig.net.receive(client);
    rig.net.close(client);
    rig.settle();
    let stranger = rig.net.connect();
    rig.net.send(stranger, b"no frame at all");
    rig.settle();
    let [first, second] = &read(&rig)[..] else { panic!("two connections") };
    let end = TapeEnd::Closed(Some(TapClose::Gone));
    assert_eq!((first.connection.who, first.connection.end), (Some((7, 0)), end));
    assert_eq!(first.bytes, [[sign_on(7), request].concat(), heard]);
    let said: Vec<_> = first.said.iter().map(|one| (one.kind.clone(), one.name, one.role)).collect();
    let expected = [
        ("SignOn", None, TapedRole::Other),
        ("Enter", Some(1), TapedRole::Request),
        ("SignedOn", None, TapedRole::Other),
    ];
    assert_eq!(said, expected.map(|(kind, name, role)| (kind.to_owned(), name, role)));
    let end = TapeEnd::Closed(Some(TapClose::Malformed));
    assert_eq!((second.connection.who, second.connection.end), (None, end));
    assert_eq!((&second.bytes[0][..], second.connection.missing), (&b"no frame at all"[..], [0, 0]));
    assert_eq!((rig.counter("tap_lost_entries"), rig.counter("tap_lost_bytes")), (0, 0));
}

#[test]
fn dead_gateway_connections_end_and_renumber() {
    let mut rig = taped();
    rig.sign_on(7);
    let mut rig = rig.restart(|_| {}).unwrap();
    rig.sign_on(8);
    let [first, second] = read(&rig).try_into().ok().unwrap();
    let told = |one: &TapedConnection| (one.number, one.who, one.end);
    assert_eq!(told(&first.connection), (1, Some((7, 0)), TapeEnd::Gateway));
    assert_eq!(told(&second.connection), (1, Some((8, 0)), TapeEnd::Open));
    assert!(first.connection.life < second.connection.life);
}

#[test]
fn gateway_with_foreign_tap_runs_and_counts_losses() {
    let rig = taped();
    let mut rig = rig
        .restart(|world| {
            std::fs::write(world.real(Path::new("tap/gateway-0/marks")), b"no marks").unwrap();
        })
        .unwrap();
    rig.sign_on(7);
    assert!(rig.world.complaints().contains("runs without its tap"), "{}", rig.world.complaints());
    assert_eq!((rig.counter("tap_bytes"), rig.counter("tap_lost_entries")), (0, 3));
    assert!(rig.counter("tap_lost_bytes") > 0);
    assert_eq!(rig.counter("tap_untold_entries"), 3);
    // A process without a tap keeps it in mind, and one that has a tap says it there.
    rig.config.tap = false;
    let mut rig = rig.restart(|_| {}).unwrap();
    rig.settle();
    assert_eq!(rig.counter("tap_untold_entries"), 3);
    rig.config.tap = true;
    let mut rig = rig.restart(|world| world.remove_dir("tap/gateway-0")).unwrap();
    rig.settle();
    assert_eq!(tape(&rig).0.lost.0, 3);
    assert_eq!((rig.counter("tap_untold_entries"), rig.counter("tap_untold_bytes")), (0, 0));
}

#[test]
fn unopenable_tap_begins_later_without_restart() {
    let mut holder = None;
    let held = |world: &TestWorld| holder = Some(world.write_tap(GatewayId(0), Config::default()).unwrap());
    let mut rig = taped().restart(held).unwrap();
    rig.sign_on(7);
    rig.world.run_tasks();
    rig.settle();
    let lost = rig.counter("tap_untold_entries");
    assert!(lost > 0 && rig.counter("tap_bytes") == 0);
    drop(holder);
    rig.world.run_tasks();
    rig.settle();
    rig.sign_on(8);
    assert_eq!(tape(&rig).0.lost.0, lost);
    let taken = read(&rig).into_iter().find(|one| one.connection.who == Some((8, 0))).unwrap();
    assert_eq!(taken.bytes[0], sign_on(8));
    assert_eq!((rig.counter("tap_untold_entries"), rig.counter("tap_lost_entries")), (0, lost));
}

#[test]
fn an_operator_is_told_what_keeps_a_tap_from_being_tried_on() {
    let told = |rig: &Rig, words: &str| rig.world.complaints().matches(words).count();
    // A file has the name of the tap's directory.
    let rig = taped().restart(|world| {
        world.remove_dir("tap");
        std::fs::write(world.real(Path::new("tap")), b"").unwrap();
    });
    let mut rig = rig.unwrap();
    assert_eq!(told(&rig, "It keeps trying, and needs no restart when the cause is gone"), 1);
    rig.world.crowd(true);
    Tap::open(GatewayId(0), &rig.config, &rig.world, (TapLoss::default(), Arc::new(Doors)));
    rig.world.crowd(false);
    assert_eq!((told(&rig, "It cannot try again"), told(&rig, "It keeps trying")), (1, 1));
    // What is in the way now does not pass by itself.
    let log = rig.world.real(Path::new("tap/gateway-0"));
    std::fs::remove_file(rig.world.real(Path::new("tap"))).unwrap();
    std::fs::create_dir_all(&log).unwrap();
    std::fs::write(log.join("marks"), b"no marks").unwrap();
    (0..3).for_each(|_| rig.world.run_tasks());
    assert_eq!(told(&rig, "still runs without its tap"), 1, "{}", rig.world.complaints());
    std::fs::remove_dir_all(&log).unwrap();
    rig.world.run_tasks();
    rig.settle();
    assert_eq!(told(&rig, "records its tap from now on"), 1, "{}", rig.world.complaints());
}

#[test]
fn without_the_setting_there_is_no_tap() {
    let mut rig = Rig::new();
    rig.sign_on(7);
    assert!(!rig.world.real(Path::new("tap")).exists());
}

#[test]
fn moved_session_connection_ends_as_taken_over() {
    let mut rig = taped();
    rig.sign_on(7);
    rig.gateway.edge.connections.take_over(session(0, 1));
    rig.settle();
    let end = read(&rig)[0].connection.end;
    assert_eq!((end, end.name()), (TapeEnd::Closed(Some(TapClose::TakenOver)), "taken over"));
}
