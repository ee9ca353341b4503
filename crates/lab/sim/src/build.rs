//! A build of a venue whose rules differ.
//!
//! It is the same program but for what one kind of order means: its venue takes immediate-or-cancel for
//! fill-or-kill and the other way round. It says nothing wrong about requests or their order; only what comes of them differs, now and
//! then.

use pares_types::{Command, Quantity, Request, TimeInForce};

/// The request as the other build understands it. Doing it twice gives the request again.
pub(crate) fn understands(request: &Request) -> Request {
    let mut understood = *request;
    if let Command::Enter(order) = &mut understood.command
        && order.minimum == Quantity::ZERO
    {
        order.time_in_force = match order.time_in_force {
            TimeInForce::Ioc => TimeInForce::Fok,
            TimeInForce::Fok => TimeInForce::Ioc,
            other => other,
        };
    }
    understood
}
