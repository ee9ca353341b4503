//! Checkpoints: the state comes back whole, on either book, or not at all.

use pares_book::{Book, FastBook, NaiveBook};
use pares_sequencer::Sequencer;
use pares_types::{Request, Side};
use pares_venue::{CheckpointError, Shard, names};

use crate::rig::{SHARD, Venue, cancel, enter, instruments, window};

/// A shard with orders on both books, gateways with a history, and names.
fn lived() -> Venue<FastBook> {
    let mut venue = Venue::new(&window(64));
    let on_two = |request| Request { instrument: pares_types::InstrumentId(2), ..request };
    venue.receive(&[
        enter(1, 1, Side::Buy, 100, 10),
        enter(2, 5, Side::Sell, 100, 4),
        enter(2, 6, Side::Sell, 105, 9),
        on_two(enter(1, 2, Side::Buy, 50, 1)),
        enter(1, 9, Side::Buy, 99, 3),
        cancel(1, 10, enter(1, 9, Side::Buy, 99, 3).id),
    ]);
    venue.step();
    venue
}

fn restore<B: Book>(bytes: &[u8]) -> Result<Shard<B>, CheckpointError> {
    Shard::restore(SHARD, &instruments(), bytes)
}

#[test]
fn a_checkpoint_of_one_book_restores_on_the_other() {
    let mut venue = lived();
    let bytes = venue.checkpoint();
    let restored = restore::<NaiveBook>(&bytes).unwrap();
    assert_eq!(restored.position(), venue.shard.position());
    assert_eq!(restored.state_hash(), venue.shard.state_hash());
    let books = restored.books().iter().map(Book::snapshot);
    assert!(books.eq(venue.shard.books().iter().map(Book::snapshot)));
}

#[test]
fn a_restored_shard_writes_the_same_checkpoint() {
    let bytes = lived().checkpoint();
    let mut again = Vec::new();
    restore::<NaiveBook>(&bytes).unwrap().checkpoint(&mut again);
    assert_eq!(again, bytes);
}

#[test]
fn damage_to_any_byte_is_refused() {
    let mut bytes = lived().checkpoint();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80] {
            bytes[at] ^= flip;
            assert!(restore::<FastBook>(&bytes).is_err(), "bit {flip:02x} of byte {at}");
            bytes[at] ^= flip;
        }
    }
    assert!(restore::<FastBook>(&bytes).is_ok());
}

#[test]
fn a_checkpoint_cut_short_anywhere_or_with_something_behind_it_is_refused() {
    let mut bytes = lived().checkpoint();
    for length in 0..bytes.len() {
        assert!(restore::<FastBook>(&bytes[..length]).is_err(), "the first {length} bytes");
    }
    bytes.push(0);
    assert!(restore::<FastBook>(&bytes).is_err());
}

#[test]
fn a_checkpoint_of_other_instruments_is_refused() {
    let bytes = lived().checkpoint();
    let fewer = Shard::<FastBook>::restore(SHARD, &instruments()[..1], &bytes);
    assert_eq!(fewer.err(), Some(CheckpointError::OtherInstruments));
}

#[test]
fn something_else_is_no_checkpoint() {
    assert_eq!(restore::<FastBook>(b"PARESCK0 and so on").err(), Some(CheckpointError::Magic));
}

/// The oldest name is forgotten next, on a restored venue as on the one that took the checkpoint: else one
/// would refuse what the other executes.
#[test]
fn names_are_forgotten_in_the_same_order_after_a_restore() {
    let count = names::NAMES_MAX as u64 + 10;
    let mut venue = Venue::<FastBook>::new(&window(1_024));
    for first in (1..=count).step_by(200) {
        let batch: Vec<_> = (first..(first + 200).min(count + 1))
            .map(|n| cancel(1, n, enter(1, 1, Side::Buy, 1, 1).id))
            .collect();
        venue.receive(&batch);
        venue.step();
        venue.window.raise_recorded(venue.shard.position());
    }
    let checkpoint = venue.checkpoint();
    let mut joined = Venue::<FastBook>::restore(&venue.window, &checkpoint);
    for (sequence, name) in [(1, 1), (2, 11), (3, 12), (4, 14), (5, count)] {
        let again = crate::rig::named(1, name, enter(2, sequence, Side::Buy, 100, 1));
        venue.receive([&again]);
        joined.receive([&again]);
        venue.step();
        joined.step();
        assert_eq!(venue.out.all.last(), joined.out.all.last(), "name {name}");
    }
    assert_eq!(venue.checkpoint(), joined.checkpoint());
}
