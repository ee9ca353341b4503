//! Traders that do not read cost nobody anything.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use pares_desk::frame::{
    self, DeskNews, DeskSignOn, NEWS_BYTES_MAX, WANTS_BOOKS, WANTS_LOCAL, kind, read_news,
};
use pares_desk::item::TraderId;
use pares_desk::view::{BookView, ToldView, ViewLevel};
use pares_feed::mold::Packet;
use pares_member::MemberConfig;
use pares_member::sources::{MarketNews, MarketState};
use pares_types::{Price, Quantity, ShardId};
use zerocopy::IntoBytes;

use crate::rig::{PATIENCE, Rig};

/// A trader that signed on and does not read.
fn sleeper(rig: &Rig, wants: u16) -> TcpStream {
    let mut connection = TcpStream::connect(rig.addresses()[0]).unwrap();
    let mut frame = Vec::new();
    frame::write(&mut frame, kind::SIGN_ON, &[DeskSignOn::new(TraderId(99), wants, 0, 0).as_bytes()]);
    connection.write_all(&frame).unwrap();
    connection
}

fn view(state: u64) -> BookView {
    let level = |step: u64| ViewLevel {
        price: Price(100_000 - i64::try_from(step).unwrap()),
        quantity: Quantity(state + step),
        orders: 1,
    };
    BookView { symbol: "ALFA".into(), state: b'T', bids: (0..10).map(level).collect(), ..BookView::default() }
}

#[test]
fn one_that_wants_books_and_sleeps_is_shown_what_is_when_it_wakes_and_others_are_told_meanwhile() {
    const STATES: u64 = 30_000;
    let (rig, market) = Rig::with_market(MemberConfig::local(1));
    let mut connection = sleeper(&rig, WANTS_BOOKS);
    let mut trader = rig.trader(1, 0);
    for state in 1..=STATES {
        market.send(MarketNews::Book { shard: ShardId(0), locate: 1, view: view(state) }).unwrap();
        if state % 1_000 == 0 {
            trader.say("not held up");
            trader.settle();
        }
    }
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut input, mut bytes, begun) = (Vec::new(), vec![0; 65_536], Instant::now());
    loop {
        assert!(begun.elapsed() < PATIENCE);
        let read = connection.read(&mut bytes).unwrap();
        if read == 0 {
            // This test took so long that it was cut off: it comes back.
            connection = sleeper(&rig, WANTS_BOOKS);
            input.clear();
        }
        input.extend_from_slice(&bytes[..read]);
        while let Some((kind, payload, rest)) = frame::split(&input, NEWS_BYTES_MAX).unwrap() {
            let left = rest.len();
            if let DeskNews::Book(book) = read_news(kind, payload).unwrap()
                && ToldView::read(book).unwrap().view == view(STATES)
            {
                return;
            }
            input.drain(..input.len() - left);
        }
    }
}

/// Twelve MiB of the stream lie before it; that books are not current any more must not wait until it has read them.
#[test]
fn one_that_is_far_behind_in_the_stream_is_told_at_once_that_books_are_old() {
    const ITEMS: u64 = 1_500;
    let (rig, market) = Rig::with_market(MemberConfig::local(1));
    let mut trader = rig.trader(1, 0);
    let words = "words ".repeat(1_333);
    for _ in 0..ITEMS / 10 {
        (0..10).for_each(|_| _ = trader.say(&words));
        trader.settle();
    }
    let mut connection = sleeper(&rig, WANTS_LOCAL | WANTS_BOOKS);
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut input, mut bytes, mut next, mut is_sent) = (Vec::new(), vec![0; 65_536], 0, false);
    loop {
        let read = connection.read(&mut bytes).unwrap();
        assert!(read > 0, "it reads");
        input.extend_from_slice(&bytes[..read]);
        while let Some((kind, payload, rest)) = frame::split(&input, NEWS_BYTES_MAX).unwrap() {
            let left = rest.len();
            match read_news(kind, payload).unwrap() {
                DeskNews::Block(packet) => next = Packet::read(packet).unwrap().next(),
                DeskNews::FeedState(_) => {
                    assert!(next < ITEMS, "all of the stream came first");
                    return;
                }
                _ => {}
            }
            input.drain(..input.len() - left);
        }
        if next > 0 && !std::mem::replace(&mut is_sent, true) {
            let state = MarketState::Gap;
            market.send(MarketNews::State { shard: ShardId(0), state }).unwrap();
        }
    }
}

#[test]
fn one_that_never_reads_the_stream_holds_nobody_up() {
    let rig = Rig::new(MemberConfig::local(2));
    let _asleep: Vec<_> = (0..8).map(|_| sleeper(&rig, WANTS_LOCAL)).collect();
    let mut trader = rig.trader(1, 0);
    let words = "words ".repeat(1_000);
    for _ in 0..500 {
        (0..4).for_each(|_| _ = trader.say(&words));
        trader.settle();
    }
    assert_eq!(trader.once().len(), 2_000);
}
