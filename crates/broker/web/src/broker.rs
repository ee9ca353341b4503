//! What this interface needs of a front.
//!
//! Handlers do not know how many sites there are, nor which of them answers. They ask, and are told or are not.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use pares_broker::{Asked, BrokerRead, BrokerReply, CommandName, StockQuote, StockSymbol, UserName};
use pares_wice::codec::{Coded, DecodeError};
use tokio::sync::broadcast;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// No site has answered. What was asked may be done or not: the same again, under the same name, is safe.
    #[error("no site answers: {0}")]
    Silent(String),
    /// The front has as much to do as it takes: it did nothing.
    #[error("the front is busy: {0}")]
    Busy(String),
}

/// What the questions that this front itself has asked have cost since it started, and what the answers say of its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Questions to the quote server.
    pub hits: u64,
    /// Cents.
    pub cents: u64,
    /// By how much its clock is ahead of the quote server's at least, ms; behind, if below zero; 0 if it may be right.
    pub clock_ahead_ms: i64,
}

/// A front. A clone is the same front.
pub trait Broker: Clone + Send + Sync + 'static {
    /// Executed once; with a name, once for ever under it. A user's commands are executed in the order of the calls. For a command the front brings the quote, the
    /// number and the time; for anything else the time. What is about people (`Asked::Person`) has neither user nor name here, and waits for nothing.
    fn ask(
        &self,
        user: Option<UserName>,
        name: Option<CommandName>,
        asked: Asked,
    ) -> impl Future<Output = Result<BrokerReply, Unavailable>> + Send;

    /// A read of a state that holds whatever this front has answered before.
    fn read(&self, read: BrokerRead) -> impl Future<Output = Result<Vec<u8>, Unavailable>> + Send;

    /// The latest quote of a stock that this front has, however old.
    fn quote(&self, symbol: StockSymbol) -> Option<StockQuote>;

    /// Every quote that this front learns from now on. Who reads too slowly misses some.
    fn quotes(&self) -> broadcast::Receiver<StockQuote>;

    /// Hits and cents so far.
    fn costs(&self) -> Costs;
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Unavailable>> + Send + 'a>>;

/// A [`Broker`] of any kind, so that handlers are built once.
trait AnyBroker: Send + Sync {
    fn ask(&self, user: Option<UserName>, name: Option<CommandName>, asked: Asked)
    -> Answer<'_, BrokerReply>;
    fn read(&self, read: BrokerRead) -> Answer<'_, Vec<u8>>;
    fn quote(&self, symbol: StockSymbol) -> Option<StockQuote>;
    fn quotes(&self) -> broadcast::Receiver<StockQuote>;
    fn costs(&self) -> Costs;
}

impl<B: Broker> AnyBroker for B {
    fn ask(
        &self,
        user: Option<UserName>,
        name: Option<CommandName>,
        asked: Asked,
    ) -> Answer<'_, BrokerReply> {
        Box::pin(Broker::ask(self, user, name, asked))
    }
    fn read(&self, read: BrokerRead) -> Answer<'_, Vec<u8>> {
        Box::pin(Broker::read(self, read))
    }
    fn quote(&self, symbol: StockSymbol) -> Option<StockQuote> {
        Broker::quote(self, symbol)
    }
    fn quotes(&self) -> broadcast::Receiver<StockQuote> {
        Broker::quotes(self)
    }
    fn costs(&self) -> Costs {
        Broker::costs(self)
    }
}

/// The front that handlers ask.
#[derive(Clone)]
pub(crate) struct Front(Arc<dyn AnyBroker>);

impl Front {
    pub(crate) fn of(broker: impl Broker) -> Self {
        Self(Arc::new(broker))
    }

    pub(crate) async fn ask(
        &self,
        user: Option<UserName>,
        name: Option<CommandName>,
        asked: Asked,
    ) -> Result<BrokerReply, Unavailable> {
        self.0.ask(user, name, asked).await
    }

    /// A read, as what it is the bytes of.
    pub(crate) async fn read<T: Coded>(&self, read: BrokerRead) -> Result<T, Unavailable> {
        let bytes = self.0.read(read).await?;
        T::from_bytes(&bytes).map_err(|why: DecodeError| Unavailable::Silent(why.to_string()))
    }

    pub(crate) fn quote(&self, symbol: StockSymbol) -> Option<StockQuote> {
        self.0.quote(symbol)
    }

    pub(crate) fn quotes(&self) -> broadcast::Receiver<StockQuote> {
        self.0.quotes()
    }

    pub(crate) fn costs(&self) -> Costs {
        self.0.costs()
    }
}
