//! After every record the receiver's books are the venue's.

use pares_book::{Book, FastBook};
use pares_feed::books::ReceivedBooks;
use pares_feed::itch;
use pares_feed::publication::{FeedSink, Session, can_publish};
use pares_types::{OrderKind, Price, Quantity, Side};

use crate::run;

/// A receiver who misses nothing.
struct Live {
    books: ReceivedBooks,
    sessions: u64,
    on: bool,
}

impl FeedSink for Live {
    fn begin(&mut self, _: Session) {
        (self.sessions, self.on) = (self.sessions + 1, true);
        self.books = ReceivedBooks::with_seed(0);
    }

    fn message(&mut self, bytes: &[u8]) {
        self.books.on_message(bytes);
    }

    fn end(&mut self) {
        self.on = false;
    }
}

/// What the market may see of a book.
fn displayed(book: &FastBook, side: Side) -> Vec<(Price, Quantity)> {
    let mut orders = Vec::new();
    book.for_each_order(side, &mut |order| {
        if order.kind != OrderKind::Market {
            orders.push((order.price, order.shown));
        }
    });
    orders
}

#[test]
fn receiver_books_match_venue_after_every_record() {
    let (mut sessions, mut compared) = (0, 0);
    for seed in 0..2_000 {
        let mut live = Live { books: ReceivedBooks::with_seed(0), sessions: 0, on: false };
        run(seed, |publication, recorded, venue| {
            recorded.publish(publication, &mut live);
            assert_eq!(live.books.misfits, 0, "seed {seed} {:?} {:?}", recorded.request, recorded.events);
            for book in venue.market.books().iter().filter(|_| live.on) {
                let rules = book.instrument();
                let Some(of_receiver) = itch::locate(rules.id).and_then(|at| live.books.book(at)) else {
                    assert!(!can_publish(rules), "seed {seed}: instrument {} is missing", rules.id);
                    continue;
                };
                for side in [Side::Buy, Side::Sell] {
                    let told: Vec<(Price, Quantity)> =
                        of_receiver.orders(side).map(|(price, shares, _)| (price, shares)).collect();
                    let all = if can_publish(rules) { displayed(book, side) } else { Vec::new() };
                    assert_eq!(
                        told, all,
                        "seed {seed} after {:?} {:?} {:?}",
                        recorded.request, recorded.outcome, recorded.events
                    );
                    compared += told.len();
                }
            }
        });
        sessions += live.sessions;
    }
    assert!(sessions > 2_000 && compared > 1_000_000, "{sessions} sessions, {compared} orders compared");
}
