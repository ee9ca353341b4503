//! Subscribers, all on one thread. They count frames and look into a few: one that read all of JSON would be slower than what it measures.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use pares_load::{HttpConnection, LabError, first_frame, text_frame, text_of};

use super::changes::age_us;

/// Sessions that subscribers share.
const SESSIONS: u32 = 8;
/// One message of so many is looked into.
const SAMPLED: u64 = 16;
/// No message about a book is shorter; all others are.
const BOOK_BYTES_MIN: usize = 80;
/// What subscribers receive within this does not count.
const WARM_UP: Duration = Duration::from_secs(1);
/// Between two looks at whether the system stands.
const LOOK: Duration = Duration::from_millis(100);
/// A slow one reads so much at each look: it stands far behind for ever, and is not cut off.
const SLOW_BYTES: usize = 4 << 10;
const BUFFER_BYTES: usize = 256 << 10;
/// How long the server may take to have received the books.
const PATIENCE: Duration = Duration::from_secs(20);

/// What was read.
pub(super) struct Read {
    pub(super) deliveries: u64,
    pub(super) age_us: Histogram<u64>,
}

struct Subscriber {
    stream: TcpStream,
    /// What has come of a frame that is not whole.
    rest: Vec<u8>,
}

/// All of them.
pub(super) struct Subscribers {
    poll: Poll,
    all: Vec<Subscriber>,
    slow: Vec<TcpStream>,
    /// Where a server of the exchange is, the sessions' tokens, and how many books there are.
    books: Option<(SocketAddr, Vec<String>, u32)>,
    buffer: Vec<u8>,
}

fn lost(error: std::io::Error) -> LabError {
    LabError::io("listening to the server")(error)
}

/// Waits until the server has received all books.
fn await_books(server: SocketAddr, token: &str, books: u32) -> Result<(), LabError> {
    let mut connection = HttpConnection::connect(server).map_err(lost)?;
    connection.set_token(token);
    let begun = Instant::now();
    for book in 1..=books {
        let path = format!("/v1/instruments/{}/book", pares_load::setup::instrument(book).symbol);
        loop {
            connection.put("GET", &path, "", "");
            if connection.wait().map_err(lost)?.status == 200 {
                break;
            }
            if begun.elapsed() > PATIENCE {
                return Err(LabError::Failed("the server receives no market data".into()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}

impl Subscribers {
    /// Those who subscribe to all books at a server of the exchange.
    pub(super) fn of_books(server: SocketAddr, count: u32, books: u32) -> Result<Self, LabError> {
        let sign_on = |member| HttpConnection::connect(server)?.sign_on(member, 0);
        let tokens = (1..=SESSIONS).map(sign_on).collect::<Result<Vec<_>, _>>().map_err(lost)?;
        await_books(server, &tokens[0], books)?;
        let mut subscribers = Self::none()?;
        subscribers.books = Some((server, tokens, books));
        for number in 0..count {
            let (stream, rest) = subscribers.subscribe(number)?;
            subscribers.add(stream, rest)?;
        }
        Ok(subscribers)
    }

    /// Those of a server that asks nothing.
    pub(super) fn of_yardstick(server: SocketAddr, count: u32) -> Result<Self, LabError> {
        let mut subscribers = Self::none()?;
        for _ in 0..count {
            subscribers.add(std::net::TcpStream::connect(server).map_err(lost)?, Vec::new())?;
        }
        Ok(subscribers)
    }

    fn none() -> Result<Self, LabError> {
        let poll = Poll::new().map_err(lost)?;
        Ok(Self { poll, all: Vec::new(), slow: Vec::new(), books: None, buffer: vec![0; BUFFER_BYTES] })
    }

    /// Opens a socket and subscribes to all books; what has come already is handed back too.
    fn subscribe(&self, number: u32) -> Result<(std::net::TcpStream, Vec<u8>), LabError> {
        let (server, tokens, books) = self.books.as_ref().expect("subscribers of books");
        let subscribed = || {
            let mut connection = HttpConnection::connect(*server)?;
            connection.set_token(&tokens[number as usize % tokens.len()]);
            let (mut stream, rest) = connection.open_socket("/v1/socket")?;
            for book in 1..=*books {
                let symbol = pares_load::setup::instrument(book).symbol;
                let text = format!("{{\"op\":\"subscribe\",\"channel\":\"book\",\"symbol\":\"{symbol}\"}}");
                stream.write_all(&text_frame(&text))?;
            }
            Ok((stream, rest))
        };
        subscribed().map_err(lost)
    }

    fn add(&mut self, stream: std::net::TcpStream, rest: Vec<u8>) -> Result<(), LabError> {
        stream.set_nonblocking(true).map_err(lost)?;
        let mut stream = TcpStream::from_std(stream);
        let token = Token(self.all.len());
        self.poll.registry().register(&mut stream, token, Interest::READABLE).map_err(lost)?;
        self.all.push(Subscriber { stream, rest });
        Ok(())
    }

    /// So many of them hang up.
    pub(super) fn leave(&mut self, count: u32) {
        self.all.truncate(self.all.len() - count as usize);
    }

    /// So many come that hardly read.
    pub(super) fn join_slow(&mut self, count: u32) -> Result<(), LabError> {
        for number in 0..count {
            let (stream, _) = self.subscribe(number)?;
            stream.set_nonblocking(true).map_err(lost)?;
            rustix::net::sockopt::set_socket_recv_buffer_size(&stream, BUFFER_BYTES / 4)
                .map_err(|error| lost(error.into()))?;
            self.slow.push(TcpStream::from_std(stream));
        }
        Ok(())
    }

    /// Reads for so long; `look` is called now and then.
    pub(super) fn read(&mut self, lasting: Duration, look: &mut impl FnMut()) -> Result<Read, LabError> {
        let mut events = Events::with_capacity(1_024);
        let age_us = Histogram::new_with_bounds(1, 10_000_000, 3).expect("legal bounds");
        let mut read = Read { deliveries: 0, age_us };
        let begun = Instant::now();
        let (mut looked, mut counts) = (begun, false);
        while begun.elapsed() < WARM_UP + lasting {
            match self.poll.poll(&mut events, Some(LOOK)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled.map_err(lost)?,
            }
            if !counts && begun.elapsed() >= WARM_UP {
                (counts, read.deliveries) = (true, 0);
                read.age_us.reset();
            }
            for event in &events {
                // Of one that has left something may still be told.
                if event.token().0 < self.all.len() {
                    self.hear(event.token().0, &mut read)?;
                }
            }
            if looked.elapsed() > LOOK {
                looked = Instant::now();
                look();
                self.slow.iter_mut().for_each(|slow| _ = slow.read(&mut self.buffer[..SLOW_BYTES]));
            }
        }
        Ok(read)
    }

    /// Reads a subscriber's connection empty.
    fn hear(&mut self, place: usize, read: &mut Read) -> Result<(), LabError> {
        let Subscriber { stream, rest } = &mut self.all[place];
        loop {
            let kept = rest.len();
            self.buffer[..kept].copy_from_slice(rest);
            let count = match stream.read(&mut self.buffer[kept..]) {
                Ok(0) => return Err(LabError::Failed("a subscriber that reads was cut off".into())),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(lost(error)),
            };
            let mut bytes = &self.buffer[..kept + count];
            while let Some((kind, payload, length)) = first_frame(bytes) {
                if kind == 1 && payload.len() >= BOOK_BYTES_MIN {
                    read.note(payload);
                }
                bytes = &bytes[length..];
            }
            rest.clear();
            rest.extend_from_slice(bytes);
            // A connection that gave less than there was room for is empty.
            if kept + count < BUFFER_BYTES {
                return Ok(());
            }
        }
    }
}

impl Read {
    fn note(&mut self, message: &[u8]) {
        self.deliveries += 1;
        if self.deliveries.is_multiple_of(SAMPLED) {
            let text = std::str::from_utf8(message).ok();
            let then = text.and_then(|text| text_of(text, "quantity")).and_then(|then| then.parse().ok());
            then.into_iter().for_each(|then| self.age_us.saturating_record(age_us(then).max(1)));
        }
    }
}
