//! Records of the mapped logs.
//!
//! ```text
//! gateway log    [Request]
//! venue log      [ResultHead | Request | EventRecord * events]   [CheckpointChunk | bytes]
//! recorder log   the venue's records as they came                [CheckpointStored]
//! ```
//! A result carries its request, so a recorder's log alone is enough to rebuild everything
//! (paper 1 section 4 step 3: "the reply from HR includes a copy of the original trade request").

use pares_types::{
    CancelCause, ClientOrderId, Command, Epoch, Event, InstrumentId, MemberId, NewOrder, OrderId, Outcome,
    Position, Price, Quantity, Reason, Request, RequestId, ShardId, Status, Timestamp, VenueId,
};
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{WireError, order_kind, order_kind_code, side, time_in_force};

/// `schema` of a [`RequestRecord`].
pub const REQUEST: u8 = 1;
/// `schema` of a [`ResultHead`].
pub const RESULT: u8 = 2;
/// `schema` of a [`CheckpointChunk`].
pub const CHECKPOINT_CHUNK: u8 = 3;
/// `schema` of a [`CheckpointStored`].
pub const CHECKPOINT_STORED: u8 = 4;
/// The version of all schemas in this build.
pub const VERSION: u8 = 1;

/// The `command` byte: which [`Command`] a [`RequestRecord`] carries.
mod command {
    pub(super) const ENTER: u8 = 1;
    pub(super) const AMEND: u8 = 2;
    pub(super) const CANCEL: u8 = 3;
    pub(super) const MASS_CANCEL: u8 = 4;
}

/// A numbered request. Gateway to venues, and inside every result.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RequestRecord {
    /// [`REQUEST`].
    pub schema: u8,
    /// [`VERSION`].
    pub version: u8,
    /// The total order it belongs to.
    pub shard: U16,
    /// Who asks.
    pub member: U32,
    /// [`RequestId`] bits: gateway (16) and sequence (48).
    pub id: U64,
    /// When the gateway took it in, ns since the Unix epoch.
    pub stamp_ns: U64,
    /// The member's own name for the request.
    pub client_order_id: U64,
    /// [`OrderId`] bits of the order to amend or cancel; 0 otherwise.
    pub target: U64,
    /// Price units; 0 for market orders, cancels and mass cancels.
    pub price: I64,
    /// Shares; 0 for cancels and mass cancels.
    pub quantity: U64,
    /// The instrument; 0 = all of the shard (mass cancel only).
    pub instrument: U32,
    /// 1 enter, 2 amend, 3 cancel, 4 mass cancel.
    pub command: u8,
    /// 1 buy, 2 sell; 0 unless entering.
    pub side: u8,
    /// 1 limit, 2 market, 3 post-only limit, 4 post-only market; 0 unless entering.
    pub order_kind: u8,
    /// 1 day, 2 immediate or cancel, 3 fill or kill; 0 unless entering.
    pub time_in_force: u8,
}
const _: () = assert!(size_of::<RequestRecord>() == 64);

/// The head of a result: position, outcome; the request and its events follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ResultHead {
    /// [`RESULT`].
    pub schema: u8,
    /// [`VERSION`].
    pub version: u8,
    /// The shard whose order this is a place in.
    pub shard: U16,
    /// The life of the window that decided it.
    pub epoch: U32,
    /// The place in the shard's total order.
    pub position: U64,
    /// [`OrderId`] bits of the order concerned.
    pub order: U64,
    /// Shares of that order executed so far.
    pub executed: U64,
    /// Shares of that order still on the book.
    pub remaining: U64,
    /// The shard's state hash after this position; 0 except every [`HASH_EVERY`] positions.
    pub state_hash: U64,
    /// [`Status`] code.
    pub status: u8,
    /// [`Reason`] code.
    pub reason: u8,
    /// How many [`EventRecord`]s follow the request.
    pub events: U16,
    /// The venue that executed it first (for the curious; all venues agree on the rest).
    pub venue: U16,
    /// Zero; later fields go here.
    pub reserved: U16,
}
const _: () = assert!(size_of::<ResultHead>() == 56);

/// Venues hash a shard's state at every position that is a multiple of this (design section 3).
pub const HASH_EVERY: u64 = 1_024;

/// One event of a result.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct EventRecord {
    /// [`OrderId`] bits: the resting order of a fill, the order cancelled.
    pub order: U64,
    /// Its owner's name for it.
    pub client_order_id: U64,
    /// Price of the trade; 0 for a cancel.
    pub price: I64,
    /// Shares traded or cancelled.
    pub quantity: U64,
    /// Shares of the resting order left after a fill; 0 for a cancel.
    pub remaining: U64,
    /// Its owner.
    pub member: U32,
    /// 1 fill, 2 cancelled.
    pub kind: u8,
    /// [`CancelCause`] code; 0 for a fill.
    pub cause: u8,
    /// The resting order's side: 1 buy, 2 sell; 0 for a cancel.
    pub side: u8,
    /// Zero; later fields go here.
    pub reserved: u8,
}
const _: () = assert!(size_of::<EventRecord>() == 48);

/// A piece of a shard's checkpoint on its way to the recorders; its bytes follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CheckpointChunk {
    /// [`CHECKPOINT_CHUNK`].
    pub schema: u8,
    /// [`VERSION`].
    pub version: u8,
    /// The shard.
    pub shard: U16,
    /// The life of the window it was taken in.
    pub epoch: U32,
    /// The next position to execute on this state.
    pub position: U64,
    /// Bytes of the whole checkpoint.
    pub total_bytes: U32,
    /// Where this piece starts in it.
    pub start: U32,
}
const _: () = assert!(size_of::<CheckpointChunk>() == 24);

/// A recorder has a whole, verified checkpoint on disk.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CheckpointStored {
    /// [`CHECKPOINT_STORED`].
    pub schema: u8,
    /// [`VERSION`].
    pub version: u8,
    /// The shard.
    pub shard: U16,
    /// The life of the window it was taken in.
    pub epoch: U32,
    /// The next position to execute on that state.
    pub position: U64,
}
const _: () = assert!(size_of::<CheckpointStored>() == 16);

impl From<&Request> for RequestRecord {
    fn from(request: &Request) -> Self {
        let mut record = Self {
            schema: REQUEST,
            version: VERSION,
            shard: request.shard.0.into(),
            member: request.member.0.into(),
            id: request.id.to_bits().into(),
            stamp_ns: request.stamp.0.into(),
            client_order_id: request.client_order_id.0.into(),
            target: 0.into(),
            price: 0.into(),
            quantity: 0.into(),
            instrument: request.instrument.0.into(),
            command: command::MASS_CANCEL,
            side: 0,
            order_kind: 0,
            time_in_force: 0,
        };
        match request.command {
            Command::Enter(order) => record.set_order(&order),
            Command::Amend { target, price, quantity } => {
                record.command = command::AMEND;
                record.target = target.0.to_bits().into();
                record.price = price.0.into();
                record.quantity = quantity.0.into();
            }
            Command::Cancel { target } => {
                record.command = command::CANCEL;
                record.target = target.0.to_bits().into();
            }
            Command::MassCancel => {}
        }
        record
    }
}

impl RequestRecord {
    fn set_order(&mut self, order: &NewOrder) {
        let (code, price) = order_kind_code(order.kind, order.post_only);
        self.command = command::ENTER;
        self.side = order.side as u8;
        self.order_kind = code;
        self.time_in_force = order.time_in_force as u8;
        self.price = price.into();
        self.quantity = order.quantity.0.into();
    }

    /// Reads a request record, which must be all of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not a whole request of this version.
    pub fn read(bytes: &[u8]) -> Result<Request, WireError> {
        let record = Self::ref_from_bytes(bytes).map_err(|_| WireError::Truncated)?;
        check(record.schema, record.version, REQUEST)?;
        record.to_request()
    }

    fn to_request(self) -> Result<Request, WireError> {
        Ok(Request {
            id: RequestId::from_bits(self.id.get()).ok_or(WireError::InvalidField("id"))?,
            stamp: Timestamp(self.stamp_ns.get()),
            member: MemberId(self.member.get()),
            client_order_id: ClientOrderId(self.client_order_id.get()),
            instrument: InstrumentId(self.instrument.get()),
            shard: ShardId(self.shard.get()),
            command: self.to_command()?,
        })
    }

    fn to_command(self) -> Result<Command, WireError> {
        let target =
            || RequestId::from_bits(self.target.get()).map(OrderId).ok_or(WireError::InvalidField("target"));
        Ok(match self.command {
            command::ENTER => {
                let (kind, post_only) = order_kind(self.order_kind, self.price.get())?;
                Command::Enter(NewOrder {
                    side: side(self.side)?,
                    kind,
                    time_in_force: time_in_force(self.time_in_force)?,
                    post_only,
                    quantity: Quantity(self.quantity.get()),
                })
            }
            command::AMEND => Command::Amend {
                target: target()?,
                price: Price(self.price.get()),
                quantity: Quantity(self.quantity.get()),
            },
            command::CANCEL => Command::Cancel { target: target()? },
            command::MASS_CANCEL => Command::MassCancel,
            _ => return Err(WireError::InvalidField("command")),
        })
    }
}

/// A result as it lies in a log: borrowed, checked, decoded field by field on demand.
#[derive(Clone, Copy, Debug)]
pub struct ResultRecord<'a> {
    head: &'a ResultHead,
    request: &'a RequestRecord,
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
        let (request, rest) = RequestRecord::ref_from_prefix(rest).map_err(|_| WireError::Truncated)?;
        check(request.schema, request.version, REQUEST)?;
        let events = <[EventRecord]>::ref_from_bytes(rest).map_err(|_| WireError::Truncated)?;
        if events.len() != usize::from(head.events.get()) {
            return Err(WireError::InvalidField("events"));
        }
        Ok(Self { head, request, events })
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

    /// The request's identity, without decoding the rest.
    ///
    /// # Errors
    /// If no gateway could have issued it.
    pub fn request_id(&self) -> Result<RequestId, WireError> {
        RequestId::from_bits(self.request.id.get()).ok_or(WireError::InvalidField("id"))
    }

    /// The request.
    ///
    /// # Errors
    /// If a field is outside its legal range.
    pub fn request(&self) -> Result<Request, WireError> {
        self.request.to_request()
    }

    /// The outcome.
    ///
    /// # Errors
    /// If a field is outside its legal range.
    pub fn outcome(&self) -> Result<Outcome, WireError> {
        let order = RequestId::from_bits(self.head.order.get()).ok_or(WireError::InvalidField("order"))?;
        Ok(Outcome {
            status: status(self.head.status)?,
            reason: reason(self.head.reason)?,
            order: OrderId(order),
            executed: Quantity(self.head.executed.get()),
            remaining: Quantity(self.head.remaining.get()),
        })
    }

    /// The events, in the order they happened.
    pub fn events(&self) -> impl ExactSizeIterator<Item = Result<Event, WireError>> + 'a {
        self.events.iter().map(|event| event.to_event())
    }
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

/// Bytes of a result with that many events.
#[must_use]
pub fn result_bytes(events: usize) -> usize {
    size_of::<ResultHead>() + size_of::<RequestRecord>() + events * size_of::<EventRecord>()
}

/// Writes a result into `out`, which must be exactly [`result_bytes`] long.
///
/// # Panics
/// If `out` has another length, or with more than 65,535 events (a book holds fewer orders at a
/// time than one request can touch only if configured so; see `Instrument::orders_max`).
pub fn write_result(
    out: &mut [u8],
    place: &ResultPlace,
    request: &Request,
    outcome: &Outcome,
    events: &[Event],
) {
    assert_eq!(out.len(), result_bytes(events.len()), "a result fills its record exactly");
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
        events: u16::try_from(events.len()).expect("a request touches at most 65,535 orders").into(),
        venue: place.venue.0.into(),
        reserved: 0.into(),
    };
    let (head_bytes, rest) = out.split_at_mut(size_of::<ResultHead>());
    head_bytes.copy_from_slice(head.as_bytes());
    let (request_bytes, rest) = rest.split_at_mut(size_of::<RequestRecord>());
    request_bytes.copy_from_slice(RequestRecord::from(request).as_bytes());
    for (bytes, event) in rest.chunks_exact_mut(size_of::<EventRecord>()).zip(events) {
        bytes.copy_from_slice(EventRecord::from(event).as_bytes());
    }
}

impl From<&Event> for EventRecord {
    fn from(event: &Event) -> Self {
        match *event {
            Event::Fill {
                resting,
                resting_member,
                resting_client_order_id,
                resting_side,
                price,
                quantity,
                resting_remaining,
            } => Self {
                order: resting.0.to_bits().into(),
                client_order_id: resting_client_order_id.0.into(),
                price: price.0.into(),
                quantity: quantity.0.into(),
                remaining: resting_remaining.0.into(),
                member: resting_member.0.into(),
                kind: 1,
                cause: 0,
                side: resting_side as u8,
                reserved: 0,
            },
            Event::Cancelled { order, member, client_order_id, quantity, cause } => Self {
                order: order.0.to_bits().into(),
                client_order_id: client_order_id.0.into(),
                price: 0.into(),
                quantity: quantity.0.into(),
                remaining: 0.into(),
                member: member.0.into(),
                kind: 2,
                cause: cause as u8,
                side: 0,
                reserved: 0,
            },
        }
    }
}

impl EventRecord {
    fn to_event(self) -> Result<Event, WireError> {
        let order = OrderId(RequestId::from_bits(self.order.get()).ok_or(WireError::InvalidField("order"))?);
        let member = MemberId(self.member.get());
        let client_order_id = ClientOrderId(self.client_order_id.get());
        let quantity = Quantity(self.quantity.get());
        match self.kind {
            1 => Ok(Event::Fill {
                resting: order,
                resting_member: member,
                resting_client_order_id: client_order_id,
                resting_side: side(self.side)?,
                price: Price(self.price.get()),
                quantity,
                resting_remaining: Quantity(self.remaining.get()),
            }),
            2 => Ok(Event::Cancelled { order, member, client_order_id, quantity, cause: cause(self.cause)? }),
            _ => Err(WireError::InvalidField("kind")),
        }
    }
}

/// The first byte of a record: which schema it follows.
#[must_use]
pub fn schema(bytes: &[u8]) -> Option<u8> {
    bytes.first().copied()
}

impl CheckpointChunk {
    /// Reads a chunk and the bytes it carries.
    ///
    /// # Errors
    /// If the bytes are not a chunk of this version, or reach beyond the checkpoint's end.
    pub fn read(bytes: &[u8]) -> Result<(&Self, &[u8]), WireError> {
        let (chunk, rest) = Self::ref_from_prefix(bytes).map_err(|_| WireError::Truncated)?;
        check(chunk.schema, chunk.version, CHECKPOINT_CHUNK)?;
        let end = u64::from(chunk.start.get()) + rest.len() as u64;
        if end > u64::from(chunk.total_bytes.get()) {
            return Err(WireError::InvalidField("start"));
        }
        Ok((chunk, rest))
    }
}

impl CheckpointStored {
    /// Reads the notice, which must be all of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not such a notice of this version.
    pub fn read(bytes: &[u8]) -> Result<&Self, WireError> {
        let stored = Self::ref_from_bytes(bytes).map_err(|_| WireError::Truncated)?;
        check(stored.schema, stored.version, CHECKPOINT_STORED)?;
        Ok(stored)
    }
}

fn check(schema: u8, version: u8, expected: u8) -> Result<(), WireError> {
    if schema == expected && version == VERSION {
        Ok(())
    } else {
        Err(WireError::UnknownSchema { schema, version })
    }
}

/// The [`Status`] a code stands for.
///
/// # Errors
/// If no status has that code.
pub fn status(code: u8) -> Result<Status, WireError> {
    const ALL: [Status; 5] =
        [Status::Resting, Status::Filled, Status::Cancelled, Status::Refused, Status::MassCancelled];
    ALL.into_iter().find(|&status| status as u8 == code).ok_or(WireError::InvalidField("status"))
}

/// The [`Reason`] a code stands for.
///
/// # Errors
/// If no reason has that code.
pub fn reason(code: u8) -> Result<Reason, WireError> {
    Reason::ALL.get(usize::from(code)).copied().ok_or(WireError::InvalidField("reason"))
}

pub(crate) fn cause(code: u8) -> Result<CancelCause, WireError> {
    Ok(match code {
        1 => CancelCause::Requested,
        2 => CancelCause::MassCancel,
        3 => CancelCause::Remainder,
        4 => CancelCause::FillOrKill,
        5 => CancelCause::Reduced,
        _ => return Err(WireError::InvalidField("cause")),
    })
}
