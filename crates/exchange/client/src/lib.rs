//! Client of the binary order entry protocol (docs/protocols/order-entry.md).
//!
//! The obvious client blocks for each answer and so measures, and trades, at the speed of a round trip.
//! This one buffers requests, sends them with [`Client::flush`] and hands out whatever came back with
//! [`Client::poll`]; neither ever blocks. Programs that prefer to wait use [`Client::submit_and_wait`].
//!
//! A lost connection loses nothing: [`OpenRequests`] keeps what is unanswered, and repeating it through
//! any gateway gets the first answer, never a second execution.
//!
//! An order entered as [`ClientOrderId::guarded`](pares_types::ClientOrderId::guarded) is cancelled when its session ends;
//! [`Options::heartbeat`] says how soon a silent one does, [`Client::cancel_after`] is a dead man's timer.
//!
//! ```no_run
//! use pares_client::{Client, Update};
//! use pares_types::{ClientOrderId, InstrumentId, MemberId};
//! use std::time::Duration;
//!
//! let mut client = Client::connect("127.0.0.1:7100", MemberId(7))?;
//! client.mass_cancel(ClientOrderId(1), InstrumentId(0), None)?;
//! client.flush()?;
//! while client.wait(Duration::from_secs(1))? {
//!     client.poll(|update| if let Update::Answer(answer) = update { assert!(answer.events < 100) })?;
//! }
//! # Ok::<(), pares_client::ClientError>(())
//! ```

mod buffers;
mod client;
mod error;
mod heartbeat;
mod open_requests;
mod options;
mod questions;
mod update;

pub use client::Client;
pub use error::ClientError;
pub use open_requests::OpenRequests;
pub use options::{Credential, Options, Tls};
pub use pares_keys::{FileError, KeyFile, Secret, Verifier, from_hex, may_be_password, random_token, to_hex};
pub use pares_tls::{TlsError, TlsFiles};
pub use pares_types::{
    Answer, Cancelled, ClientRequest, InstrumentStatus, List, ListEnd, ListRequest, OrderKey, OrderNews,
    OrderState, OrderStatus, OwnLimits, Role, Trade, TradeBusted,
};
pub use pares_wire::password_salt;
pub use update::Update;
