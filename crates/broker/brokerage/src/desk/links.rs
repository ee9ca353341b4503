//! A front's connections to desks.
//!
//! A desk that is silent is as good as dead: it is asked whether it is there, and if it does not say so its connection is given up. What that means for questions and hits is
//! [`DeskCalls`]'s. On a machine that is merely slow that would be a storm of questions: a desk that was given up for silence a moment ago has more time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use mio::Registry;
use pares_broker::{HitName, StockSymbol, UserName};
use pares_front::{DeskCall, DeskCalls, DeskNews, FRAME_MAX, ToDesk, ToFront};
use pares_wice::codec::Coded as _;

use crate::link::{Conn, Hearing, Retry, SocketOwner};

/// Between two questions to a desk whether it lives.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// A desk that does not answer for so long is given up.
const SILENCE_MAX: Duration = Duration::from_millis(250);
/// The same for one that was given up for that a short while ago.
const SILENCE_AGAIN_MAX: Duration = Duration::from_secs(1);
/// That while.
const SHORT: Duration = Duration::from_secs(10);
/// Answers of one desk that are read in one turn, bytes.
const READ_MAX: usize = 256 << 10;

struct Desk {
    address: SocketAddr,
    conn: Option<Conn>,
    retry: Retry,
    hearing: Hearing,
    /// When it was given up for its silence.
    given_up: Option<Instant>,
}

impl Desk {
    fn is_silent(&self) -> bool {
        let was_slow = self.given_up.is_some_and(|at| at.elapsed() < SHORT);
        self.hearing.silence() >= if was_slow { SILENCE_AGAIN_MAX } else { SILENCE_MAX }
    }
}

/// See the [module](self).
pub struct DeskLinks {
    registry: Registry,
    owner: SocketOwner,
    desks: Vec<Desk>,
    calls: DeskCalls,
    news: Vec<DeskNews>,
}

impl DeskLinks {
    /// To the desks at these addresses.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn new(addresses: &[SocketAddr], registry: &Registry, owner: SocketOwner) -> io::Result<Self> {
        let desk = |address: &SocketAddr| Desk {
            address: *address,
            conn: None,
            retry: Retry::default(),
            hearing: Hearing::begin(),
            given_up: None,
        };
        Ok(Self {
            registry: registry.try_clone()?,
            owner,
            desks: addresses.iter().map(desk).collect(),
            calls: DeskCalls::new(addresses.iter().map(name_of)),
            news: Vec::new(),
        })
    }

    /// Something has happened to a connection.
    pub fn wake(&mut self, desk: u64) {
        let desk = usize::try_from(desk).ok().and_then(|desk| self.desks.get_mut(desk));
        if let Some(conn) = desk.and_then(|desk| desk.conn.as_mut()) {
            conn.wake();
        }
    }

    /// Asks the stock's desk.
    pub fn ask(&mut self, question: u64, symbol: StockSymbol, user: UserName) {
        self.with(|calls, said| calls.ask(question, symbol, user, said));
    }

    /// The question is not waited for any more.
    pub fn abandon(&mut self, question: u64) {
        self.calls.abandon(question);
    }

    /// A hit is in the log.
    pub fn noted(&mut self, hit: HitName) {
        self.with(|calls, said| calls.noted(hit, said));
    }

    /// Sends, reads and dials; what desks have said.
    pub fn turn(&mut self) -> Vec<DeskNews> {
        for desk in 0..self.desks.len() {
            self.dial(desk);
            if self.go_on(desk).is_none() {
                self.lose(desk);
            }
        }
        std::mem::take(&mut self.news)
    }

    /// Does something with the rules, and then what they want done.
    fn with(&mut self, does: impl FnOnce(&mut DeskCalls, &mut Vec<DeskCall>)) {
        let mut said = Vec::new();
        does(&mut self.calls, &mut said);
        for call in said {
            match call {
                DeskCall::News(news) => self.news.push(news),
                DeskCall::Say(at, word) => {
                    if let Some(conn) = &mut self.desks[at].conn {
                        conn.push_frame(&word.to_bytes());
                    }
                }
            }
        }
    }

    /// Hands the sockets what is to go.
    pub fn flush(&mut self) {
        for desk in 0..self.desks.len() {
            if self.desks[desk].conn.as_mut().is_some_and(|conn| conn.flush().is_err()) {
                self.lose(desk);
            }
        }
    }

    fn dial(&mut self, at: usize) {
        let desk = &mut self.desks[at];
        if desk.conn.is_some() || !desk.retry.is_due() {
            return;
        }
        match Conn::dial(desk.address, &self.registry, self.owner.token(at as u64)) {
            Ok(conn) => (desk.conn, desk.hearing) = (Some(conn), Hearing::begin()),
            Err(_) => desk.retry.failed(),
        }
    }

    /// Reads what a desk says; nothing if the connection is over.
    fn go_on(&mut self, at: usize) -> Option<()> {
        let Some(conn) = &mut self.desks[at].conn else { return Some(()) };
        conn.fill(READ_MAX).ok()?;
        while let Some(frame) = self.desks[at].conn.as_mut()?.frame(FRAME_MAX).ok()? {
            let word = ToFront::from_bytes(&frame).ok()?;
            self.desks[at].hearing.heard();
            if matches!(word, ToFront::Desk { .. }) {
                self.desks[at].retry.answered();
            }
            self.with(|calls, said| calls.heard(at, word, said));
        }
        let desk = &mut self.desks[at];
        if desk.is_silent() {
            desk.given_up = Some(Instant::now());
            return None;
        }
        let conn = desk.conn.as_mut().filter(|conn| !conn.has_ended())?;
        if desk.hearing.since_asked() >= ASK_EVERY {
            desk.hearing.asked();
            conn.push_frame(&ToDesk::AreYouThere.to_bytes());
        }
        Some(())
    }

    fn lose(&mut self, at: usize) {
        let desk = &mut self.desks[at];
        desk.conn = None;
        desk.retry.failed();
        self.with(|calls, said| calls.lost(at, said));
    }
}

/// What a desk is ranked by: its address, the same at all fronts.
fn name_of(address: &SocketAddr) -> u64 {
    let host = match address.ip() {
        IpAddr::V4(host) => u64::from(host.to_bits()),
        IpAddr::V6(_) => 0,
    };
    host << 16 | u64::from(address.port())
}

#[cfg(test)]
mod tests {
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
    fn what_a_desk_says_is_a_quote_of_the_stock_that_was_asked_for_or_none() {
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
    fn a_desk_that_greets_and_makes_no_sense_is_dialled_after_pauses_that_grow() {
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
}
