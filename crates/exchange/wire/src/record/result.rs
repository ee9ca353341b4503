//! Results: a place in a total order, the request that has it, what became of it, and what happened.

use pares_types::{
    BusinessDay, Epoch, Event, HASH_EVERY, Outcome, Position, Quantity, Request, RequestId, ShardId, VenueId,
};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{EventRecord, RESULT, RequestRecord, VERSION, check, request_bytes, write_request};
use crate::WireError;
use crate::field::{Field, coded};

layout! {
    /// The head of a result: position, outcome; the request and its events follow.
    ResultHead (56) {
        /// [`RESULT`].
        schema: u8,
        /// [`VERSION`].
        version: u8,
        /// The shard whose order this is a place in.
        shard: U16,
        /// The life of the window that decided it.
        epoch: U32,
        /// The place in the shard's total order.
        position: U64,
        /// [`pares_types::OrderId`] bits of the order concerned.
        order: U64,
        /// Shares of that order executed so far; of a mass cancel the orders cancelled.
        executed: U64,
        /// Shares of that order still there; of a mass cancel the orders left to cancel.
        remaining: U64,
        /// The shard's state hash after this position; 0 except every [`HASH_EVERY`] positions.
        state_hash: U64,
        /// [`pares_types::Status`] code.
        status: u8,
        /// [`pares_types::Reason`] code.
        reason: u8,
        /// How many [`EventRecord`]s follow the request.
        events: U16,
        /// The venue that executed it first (for the curious; all venues agree on the rest).
        venue: U16,
        /// Zero; later fields go here.
        reserved: U16,
    }
}

/// A result as it lies in a log: borrowed, checked, decoded field by field on demand.
#[derive(Clone, Copy, Debug)]
pub struct ResultRecord<'a> {
    head: &'a ResultHead,
    request: &'a RequestRecord,
    extension: &'a [u8],
    events: &'a [EventRecord],
}

impl<'a> ResultRecord<'a> {
    /// Reads a result record, which must be all of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not a whole result of this version.
    pub fn read(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (head, rest) = ResultHead::ref_from_prefix(bytes).map_err(|_| WireError::Truncated)?;
        check(head.schema, head.version, RESULT)?;
        let (request, extension, rest) = RequestRecord::split(rest)?;
        let events = <[EventRecord]>::ref_from_bytes(rest).map_err(|_| WireError::Truncated)?;
        if events.len() != usize::from(head.events.get()) {
            return Err(WireError::InvalidField("events"));
        }
        Ok(Self { head, request, extension, events })
    }

    /// The shard.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        ShardId(self.head.shard.get())
    }

    /// The place in the shard's total order.
    #[must_use]
    pub fn position(&self) -> Position {
        Position(self.head.position.get())
    }

    /// The life of the window that decided it.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        Epoch(self.head.epoch.get())
    }

    /// The venue that wrote it.
    #[must_use]
    pub fn venue(&self) -> VenueId {
        VenueId(self.head.venue.get())
    }

    /// The shard's state hash after this position, where one was taken.
    #[must_use]
    pub fn state_hash(&self) -> Option<u64> {
        self.position().0.is_multiple_of(HASH_EVERY).then(|| self.head.state_hash.get())
    }

    /// The business day that ended with it in its shard, without decoding the rest.
    #[must_use]
    pub fn day_ended(&self) -> Option<BusinessDay> {
        self.events.last().and_then(EventRecord::day_ended)
    }

    /// Decodes all of it.
    ///
    /// # Errors
    /// If a field is outside its legal range, so that a reader could not decode what was recorded.
    pub fn check(&self) -> Result<(), WireError> {
        self.request()?;
        self.outcome()?;
        self.events().try_for_each(|event| event.map(|_| ()))
    }

    /// The request's identity, without decoding the rest.
    ///
    /// # Errors
    /// If no gateway could have issued it.
    pub fn request_id(&self) -> Result<RequestId, WireError> {
        Field::read(self.request.id, "id")
    }

    /// The request.
    ///
    /// # Errors
    /// If a field is outside its legal range.
    pub fn request(&self) -> Result<Request, WireError> {
        self.request.to_request(self.extension)
    }

    /// The outcome.
    ///
    /// # Errors
    /// If a field is outside its legal range.
    pub fn outcome(&self) -> Result<Outcome, WireError> {
        Ok(Outcome {
            status: coded(self.head.status)?,
            reason: coded(self.head.reason)?,
            order: Field::read(self.head.order, "order")?,
            executed: Quantity(self.head.executed.get()),
            remaining: Quantity(self.head.remaining.get()),
        })
    }

    /// The events, in the order they happened.
    pub fn events(&self) -> impl ExactSizeIterator<Item = Result<Event, WireError>> + 'a {
        self.events.iter().map(|event| event.to_event())
    }
}

/// Where the result in `bytes` stands, without a look at the rest; `None` if it is no result of this version.
#[must_use]
#[inline]
pub fn result_place(bytes: &[u8]) -> Option<(ShardId, Position)> {
    let (head, _) = ResultHead::ref_from_prefix(bytes).ok()?;
    let is_one = head.schema == RESULT && head.version == VERSION;
    is_one.then(|| (ShardId(head.shard.get()), Position(head.position.get())))
}

/// What a venue knows about a result beyond the outcome itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultPlace {
    /// The shard.
    pub shard: ShardId,
    /// The life of the window that decided it.
    pub epoch: Epoch,
    /// The place in the shard's total order.
    pub position: Position,
    /// The venue writing it.
    pub venue: VenueId,
    /// The state hash, 0 where none is due.
    pub state_hash: u64,
}

/// Bytes of a result of that request with that many events.
#[must_use]
pub fn result_bytes(request: &Request, events: usize) -> usize {
    size_of::<ResultHead>() + request_bytes(request) + events * size_of::<EventRecord>()
}

/// Writes a result into `out`, which must be exactly [`result_bytes`] long.
///
/// # Panics
/// If `out` has another length, or with more than 65,535 events (a step causes far fewer; see [`pares_types::Rule::StepMax`]).
pub fn write_result(
    out: &mut [u8],
    place: &ResultPlace,
    request: &Request,
    outcome: &Outcome,
    events: &[Event],
) {
    assert_eq!(out.len(), result_bytes(request, events.len()), "a result fills its record exactly");
    let head = ResultHead {
        schema: RESULT,
        version: VERSION,
        shard: place.shard.0.into(),
        epoch: place.epoch.0.into(),
        position: place.position.0.into(),
        order: outcome.order.0.to_bits().into(),
        executed: outcome.executed.0.into(),
        remaining: outcome.remaining.0.into(),
        state_hash: place.state_hash.into(),
        status: outcome.status as u8,
        reason: outcome.reason as u8,
        events: u16::try_from(events.len()).expect("a step causes at most 65,535 events").into(),
        venue: place.venue.0.into(),
        reserved: 0.into(),
    };
    let (head_bytes, rest) = out.split_at_mut(size_of::<ResultHead>());
    head_bytes.copy_from_slice(head.as_bytes());
    let (requested, rest) = rest.split_at_mut(request_bytes(request));
    write_request(requested, request);
    for (bytes, event) in rest.chunks_exact_mut(size_of::<EventRecord>()).zip(events) {
        bytes.copy_from_slice(EventRecord::from(event).as_bytes());
    }
}
