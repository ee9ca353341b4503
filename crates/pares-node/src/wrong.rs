//! A venue that is wrong on purpose, for tests: it executes other orders than were entered.
//!
//! ```text
//!  PARES_WRONG=600 pares node venue-1      from each gateway's 600th request on it doubles the quantity of every new order
//!  PARES_WRONG=600:3 pares node venue-1    the same, but only of orders that belong to shard 3
//! ```
//! What it hands out carries the request as it was: the record of a wrong engine, not of damaged memory. So its books, its
//! answers and its state hashes are wrong from there on, and whoever replays its records with a right build is right.
//!
//! Armed like a [crash point](crate::crash): read once at the start, told on standard error, passed on by no supervisor except to a
//! node that was armed ([`crate::Supervisor::arm_wrong`]) and for that one start. Unarmed it costs a load and a branch.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use pares_types::{Command, Quantity, Request, ShardId};

use crate::{NodeError, Role};

/// The variable of the environment that makes a venue wrong: `FROM` or `FROM:SHARD`.
pub const VARIABLE: &str = "PARES_WRONG";

/// What a venue is told to do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// From which request of each gateway on; 1 is the first.
    pub from: u64,
    /// In which shard; in all if `None`.
    pub shard: Option<ShardId>,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shard {
            Some(shard) => write!(f, "{}:{shard}", self.from),
            None => write!(f, "{}", self.from),
        }
    }
}

impl FromStr for Wrong {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{VARIABLE}={text} makes no sense; write FROM or FROM:SHARD, such as 600 or 600:3");
        let (from, shard) = text.split_once(':').map_or((text, None), |(from, shard)| (from, Some(shard)));
        let shard = shard.map(|shard| shard.parse().map(ShardId)).transpose().map_err(|_| wrong())?;
        let from = from.parse().ok().filter(|&from| from > 0).ok_or_else(wrong)?;
        Ok(Self { from, shard })
    }
}

/// What this process does wrong; set once at the start, if at all.
static WRONG: OnceLock<Wrong> = OnceLock::new();

/// Makes this process wrong if its environment says so, and warns about it on its standard error.
///
/// # Errors
/// If it is not a venue, or what the environment says makes no sense.
#[allow(clippy::print_stderr)] // a node's standard error is its log
pub(crate) fn arm_from_environment(role: Role) -> Result<(), NodeError> {
    let Ok(text) = std::env::var(VARIABLE) else { return Ok(()) };
    let wrong: Wrong = text.parse().map_err(NodeError::Config)?;
    if !matches!(role, Role::Venue(_)) {
        return Err(NodeError::Config(format!("{VARIABLE}={wrong} is for venues, and this is {role}")));
    }
    eprintln!(
        "warning: {VARIABLE}={wrong} is set: {role} will execute other orders than were entered; this is for tests only"
    );
    WRONG.get_or_init(|| wrong);
    Ok(())
}

/// The request as this venue is to execute it.
#[inline]
pub(crate) fn changed(request: Request) -> Request {
    with_quantity(request, |quantity| quantity.rotate_left(1))
}

/// The request as it was before it was [`changed`].
#[inline]
pub(crate) fn restored(request: Request) -> Request {
    with_quantity(request, |quantity| quantity.rotate_right(1))
}

/// Rotating doubles what is not absurdly large, and is taken back by rotating the other way, whatever it was.
#[inline]
fn with_quantity(request: Request, change: impl FnOnce(u64) -> u64) -> Request {
    let Some(wrong) = WRONG.get() else { return request };
    if request.id.sequence() < wrong.from || wrong.shard.is_some_and(|shard| shard != request.shard) {
        return request;
    }
    match request.command {
        Command::Enter(mut order) => {
            order.quantity = Quantity(change(order.quantity.0));
            Request { command: Command::Enter(order), ..request }
        }
        _ => request,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_read_as_it_is_printed() {
        for wrong in [Wrong { from: 600, shard: None }, Wrong { from: 1, shard: Some(ShardId(3)) }] {
            assert_eq!(wrong.to_string().parse(), Ok(wrong));
        }
        for text in ["", "0", "x", "600:", "600:x", ":3"] {
            assert!(text.parse::<Wrong>().unwrap_err().contains("FROM:SHARD"), "{text}");
        }
    }

    #[test]
    fn who_is_not_told_is_right() {
        let request = Request {
            id: pares_types::RequestId::new(pares_types::GatewayId(0), 7),
            stamp: pares_types::Timestamp(1),
            member: pares_types::MemberId(1),
            client_order_id: pares_types::ClientOrderId(1),
            instrument: pares_types::InstrumentId(1),
            shard: ShardId(0),
            command: Command::Time,
        };
        assert_eq!((changed(request), restored(request)), (request, request));
    }
}
