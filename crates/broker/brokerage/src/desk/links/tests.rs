//! Desks that make no sense, or are silent, and what a front makes of it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use mio::{Events, Poll};

use pares_broker::{QuoteBrought, StockQuote};
use pares_front::QuoteFault;

use super::*;

/// A front's links to one desk, which the test is.
struct Stage {
    desk: TcpListener,
    links: DeskLinks,
    poll: Poll,
}

impl Stage {
    fn new() -> Self {
        let desk = TcpListener::bind("127.0.0.1:0").unwrap();
        let poll = Poll::new().unwrap();
        let address = desk.local_addr().unwrap();
        let links = DeskLinks::new(&[address], poll.registry(), SocketOwner(0)).unwrap();
        Self { desk, links, poll }
    }

    /// The next connection of the front, greeted.
    fn greeted(&mut self) -> TcpStream {
        self.desk.set_nonblocking(true).unwrap();
        loop {
            self.turn();
            let Ok((mut stream, _)) = self.desk.accept() else { continue };
            say(&mut stream, &ToFront::Desk { number: 7 });
            return stream;
        }
    }

    fn turn(&mut self) -> Vec<DeskNews> {
        let mut events = Events::with_capacity(8);
        self.poll.poll(&mut events, Some(Duration::from_millis(1))).unwrap();
        events.iter().for_each(|_| self.links.wake(0));
        let news = self.links.turn();
        self.links.flush();
        news
    }

    fn ask(&mut self, question: u64) {
        self.links.ask(question, StockSymbol::new("S").unwrap(), UserName::new("jo").unwrap());
    }

    /// What comes of a question that is answered so.
    fn answered(&mut self, stream: &mut TcpStream, question: u64, quote: StockQuote) -> DeskNews {
        self.ask(question);
        say(stream, &ToFront::Quote { question, quote, count: Some(question) });
        loop {
            if let Some(news) = self.turn().pop() {
                return news;
            }
        }
    }
}

fn say(stream: &mut TcpStream, word: &ToFront) {
    let mut frame = Vec::new();
    pares_link::frame::append(&mut frame, &word.to_bytes());
    stream.write_all(&frame).unwrap();
}

fn quote() -> StockQuote {
    let (symbol, key) = (StockSymbol::new("S").unwrap(), "key".to_owned());
    StockQuote { price_cents: 500, symbol, user: "al".to_owned(), server_ms: 9, key }
}

#[test]
fn desk_reply_is_quote_of_requested_stock_or_nothing() {
    let mut stage = Stage::new();
    let mut stream = stage.greeted();
    let good = QuoteBrought { quote: quote(), hit: Some(HitName { desk: 7, count: 1 }) };
    assert_eq!(stage.answered(&mut stream, 1, quote()), DeskNews::Answer(1, Ok(good)));
    let other = StockSymbol::new("T").unwrap();
    for (question, (quote, fault)) in (2..).zip([
        (StockQuote { price_cents: 0, ..quote() }, QuoteFault::Garbage),
        (StockQuote { price_cents: u64::MAX, ..quote() }, QuoteFault::Garbage),
        (StockQuote { key: String::new(), ..quote() }, QuoteFault::Garbage),
        (StockQuote { symbol: other, ..quote() }, QuoteFault::OtherStock),
        (StockQuote { user: "a,b".to_owned(), ..quote() }, QuoteFault::OtherUser),
    ]) {
        assert_eq!(stage.answered(&mut stream, question, quote), DeskNews::Answer(question, Err(fault)));
    }
    let nothing = StockQuote { price_cents: 0, ..quote() };
    say(&mut stream, &ToFront::Hit { count: 8, quote: nothing });
    say(&mut stream, &ToFront::Hit { count: 9, quote: quote() });
    let hit = DeskNews::Hit(QuoteBrought { quote: quote(), hit: Some(HitName { desk: 7, count: 9 }) });
    let news = std::iter::from_fn(|| Some(stage.turn())).find(|news| !news.is_empty());
    assert_eq!(news, Some(vec![hit]), "what is no quote is not noted");
}

#[test]
fn garbling_desk_is_redialled_with_growing_pauses() {
    let mut stage = Stage::new();
    stage.ask(1);
    let mut pauses = Vec::new();
    for garbage in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"\x01\0\0\0\xff", &[0xff; 4_096]] {
        let mut stream = stage.greeted();
        stream.write_all(garbage).unwrap();
        while stage.links.desks[0].conn.is_some() {
            assert!(stage.turn().is_empty());
        }
        pauses.push(stage.links.desks[0].retry.pause());
    }
    assert!(pauses.is_sorted_by(|before, after| before < after), "{pauses:?}");
    let mut stream = stage.greeted();
    let mut asked = [0; 4];
    stream.set_nonblocking(true).unwrap();
    while stream.read(&mut asked).unwrap_or_default() == 0 {
        stage.turn();
    }
    say(&mut stream, &ToFront::Quote { question: 1, quote: quote(), count: None });
    let news = std::iter::from_fn(|| Some(stage.turn())).find(|news| !news.is_empty());
    assert!(matches!(news.as_deref(), Some([DeskNews::Answer(1, Ok(_))])), "{news:?}");
}
