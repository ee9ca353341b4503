//! FIX in front of a gateway: a codec between its messages and the gateway's frames. It owns no book and no order.

use std::sync::Arc;

use pares_types::{ClientOrderId, MemberId};
use pares_wire::frame::{ClientFrame, GatewayFrame};
pub use pares_wire::record::SessionMark;

/// What a door has to know of the exchange.
#[derive(Clone, Debug, Default)]
pub struct DoorConfig {}

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoorTime {
    /// Nanoseconds since 1970.
    pub utc_ns: u64,
    /// Nanoseconds since some moment; never goes back.
    pub mono_ns: u64,
}

/// What a door wants done.
#[derive(Debug)]
pub enum DoorAction<'a> {
    /// Bytes for the socket.
    Send(&'a [u8]),
    /// As if a client of the binary protocol had sent it.
    Ask(ClientFrame),
    /// A request of which a field makes no sense; its name, 0 if even that is missing.
    Unreadable(ClientOrderId),
    /// This session's numbers are wanted: answered by [`FixDoor::on_claimed`].
    Claim {
        /// The member.
        member: MemberId,
        /// The number of its session.
        session: u16,
        /// Its numbers begin anew.
        anew: bool,
    },
    /// To be kept where another gateway finds it, before what follows is sent.
    Mark(SessionMark),
    /// The connection ends once all is sent.
    Close,
}

/// One connection's door.
#[derive(Debug)]
pub struct FixDoor {
    _config: Arc<DoorConfig>,
}

impl FixDoor {
    /// Of a new connection.
    #[must_use]
    pub fn new(config: Arc<DoorConfig>) -> Self {
        Self { _config: config }
    }

    /// Bytes came. Says how many it is done with.
    pub fn on_bytes(&mut self, _: DoorTime, bytes: &[u8], _: &mut impl FnMut(DoorAction<'_>)) -> usize {
        bytes.len()
    }

    /// The session's numbers, as far as any gateway knows them.
    pub fn on_claimed(
        &mut self,
        _: DoorTime,
        _: Option<&SessionMark>,
        _: &mut impl FnMut(DoorAction<'_>),
    ) {
    }

    /// The gateway said something.
    pub fn on_frame(&mut self, _: DoorTime, _: &GatewayFrame, _: &mut impl FnMut(DoorAction<'_>)) {}

    /// Time has passed.
    pub fn on_time(&mut self, _: DoorTime, _: &mut impl FnMut(DoorAction<'_>)) {}

    /// When it wants to be told the time, by the monotonic clock.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        None
    }
}
