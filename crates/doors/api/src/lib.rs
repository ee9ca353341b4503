//! The exchange over HTTP and WebSocket: docs/protocols/http.md.
//!
//! The obvious front keeps members' keys, so that it can speak for them, and what it received, so that it can answer. Then it is worth breaking into, and what it knows dies with
//! it. This one is a client of the gateways, once for each session: it passes their challenge on and the proof back, and answers from what they say. There may be any number.
//!
//! ```text
//!  HTTP --> routes --> Session (a Line) --frames--> any gateway
//!                         ^ the next one, if that dies
//! ```
//!
//! | module | what |
//! |---|---|
//! | `server`, `app`, `settings` | what listens, what all requests share, what it is started with |
//! | `caller` | the session that asks, and the form of its answer |
//! | `routes`, `asyncapi`, `spoken` | paths, and the document of them; that of the socket; JSON and XML |
//! | `symbols` | which instrument a symbol is |
//! | `wire`, `session`, `sessions` | a connection to a gateway; a signed-on session; all of them, by token |
//! | `sign_on` | the gateway's challenge there, the proof back |
//! | `orders`, `changes`, `batches` | orders |
//! | `timer` | the dead man's timer |
//! | `fills`, `positions`, `instruments`, `standing` | what can be read |
//! | `socket`, `wishes`, `reports` | the member's stream, and the market, as they happen |
//! | [`inbound`] | what clients send, read without a server |
//! | `market` | each instrument as it is received: its book, its tape |
//! | `books`, `trades` | books as sockets receive them; books, trades, candles and tickers as they are asked for |
//! | `watching` | what a socket watches of them |
//! | `operator` | what the exchange itself asks for |
//! | `pages` | the market's page and the operator's |
//! | `refused` | refusals as problem documents |

mod app;
mod asyncapi;
mod batches;
mod books;
mod caller;
mod changes;
mod fills;
mod followers;
mod forms;
pub mod inbound;
mod instruments;
mod market;
mod operator;
mod orders;
mod pages;
mod positions;
mod refused;
mod reports;
mod routes;
mod server;
mod session;
mod sessions;
mod settings;
mod sign_on;
mod socket;
mod spoken;
mod standing;
mod symbols;
mod timer;
mod trades;
mod watching;
mod wire;
mod wishes;

pub use asyncapi::asyncapi;
pub use books::BookTold;
pub use market::{MarketTold, ReceivedMarket};
pub use pares_http::connections::{WebError, WebTransport};
pub use pares_http::origins;
pub use routes::document;
pub use server::ApiServer;
pub use settings::{ApiSettings, Gateways};
