//! What the parts of a gateway's edge have in common: who a connection is, what it asks, why it ends.

use pares_gateway::SessionId;
use pares_port::LogonProof;
/// Why a connection ends.
pub(crate) use pares_port::TapClose as Close;
use pares_register::EXCHANGE;
use pares_types::{ClientOrderId, GatewayId, MemberId, Symbol};
use pares_wire::Transcript;
use pares_wire::frame::{ClientFrame, SIGN_ON_JOURNALLED, SIGN_ON_RESUMES, SignOn};

/// The shortest and the longest heartbeat.
const HEARTBEAT_MS_MIN: u32 = 100;
const HEARTBEAT_MS_MAX: u32 = 60_000;

/// A member's session.
pub(crate) type Who = (MemberId, u16);

/// What a client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// A message.
    Frame(ClientFrame),
    /// A request of which a field makes no sense; its name, 0 if even that is missing.
    Unreadable(ClientOrderId),
    /// A Logon by another protocol, and what it proves.
    LogOn(SignOn, Option<Box<LogonProof>>),
    /// A FIX session's numbers are wanted.
    Claim(Who),
    /// The instrument of a symbol is wanted.
    Find(Symbol),
}

pub(crate) fn slot(session: SessionId) -> usize {
    (session.0 & u64::from(u32::MAX)) as usize
}

/// The session of a connection: its slot, and how many had one before it.
pub(crate) fn session(slot: usize, generation: u32) -> SessionId {
    assert!(u32::try_from(slot).is_ok(), "the number of a slot has 32 bits");
    SessionId(u64::from(generation) << 32 | slot as u64)
}

/// A sign-on that waits for its proof.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) transcript: Transcript,
    pub(crate) journalled: bool,
    pub(crate) resumes: bool,
    pub(crate) heartbeat_ms: u32,
}

impl Asked {
    pub(crate) fn new(gateway: GatewayId, nonce: [u8; 32], sign_on: &SignOn) -> Self {
        let transcript = Transcript {
            nonce,
            gateway,
            member: MemberId(sign_on.member.get()),
            session: sign_on.session.get(),
            token: sign_on.token.get(),
        };
        let asks = |flag| sign_on.flags.get() & flag != 0;
        Self {
            transcript,
            journalled: asks(SIGN_ON_JOURNALLED),
            resumes: asks(SIGN_ON_RESUMES),
            heartbeat_ms: match sign_on.heartbeat_ms.get() {
                0 => 0,
                wanted => wanted.clamp(HEARTBEAT_MS_MIN, HEARTBEAT_MS_MAX),
            },
        }
    }

    pub(crate) fn is_of_operator(&self) -> bool {
        self.transcript.member == EXCHANGE
    }

    pub(crate) fn who(&self) -> (MemberId, u16) {
        (self.transcript.member, self.transcript.session)
    }
}
