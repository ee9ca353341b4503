//! Open questions, and the connections on which each is asked.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{ErrorKind, Read, Write};

use mio::Interest;
use mio::net::TcpStream;
use pares_front::{ask_line, read_reply};

use super::*;

/// Longest answer that is read, bytes.
const REPLY_MAX: usize = 512;
/// A connection that is not there after this is begun again; after twice as long the next time.
const PATIENCE: Duration = Duration::from_millis(50);
/// One that waits so long is left to the system, which dials again itself.
const PATIENCE_MAX: Duration = Duration::from_millis(800);
/// How often the same is asked, the first time included.
const ASKED_MAX: u32 = 6;

/// A question without an answer.
struct Question {
    symbol: StockSymbol,
    user: UserName,
    /// Its connections.
    tokens: Vec<usize>,
    /// How often, the first time included.
    asked: u32,
    /// It was sent: whatever becomes of it, it has its price.
    is_sent: bool,
}

/// A connection on which a question is asked.
struct Connection {
    hit: u64,
    stream: TcpStream,
    is_sent: bool,
    reply: Vec<u8>,
    patience: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The connection of this token should be there.
    Connected(usize),
    /// The question of this number should have its answer.
    Answered(u64),
}

/// See the [module](self).
pub(super) struct Asking {
    server: SocketAddr,
    hedge: Option<Duration>,
    hedges: Arc<AtomicU64>,
    pub(super) poll: Poll,
    questions: HashMap<u64, Question>,
    connections: HashMap<usize, Connection>,
    next_token: usize,
    due: BinaryHeap<Reverse<(Instant, Due)>>,
    tell: Sender<QuoteAnswer>,
}

impl Asking {
    pub(super) fn new(
        server: SocketAddr,
        hedge: Option<Duration>,
        hedges: Arc<AtomicU64>,
        poll: Poll,
        tell: Sender<QuoteAnswer>,
    ) -> Self {
        let (questions, connections) = (HashMap::new(), HashMap::new());
        Self {
            server,
            hedge,
            hedges,
            poll,
            questions,
            connections,
            next_token: 0,
            due: BinaryHeap::new(),
            tell,
        }
    }

    /// When something is to be done that no event tells.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    pub(super) fn ask(&mut self, hit: u64, symbol: StockSymbol, user: UserName) {
        self.questions.insert(hit, Question { symbol, user, tokens: Vec::new(), asked: 1, is_sent: false });
        if let Some(hedge) = self.hedge {
            self.due.push(Reverse((Instant::now() + hedge, Due::Answered(hit))));
        }
        self.connect(hit, PATIENCE);
    }

    /// Closes a question's connections.
    pub(super) fn forget(&mut self, hit: u64) {
        if let Some(question) = self.questions.remove(&hit) {
            question.tokens.iter().for_each(|token| drop(self.connections.remove(token)));
        }
    }

    fn connect(&mut self, hit: u64, patience: Duration) {
        let Some(question) = self.questions.get_mut(&hit) else { return };
        let token = self.next_token;
        self.next_token += 1;
        let begun = TcpStream::connect(self.server).and_then(|mut stream| {
            let both = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut stream, Token(token), both)?;
            Ok(stream)
        });
        match begun {
            Ok(stream) => {
                question.tokens.push(token);
                let connection = Connection { hit, stream, is_sent: false, reply: Vec::new(), patience };
                self.connections.insert(token, connection);
                if patience < PATIENCE_MAX {
                    self.due.push(Reverse((Instant::now() + patience, Due::Connected(token))));
                }
            }
            Err(_) => self.ended(hit, token, Err(QuoteFault::Unreached)),
        }
    }

    /// A connection can be written, or read, or is closed.
    pub(super) fn progress(&mut self, token: usize) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let hit = connection.hit;
        let Some(question) = self.questions.get_mut(&hit) else { return };
        let answer = connection.progress(question);
        question.is_sent |= connection.is_sent;
        if let Some(answer) = answer {
            self.connections.remove(&token);
            self.ended(hit, token, answer);
        }
    }

    /// A connection has ended. A fault is the question's only if it is asked nowhere else; that the server was not reached, only if it was by no connection.
    fn ended(&mut self, hit: u64, token: usize, answer: Result<StockQuote, QuoteFault>) {
        let Some(question) = self.questions.get_mut(&hit) else { return };
        question.tokens.retain(|other| *other != token);
        if answer.is_ok() || question.tokens.is_empty() {
            let is_paid = question.is_sent && answer == Err(QuoteFault::Unreached);
            let answer = if is_paid { Err(QuoteFault::Closed) } else { answer };
            self.forget(hit);
            // Nobody listens any more: the next word is the end.
            let _ = self.tell.send((hit, answer));
        }
    }

    pub(super) fn do_what_is_due(&mut self, now: Instant) {
        while let Some(Reverse((at, due))) = self.due.peek().copied()
            && at <= now
        {
            self.due.pop();
            match due {
                Due::Connected(token) => self.dial_again(token),
                Due::Answered(hit) => self.hedge(hit, now),
            }
        }
    }

    fn dial_again(&mut self, token: usize) {
        if self.connections.get(&token).is_none_or(|connection| connection.is_sent) {
            return;
        }
        let Some(late) = self.connections.remove(&token) else { return };
        if let Some(question) = self.questions.get_mut(&late.hit) {
            question.tokens.retain(|other| *other != token);
        }
        self.connect(late.hit, late.patience * 2);
    }

    /// Asks the same again.
    fn hedge(&mut self, hit: u64, now: Instant) {
        let Some(question) = self.questions.get_mut(&hit).filter(|question| question.asked < ASKED_MAX)
        else {
            return;
        };
        question.asked += 1;
        if let Some(hedge) = self.hedge {
            self.due.push(Reverse((now + hedge * (1 << (question.asked - 1)), Due::Answered(hit))));
        }
        self.hedges.fetch_add(1, Ordering::Relaxed);
        self.connect(hit, PATIENCE);
    }
}

impl Connection {
    /// Sends what is to be sent, reads what has come; the answer, once there is one.
    fn progress(&mut self, question: &Question) -> Option<Result<StockQuote, QuoteFault>> {
        let Question { symbol, user, .. } = question;
        if !self.is_sent {
            match self.stream.write(ask_line(*symbol, user).as_bytes()) {
                // A line fits into a new connection's buffer.
                Ok(_) => self.is_sent = true,
                Err(error) if is_early(&error) => return None,
                Err(_) => return Some(Err(QuoteFault::Unreached)),
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
                return Some(read_reply(&self.reply[..end], *symbol, user));
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
