//! A trader's end of the system, on a socket.
//!
//! What it says and what it makes of the answers are rules ([`pares_desk::trader`]); here are its connection and the clock.
//!
//! ```no_run
//! use pares_desk::item::{ItemBody, ItemError, TraderId};
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

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use pares_desk::item::{ItemBody, ItemError, TraderId};
use pares_desk::trader::{PATIENCE_NS, Trader};
use pares_types::Position;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use pares_desk::trader::{TraderNews, TraderOptions};

/// How long a server may take to answer a sign-on.
const PATIENCE: Duration = Duration::from_nanos(PATIENCE_NS);
/// Between two rounds over all servers.
const PAUSE: Duration = Duration::from_millis(20);
const READ_BYTES: usize = 64 << 10;

/// A trader's end.
pub struct TraderClient {
    servers: Vec<SocketAddr>,
    turn: usize,
    rules: Trader,
    connection: Option<TcpStream>,
    scratch: Box<[u8]>,
    started: Instant,
    retry: Instant,
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
        let (started, rules) = (Instant::now(), Trader::new(trader, options));
        let (servers, scratch) = (servers.to_vec(), vec![0; READ_BYTES].into());
        let mut client = Self { servers, turn: 0, rules, connection: None, scratch, started, retry: started };
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
        self.rules.trader()
    }

    /// The next position it will be told.
    #[must_use]
    pub fn next(&self) -> Position {
        self.rules.next()
    }

    /// How much it submitted that it has not seen in the stream.
    #[must_use]
    pub fn unplaced(&self) -> usize {
        self.rules.unplaced()
    }

    /// Submits something; it is sent with the next [`TraderClient::poll`], and again to the next server until it stands in the stream. Its number.
    ///
    /// # Errors
    /// If it is longer than an item may be; then nothing is submitted.
    pub fn submit(&mut self, body: &ItemBody<'_>) -> Result<u64, ItemError> {
        self.rules.submit(body)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Sends what is to be sent and hands out what has come. Says how much that was. Never waits, unless it looks for another server.
    pub fn poll(&mut self, mut on: impl FnMut(TraderNews<'_>)) -> usize {
        if self.connection.is_none() {
            self.look_for_another();
        }
        let exchanged = self.exchange();
        let told = self.rules.hand_out(&mut on);
        if exchanged.is_err() || told.is_err() || self.rules.is_silent(self.now_ns()) {
            if self.connection.take().is_some() {
                on(TraderNews::Away);
            }
            self.rules.leave();
        }
        told.unwrap_or(0)
    }

    /// Waits until there is something to poll, or that time is over.
    pub fn wait(&self, timeout: Duration) {
        let Some(connection) = &self.connection else { return std::thread::sleep(timeout.min(PAUSE)) };
        let write = if self.rules.output().is_empty() { PollFlags::empty() } else { PollFlags::OUT };
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
        connection.set_read_timeout(Some(PATIENCE))?;
        self.rules.begin(self.now_ns());
        let signed_on = self.sign_on(&mut connection);
        if signed_on.is_err() {
            self.rules.leave();
            return signed_on;
        }
        connection.set_nonblocking(true)?;
        self.connection = Some(connection);
        Ok(())
    }

    fn sign_on(&mut self, connection: &mut TcpStream) -> io::Result<()> {
        connection.write_all(self.rules.output())?;
        self.rules.sent(self.rules.output().len());
        let mut bytes = [0; 4_096];
        while !self.rules.is_signed_on() {
            let read = connection.read(&mut bytes)?;
            if read == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.rules.on_bytes(&bytes[..read], self.now_ns());
            self.rules.sign_on().map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn exchange(&mut self) -> io::Result<()> {
        let now_ns = self.now_ns();
        let Some(connection) = &mut self.connection else { return Ok(()) };
        while !self.rules.output().is_empty() {
            match connection.write(self.rules.output()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => self.rules.sent(sent),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        match connection.read(&mut self.scratch) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.rules.on_bytes(&self.scratch[..read], now_ns);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}
