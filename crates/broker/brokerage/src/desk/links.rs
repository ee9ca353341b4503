//! A front's end of its connections to desks.
//!
//! A desk that is silent is as good as dead: it is asked whether it is there, and if it does not say so its questions go to the next one. The quote server may then
//! be asked twice, which costs five cents and is never wrong. But on a machine that is merely slow that would be a storm of questions: who was given up for silence a moment ago has more time. With no desk at all questions wait: a desk that is started again finds them.
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
        let desk = |address: &SocketAddr| Desk {
            address: *address,
            conn: None,
            retry: Retry::default(),
            number: None,
            hearing: Hearing::begin(),
            given_up: None,
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
            Ok(conn) => (desk.conn, desk.hearing) = (Some(conn), Hearing::begin()),
            Err(_) => desk.retry.failed(),
        }
    }

    /// Reads what a desk says; nothing if the connection is over.
    fn go_on(&mut self, at: usize) -> Option<()> {
        let Some(mut conn) = self.desks[at].conn.take() else { return Some(()) };
        conn.fill(READ_MAX).ok()?;
        while let Some(frame) = conn.frame(FRAME_MAX).ok()? {
            let word = ToFront::from_bytes(&frame).ok()?;
            self.desks[at].hearing.heard();
            self.heard(at, word);
        }
        let desk = &mut self.desks[at];
        if desk.is_silent() {
            desk.given_up = Some(Instant::now());
            return None;
        }
        if conn.has_ended() {
            return None;
        }
        if desk.hearing.since_asked() >= ASK_EVERY {
            desk.hearing.asked();
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
mod tests;
