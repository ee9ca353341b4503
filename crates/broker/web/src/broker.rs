//! What this interface needs of a front.
//!
//! Handlers do not know how many sites there are, nor which of them answers. They ask, and get an answer or do not.

use futures_util::future::BoxFuture;
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
    /// The user has as many files as he may have, and named another one: nothing was done.
    #[error("the user has too many files")]
    ManyFiles,
    /// The command was done, and the file that it was to write is not there. The same again, under the same name, writes it.
    #[error("the log could not be written")]
    Unwritten,
}

/// What the quotes have cost whose hits this front has to have noted, since it started, and what the answers say of its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Quotes that the server was asked for, and that were given to this front first. Of questions that brought none the desks know, and the bill.
    pub hits: u64,
    /// What they cost, cents.
    pub cents: u64,
    /// By how much its clock is ahead of the quote server's at least, ms; behind, if below zero; 0 if it may be right.
    pub clock_ahead_ms: i64,
}

/// An answer that is to come.
pub type BrokerAnswer<'a, T> = BoxFuture<'a, Result<T, Unavailable>>;

/// A front.
pub trait Broker: Send + Sync + 'static {
    /// Executed once; with a name, once for ever under it. A user's commands are executed in the order of the calls. For a command the front brings the quote, the
    /// number and the time; for anything else the time. Requests about people (`Asked::Person`), and those of supervisors about a customer (limits, the kill switch), have neither user nor name here, and waits for nothing.
    fn ask(
        &self,
        user: Option<UserName>,
        name: Option<CommandName>,
        asked: Asked,
    ) -> BrokerAnswer<'_, BrokerReply>;

    /// A read of a state that holds whatever this front has answered before.
    fn read_bytes(&self, read: BrokerRead) -> BrokerAnswer<'_, Vec<u8>>;

    /// The latest quote of a stock that this front has, however old.
    fn quote(&self, symbol: StockSymbol) -> Option<StockQuote>;

    /// Every quote that this front learns from now on. Who reads too slowly misses some.
    fn quotes(&self) -> broadcast::Receiver<StockQuote>;

    /// Hits and cents so far.
    fn costs(&self) -> Costs;
}

impl dyn Broker {
    /// A read, as what it is the bytes of.
    pub(crate) async fn read<T: Coded>(&self, read: BrokerRead) -> Result<T, Unavailable> {
        let bytes = self.read_bytes(read).await?;
        T::from_bytes(&bytes).map_err(|why: DecodeError| Unavailable::Silent(why.to_string()))
    }
}
