//! A trader's end of the system.
//!
//! A trader that waits for an answer to each thing it says loses what it said when its server dies. This one keeps what it has not seen in
//! the stream, and says it again, under the same number, to the next server; whatever the first one made of it, it stands in the stream once.
//!
//! ```no_run
//! use pares_desk::item::{ItemBody, TraderId};
//! use pares_member::{TraderClient, TraderNews};
//! use std::time::Duration;
//!
//! let servers = ["127.0.0.1:7200".parse()?, "127.0.0.1:7201".parse()?];
//! let mut client = TraderClient::connect(&servers, TraderId(7))?;
//! client.submit(&ItemBody::Message { to: TraderId(0), text: "good morning" });
//! loop {
//!     client.wait(Duration::from_secs(1));
//!     client.poll(|news| if let TraderNews::Item(item) = news { assert!(item.item.says().is_ok()) });
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use pares_desk::frame::{
    self, CutOff, DeskNews, DeskSignOn, DeskSignedOn, FROM_NOW, NEWS_BYTES_MAX, Refusal, WANTS_BOOKS,
    WANTS_LOCAL, kind,
};
use pares_desk::item::{ItemBody, OrderedItem, TraderId};
use pares_desk::view::ToldView;
use pares_feed::mold::Packet;
use pares_types::{Position, ShardId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zerocopy::IntoBytes;

use crate::sources::MarketState;

/// How long a server may take to answer a sign-on.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two rounds over all servers.
const PAUSE: Duration = Duration::from_millis(20);
/// A server that says nothing for so long is left for another: three of its signs of life.
const SILENCE: Duration = Duration::from_secs(3);
const READ_BYTES: usize = 64 << 10;

/// What a trader wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraderOptions {
    /// The first position of the stream; none: from now on.
    pub from: Option<Position>,
    /// The latest state of each book, too.
    pub books: bool,
}

/// The whole stream, and no books.
impl Default for TraderOptions {
    fn default() -> Self {
        Self { from: Some(Position(0)), books: false }
    }
}

/// What a trader is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraderNews<'a> {
    /// It is signed on at that server; nothing is missed.
    SignedOn {
        /// Which.
        server: u16,
        /// All below was told to somebody.
        told: Position,
        /// Why that server ended the trader's last session.
        cut_off: CutOff,
    },
    /// The next item of the stream.
    Item(OrderedItem<'a>),
    /// Something of the trader's stands there; longer ago than is remembered if nowhere.
    Placed {
        /// Its number.
        number: u64,
        /// Where.
        position: Option<Position>,
    },
    /// Something of the trader's was not taken in.
    Refused {
        /// Its number.
        number: u64,
        /// Why.
        refusal: Refusal,
    },
    /// A book is like that now.
    Book(ToldView),
    /// A shard's market data, and so all of its books, are worth this now.
    Market {
        /// Which shard.
        shard: ShardId,
        /// What.
        state: MarketState,
    },
    /// Positions that were told before are lost at all servers, and another stream begins, from its first position.
    Lost,
    /// The connection is lost; the next call looks for another server.
    Away,
}

/// Something submitted that was not seen in the stream yet.
struct Unplaced {
    number: u64,
    kind: u8,
    body: Vec<u8>,
}

/// A trader's end.
pub struct TraderClient {
    servers: Vec<SocketAddr>,
    turn: usize,
    trader: TraderId,
    wants: u16,
    /// The stream it follows; 0 before it knows.
    number: u64,
    /// The next position.
    next: u64,
    /// The trader's last number.
    last: u64,
    unplaced: VecDeque<Unplaced>,
    connection: Option<TcpStream>,
    input: Vec<u8>,
    scratch: Box<[u8]>,
    output: Vec<u8>,
    heard: Instant,
    retry: Instant,
    reached: Option<TraderNews<'static>>,
    is_lost: bool,
}

impl TraderClient {
    /// Signs a trader on at the first of the servers that answers, to follow the stream from its beginning.
    ///
    /// # Errors
    /// If none answers.
    pub fn connect(servers: &[SocketAddr], trader: TraderId) -> io::Result<Self> {
        Self::connect_with(servers, trader, TraderOptions::default())
    }

    /// The same, to be told what the options say.
    ///
    /// # Errors
    /// If none answers.
    pub fn connect_with(
        servers: &[SocketAddr],
        trader: TraderId,
        options: TraderOptions,
    ) -> io::Result<Self> {
        let mut client = Self {
            servers: servers.to_vec(),
            turn: 0,
            trader,
            wants: WANTS_LOCAL | if options.books { WANTS_BOOKS } else { 0 },
            number: 0,
            next: options.from.map_or(FROM_NOW, |from| from.0),
            last: 0,
            unplaced: VecDeque::new(),
            connection: None,
            input: Vec::new(),
            scratch: vec![0; READ_BYTES].into(),
            output: Vec::new(),
            heard: Instant::now(),
            retry: Instant::now(),
            reached: None,
            is_lost: false,
        };
        client.try_each().map(|()| client)
    }

    /// Signs on at the first server that answers.
    fn try_each(&mut self) -> io::Result<()> {
        let mut tried = Err(ErrorKind::InvalidInput.into());
        for _ in 0..self.servers.len() {
            tried = self.try_next();
            if tried.is_ok() {
                break;
            }
        }
        tried
    }

    /// Who it is.
    #[must_use]
    pub fn trader(&self) -> TraderId {
        self.trader
    }

    /// The next position it will be told.
    #[must_use]
    pub fn next(&self) -> Position {
        Position(self.next)
    }

    /// How much it submitted that it has not seen in the stream.
    #[must_use]
    pub fn unplaced(&self) -> usize {
        self.unplaced.len()
    }

    /// Submits something; it is sent with the next [`TraderClient::poll`], and again to the next server until it stands in the stream. Its number.
    pub fn submit(&mut self, body: &ItemBody<'_>) -> u64 {
        self.last += 1;
        let mut unplaced = Unplaced { number: self.last, kind: body.kind(), body: Vec::new() };
        body.write(&mut unplaced.body);
        frame::write_submit(&mut self.output, unplaced.number, unplaced.kind, &unplaced.body);
        self.unplaced.push_back(unplaced);
        self.last
    }

    /// Sends what is to be sent and hands out what has come. Says how much that was. Never waits, unless it looks for another server.
    pub fn poll(&mut self, mut on: impl FnMut(TraderNews<'_>)) -> usize {
        if self.connection.is_none() {
            self.look_for_another();
        }
        if std::mem::take(&mut self.is_lost) {
            on(TraderNews::Lost);
        }
        if let Some(news) = self.reached.take() {
            on(news);
        }
        let exchanged = self.exchange();
        let told = self.hand_out(&mut on);
        if exchanged.is_err() || told.is_none() || self.heard.elapsed() > SILENCE {
            if self.connection.take().is_some() {
                on(TraderNews::Away);
            }
            self.input.clear();
        }
        told.unwrap_or(0)
    }

    /// Waits until there is something to poll, or that time is over.
    pub fn wait(&self, timeout: Duration) {
        let Some(connection) = &self.connection else { return std::thread::sleep(timeout.min(PAUSE)) };
        let write = if self.output.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let mut fds = [PollFd::new(connection, PollFlags::IN | write)];
        let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
        let timeout = Timespec { tv_sec: seconds, tv_nsec: timeout.subsec_nanos().into() };
        // Waiting less does no harm.
        let _ = poll(&mut fds, Some(&timeout));
    }

    fn look_for_another(&mut self) {
        if Instant::now() < self.retry || self.try_next().is_ok() {
            return;
        }
        if self.turn.is_multiple_of(self.servers.len()) {
            self.retry = Instant::now() + PAUSE;
        }
    }

    /// Signs on at the next server in turn, and says again what is not placed.
    fn try_next(&mut self) -> io::Result<()> {
        let address = *self.servers.get(self.turn % self.servers.len().max(1)).ok_or(ErrorKind::NotFound)?;
        self.turn += 1;
        let mut connection = TcpStream::connect_timeout(&address, PATIENCE)?;
        connection.set_nodelay(true)?;
        let sign_on = DeskSignOn::new(self.trader, self.wants, self.number, self.next);
        self.output.clear();
        self.input.clear();
        frame::write(&mut self.output, kind::SIGN_ON, &[sign_on.as_bytes()]);
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.write_all(&std::mem::take(&mut self.output))?;
        let signed_on = match self.read_sign_on(&mut connection)? {
            Ok(signed_on) => signed_on,
            Err(cut_off) => return Err(self.on_refused(cut_off)),
        };
        connection.set_nonblocking(true)?;
        self.connection = Some(connection);
        self.heard = Instant::now();
        self.on_signed_on(&signed_on);
        Ok(())
    }

    fn read_sign_on(&mut self, connection: &mut TcpStream) -> io::Result<Result<DeskSignedOn, CutOff>> {
        let mut bytes = [0; 4_096];
        loop {
            let read = connection.read(&mut bytes)?;
            if read == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.input.extend_from_slice(&bytes[..read]);
            let split = frame::split(&self.input, NEWS_BYTES_MAX).map_err(io::Error::other)?;
            let Some((kind, payload, rest)) = split else { continue };
            let (news, left) = (frame::read_news(kind, payload).map_err(io::Error::other)?, rest.len());
            let said = match news {
                DeskNews::SignedOn(signed_on) => Ok(signed_on),
                DeskNews::Ended(cut_off) => Err(cut_off),
                _ => return Err(ErrorKind::InvalidData.into()),
            };
            self.input.drain(..self.input.len() - left);
            return Ok(said);
        }
    }

    fn on_refused(&mut self, cut_off: CutOff) -> io::Error {
        if cut_off == CutOff::OtherStream {
            (self.number, self.next, self.is_lost) = (0, 0, true);
        }
        io::Error::other(format!("the server ended the connection: {cut_off:?}"))
    }

    fn on_signed_on(&mut self, signed_on: &DeskSignedOn) {
        self.number = signed_on.stream.get();
        self.next = signed_on.next.get();
        self.last = self.last.max(signed_on.through.get());
        self.reached = Some(TraderNews::SignedOn {
            server: signed_on.server.get(),
            told: Position(signed_on.told.get()),
            cut_off: CutOff::of(signed_on.cut_off).unwrap_or_default(),
        });
        for Unplaced { number, kind, body } in &self.unplaced {
            frame::write_submit(&mut self.output, *number, *kind, body);
        }
    }

    fn exchange(&mut self) -> io::Result<()> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        while !self.output.is_empty() {
            match connection.write(&self.output) {
                Ok(sent) => drop(self.output.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        match connection.read(&mut self.scratch) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.heard = Instant::now();
                self.input.extend_from_slice(&self.scratch[..read]);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Hands out what has come. `None` if it does not make sense.
    fn hand_out(&mut self, on: &mut impl FnMut(TraderNews<'_>)) -> Option<usize> {
        let input = std::mem::take(&mut self.input);
        let (mut rest, mut told) = (&input[..], 0);
        while let Some((kind, payload, after)) = frame::split(rest, NEWS_BYTES_MAX).ok()? {
            rest = after;
            let news = frame::read_news(kind, payload).ok()?;
            if let DeskNews::Placed { number, .. } | DeskNews::Refused { number, .. } = news {
                self.forget(number);
            }
            match news {
                DeskNews::Block(packet) => told += self.on_packet(packet, on)?,
                DeskNews::Placed { number, position } => on(TraderNews::Placed { number, position }),
                DeskNews::Refused { number, refusal } => on(TraderNews::Refused { number, refusal }),
                DeskNews::Book(bytes) => on(TraderNews::Book(ToldView::read(bytes)?)),
                DeskNews::FeedState(bytes) => {
                    let &[low, high, state, ..] = bytes else { return None };
                    let shard = ShardId(u16::from_le_bytes([low, high]));
                    on(TraderNews::Market { shard, state: MarketState::of(state)? });
                }
                DeskNews::Ended(_) => return None,
                _ => {}
            }
        }
        self.input = rest.to_vec();
        Some(told)
    }

    /// It is known what became of that number: nearly always the oldest.
    fn forget(&mut self, number: u64) {
        if let Ok(index) = self.unplaced.binary_search_by_key(&number, |unplaced| unplaced.number) {
            self.unplaced.remove(index);
        }
    }

    fn on_packet(&mut self, packet: &[u8], on: &mut impl FnMut(TraderNews<'_>)) -> Option<usize> {
        let packet = Packet::read(packet).ok()?;
        let mut told = 0;
        for (position, record) in packet.messages() {
            if position < self.next {
                continue;
            }
            let ordered = OrderedItem::read(record).ok()?;
            if position > self.next || ordered.position.0 != position {
                return None;
            }
            self.next += 1;
            told += 1;
            if ordered.item.name.trader == self.trader {
                self.forget(ordered.item.name.number);
            }
            on(TraderNews::Item(ordered));
        }
        Some(told)
    }
}
