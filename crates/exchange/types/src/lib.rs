//! The domain's vocabulary: who, what, where in the order, and with what result.
//!
//! Everything above this crate speaks these types; bytes are turned into them at the edges
//! (`pares-wire`). Two integers that could be swapped are two types. Nothing here reads a clock,
//! does I/O or uses floating point: time, prices and quantities are integers.
//!
//! ```text
//!  member --EnterOrder--> gateway --Request--> venue --(Position, Request, Outcome, Events)--> recorder
//! ```

mod coded;
mod day;
mod digest;
mod ids;
mod order_status;
mod outcome;
mod phase;
mod queries;
mod reason;
mod refusal;
mod register;
mod request;
mod session;
mod symbol;
mod terms;
mod units;
mod venues;
mod view;
mod words;

pub use day::{BusinessDay, DayError, DayStage};
pub use digest::RequestDigest;
pub use ids::{
    ClientOrderId, Epoch, GatewayId, HostId, InstrumentId, MemberId, OrderId, Position, PublisherId,
    RecorderId, ReplayerId, RequestId, ShardId, VenueId,
};
pub use order_status::{OrderKey, OrderState, OrderStatus};
pub use outcome::{CancelCause, Event, EventSink, IncomingCause, Outcome, RestCause, Status};
pub use phase::{Band, DAY_NS, Phase, Rule, TieBreak};
pub use queries::{InstrumentStatus, List, ListEnd, ListRequest, OwnLimits};
pub use reason::Reason;
pub use refusal::Refuser;
pub use register::{Entry, Key, Limits, Proposal, Registration, Rights, stricter};
pub use request::{Amendment, BustedTrade, Command, Guarded, NewOrder, Request};
pub use session::{
    Answer, Cancelled, ClientRequest, NewTerms, OrderChange, OrderNews, Reply, Role, Trade, TradeBusted,
};
pub use symbol::{Symbol, SymbolError};
pub use terms::{OrderKind, Peg, SelfTrade, Side, TimeInForce};
pub use units::{HASH_EVERY, Price, Quantity, Timestamp};
pub use venues::{VenueSet, Voters};
pub use view::{NetPositions, OpenOrder, ShardView};
pub use words::{Words, read_all, write_all};
