//! Receives the market data of an exchange: docs/protocols/market-data.md, *Subscriptions*.
//!
//! A program that reads sockets itself has to know when to ask again, when to take a snapshot, and when not to believe what it shows. Those
//! are rules, and they are in `pares-feed`. Here are the sockets: lines A and B of each shard, requests by UDP, one TCP connection to a
//! replayer at a time, all on the thread that calls [`FeedReceiver::poll`]. `examples/books.rs` is the place to begin.
//!
//! | module | what |
//! |---|---|
//! | `config` | what to receive, from where |
//! | `sockets` | UDP sockets: multicast, unicast |
//! | `connection` | a TCP connection that never waits, in TLS or not |
//! | `receiver` | all of them, in turn |
//! | `watch` | books as they look now and then |

mod config;
mod connection;
mod ear;
mod receiver;
mod sockets;
mod watch;

pub use config::{FeedLines, ReceiverConfig, ReceiverError};
pub use pares_feed::books::{ReceivedBook, ReceivedBooks};
pub use pares_feed::subscription::{FeedEvent, SubscriptionCounters, SubscriptionState};
pub use pares_tls::{TlsError, Trust};
pub use receiver::{FeedReceiver, Received, ReceivedFrom};
pub use sockets::line_socket;
pub use watch::{BookNews, BookWatch, FeedStanding, WatchedBook};
