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
fn sleeping_book_reader_sees_latest_others_meanwhile() {
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

/// The frames that came, one after the other.
struct Frames {
    connection: TcpStream,
    input: Vec<u8>,
}

impl Frames {
    fn new(connection: TcpStream) -> Self {
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { connection, input: Vec::new() }
    }

    /// Reads on until a frame says that; what each says goes to `on`.
    fn until(&mut self, mut on: impl FnMut(DeskNews<'_>) -> bool) {
        let mut bytes = vec![0; 65_536];
        loop {
            while let Some((kind, payload, rest)) = frame::split(&self.input, NEWS_BYTES_MAX).unwrap() {
                let left = rest.len();
                let is_done = on(read_news(kind, payload).unwrap());
                self.input.drain(..self.input.len() - left);
                if is_done {
                    return;
                }
            }
            let read = self.connection.read(&mut bytes).unwrap();
            assert!(read > 0, "it reads");
            self.input.extend_from_slice(&bytes[..read]);
        }
    }
}

/// Much of the stream lies before it, more than fits between the two ends; that books are not current must not wait until it has read that.
#[test]
fn lagging_trader_learns_at_once_that_books_are_old() {
    const ITEMS: u64 = 3_000;
    let (rig, market) = Rig::with_market(MemberConfig::local(1));
    let mut trader = rig.trader(1, 0);
    let words = "words ".repeat(1_333);
    for _ in 0..ITEMS / 10 {
        (0..10).for_each(|_| _ = trader.say(&words));
        trader.settle();
    }
    let mut behind = Frames::new(sleeper(&rig, WANTS_LOCAL | WANTS_BOOKS));
    let mut other = Frames::new(sleeper(&rig, WANTS_BOOKS));
    behind.until(|news| matches!(news, DeskNews::Block(_)));
    market.send(MarketNews::State { shard: ShardId(0), state: MarketState::Gap }).unwrap();
    other.until(|news| matches!(news, DeskNews::FeedState(_)));
    let mut next = 0;
    behind.until(|news| {
        if let DeskNews::Block(packet) = news {
            next = Packet::read(packet).unwrap().next();
        }
        matches!(news, DeskNews::FeedState(_))
    });
    assert!(next < ITEMS, "all of the stream came first");
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
