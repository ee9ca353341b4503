//! Builds of a venue.
//!
//! A build with other rules is the same program but for what one kind of order means: its venue takes immediate-or-cancel for
//! fill-or-kill and the other way round. It says nothing wrong about requests or their order; only what comes of them differs, now and
//! then.

use pares_types::{Command, Quantity, Request, TimeInForce};

/// Which rules a venue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    Ours,
    Other,
}

impl Build {
    /// The request as this build understands it. Doing it twice gives the request again.
    pub(crate) fn understands(self, request: &Request) -> Request {
        let mut understood = *request;
        if let (Self::Other, Command::Enter(order)) = (self, &mut understood.command)
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
}
