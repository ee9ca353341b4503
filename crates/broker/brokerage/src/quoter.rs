//! Questions to the quote server: a connection for each, all of them on one thread.
//!
//! What is asked and when is the desk's to decide; here a question is sent, and its answer read and checked, or the reason why there is none.
//!
//! Two things take longer than they should. A server that is dialled by many at once leaves some unheard, and a system dials again only after a second: here a connection that is not there after 50 ms is
//! begun again, then after 100, and so on; nothing was asked on it, so it costs nothing. And the server takes up to four seconds for some answers: one that *hedges* asks
//! the same again meanwhile, and takes the first answer. Each of these costs as much as the first, and moves the price; so it is off unless it is asked for.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token, Waker};
use pares_broker::{StockQuote, StockSymbol, UserName};
use pares_front::QuoteFault;

use crate::link;
use open_requests::Asking;

mod open_requests;

const WAKER: Token = Token(usize::MAX);

enum Word {
    Ask(u64, StockSymbol, UserName),
    Abandon(u64),
    End,
}

/// The answer to a question of that number.
pub type QuoteAnswer = (u64, Result<StockQuote, QuoteFault>);

/// See the [module](self). It ends when this is dropped.
pub struct Quoter {
    words: Sender<Word>,
    answers: Receiver<QuoteAnswer>,
    waker: Waker,
    hedges: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Quoter {
    /// Asks the server at `server`; with `hedge` the same again when there was no answer for so long, twice as long after that, and so on, six times in all at most.
    /// `wake` is called whenever there may be answers.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub fn start(
        server: SocketAddr,
        hedge: Option<Duration>,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let (words, said) = channel();
        let (tell, answers) = channel();
        let hedges = Arc::new(AtomicU64::new(0));
        let asking = Asking::new(server, hedge, Arc::clone(&hedges), poll, tell);
        let run = move || run(asking, &said, &wake);
        let thread = Some(std::thread::Builder::new().name("quoter".into()).spawn(run)?);
        Ok(Self { words, answers, waker, hedges, thread })
    }

    /// Asks.
    pub fn ask(&self, hit: u64, symbol: StockSymbol, user: UserName) {
        self.say(Word::Ask(hit, symbol, user));
    }

    /// Closes a question's connections.
    pub fn abandon(&self, hit: u64) {
        self.say(Word::Abandon(hit));
    }

    /// What was answered since it was asked last.
    pub fn answers(&self) -> impl Iterator<Item = QuoteAnswer> {
        self.answers.try_iter()
    }

    /// How often the same was asked again, each at the price of a question.
    pub fn hedges(&self) -> u64 {
        self.hedges.load(Ordering::Relaxed)
    }

    fn say(&self, word: Word) {
        // A thread that has ended answers nothing; the desk gives its questions up.
        let _ = self.words.send(word);
        let _ = self.waker.wake();
    }
}

impl Drop for Quoter {
    fn drop(&mut self) {
        self.say(Word::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(mut asking: Asking, said: &Receiver<Word>, wake: &dyn Fn()) {
    let mut events = Events::with_capacity(1_024);
    loop {
        for word in said.try_iter() {
            match word {
                Word::Ask(hit, symbol, user) => asking.ask(hit, symbol, user),
                Word::Abandon(hit) => asking.forget(hit),
                Word::End => return,
            }
            wake();
        }
        let pause = asking.next_deadline().map(|at| at.saturating_duration_since(Instant::now()));
        if link::wait(&mut asking.poll, &mut events, pause).is_err() {
            return;
        }
        for event in events.iter().filter(|event| event.token() != WAKER) {
            asking.progress(event.token().0);
        }
        asking.do_what_is_due(Instant::now());
        wake();
    }
}

#[cfg(test)]
mod tests;
