//! One copy, piece by piece, from a giver that the test plays.

use pares_cluster::Incarnation;
use pares_wice::{ClusterId, ClusterSet, Configuration, Stored, Version};

use super::super::standing::Numbers;
use super::*;
use crate::testing::Machine;

const FROM: SiteId = SiteId::new(1, 1);
const STORED: Stored = Stored { version: Version(7), position: 9, ..Stored::ENDLESS };
const ITEM_BYTES: usize = 512 << 10;

fn giver() -> Standing {
    let configuration = Configuration::first(ClusterSet::default().with(ClusterId(0)), ClusterId(0));
    let (is_fresh, leads, gives, knows) = (false, false, true, true);
    let voters = Numbers::default();
    let role = Role::Member(Member { configuration, is_fresh, term: 1, leads, gives, knows, voters });
    Standing { asks: false, incarnation: Incarnation::drawn(1), list: 0, role, speaks: pares_link::SPEAKS }
}

/// One that has heard of who gives, and that its copy begins.
fn begun(mut machine: Machine) -> (Machine, Filling<()>) {
    let mut filling = Filling::new(SiteId::new(0, 0), Lack::Items(STORED));
    filling.heard(FROM, giver());
    let asked = (0..AGAIN_TICKS).find_map(|_| filling.tick());
    assert!(asked.is_some_and(|(to, _)| to == FROM));
    let links = machine.wire.clone();
    let head = Head { copy: 3, log: None, stored: STORED };
    filling.begins(FROM, head, &mut machine, &links).unwrap();
    (machine, filling)
}

fn piece(number: u32, is_last: bool) -> Piece {
    let value = Value::new(vec![1; ITEM_BYTES]);
    Piece { copy: 3, number, items: vec![(Key::new(number.to_be_bytes()), value)], is_last }
}

#[test]
fn a_slow_disk_is_waited_for_and_no_more_is_asked_for_meanwhile() {
    let (machine, mut filling) = begun(Machine::default());
    let mut number = 0;
    while number < filling.asked {
        filling.piece(FROM, piece(number, false));
        number += 1;
    }
    let waiting_bytes = number as usize * ITEM_BYTES;
    assert!((AHEAD_BYTES..AHEAD_BYTES + WINDOW as usize * ITEM_BYTES).contains(&waiting_bytes));
    for _ in 0..2 * SILENT_TICKS {
        assert_eq!(filling.tick(), None, "nobody is asked again, and no other site");
    }
    assert_eq!(filling.go_on().unwrap(), None);
    while machine.load() {}
    let (to, Word::Lack(request)) = filling.go_on().unwrap().unwrap() else { panic!("no request") };
    assert_eq!((to, request.pieces.next, request.pieces.until), (FROM, number, number + WINDOW));
}

#[test]
fn a_copy_is_done_when_all_of_it_is_on_the_disk() {
    let (machine, mut filling) = begun(Machine::default());
    for number in 0..40 {
        filling.piece(FROM, piece(number, number == 39));
    }
    while machine.load() {
        assert!(filling.done().is_none(), "batches are still to be written");
        assert_eq!(filling.go_on().unwrap(), None, "all has come");
    }
    let (head, store) = filling.done().unwrap();
    assert_eq!((head.copy, store.applied()), (3, Version(7)));
    let items = store.snapshot().unwrap().first(&pares_wice::KeyRange::prefix(b""), 100).unwrap();
    assert_eq!(items.len(), 40);
}

#[test]
fn missing_piece_requested_again_then_elsewhere() {
    let (_machine, mut filling) = begun(Machine::default());
    filling.piece(FROM, piece(0, false));
    filling.piece(FROM, piece(2, false));
    let Some((FROM, Word::Lack(request))) = (0..AGAIN_TICKS).find_map(|_| filling.tick()) else {
        panic!("nothing is asked again")
    };
    assert_eq!((request.pieces.next, request.pieces.until), (1, WINDOW), "no more than before");
    (0..SILENT_TICKS).for_each(|_| drop(filling.tick()));
    assert!(filling.head.is_none() && filling.loading.is_none(), "it begins from the beginning");
}

#[test]
fn the_duty_cycle_does_not_empty_the_store() {
    let machine = Machine::default();
    machine.fill_store(&STORED);
    let (mut machine, _filling) = begun(machine);
    let applied = |machine: &mut Machine| machine.open_store().unwrap().applied();
    assert_eq!(applied(&mut machine), STORED.version, "it is as it was");
    assert!(machine.load(), "the task does it");
    assert_eq!(applied(&mut machine), Version(0));
}

#[test]
fn no_second_copy_while_disk_writes_abandoned_one() {
    let (mut machine, mut filling) = begun(Machine::default());
    assert!(machine.load(), "the store is emptied");
    (0..40).for_each(|number| drop(filling.piece(FROM, piece(number, false))));
    let (head, links) = (Head { copy: 4, log: None, stored: STORED }, machine.wire.clone());
    filling.begins(FROM, head.clone(), &mut machine, &links).unwrap();
    for _ in 0..2 * SILENT_TICKS {
        assert_eq!(filling.go_on().unwrap(), None);
        assert_eq!(filling.tick(), None, "the store is still open, and nothing is asked for");
    }
    assert!(filling.loading.is_none());
    assert!(!machine.load(), "what waited is not written");
    assert_eq!(filling.go_on().unwrap(), None);
    let Some((FROM, Word::Lack(request))) = (0..AGAIN_TICKS).find_map(|_| filling.tick()) else {
        panic!("no copy is asked for")
    };
    assert_eq!(request.pieces.copy, 0, "another from its beginning");
    filling.begins(FROM, head, &mut machine, &links).unwrap();
    assert!(filling.loading.is_some());
}

#[test]
fn store_rejecting_copy_is_reported_and_backed_off() {
    let (mut machine, mut filling) = begun(Machine::default());
    let links = machine.wire.clone();
    for time in 1..=3 {
        drop(machine.loader.borrow_mut().take()); // what writes it ends in the middle
        assert_eq!(filling.go_on().unwrap(), None, "the site does not end");
        assert_eq!(filling.failed_times(), time);
        let told = filling.progress();
        assert!(told.contains("could not be filled") && told.contains("from 1.1"), "{told}");
        assert!(
            told.contains("has ended") && told.contains(&format!("another copy in {} s", 1 << (time - 1))),
            "{told}"
        );
        assert!((0..100 << (time - 1)).all(|_| {
            assert_eq!(filling.go_on().unwrap(), None);
            filling.tick().is_none()
        }));
        let asked = (0..=AGAIN_TICKS).find_map(|_| filling.tick());
        assert!(asked.is_some_and(|(to, _)| to == FROM), "nobody else could be asked");
        filling.begins(FROM, Head { copy: 3, log: None, stored: STORED }, &mut machine, &links).unwrap();
        assert!(filling.progress().contains("before it could not"), "{}", filling.progress());
    }
    filling.piece(FROM, piece(0, true));
    while machine.load() {}
    assert_eq!(filling.go_on().unwrap(), None);
    assert!(filling.done().is_some(), "once the store takes it, all is well");
}
