//! A member's session as resources: rules, without sockets, clocks or JSON.
//!
//! A server between a member and the gateways is easily made the place where orders are lost: it answers before it knows, forgets what it asked when a connection breaks,
//! or repeats under a new name. Here it has no names of its own. Each request has the member's name, is kept until it is answered, and is asked again under that name at
//! the next gateway; so whatever dies, asking again is the answer.
//!
//! ```text
//!  resource --ask--> Line --frames--> gateway
//!           <--told--      <--frames--
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`line`](mod@line) | a signed-on session at some gateway: what is in flight, and what follows from each frame |
//! | `questions` | what changes nothing, answered in the order it was asked |
//! | `streams` | the member's streams: what was resumed, from where |
//! | [`positions`] | what a member bought and sold, counted from its streams |
//! | [`tape`], [`candles`] | an instrument's trades: the newest, and what they sum up to |
//! | [`decimal`] | prices and quantities as text |
//! | [`order_terms`] | orders as words |
//! | [`deeds`] | what an operator asks for, or proposes to a second one |
//! | [`status`] | a refusal as an HTTP status |

pub mod candles;
pub mod decimal;
pub mod deeds;
pub mod line;
pub mod order_terms;
pub mod positions;
mod questions;
pub mod status;
mod streams;
pub mod tape;

pub use line::{Effect, Line, LineTold, Refused};
pub use questions::{InstrumentTold, Question};
pub use streams::{Cursor, FollowerStanding};
