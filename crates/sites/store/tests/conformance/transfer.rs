//! State transfer.

use pares_store::{Chunk, Export, Import, Store, StoreError};
use pares_wice::{Key, Value, Version};

use crate::place::{Kind, Place, version};
use crate::suite::items;

const PIECE_BYTES: usize = 1000;

fn filled(place: &Place) -> Box<dyn Store> {
    let store = place.open();
    let writes = (0..300u32).map(|i| {
        let bytes = (i * 37 % 300).to_be_bytes();
        (Key::new([&b"item "[..], &bytes].concat()), Some(Value::new(vec![i as u8; i as usize % 90])))
    });
    store.apply(&[pares_store::Applied { version: Version(1), writes: writes.collect() }], None).unwrap();
    store.apply(&[version(2, &[("big", Some(&"x".repeat(3 * PIECE_BYTES)))])], Some(b"era 3")).unwrap();
    store
}

fn pieces(store: &dyn Store) -> Vec<Chunk> {
    Export::new(store.snapshot().unwrap(), PIECE_BYTES).collect::<Result<_, _>>().unwrap()
}

pub(crate) fn a_store_arrives_as_it_was_sent(place: &Place) {
    let store = filled(place);
    let expected = items(&*store.snapshot().unwrap());
    let mut export = Export::new(store.snapshot().unwrap(), PIECE_BYTES);
    let goal = place.another();
    let copy = goal.open();
    let mut import = Import::new(&*copy).unwrap();
    let mut last = false;
    for (i, chunk) in (3..).zip(&mut export) {
        assert!(!last);
        // The sender continues.
        store.apply(&[version(i, &[("big", None), ("new", Some("x"))])], Some(b"later")).unwrap();
        last = import.take(&chunk.unwrap()).unwrap();
    }
    assert!(last);
    drop(copy);
    let copy = goal.open();
    assert_eq!((copy.applied(), &*copy.meta()), (Version(2), &b"era 3"[..]));
    assert_eq!(items(&*copy.snapshot().unwrap()), expected);
    copy.apply(&[version(3, &[("big", None)])], None).unwrap();
    assert_eq!(items(&*copy.snapshot().unwrap()).len(), expected.len() - 1);
}

pub(crate) fn pieces_are_bounded(place: &Place) {
    let store = filled(place);
    let pieces = pieces(&*store);
    assert!(pieces.len() > 10);
    for piece in &pieces {
        let sizes = piece.items.iter().map(|(key, value)| key.as_bytes().len() + value.as_bytes().len());
        let sizes: Vec<usize> = sizes.collect();
        let (last, others) = sizes.split_last().unwrap();
        assert!(others.iter().sum::<usize>() < PIECE_BYTES && *last <= 3 * PIECE_BYTES + 3);
    }
    // An empty store is one piece.
    let empty = place.another();
    let copy = place.another();
    let (empty, copy) = (empty.open(), copy.open());
    let pieces: Vec<_> = Export::new(empty.snapshot().unwrap(), 1).map(Result::unwrap).collect();
    assert_eq!(pieces.len(), 1);
    assert!(Import::new(&*copy).unwrap().take(&pieces[0]).unwrap());
    assert_eq!(copy.applied(), Version(0));
}

pub(crate) fn pieces_out_of_order_are_refused(place: &Place) {
    let pieces = pieces(&*filled(place));
    let goal = place.another();
    let store = goal.open();
    let mut import = Import::new(&*store).unwrap();
    let refused = |import: &mut Import<'_>, piece: &Chunk| {
        assert!(matches!(import.take(piece), Err(StoreError::Chunk { .. })));
    };
    refused(&mut import, &pieces[1]);
    import.take(&pieces[0]).unwrap();
    refused(&mut import, &pieces[0]);
    refused(&mut import, &pieces[2]);
    refused(&mut import, &Chunk { version: Version(9), ..pieces[1].clone() });
    for piece in &pieces[1..] {
        import.take(piece).unwrap();
    }
    assert_eq!(store.applied(), Version(2));
    // Nothing comes after the last.
    refused(&mut import, &pieces[0]);
}

pub(crate) fn only_an_empty_store_takes_a_transfer(place: &Place) {
    let store = filled(place);
    assert!(matches!(Import::new(&*store).err(), Some(StoreError::NotEmpty(Version(2)))));
    assert!(matches!(store.load(&[], None), Err(StoreError::NotEmpty(Version(2)))));
    assert_eq!(items(&*store.snapshot().unwrap()).len(), 301);
}

pub(crate) fn a_store_half_transferred_is_of_no_use(place: &Place) {
    let pieces = pieces(&*filled(place));
    let goal = place.another();
    let store = goal.open();
    Import::new(&*store).unwrap().take(&pieces[0]).unwrap();
    assert!(matches!(store.snapshot().err(), Some(StoreError::Unfinished)));
    assert!(matches!(store.apply(&[version(1, &[])], None), Err(StoreError::Unfinished)));
    store.flush().unwrap();
    drop(store);
    if place.kind != Kind::Memory {
        assert!(matches!(goal.try_open().err(), Some(StoreError::Unfinished)));
    }
}
