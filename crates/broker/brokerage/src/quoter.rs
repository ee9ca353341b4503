//! Questions to the quote server: a connection for each, all of them on one thread.
//!
//! What is asked and when is the desk's to decide; here a question is sent, and its answer read and checked, or the reason why there is none.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use pares_broker::{StockQuote, StockSymbol, UserName};
use pares_front::{QuoteFault, ask_line, read_reply};

/// Longest answer that is read, bytes.
const REPLY_MAX: usize = 512;
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
    thread: Option<JoinHandle<()>>,
}

impl Quoter {
    /// Asks the server at `server`; `wake` is called whenever there are answers.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub fn start(server: SocketAddr, wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let (words, said) = channel();
        let (tell, answers) = channel();
        let mut asking = Asking { server, poll, open: HashMap::new(), tell };
        let run = move || asking.run(&said, &wake);
        let thread = Some(std::thread::Builder::new().name("quoter".into()).spawn(run)?);
        Ok(Self { words, answers, waker, thread })
    }

    /// Asks.
    pub fn ask(&self, hit: u64, symbol: StockSymbol, user: UserName) {
        self.say(Word::Ask(hit, symbol, user));
    }

    /// Closes a question's connection.
    pub fn abandon(&self, hit: u64) {
        self.say(Word::Abandon(hit));
    }

    /// What was answered since it was asked last.
    pub fn answers(&self) -> impl Iterator<Item = QuoteAnswer> {
        self.answers.try_iter()
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

/// A question under way.
struct Question {
    stream: TcpStream,
    symbol: StockSymbol,
    user: UserName,
    is_sent: bool,
    reply: Vec<u8>,
}

struct Asking {
    server: SocketAddr,
    poll: Poll,
    open: HashMap<u64, Question>,
    tell: Sender<QuoteAnswer>,
}

impl Asking {
    fn run(&mut self, said: &Receiver<Word>, wake: &dyn Fn()) {
        let mut events = Events::with_capacity(1_024);
        loop {
            for word in said.try_iter() {
                match word {
                    Word::Ask(hit, symbol, user) => self.ask(hit, symbol, user),
                    Word::Abandon(hit) => drop(self.open.remove(&hit)),
                    Word::End => return,
                }
            }
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return,
                _ => {}
            }
            for event in events.iter().filter(|event| event.token() != WAKER) {
                self.progress(event.token().0 as u64);
            }
            wake();
        }
    }

    fn ask(&mut self, hit: u64, symbol: StockSymbol, user: UserName) {
        let begun = TcpStream::connect(self.server).and_then(|mut stream| {
            let token = Token(usize::try_from(hit).map_err(io::Error::other)?);
            self.poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
            Ok(stream)
        });
        match begun {
            Ok(stream) => {
                let question = Question { stream, symbol, user, is_sent: false, reply: Vec::new() };
                self.open.insert(hit, question);
            }
            Err(_) => self.tell(hit, Err(QuoteFault::Closed)),
        }
    }

    fn tell(&self, hit: u64, answer: Result<StockQuote, QuoteFault>) {
        // Nobody listens any more: the next word is the end.
        let _ = self.tell.send((hit, answer));
    }

    /// A question's connection can be written, or read, or is closed.
    fn progress(&mut self, hit: u64) {
        let Some(question) = self.open.get_mut(&hit) else { return };
        if let Some(answer) = question.progress() {
            self.open.remove(&hit);
            self.tell(hit, answer);
        }
    }
}

impl Question {
    /// Sends what is to be sent, reads what has come; the answer, once there is one.
    fn progress(&mut self) -> Option<Result<StockQuote, QuoteFault>> {
        if !self.is_sent {
            match self.stream.write(ask_line(self.symbol, &self.user).as_bytes()) {
                // A line fits into a new connection's buffer.
                Ok(_) => self.is_sent = true,
                Err(error) if is_early(&error) => return None,
                Err(_) => return Some(Err(QuoteFault::Closed)),
            }
        }
        let mut bytes = [0; REPLY_MAX];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Some(Err(QuoteFault::Closed)),
                Ok(count) => self.reply.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Some(Err(QuoteFault::Closed)),
            }
            if let Some(end) = self.reply.iter().position(|byte| *byte == b'\n') {
                return Some(read_reply(&self.reply[..end], self.symbol, &self.user));
            }
            if self.reply.len() >= REPLY_MAX {
                return Some(Err(QuoteFault::Garbage));
            }
        }
    }
}

/// The connection is not there yet.
fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected | ErrorKind::Interrupted)
}
