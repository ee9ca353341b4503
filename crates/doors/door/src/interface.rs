//! What a door and its connection say to each other.

use pares_types::{InstrumentId, MemberId, ShardId, Symbol};
use pares_wire::frame::{ClientFrame, SignOn};
pub use pares_wire::record::SessionMark;

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
    /// Instruments and their symbols. If there are none, each door asks for the list as its member logs on.
    pub instruments: Vec<(InstrumentId, Symbol)>,
    /// All shards.
    pub shards: Vec<ShardId>,
    /// Whether there are market data to tell.
    pub has_market: bool,
    /// Orders that a door remembers; of those beyond it reports with less.
    pub orders_max: usize,
}

/// What a Logon says of its member's key.
#[derive(Clone, PartialEq, Eq)]
pub enum LogonProof {
    /// Of FIX, by the key.
    Signed {
        /// What is proven: SendingTime, MsgSeqNum, SenderCompID and TargetCompID as they were sent, each ended by SOH.
        message: Vec<u8>,
        /// That the sender knows the secret and meant this message: RawData (96), in hexadecimal digits.
        proof: [u8; PROOF_BYTES],
        /// SendingTime, nanoseconds since 1970; within two minutes of the gateway's.
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

/// Bytes of a proof, as everywhere.
const PROOF_BYTES: usize = 64;
/// Bytes of a token, as everywhere.
const TOKEN_BYTES: usize = 10;

/// What a door wants done, in this order.
#[derive(Clone, Copy, Debug)]
pub enum DoorAction<'a> {
    /// Send these bytes, whole messages.
    Send(&'a [u8]),
    /// Take this in, as if a client of the binary protocol had sent it.
    Ask(ClientFrame),
    /// Sign this member on, who has proven that much; it is answered as a client of the binary protocol is, but never by a challenge.
    LogOn {
        /// Who.
        sign_on: SignOn,
        /// What the Logon proves, if it tries to and its time is right.
        proof: Option<&'a LogonProof>,
    },
    /// Its member is signed on, and this connection is the session's from now on: answer by [`FixDoor::on_claimed`](crate::FixDoor::on_claimed).
    Claim {
        /// The member.
        member: MemberId,
        /// Which of its sessions; 0 if it named none.
        session: u16,
    },
    /// Say which instrument has that symbol: answer by [`FixDoor::on_found`](crate::FixDoor::on_found), in the order of the questions.
    Find(Symbol),
    /// Keep this where every gateway finds it, in place of the session's last one, before anything that follows is sent.
    Mark(&'a SessionMark),
    /// Close the connection once what was sent is out.
    Close,
}
