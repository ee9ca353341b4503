//! A gateway's tap has what its connections said, and costs nobody anything if it cannot be written.

use std::path::Path;

use pares_log::Reader;
use pares_tap::{TapEntry, Tape, TapeEnd, TapedConnection, TapedRole, meanings};
use pares_wire::frame;

use super::rig::{Rig, buy, config, sign_on};
use crate::SystemConfig;

fn taped() -> Rig {
    Rig::with(SystemConfig { tap: true, ..config() })
}

fn read(rig: &Rig) -> Vec<TapedConnection> {
    let mut reader = Reader::at_start(&rig.world.real(Path::new("tap/gateway-0"))).unwrap();
    let mut tape = Tape::default();
    while let Some(record) = reader.next().unwrap() {
        tape.take(&TapEntry::read(record.payload).unwrap(), &|_| true);
    }
    tape.connections
}

fn bytes(connection: &TapedConnection, is_in: bool) -> Vec<u8> {
    let pieces = connection.pieces.iter().filter(|piece| piece.is_in == is_in);
    pieces.flat_map(|piece| piece.bytes.clone()).collect()
}

#[test]
fn what_came_and_went_is_in_the_tap_with_who_said_it_and_how_it_ended() {
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
    assert_eq!((first.who, first.end), (Some((7, 0)), TapeEnd::Closed(1)));
    assert_eq!((bytes(first, true), bytes(first, false)), ([sign_on(7), request].concat(), heard));
    let said: Vec<_> = meanings(first).into_iter().map(|one| (one.kind, one.name, one.role)).collect();
    let expected = [
        ("SignOn", None, TapedRole::Other),
        ("Enter", Some(1), TapedRole::Request),
        ("SignedOn", None, TapedRole::Other),
    ];
    assert_eq!(said, expected.map(|(kind, name, role)| (kind.to_owned(), name, role)));
    assert_eq!((second.who, second.end), (None, TapeEnd::Closed(2)));
    assert_eq!((bytes(second, true), second.missing), (b"no frame at all".to_vec(), [0, 0]));
    assert_eq!((rig.counter("tap_lost_entries"), rig.counter("tap_lost_bytes")), (0, 0));
}

#[test]
fn connections_of_a_gateway_that_died_are_over_and_numbers_begin_anew() {
    let mut rig = taped();
    rig.sign_on(7);
    let mut rig = rig.restart(|_| {}).unwrap();
    rig.sign_on(8);
    let ends: Vec<_> = read(&rig).iter().map(|one| (one.life, one.number, one.who, one.end)).collect();
    assert_eq!(ends, [(1, 1, Some((7, 0)), TapeEnd::Gateway), (2, 1, Some((8, 0)), TapeEnd::Open)]);
}

#[test]
fn a_gateway_whose_tap_is_another_s_runs_without_it_and_counts_what_is_lost() {
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
}

#[test]
fn without_the_setting_there_is_no_tap() {
    let mut rig = Rig::new();
    rig.sign_on(7);
    assert!(!rig.world.real(Path::new("tap")).exists());
}
