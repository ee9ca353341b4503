//! `pares demo --day`: a whole trading day in well under a minute, and the morning after it.
//!
//! A venue that only trades continuously shows the easy part of an exchange. What is hard is that the time, the
//! exchange's own decisions and the market's accidents all change what an order may do, and that every replica must
//! change its mind at the same place of the total order. So the day goes through everything, while venues die as always:
//!
//! ```text
//!   Closed -> OpeningCall -> Continuous -> VolatilityCall -> Continuous -> Halted -> Continuous      gateways' clocks
//!     ^        (auction)                     (auction)                                  |            (timetable), but:
//!     |                                                                                 v            breach: an order
//!     +--- Closed <---- PostClose <---- ClosingCall  <----------------------------------+            halt, resume: the
//!   day orders expire,                   (auction)                                                   exchange (member 0)
//!   the others stay: OpeningCall -> Continuous, the next day
//! ```
//! Nothing of what is told is asked of the exchange: phases, auctions and what expired are read from the record, as the
//! books are.
//!
//! | module | what |
//! |---|---|
//! | [`plan`] | when what is to happen, and the timetable that says so |
//! | [`board`] | the phase and prices of each instrument, for those who enter orders |
//! | [`flow`] | the orders: of every kind that the phase takes |
//! | [`story`] | the order that runs through the band, the halt, the resumption |
//! | [`log`] | what the record says of the day |
//! | [`news`] | how it is told |
//! | [`verdict`] | what it came to |

pub mod board;
pub mod flow;
pub mod log;
pub mod news;
pub mod plan;
pub mod story;
pub mod verdict;

use pares_types::{InstrumentId, Phase};

use crate::text;

/// The instrument whose day is told: the first, which is the busiest.
pub const LEAD: InstrumentId = InstrumentId(1);

/// The name of a phase as people say it: `opening call`.
pub fn words(phase: Phase) -> String {
    text::name(&phase).replace('_', " ")
}
