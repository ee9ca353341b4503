//! OUCH 5.0 over SoupBinTCP as a codec between packets and the gateway's frames.
//!
//! A Soup server numbers what it sends, and a client that comes again asks for the number it lacks. Usually that takes a store of all that was sent, and only who has the
//! store can serve the client. Here the numbers are those of the member's stream in one shard, which is a function of the record; and each message of it becomes one
//! packet that says nothing but what that message says. So every gateway has the same packets under the same numbers, and keeps none.
//!
//! ```text
//!  socket --bytes--> OuchDoor --ClientFrame--> gateway
//!  socket <--bytes-- OuchDoor <--GatewayFrame- gateway
//! ```
//!
//! | module | what |
//! |---|---|
//! | `door` | one connection: from the Login Request to the end |
//! | `soup` | packets, and the Login Request |
//! | `names`, `numbers` | UserRefNums as names of the exchange, and back; which of them are taken |
//! | `fields` | what a message is made of |
//! | `instruments` | which instrument a symbol names |
//! | `orders`, `desk`, `known` | messages become frames |
//! | `outbound`, `codes` | the stream's messages become packets |

mod codes;
mod desk;
mod door;
mod fields;
mod instruments;
mod known;
mod names;
mod numbers;
mod orders;
mod outbound;
mod soup;

pub use door::OuchDoor;
pub use names::OuchNames;
pub use numbers::UserRefNums;
pub use soup::PACKET_MAX;
