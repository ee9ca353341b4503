//! Every message once: a `#[repr(C)]` struct of fixed little-endian fields *is* the schema.
//!
//! The obvious way, a serialiser with a schema language, costs a build step and hides the bytes; here
//! the layout is the type, its size is asserted at compile time, and golden bytes in the tests freeze
//! it. Records (in the logs) begin with `schema, version`; frames (to clients) with `length, kind,
//! version`. Fields are only ever appended, and a reader refuses a version it does not know.
//!
//! - [`record`]: what the mapped logs carry: requests, results, checkpoints (docs/protocols/records.md).
//! - [`frame`]: the binary order entry protocol of the gateway (docs/protocols/order-entry.md).
//!
//! Bytes become domain types (`pares-types`) here and nowhere else; nothing here panics on any input.

pub mod frame;
pub mod record;

use pares_types::{OrderKind, Price, Side, TimeInForce};

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// Fewer bytes than the message has.
    Truncated,
    /// A schema, kind or version this build does not know.
    UnknownSchema {
        /// What the bytes claim to be.
        schema: u8,
        /// In which version.
        version: u8,
    },
    /// A field holds a value outside its legal range.
    InvalidField(&'static str),
}

impl core::fmt::Display for WireError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Truncated => write!(f, "message is cut short"),
            Self::UnknownSchema { schema, version } => {
                write!(f, "unknown message {schema} version {version}: written by a newer build?")
            }
            Self::InvalidField(name) => write!(f, "field `{name}` is outside its legal range"),
        }
    }
}

impl core::error::Error for WireError {}

fn side(code: u8) -> Result<Side, WireError> {
    match code {
        1 => Ok(Side::Buy),
        2 => Ok(Side::Sell),
        _ => Err(WireError::InvalidField("side")),
    }
}

fn time_in_force(code: u8) -> Result<TimeInForce, WireError> {
    match code {
        1 => Ok(TimeInForce::Day),
        2 => Ok(TimeInForce::Ioc),
        3 => Ok(TimeInForce::Fok),
        _ => Err(WireError::InvalidField("time_in_force")),
    }
}

/// `1` limit, `2` market, `3` post-only limit, `4` post-only market: one byte says kind and flag. The last
/// means nothing, but a venue must see it to refuse it; dropping the flag here would take liquidity that the
/// member declined.
fn order_kind(code: u8, price: i64) -> Result<(OrderKind, bool), WireError> {
    match code {
        1 => Ok((OrderKind::Limit { price: Price(price) }, false)),
        3 => Ok((OrderKind::Limit { price: Price(price) }, true)),
        2 | 4 if price == 0 => Ok((OrderKind::Market, code == 4)),
        2 | 4 => Err(WireError::InvalidField("price")),
        _ => Err(WireError::InvalidField("order_kind")),
    }
}

fn order_kind_code(kind: OrderKind, post_only: bool) -> (u8, i64) {
    match (kind, post_only) {
        (OrderKind::Limit { price }, false) => (1, price.0),
        (OrderKind::Market, false) => (2, 0),
        (OrderKind::Limit { price }, true) => (3, price.0),
        (OrderKind::Market, true) => (4, 0),
    }
}
