//! `pares broker quote-server`: the stand-in for the legacy quote server, on a socket.
//!
//! A thread for each connection would do, until a workload asks for a thousand stocks at once and each waits for seconds. So one thread serves them all:
//! it reads a line, asks the rules ([`StandIn`]) what to say and when, and says it then. Keys are HMACs of the quote's line, so that they can be checked.
//!
//! The system keeps 128 connections for a listener that is not looking, unless a listener asks for more; the next one gets no answer, and dials again after a second. So
//! a thousand questions at once take a second that nobody asked for. This listener has room for all that it would serve.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use pares_broker::{StockQuote, dollars};
use pares_front::{HIT_MILLS, StandIn, StandInSettings, StandInWords, reply_line, signed_part};
use pares_os::{clock, descriptors, process};
use ring::hmac;

use crate::error::{BrokerageError, BrokerageResult};
use crate::link;

/// Who does not let itself be connected to within this cannot be reached.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);
/// Longest line of a question, bytes.
const LINE_MAX: usize = 256;
/// Connections at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 8_192;
/// So many may wait to be accepted. The system may allow fewer (`net.core.somaxconn`).
const WAITING_MAX: i32 = 4_096;
/// After a connection could not be accepted, it is tried again.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);
const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
const FIRST: usize = 2;

/// Arguments of `pares broker quote-server`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The address to listen at
    #[arg(long, default_value = "127.0.0.1:4444")]
    listen: SocketAddr,
    #[command(flatten)]
    behaviour: Behaviour,
}

/// How the stand-in behaves.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Behaviour {
    /// Random seed of its prices, delays and faults
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Answer at once [default: after 0 to 4 seconds, like the legacy server]
    #[arg(long)]
    pub instant: bool,
    /// Bad answers per thousand: none, garbage, NA, another stock, no price or a far too high one, a time stamp an hour off
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000))]
    pub bad_per_mille: u64,
}

impl Behaviour {
    /// The same, for [`QuoteServer::start`].
    #[must_use]
    pub fn settings(self) -> StandInSettings {
        let Self { seed, instant, bad_per_mille } = self;
        StandInSettings { seed, is_instant: instant, bad_per_mille }
    }
}

/// Why nobody can ask the quote server at an address now, if so. To connect and say nothing costs nothing.
pub(crate) fn unreached(address: SocketAddr) -> Option<String> {
    let tried = std::net::TcpStream::connect_timeout(&address, CONNECT_PATIENCE);
    tried.err().map(|error| format!("the quote server at {address} cannot be reached ({error})"))
}

/// Serves until Ctrl-C.
///
/// # Errors
/// If it cannot listen.
pub fn run(args: &Args) -> BrokerageResult {
    let stop = process::stop_on_signals().map_err(BrokerageError::io("installing a signal handler"))?;
    let listening = BrokerageError::io(format!("listening at {}", args.listen));
    let server = QuoteServer::start(args.listen, args.behaviour.settings()).map_err(listening)?;
    pares_text::tell!("quotes at {}", server.address());
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let hits = server.hits();
    pares_text::tell!("{hits} questions, ${}", dollars(hits * HIT_MILLS / 10));
    Ok(())
}

/// A stand-in that runs. It ends when this is dropped.
#[derive(Debug)]
pub struct QuoteServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    hits: Arc<AtomicU64>,
    waker: Arc<Waker>,
    key: hmac::Key,
    thread: Option<JoinHandle<()>>,
}

impl QuoteServer {
    /// Listens at `listen`, and answers as `settings` say.
    ///
    /// # Errors
    /// If it cannot listen, or there is no thread for it.
    pub fn start(listen: SocketAddr, settings: StandInSettings) -> io::Result<Self> {
        descriptors::raise_limit();
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(listen)?;
        rustix::net::listen(&listener, WAITING_MAX)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let (stop, hits) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let key = hmac::Key::new(hmac::HMAC_SHA256, &settings.seed.to_le_bytes());
        let address = listener.local_addr()?;
        let mut serving = Serving {
            poll,
            listener,
            is_behind: false,
            open: HashMap::new(),
            next: FIRST,
            due: BinaryHeap::new(),
            rules: StandIn::new(settings),
            key: key.clone(),
            hits: Arc::clone(&hits),
        };
        let told = Arc::clone(&stop);
        let run = move || serving.run(&told);
        let thread = Some(std::thread::Builder::new().name("quote-server".into()).spawn(run)?);
        Ok(Self { address, stop, hits, waker, key, thread })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often it was asked.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Whether this server gave that quote.
    #[must_use]
    pub fn gave(&self, quote: &StockQuote) -> bool {
        quote.key == key_of(&self.key, quote)
    }
}

impl Drop for QuoteServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn key_of(key: &hmac::Key, quote: &StockQuote) -> String {
    use std::fmt::Write as _;
    let tag = hmac::sign(key, signed_part(quote).as_bytes());
    tag.as_ref().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// A connection: what came, and what is to be said.
struct Caller {
    stream: TcpStream,
    line: Vec<u8>,
    /// Once its line has come.
    answer: Option<String>,
}

struct Serving {
    poll: Poll,
    listener: TcpListener,
    /// Connections may wait of which no event will tell: accepting one has failed.
    is_behind: bool,
    open: HashMap<usize, Caller>,
    next: usize,
    /// When which connection is to be answered.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    rules: StandIn,
    key: hmac::Key,
    hits: Arc<AtomicU64>,
}

impl Serving {
    fn run(&mut self, stop: &AtomicBool) {
        let mut events = Events::with_capacity(1_024);
        while !stop.load(Ordering::Relaxed) {
            let pause = self.pause();
            if link::wait(&mut self.poll, &mut events, pause).is_err() {
                return;
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    WAKER => {}
                    Token(caller) => self.heard(caller),
                }
            }
            if self.is_behind {
                self.accept();
            }
            self.answer_what_is_due();
        }
    }

    /// How long there is nothing to do, if nobody says anything.
    fn pause(&self) -> Option<Duration> {
        let next = self.due.peek().map(|Reverse((at, _))| at.saturating_duration_since(Instant::now()));
        let again = self.is_behind.then_some(ACCEPT_AGAIN);
        next.into_iter().chain(again).min()
    }

    fn accept(&mut self) {
        self.is_behind = false;
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // An error of one connection, or too many files: others may wait behind it.
                    self.is_behind = error.kind() != ErrorKind::WouldBlock;
                    return;
                }
            };
            let token = Token(self.next);
            let is_registered = self.poll.registry().register(&mut stream, token, Interest::READABLE).is_ok();
            if is_registered && self.open.len() < CONNECTIONS_MAX {
                self.open.insert(self.next, Caller { stream, line: Vec::new(), answer: None });
                self.next += 1;
            }
        }
    }

    /// Something came, or the caller has closed.
    fn heard(&mut self, number: usize) {
        let Some(caller) = self.open.get_mut(&number) else { return };
        let mut bytes = [0; LINE_MAX];
        loop {
            match caller.stream.read(&mut bytes) {
                Ok(0) => return drop(self.open.remove(&number)),
                Ok(count) if caller.answer.is_none() => {
                    caller.line.extend_from_slice(&bytes[..count]);
                    if caller.line.len() > LINE_MAX || caller.line.contains(&b'\n') {
                        break;
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return drop(self.open.remove(&number)),
            }
        }
        self.decide(number);
    }

    /// A line has come: what is said to it, and when.
    fn decide(&mut self, number: usize) {
        let Some(caller) = self.open.get_mut(&number) else { return };
        let end = caller.line.iter().position(|byte| *byte == b'\n').unwrap_or(caller.line.len());
        let answer = self.rules.answer(&caller.line[..end], clock::now_ns() / 1_000_000);
        self.hits.store(self.rules.hits(), Ordering::Relaxed);
        let text = match answer.words {
            StandInWords::Quote(quote) => {
                let key = key_of(&self.key, &quote);
                reply_line(&StockQuote { key, ..quote })
            }
            StandInWords::Text(text) => text,
            StandInWords::Silence => return caller.answer = Some(String::new()),
        };
        caller.answer = Some(text);
        self.due.push(Reverse((Instant::now() + Duration::from_millis(answer.delay_ms), number)));
    }

    fn answer_what_is_due(&mut self) {
        let now = Instant::now();
        while let Some(Reverse((at, number))) = self.due.peek().copied()
            && at <= now
        {
            self.due.pop();
            if let Some(mut caller) = self.open.remove(&number) {
                // A line fits into any socket's buffer; a caller that has gone is not told.
                let _ = caller.stream.write_all(caller.answer.unwrap_or_default().as_bytes());
            }
        }
    }
}
