//! A member's stream: all that the record tells a member, numbered.
//!
//! A member that was away must receive what it missed, from any gateway, and must be able to say what it has. A number that a gateway gives
//! to what it sends would end with that gateway. So the number is a function of the record alone: per member and shard messages are
//! counted from 1, for life, in the order of positions, and at one position in the order of its events with the answer last. A shard
//! counts for its checkpoint, a gateway counts as it follows the committed stream, and both count here.
//!
//! ```text
//!  position   messages                                member 7   member 8
//!     0       7 enters: answer                           1
//!     1       8 enters: trade, trade, answer             2         1, 2
//!     2       the time (a gateway's clock): expired      3
//! ```
//! Shards are independent orders, so there is no number over all of them: it would have to wait for all of them.

mod numbers;
mod outbound;
mod positions;

pub use numbers::StreamNumbers;
pub use outbound::{Told, answer, left_after};
pub use positions::Positions;
