//! The domain's vocabulary: who, what, where in the order, and with what result.
//!
//! Everything above this crate speaks these types; bytes are turned into them at the edges
//! (`pares-wire`). Two integers that could be swapped are two types. Nothing here reads a clock,
//! does I/O or uses floating point: time, prices and quantities are integers.
//!
//! ```text
//!  member --EnterOrder--> gateway --Request--> venue --(Position, Request, Outcome, Events)--> recorder
//! ```

mod ids;
mod outcome;
mod request;
mod session;
mod units;

pub use ids::{
    ClientOrderId, Epoch, GatewayId, InstrumentId, MemberId, OrderId, Position, RecorderId, RequestId,
    ShardId, VenueId,
};
pub use outcome::{CancelCause, Event, EventSink, Outcome, Reason, Status};
pub use request::{Command, NewOrder, OrderKind, Request, Side, TimeInForce};
pub use session::{Answer, Cancellation, ClientRequest, Reply, Role, Trade};
pub use units::{Price, Quantity, Timestamp};
