//! Messages as text.

use pares_feed::itch::FeedMessage;
use pares_types::Price;
use zerocopy::big_endian::{U32, U64};

use pares_exercise::telling::money;

/// Which one of which position.
fn name(number: U64) -> String {
    format!("{}.{}", number.get() >> 16, number.get() & 0xffff)
}

fn price(price: U32) -> String {
    money(Price(price.get().into()))
}

fn side(letter: u8) -> &'static str {
    match letter {
        b'B' => "buy",
        b'S' => "sell",
        _ => panic!("{letter} is no side"),
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap().trim_end()
}

/// One message.
pub(crate) fn tell(bytes: &[u8]) -> String {
    match FeedMessage::read(bytes).unwrap() {
        FeedMessage::SystemEvent(of) => format!("S {}", char::from(of.event)),
        FeedMessage::Directory(of) => format!("R {} in lots of {}", text(&of.stock), of.round_lot),
        FeedMessage::TradingAction(of) => {
            format!("H {} {}", char::from(of.state), text(&of.reason)).trim_end().to_owned()
        }
        FeedMessage::AddOrder(of) => {
            format!("A {}: {} {} @ {}", name(of.reference), side(of.side), of.shares, price(of.price))
        }
        FeedMessage::Executed(of) => {
            format!("E {}: {}, trade {}", name(of.reference), of.shares, name(of.match_number))
        }
        FeedMessage::ExecutedAt(of) => {
            let (shares, price, trade) = (of.shares, price(of.price), name(of.match_number));
            let print = if of.printable == b'Y' { "" } else { ", not printed" };
            format!("C {}: {shares} @ {price}, trade {trade}{print}", name(of.reference))
        }
        FeedMessage::Cancelled(of) => format!("X {}: {}", name(of.reference), of.shares),
        FeedMessage::Deleted(of) => format!("D {}", name(of.reference)),
        FeedMessage::Replaced(of) => {
            let (original, reference) = (name(of.original), name(of.reference));
            format!("U {original} by {reference}: {} @ {}", of.shares, price(of.price))
        }
        FeedMessage::Trade(of) => {
            let (resting, trade) = (side(of.side), name(of.match_number));
            format!("P {} @ {} with a {resting} order, trade {trade}", of.shares, price(of.price))
        }
        FeedMessage::Cross(of) => {
            let (kind, trade) = (char::from(of.cross), name(of.match_number));
            format!("Q {kind} {} @ {}, cross {trade}", of.shares, price(of.price))
        }
        FeedMessage::Broken(of) => format!("B {}", name(of.match_number)),
        FeedMessage::Imbalance(of) => {
            let (kind, way) = (char::from(of.cross), char::from(of.direction));
            format!("I {kind} {} @ {}, {} left: {way}", of.paired, price(of.near), of.imbalance)
        }
    }
}
