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
        self.calls.ask(question, symbol, user);
        self.carry_out();
    }

    /// The question is not waited for any more.
    pub fn abandon(&mut self, question: u64) {
        self.calls.abandon(question);
    }

    /// A hit is in the log.
    pub fn noted(&mut self, hit: HitName) {
        self.calls.noted(hit);
        self.carry_out();
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

    /// Does what the rules want done.
    fn carry_out(&mut self) {
        for call in self.calls.take_calls() {
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
            if matches!(word, ToFront::Here) {
                self.desks[at].retry.answered();
            }
            self.calls.heard(at, word);
            self.carry_out();
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
        self.calls.lost(at);
        self.carry_out();
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
mod tests;
