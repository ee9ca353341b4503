//! A venue that is wrong on purpose, for tests: it executes other orders than were entered.
//!
//! ```text
//!  PARES_WRONG=600 pares node venue-1     from each gateway's 600th request on it doubles the quantity of every new order
//! ```
//! What it hands out carries the request as it was: the record of a wrong engine, not of damaged memory. So its books, its
//! answers and its state hashes are wrong from there on, and whoever replays its records with a right build is right.
//!
//! Armed like a [crash point](crate::crash): read once at the start, told on standard error, passed on by no supervisor except to a
//! node that was armed ([`crate::Supervisor::arm_wrong`]) and for that one start. Unarmed it costs a load and a branch.

use std::sync::atomic::{AtomicU64, Ordering};

use pares_types::{Command, Quantity, Request};

use crate::{NodeError, Role};

/// The variable of the environment that makes a venue wrong: from which request of each gateway on.
pub const VARIABLE: &str = "PARES_WRONG";

/// Nothing is wrong.
const NEVER: u64 = u64::MAX;
/// From which sequence on; read everywhere, written once at the start.
static FROM: AtomicU64 = AtomicU64::new(NEVER);

/// Makes this process wrong if its environment says so, and warns about it on its standard error.
///
/// # Errors
/// If it is not a venue, or what the environment says is no number of a request.
#[allow(clippy::print_stderr)] // a node's standard error is its log
pub(crate) fn arm_from_environment(role: Role) -> Result<(), NodeError> {
    let Ok(text) = std::env::var(VARIABLE) else { return Ok(()) };
    let from = text.parse().ok().filter(|from| (1..NEVER).contains(from));
    let (Role::Venue(_), Some(from)) = (role, from) else {
        return Err(NodeError::Config(format!(
            "{VARIABLE}={text} makes no sense for {role}; it is for venues, and a number from 1"
        )));
    };
    eprintln!(
        "warning: {VARIABLE}={from} is set: {role} will execute other orders than were entered; this is for tests only"
    );
    FROM.store(from, Ordering::Relaxed);
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
    if request.id.sequence() < FROM.load(Ordering::Relaxed) {
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
