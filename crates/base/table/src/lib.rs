//! Where state machines keep what comes and goes by the million: places ([`Slab`]), and a way from keys to places ([`IndexTable`]).
//!
//! The standard maps do not do. A `HashMap` is seeded at random, so that no two replicas iterate alike; a `BTreeMap` of millions takes a dozen
//! cache misses where one would do. Here a value lies in a place that never moves while it lives, and the table holds nothing but
//! places, so that books keep their lists in the values themselves.
//!
//! And what many share is divided among them: places ([`SharedPlaces`]), and attempts that were wrong ([`Attempts`]); clients
//! have them by the network that each comes from ([`Origin`]).

mod attempts;
mod buckets;
mod origins;
mod shares;
mod slab;
mod table;

pub use attempts::Attempts;
pub use origins::{Network, Origin, origin};
pub use shares::SharedPlaces;
pub use slab::{Slab, SlabIndex};
pub use table::IndexTable;
