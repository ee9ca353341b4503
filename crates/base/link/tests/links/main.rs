//! Two sites over real sockets; everything once plain and once over TLS.
#![allow(clippy::unwrap_used)]

mod clients;
mod refusals;
mod rig;
mod sites;

/// Each named test, plain and over TLS.
macro_rules! both_ways {
    ($($name:ident)*) => {
        mod plain { $(#[test] fn $name() { super::$name(false); })* }
        mod tls { $(#[test] fn $name() { super::$name(true); })* }
    };
}
pub(crate) use both_ways;
