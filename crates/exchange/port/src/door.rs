//! The interface of a door, which stands between a connection at the port of another protocol and the gateway's frames.
//!
//! A door asks for nothing that a client of the binary protocol could not ask for, and receives what that client would receive.
//! It is called once per message, so it may be called dynamically; connections of the binary protocol have no door.

use std::fmt::Debug;
use std::sync::Arc;

use pares_types::{GatewayId, InstrumentId, MemberId, ShardId, Symbol};
use pares_wire::frame::{ClientFrame, GatewayFrame, SignOn};
pub use pares_wire::record::SessionMark;

use crate::market::{MarketSubscription, MarketView};
use crate::secrets::SecretScan;
use crate::tap::TapDoor;

/// The port of a protocol of others, at which doors translate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DoorPort {
    /// FIX (docs/protocols/fix.md).
    Fix,
    /// OUCH 5.0 over SoupBinTCP (docs/protocols/ouch.md).
    Ouch,
}

impl From<DoorPort> for TapDoor {
    fn from(port: DoorPort) -> Self {
        match port {
            DoorPort::Fix => Self::Fix,
            DoorPort::Ouch => Self::Ouch,
        }
    }
}

/// Where a door writes what it wants done.
pub type Sink<'a> = &'a mut dyn FnMut(DoorAction<'_>);

/// One connection at the port of another protocol.
pub trait ProtocolDoor: Debug + Send {
    /// Takes what the peer has sent: how many of the bytes are done with. The others are to be given again with what follows them, and
    /// whenever the gateway has said something.
    fn on_bytes(&mut self, at: DoorTime, bytes: &[u8], sink: Sink<'_>) -> usize;

    /// Takes what the gateway says to the session.
    fn on_frame(&mut self, at: DoorTime, frame: &GatewayFrame, sink: Sink<'_>);

    /// Time has come to `at`.
    fn on_time(&mut self, at: DoorTime, sink: Sink<'_>);

    /// The session is this connection's, with the last mark that was kept of it: the answer to [`DoorAction::Claim`].
    fn on_claimed(&mut self, _at: DoorTime, _mark: Option<&SessionMark>, _sink: Sink<'_>) {}

    /// Its later Logon proves what it says and is used up: the answer to a further [`DoorAction::LogOn`].
    fn on_proven(&mut self, _at: DoorTime, _sink: Sink<'_>) {}

    /// Which instrument has the symbol that was to be found: the answer to [`DoorAction::Find`].
    fn on_found(&mut self, _at: DoorTime, _instrument: Option<InstrumentId>, _sink: Sink<'_>) {}

    /// Takes the market as it is by now. A slow reader receives no intermediate states: each receives what changed since it was sent the last one.
    fn on_market(&mut self, _at: DoorTime, _view: &dyn MarketView, _sink: Sink<'_>) {}

    /// Whether [`Self::on_market`] has something to tell, and when.
    fn market_wish(&self) -> MarketSubscription {
        MarketSubscription::Nothing
    }

    /// The connection is gone, and was not closed by the door: the mark with which another continues at once.
    fn on_disconnected(&mut self) -> Option<SessionMark> {
        None
    }

    /// When [`Self::on_time`] has something to do next, of the clock that never goes back.
    fn next_deadline_ns(&self) -> Option<u64>;
}

/// Makes what a gateway has in front of its connections: the program that starts it says which protocols there are.
pub trait DoorFactory: Debug + Send + Sync {
    /// A door of that port, to which nobody has spoken.
    fn door(&self, port: DoorPort, config: &Arc<DoorConfig>) -> Box<dyn ProtocolDoor>;

    /// What finds the secrets in what comes in on a connection, from its first byte on; for the tap.
    fn secrets(&self, door: TapDoor) -> Box<dyn SecretScan>;
}

/// Now, by both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorTime {
    /// Nanoseconds since 1970, UTC: what messages bear.
    pub utc_ns: u64,
    /// Nanoseconds of a clock that never goes back: what deadlines are of.
    pub mono_ns: u64,
}

/// What is the same for all doors of a gateway.
#[derive(Clone, Debug)]
pub struct DoorConfig {
    /// The exchange's comp id: what members call with as TargetCompID.
    pub comp_id: String,
    /// The gateway that they are of: what a proven Logon names as TargetSubID.
    pub gateway: GatewayId,
    /// Instruments and their symbols. If there are none, each door asks for the list as its member logs on.
    pub instruments: Vec<(InstrumentId, Symbol)>,
    /// All shards.
    pub shards: Vec<ShardId>,
    /// Whether there are market data to tell.
    pub has_market: bool,
    /// Orders that a door remembers; of those beyond it reports with less.
    pub orders_max: usize,
}

/// How far the time of a Logon may be from the gateway's clock.
pub const LOGON_CLOCK_NS: u64 = 120_000_000_000;

/// What a Logon says of its member's key.
#[derive(Clone, PartialEq, Eq)]
pub enum LogonProof {
    /// Of FIX, by the key.
    Signed {
        /// What is proven: all fields of the Logon as they were sent, but those that depend on the proof. They name the gateway.
        message: Vec<u8>,
        /// That the sender knows the secret and meant this message: RawData (96), in hexadecimal digits.
        proof: [u8; PROOF_BYTES],
        /// SendingTime, nanoseconds since 1970. The gateway judges it, within [`LOGON_CLOCK_NS`] of its own: it remembers what is used up, also of those that
        /// it refuses.
        time_ns: u64,
    },
    /// Of OUCH, whose passwords are short: the token itself, of which the key was made.
    Token([u8; TOKEN_BYTES]),
}

/// Printed text is kept somewhere: it has neither a proof nor a token.
impl std::fmt::Debug for LogonProof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Signed { .. } => "Signed",
            Self::Token(_) => "Token",
        })
    }
}

const PROOF_BYTES: usize = 64;
const TOKEN_BYTES: usize = 10;

/// What a door wants done, in this order.
#[derive(Clone, Copy, Debug)]
pub enum DoorAction<'a> {
    /// Send these bytes, whole messages.
    Send(&'a [u8]),
    /// Take this in, as if a client of the binary protocol had sent it.
    Ask(ClientFrame),
    /// Sign this member on, who has proven that much; it is answered as a client of the binary protocol is, but never by a challenge. A connection
    /// that is signed on only has its proof used up, which may be another member's: answer by [`ProtocolDoor::on_proven`], or end the connection.
    LogOn {
        /// Who.
        sign_on: SignOn,
        /// What the Logon proves, if it tries to, for this gateway.
        proof: Option<&'a LogonProof>,
    },
    /// Its member is signed on, and this connection is the session's from now on: answer by [`ProtocolDoor::on_claimed`].
    Claim {
        /// The member.
        member: MemberId,
        /// Which of its sessions; 0 if it named none.
        session: u16,
    },
    /// Say which instrument has that symbol: answer by [`ProtocolDoor::on_found`], in the order of the questions.
    Find(Symbol),
    /// Keep this where every gateway finds it, in place of the session's last one, before anything that follows is sent.
    Mark(&'a SessionMark),
    /// Close the connection once what was sent is out.
    Close,
}
