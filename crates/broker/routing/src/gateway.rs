//! The connection to the exchange: to one gateway, and when that is gone to the next.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pares_broker::StockSymbol;
use pares_client::{Client, ClientError, InstrumentStatus, List, ListRequest, Options, Update};
use pares_router::ListedStock;
use pares_types::{ClientRequest, MemberId, Reply, ShardId};

/// Between two tries to connect.
const PAUSE: Duration = Duration::from_millis(100);
/// Within so long a gateway lists its instruments.
const LIST_PATIENCE: Duration = Duration::from_secs(5);

/// What has come.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    /// A connection came about: so the exchange lists stocks.
    Connected(BTreeMap<StockSymbol, ListedStock>),
    /// It is gone.
    Lost,
    /// The exchange says something.
    Told(Reply),
    /// A shard's stream is live.
    Resumed(u32),
    /// A shard's stream cannot be told.
    NotKept,
}

/// See the module.
pub struct Gateways {
    addresses: Vec<SocketAddr>,
    at: usize,
    member: MemberId,
    options: Options,
    client: Option<Client>,
    tried: Option<Instant>,
    /// Why there is no connection, as the last try said.
    why: String,
}

impl Gateways {
    /// These, one after the other.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn new(addresses: Vec<SocketAddr>, member: MemberId, options: Options) -> Self {
        assert!(!addresses.is_empty(), "an exchange has a gateway");
        Self { addresses, at: 0, member, options, client: None, tried: None, why: String::new() }
    }

    /// As whom it signs on.
    #[must_use]
    pub fn member(&self) -> MemberId {
        self.member
    }

    /// Ends the connection, if there is one; whether there was.
    pub(crate) fn leave(&mut self) -> bool {
        self.tried = None;
        self.client.take().is_some()
    }

    /// Why there is none, in words.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    /// Whether there is a connection.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.client.is_some()
    }

    /// Buffers a request; without a connection, or if that is lost by it, nothing is sent.
    pub(crate) fn send(&mut self, request: &ClientRequest) {
        self.with(|client| {
            loop {
                match client.send(request) {
                    Err(ClientError::Backlogged) if client.flush()? => {}
                    Err(ClientError::Backlogged) => drop(client.wait(Duration::from_millis(10))?),
                    sent => return sent,
                }
            }
        });
    }

    pub(crate) fn resume(&mut self, shard: u32, next: u64) {
        let shard = ShardId(u16::try_from(shard).unwrap_or(u16::MAX));
        self.with(|client| client.resume(Some(shard), next));
    }

    /// Does something with the connection. One that fails is of no further use; the next turn sees that.
    fn with(&mut self, act: impl FnOnce(&mut Client) -> Result<(), ClientError>) {
        if let Some(client) = &mut self.client
            && act(client).is_err()
        {
            self.client = None;
        }
    }

    /// Waits a while for something to come, and says what; sends what is buffered.
    pub(crate) fn turn(&mut self, wait: Duration) -> Vec<Heard> {
        let mut heard = Vec::new();
        if self.client.is_none() {
            if self.tried.take().is_some() {
                heard.push(Heard::Lost);
                self.at = (self.at + 1) % self.addresses.len();
                std::thread::sleep(PAUSE);
            }
            self.connect(&mut heard);
            return heard;
        }
        self.with(|client| {
            client.flush()?;
            client.wait(wait)?;
            client.poll(|update| heard.extend(said(update)))?;
            Ok(())
        });
        heard
    }

    fn connect(&mut self, heard: &mut Vec<Heard>) {
        self.tried = Some(Instant::now());
        let address = self.addresses[self.at];
        let connected = Client::connect_with(address, self.member, self.options.clone());
        match connected.and_then(|mut client| Ok((listed(&mut client)?, client))) {
            Ok((listed, client)) => {
                heard.push(Heard::Connected(listed));
                self.client = Some(client);
            }
            Err(error) => self.why = format!("{address}: {error}"),
        }
    }
}

/// What a gateway lists. Nothing else can come before: no stream is followed, and nothing was asked.
fn listed(client: &mut Client) -> Result<BTreeMap<StockSymbol, ListedStock>, ClientError> {
    client.list(&ListRequest { token: 1, list: List::Instruments, instrument: None })?;
    let (mut found, mut is_whole) = (BTreeMap::new(), false);
    let began = Instant::now();
    while !is_whole {
        if began.elapsed() > LIST_PATIENCE {
            return Err(ClientError::TimedOut);
        }
        client.flush()?;
        client.wait(Duration::from_millis(100))?;
        client.poll(|update| match update {
            Update::Instrument(status) => found.extend(listing(&status)),
            Update::ListEnd(_) => is_whole = true,
            _ => {}
        })?;
    }
    Ok(found)
}

/// An instrument whose symbol is that of a stock, and whose price is never below zero.
fn listing(status: &InstrumentStatus) -> Option<(StockSymbol, ListedStock)> {
    let symbol = StockSymbol::new(status.symbol.as_str()).filter(|_| status.price_min.0 >= 0)?;
    Some((symbol, ListedStock { instrument: status.instrument, shard: status.shard.0.into() }))
}

fn said(update: Update) -> Option<Heard> {
    Some(match update {
        Update::Answer(answer) => Heard::Told(Reply::Answer(answer)),
        Update::Trade(trade) => Heard::Told(Reply::Trade(trade)),
        Update::Cancelled(cancelled) => Heard::Told(Reply::Cancelled(cancelled)),
        Update::News(news) => Heard::Told(Reply::News(news)),
        Update::Busted(bust) => Heard::Told(Reply::Busted(bust)),
        Update::Rejected { client_order_id, reason } => {
            Heard::Told(Reply::Rejected { client_order_id, reason })
        }
        Update::Resumed { shard, .. } => Heard::Resumed(shard.0.into()),
        Update::NotResumed { .. } => Heard::NotKept,
        _ => return None,
    })
}
