//! The rule book's scenarios as market data: under each request of `crates/exchange/book/tests/scenarios` the messages that come of it,
//! behind a `>`; and after it the book of a receiver is the venue's.
//!
//! A reference or match number is written as the position (the number of the request in the file), a point, and which one of it.
//! After a wanted change run the test with `UPDATE_EXPECT=1` and review the difference.

#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

mod messages;

use std::path::{Path, PathBuf};

use expect_test::expect_file;
use pares_book::{Book, FastBook};
use pares_exercise::script::Script;
use pares_feed::books::ReceivedBooks;
use pares_feed::publication::{FeedSink, Publication, Session, can_publish};
use pares_types::{OrderKind, Position, Price, Quantity, ShardId, Side};

/// Messages as text, and as a receiver's books.
struct Told {
    books: ReceivedBooks,
    lines: Vec<String>,
}

impl Told {
    fn new() -> Self {
        Self { books: ReceivedBooks::with_seed(0), lines: Vec::new() }
    }
}

impl FeedSink for Told {
    fn begin(&mut self, _: Session) {
        self.books = ReceivedBooks::with_seed(0);
    }

    fn message(&mut self, bytes: &[u8]) {
        self.books.on_message(bytes);
        self.lines.push(messages::tell(bytes));
    }

    fn end(&mut self) {}
}

fn publication(script: &Script<FastBook>) -> Publication {
    Publication::new(ShardId(0), &[*script.checked.book.instrument()])
}

/// The file with the lines of messages as they come out.
fn trace(text: &str) -> String {
    let mut script = Script::<FastBook>::new();
    let (mut publication, mut told, mut trace) = (publication(&script), Told::new(), String::new());
    let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with("    >")).collect();
    for (at, line) in kept.iter().enumerate() {
        trace.push_str(&format!("{line}\n"));
        if !line.starts_with(' ') && !line.is_empty() && !line.starts_with('#') {
            script.say_to(line, |request, outcome, events| {
                let position = Position(request.id.sequence());
                publication.on_record(position, request, outcome, events, &mut told);
            });
            if line.starts_with("new ") {
                (publication, told) = (self::publication(&script), Told::new());
            }
            assert_shown(&script, &told.books);
        }
        // Messages follow what the rule book says of the request.
        if kept.get(at + 1).is_none_or(|next| !next.starts_with(' ')) {
            told.lines.drain(..).for_each(|said| trace.push_str(&format!("    > {said}\n")));
        }
    }
    trace
}

/// Whether the receiver sees what is displayed.
fn assert_shown(script: &Script<FastBook>, books: &ReceivedBooks) {
    let book = &script.checked.book;
    assert_eq!(books.misfits, 0);
    for side in [Side::Buy, Side::Sell] {
        let received = books.book(1).into_iter().flat_map(|book| book.orders(side));
        let received: Vec<(Price, Quantity)> = received.map(|(price, shares, _)| (price, shares)).collect();
        let mut shown = Vec::new();
        book.for_each_order(side, &mut |order| {
            if order.kind != OrderKind::Market && can_publish(book.instrument()) {
                shown.push((order.price, order.shown));
            }
        });
        assert_eq!(received, shown);
    }
}

fn scenarios() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../exchange/book/tests/scenarios");
    let mut files: Vec<PathBuf> = dir.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn each_request_of_the_scenarios_has_its_messages() {
    let files = scenarios();
    assert!(files.len() > 100, "{} scenarios", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        expect_file![file].assert_eq(&trace(&text));
    }
}
