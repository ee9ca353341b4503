//! What the market saw of a day, from the record of a real system.

use pares_feed::books::ReceivedBooks;
use pares_types::{Price, Quantity, Side};

use crate::common::exchange::{Exchange, small};
use crate::common::limit;

/// Writes the tape to `to`, and gives what was printed.
fn tape(exchange: &Exchange, to: &std::path::Path) -> serde_json::Value {
    let ran = exchange.pares(&format!("feed tape --json --to {}", to.display()));
    assert!(ran.is_ok(), "{ran:?}");
    ran.json()
}

#[test]
fn the_tape_of_a_day_gives_the_books_of_the_venues_again() {
    let mut exchange = Exchange::start(&small(1));
    let (mut seller, mut buyer) = (exchange.client(0, 7), exchange.client(0, 8));
    seller.submit_and_wait(&limit(1, 1, Side::Sell, 5, 2_238_200)).unwrap();
    buyer.submit_and_wait(&limit(1, 1, Side::Buy, 3, 2_238_200)).unwrap();
    buyer.submit_and_wait(&limit(2, 1, Side::Buy, 4, 2_230_000)).unwrap();
    exchange.tick();

    let scratch = tempfile::tempdir().unwrap();
    let (first, second) = (scratch.path().join("first"), scratch.path().join("second"));
    let told = tape(&exchange, &first);
    let [file] = told["files"].as_array().unwrap().as_slice() else { panic!("one file: {told}") };
    let bytes = std::fs::read(file["file"].as_str().unwrap()).unwrap();
    tape(&exchange, &second);
    let name = std::path::Path::new(file["file"].as_str().unwrap()).file_name().unwrap();
    assert_eq!(std::fs::read(second.join(name)).unwrap(), bytes, "the same record, the same bytes");

    let (mut books, mut rest, mut messages) = (ReceivedBooks::with_seed(0), &bytes[..], 0);
    while let Some((length, after)) = rest.split_first_chunk() {
        let (message, behind) = after.split_at(usize::from(u16::from_be_bytes(*length)));
        books.on_message(message);
        (rest, messages) = (behind, messages + 1);
    }
    assert_eq!((books.misfits, file["messages"].as_u64()), (0, Some(messages)));
    let book = books.book(1).unwrap();
    let orders = |side| -> Vec<(Price, Quantity)> {
        book.orders(side).map(|(price, shares, _)| (price, shares)).collect()
    };
    assert_eq!(orders(Side::Sell), [(Price(2_238_200), Quantity(2))]);
    assert_eq!(orders(Side::Buy), [(Price(2_230_000), Quantity(4))]);
    assert_eq!(book.last, Some((Price(2_238_200), Quantity(3))));
}
