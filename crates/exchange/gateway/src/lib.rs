//! A gateway's rules: number, admit, answer (paper 1 section 2.2; design sections 2 and 4).
//!
//! The obvious gateway keeps a table of open requests, forwards each to "the" engine and waits for its
//! answer; when either dies, nobody knows what was taken in. Here a gateway decides nothing and waits for
//! nobody. It numbers a request, appends it to its log (which *is* the stream the venues tail) and is
//! done; the answer comes from the committed stream, of any venue. All a gateway knows can be
//! rebuilt from the logs, so any gateway can answer for any other.
//!
//! ```text
//!  on_request --names: new?--> journal [gateway, sequence] ----> log ----> venues
//!                 | repeat in flight: the newest asker gets the answer
//!                 | repeat answered:  answer_again(place of the first answer)
//!                 | perhaps used long ago: look_up(name), its first answer or on to its shard
//!  on_committed --> trades, cancels, news to the orders' owners, then the answer to the asker
//!
//!  a name:  (unknown) --journal / peer's log--> Pending --first commit--> Answered(place) --room is needed--> on disk only
//! ```
//!
//! - *Identity.* Member and client order id name a request for life. Gateways tail each other's logs and
//!   the committed stream, so each knows every name in flight, that of every order that lives, and the latest of the others; what is older
//!   is looked for on disk (`look_up.rs`), and what is not found there its shard decides about. Two gateways can still take the same new name at the
//!   same instant; the venues then refuse the second with [`Reason::DuplicateRequest`], and its asker
//!   gets the first answer.
//! - *Order ids.* An order's id is the id of the request that entered it, known the moment the request is
//!   numbered, so a cancel can follow its order while that is in flight.
//! - *Per shard, one gateway's requests commit in the order of their sequence*, since venues read a
//!   gateway's log from front to back. So what is in flight is one queue per shard, and "was it committed?"
//!   is one comparison.
//! - *Who receives what.* The answer goes to the session that asked last; if that is gone, to the member's
//!   newest session. Trades, cancels and news of orders go to all sessions of the owner, on every gateway.
//!   At one position they come before the answer.
//! - *Who asks too fast* is refused early, at the cost of a look at its session; one that continues is read more slowly
//!   ([`GatewaySink::read_later`]).
//! - *Waiting* is bounded by its time: orders beyond what is answered within a target are refused as early as those of who asks too
//!   fast. Cancels pass, and no session or shard takes more room than it leaves (`room.rs`, `flights.rs`).
//! - *A shard that is halted* keeps what it was sent in flight for as long as that takes; its share of what may be in flight is
//!   bounded by what is left for the others.
//! - *Nothing recorded.* A shard in which something is in flight and nothing is committed for longer than `patience_ns` takes
//!   nothing new until its next record ([`Gateway::on_turn`]). Repeats and what is in flight are answered when it comes.
//! - *Who may ask what* says the register, a part of the lowest shard's state that is followed like everything else
//!   (`permits.rs`). Who is revoked there is disconnected as the record is read.
//! - *Guarded orders* are cancelled when the session that entered them ends, be it with the gateway itself (`guards.rs`).
//! - *The time.* Venues know no time but that of requests; gateways tell it to the shards that need it
//!   ([`Gateway::on_time`]). Such requests have no name that is remembered, and no answer.

mod answer;
mod clock;
mod days;
mod fan_out;
mod flights;
mod gateway;
mod guards;
mod index;
mod intake;
mod listings;
mod look_up;
mod nameless;
mod names;
mod orders;
mod pace;
mod patience;
mod permits;
mod queries;
mod recover;
mod refusals;
mod room;
mod route;
mod sessions;
mod status;
mod streams;

#[cfg(test)]
mod tests;

use pares_types::{ClientOrderId, GatewayId, Reason, RecorderId, Request};

pub use days::DayTimes;
pub use gateway::Gateway;
pub use look_up::{FoundRecord, LookUp};
pub use names::NAME_BYTES;
pub use pace::Pace;
pub use pares_types::{Answer, Cancelled, ClientRequest, OrderNews, Reply, Role, Trade, TradeBusted};
pub use queries::Listed;
pub use streams::Resume;

/// How much a gateway takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    /// Which gateway this is; stable over restarts.
    pub id: GatewayId,
    /// How many the system has.
    pub gateways: u16,
    /// Whether sessions sign on by a key of the register; otherwise each client is whom it says it is, and may do everything.
    pub sign_on_required: bool,
    /// Sessions a member may have, at least 1: all of them receive each of its trades.
    pub member_sessions_max: usize,
    /// Requests one session may have unanswered, at least 1; of those that reduce its risk a sixteenth more.
    pub session_in_flight_max: u16,
    /// How fast a session may send orders and amends; cancels pass.
    pub session_pace: Pace,
    /// How long a shard may record nothing while a request waits there, nanoseconds, before new ones are refused
    /// ([`Reason::NotRecorded`]); 0: they wait as long as it takes.
    pub patience_ns: u64,
    /// How long requests may wait before orders have less room (`room.rs`), nanoseconds; 0: as long as it takes.
    pub wait_target_ns: u64,
    /// Requests of this gateway that may be unanswered, at least one per shard. No shard has more than its share of them
    /// (`flights.rs`): one that is halted leaves room for the others.
    pub in_flight_max: usize,
    /// Names of requests, of all gateways, that are kept. Those in flight and of living orders always are; beyond so many of them nothing
    /// new is admitted, and the last sixteenth is kept for cancels. About 80 bytes of memory each.
    pub names_max: usize,
}

/// The edge's handle of a connection. Opaque here, and never used again once disconnected (a slot
/// and its generation, say).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Where a committed record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// In whose log.
    pub recorder: RecorderId,
    /// The record's offset there, bytes.
    pub offset: u64,
}

/// Where a gateway's effects go. The caller owns it, so nobody can forget to drain one.
pub trait GatewaySink {
    /// Appends `request` to the gateway's log and returns the record's offset. Publishing can wait until
    /// the end of the caller's batch.
    ///
    /// # Errors
    /// [`Reason::StorageUnavailable`] if the log cannot take it; nothing was written.
    fn journal(&mut self, request: &Request) -> Result<u64, Reason>;

    /// A number that nobody can foretell, from all 64-bit numbers alike.
    fn draw(&mut self) -> u64;

    /// Tells a session something.
    fn reply(&mut self, session: SessionId, reply: Reply);

    /// The answer `session` asks for lies at `place`: read the record there and send what
    /// [`Gateway::replay_answer`] makes of it.
    fn answer_again(&mut self, session: SessionId, place: Place, client_order_id: ClientOrderId);

    /// It is not known where the answer lies that a session asks for: look for all committed records of that name, and tell
    /// [`Gateway::on_looked_up`] what was found.
    fn look_up(&mut self, look_up: LookUp);

    /// `session` is signed off: send it the reason, and disconnect it.
    fn disconnect(&mut self, session: SessionId, reason: Reason);

    /// `session` asks faster than it can be refused: it is best left unread for `pause_ns` from now, the last time this is said
    /// counts. What was read from it already is still asked. An edge that cannot leave a session unread ignores it.
    fn read_later(&mut self, _session: SessionId, _pause_ns: u64) {}
}
