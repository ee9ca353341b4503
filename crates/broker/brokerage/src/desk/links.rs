//! A front's end of its connections to desks.
//!
//! A desk that is silent is as good as dead: it is asked whether it is there, and if it does not say so its questions go to the next one. The quote server may then
//! be asked twice, which costs five cents and is never wrong. With no desk at all questions wait: a desk that is started again finds them.
//!
//! A desk is believed no more than the server: what it gives out as a quote is one, and of the stock that was asked for, or the question has failed. One that greets and then makes no sense
//! is dialled again after pauses that grow.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::Registry;
use pares_broker::{HitName, QuoteBrought, StockQuote, StockSymbol, UserName};
use pares_front::desk_words::{FRAME_MAX, ToDesk, ToFront};
use pares_front::{QuoteFault, read_reply, reply_line};
use pares_wice::codec::Coded as _;

use crate::link::{Conn, Retry, SocketOwner};

/// Between two questions to a desk whether it lives.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// A desk that says nothing for so long is given up.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// Answers of one desk that are read in one turn, bytes.
const READ_MAX: usize = 256 << 10;

/// What desks say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeskNews {
    /// The answer to a question of this front's, with the hit if this front is to note it.
    Answer(u64, Result<QuoteBrought, QuoteFault>),
    /// A hit to be noted, which no question of this front waits for.
    Hit(QuoteBrought),
}

struct Question {
    symbol: StockSymbol,
    user: UserName,
    /// The desk that was asked.
    at: Option<usize>,
}

struct Desk {
    address: SocketAddr,
    conn: Option<Conn>,
    retry: Retry,
    /// Of its life, once it has said so: it is connected.
    number: Option<u64>,
    heard: Instant,
    asked: Instant,
}

/// See the [module](self).
pub struct DeskLinks {
    registry: Registry,
    owner: SocketOwner,
    desks: Vec<Desk>,
    open: BTreeMap<u64, Question>,
    news: Vec<DeskNews>,
    /// Some question has no desk.
    has_unasked: bool,
}

impl DeskLinks {
    /// To the desks at these addresses.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn new(addresses: &[SocketAddr], registry: &Registry, owner: SocketOwner) -> io::Result<Self> {
        let now = Instant::now();
        let desk = |address: &SocketAddr| Desk {
            address: *address,
            conn: None,
            retry: Retry::default(),
            number: None,
            heard: now,
            asked: now,
        };
        Ok(Self {
            registry: registry.try_clone()?,
            owner,
            desks: addresses.iter().map(desk).collect(),
            open: BTreeMap::new(),
            news: Vec::new(),
            has_unasked: false,
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
        self.open.insert(question, Question { symbol, user, at: None });
        self.send(question);
    }

    /// The question is not waited for any more.
    pub fn abandon(&mut self, question: u64) {
        self.open.remove(&question);
    }

    /// A hit is in the log.
    pub fn noted(&mut self, hit: HitName) {
        // Of a life that is over nobody keeps hits.
        let desk = self.desks.iter_mut().find(|desk| desk.number == Some(hit.desk));
        if let Some(conn) = desk.and_then(|desk| desk.conn.as_mut()) {
            conn.push_frame(&ToDesk::Noted { count: hit.count }.to_bytes());
        }
    }

    /// Sends, reads and dials; what desks have said.
    pub fn turn(&mut self) -> Vec<DeskNews> {
        for desk in 0..self.desks.len() {
            self.dial(desk);
            if self.go_on(desk).is_none() {
                self.lose(desk);
            }
        }
        if std::mem::take(&mut self.has_unasked) {
            let unasked = self.open.iter().filter(|(_, question)| question.at.is_none());
            for question in unasked.map(|(number, _)| *number).collect::<Vec<_>>() {
                self.send(question);
            }
        }
        std::mem::take(&mut self.news)
    }

    /// Hands the sockets what is to go.
    pub fn flush(&mut self) {
        for desk in 0..self.desks.len() {
            if self.desks[desk].conn.as_mut().is_some_and(|conn| conn.flush().is_err()) {
                self.lose(desk);
            }
        }
    }

    fn send(&mut self, number: u64) {
        let Some(question) = self.open.get(&number) else { return };
        let living = self.desks.iter().enumerate().filter(|(_, desk)| desk.number.is_some());
        let first = living.max_by_key(|(_, desk)| rank(question.symbol, desk.address));
        let Some(at) = first.map(|(at, _)| at) else { return self.has_unasked = true };
        let Question { symbol, user, .. } = question;
        let want = ToDesk::Want { question: number, symbol: *symbol, user: user.clone() };
        if let Some(conn) = &mut self.desks[at].conn {
            conn.push_frame(&want.to_bytes());
        }
        self.open.entry(number).and_modify(|question| question.at = Some(at));
    }

    fn dial(&mut self, at: usize) {
        let desk = &mut self.desks[at];
        if desk.conn.is_some() || !desk.retry.is_due() {
            return;
        }
        match Conn::dial(desk.address, &self.registry, self.owner.token(at as u64)) {
            Ok(conn) => (desk.conn, desk.heard, desk.asked) = (Some(conn), Instant::now(), Instant::now()),
            Err(_) => desk.retry.failed(),
        }
    }

    /// Reads what a desk says; nothing if the connection is over.
    fn go_on(&mut self, at: usize) -> Option<()> {
        let Some(mut conn) = self.desks[at].conn.take() else { return Some(()) };
        conn.fill(READ_MAX).ok()?;
        while let Some(frame) = conn.frame(FRAME_MAX).ok()? {
            let word = ToFront::from_bytes(&frame).ok()?;
            self.desks[at].heard = Instant::now();
            self.heard(at, word);
        }
        let desk = &mut self.desks[at];
        if conn.has_ended() || desk.heard.elapsed() >= SILENCE_MAX {
            return None;
        }
        if desk.asked.elapsed() >= ASK_EVERY {
            desk.asked = Instant::now();
            conn.push_frame(&ToDesk::AreYouThere.to_bytes());
        }
        desk.conn = Some(conn);
        Some(())
    }

    fn heard(&mut self, at: usize, word: ToFront) {
        let name = |count: u64| self.desks[at].number.map(|desk| HitName { desk, count });
        match word {
            ToFront::Desk { number } => {
                self.desks[at].number = Some(number);
                self.has_unasked = true;
            }
            ToFront::Here => self.desks[at].retry.answered(),
            ToFront::Hit { count, quote } => {
                if fault_of(&quote, quote.symbol).is_none() {
                    self.news.push(DeskNews::Hit(QuoteBrought { quote, hit: name(count) }));
                }
            }
            ToFront::None { question, fault } => {
                if self.open.remove(&question).is_some() {
                    self.news.push(DeskNews::Answer(question, Err(fault)));
                }
            }
            ToFront::Quote { question, quote, count } => {
                let asked = self.open.remove(&question);
                let fault = fault_of(&quote, asked.as_ref().map_or(quote.symbol, |asked| asked.symbol));
                let brought = QuoteBrought { quote, hit: count.and_then(name) };
                if asked.is_some() {
                    self.news.push(DeskNews::Answer(question, fault.map_or(Ok(brought), Err)));
                } else if brought.hit.is_some() && fault.is_none() {
                    self.news.push(DeskNews::Hit(brought));
                }
            }
        }
    }

    /// A desk is gone: its questions go to the next.
    fn lose(&mut self, at: usize) {
        let desk = &mut self.desks[at];
        (desk.conn, desk.number) = (None, None);
        desk.retry.failed();
        for question in self.open.values_mut().filter(|question| question.at == Some(at)) {
            question.at = None;
            self.has_unasked = true;
        }
    }
}

/// Why this is no quote of that stock, if it is none. Its time is looked at where it is used.
fn fault_of(quote: &StockQuote, symbol: StockSymbol) -> Option<QuoteFault> {
    let Some(user) = UserName::new(&quote.user) else { return Some(QuoteFault::OtherUser) };
    read_reply(reply_line(quote).as_bytes(), symbol, &user).err()
}

/// How a desk ranks for a stock: the same at every front (splitmix64 over both).
fn rank(symbol: StockSymbol, desk: SocketAddr) -> u64 {
    let mut rank = u64::from(desk.port());
    if let std::net::IpAddr::V4(address) = desk.ip() {
        rank |= u64::from(address.to_bits()) << 16;
    }
    for byte in symbol.padded() {
        rank = (rank ^ u64::from(byte)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        rank = (rank ^ (rank >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        rank = (rank ^ (rank >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        rank ^= rank >> 31;
    }
    rank
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use mio::{Events, Poll};

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

    fn desks(count: u16) -> Vec<SocketAddr> {
        (0..count).map(|at| SocketAddr::from(([127, 0, 0, 1], 4_500 + at))).collect()
    }

    fn first(symbol: StockSymbol, desks: &[SocketAddr]) -> SocketAddr {
        *desks.iter().max_by_key(|desk| rank(symbol, **desk)).unwrap()
    }

    #[test]
    fn stocks_are_spread_over_desks_and_a_desk_that_dies_moves_its_own_alone() {
        let (all, symbols) = (desks(4), (b'A'..=b'Z').flat_map(|a| (b'A'..=b'Z').map(move |b| [a, b])));
        let symbols: Vec<_> =
            symbols.map(|letters| StockSymbol::new(str::from_utf8(&letters).unwrap()).unwrap()).collect();
        for desk in &all {
            let count = symbols.iter().filter(|symbol| first(**symbol, &all) == *desk).count();
            assert!((symbols.len() / 8..symbols.len() / 2).contains(&count), "{count} of {desk}");
        }
        for symbol in symbols {
            let before = first(symbol, &all);
            let after = first(symbol, &all[1..]);
            assert!(before == all[0] || before == after);
        }
    }
}
