//! Signing on, staying there, and the member's streams.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[cfg(doc)]
use super::Journalled;
use super::Message;
use crate::frame::{FRAME_MAX, HEAD_BYTES};

message! {
    /// Client to gateway, first on every connection: who is speaking.
    1 SignOn (48) {
        /// The member; trusted where sign-on is open.
        member: U32,
        /// Bit 0: also send [`Journalled`] for each request. Bit 1: tell nothing of the member's streams before [`Resume`].
        flags: U32,
        /// Echoed in [`SignedOn`].
        token: U64,
        /// Which of the member's sessions, from 1; where sign-on is open 0 will do.
        session: U16,
        /// The heartbeat the client wants, ms; 0: none.
        heartbeat_ms: U32,
        /// Zero.
        reserved: [u8; 26],
    }
}
message! {
    /// Gateway to client, in answer to [`SignOn`]: prove who you are.
    138 Challenge (40) {
        /// What the gateway has made up for this sign-on.
        nonce: [u8; 32],
        /// Which gateway.
        gateway: U16,
        /// Zero.
        reserved: [u8; 6],
    }
}
message! {
    /// Client to gateway: the answer to [`Challenge`].
    26 Proof (64) {
        /// The first half of the Ed25519 signature of the transcript; with a shared secret all of the proof.
        first: [u8; 32],
        /// The second half; zero with a shared secret.
        second: [u8; 32],
    }
}
message! {
    /// Gateway to client: signed on.
    129 SignedOn (24) {
        /// The sign-on's token.
        token: U64,
        /// The gateway.
        gateway: U16,
        /// Requests this session may have in flight.
        in_flight_max: U16,
        /// The member.
        member: U32,
        /// The heartbeat in force, ms; 0: none.
        heartbeat_ms: U32,
        /// The member whose streams and orders the session receives instead of its own's, and then it may ask for nothing; 0: its own.
        copied: U32,
    }
}
message! {
    /// Client to gateway: are you there?
    6 Ping (8) {
        /// Echoed in [`Pong`].
        token: U64,
    }
}
message! {
    /// Gateway to client: I am.
    135 Pong (8) {
        /// The ping's token.
        token: U64,
    }
}
message! {
    /// Client to gateway: unless told again before, cancel then what this session guards.
    19 CancelAfter (8) {
        /// From now on, ms; 0: not at all.
        after_ms: U32,
        /// Zero.
        reserved: U32,
    }
}
message! {
    /// Client to gateway: tell me my member's stream of a shard from this number on.
    18 Resume (16) {
        /// The number of the first message wanted, from 1; 0: what comes from now on; 2^64 - 1: tell me nothing more of what I missed.
        next: U64,
        /// The shard; 65535 for each of them.
        shard: U16,
        /// Zero.
        reserved: [u8; 6],
    }
}
message! {
    /// Gateway to client: the member's stream of a shard is live from here on, or the gateway does not send it.
    139 Resumed (24) {
        /// The number of the next message; if it is not sent, the lowest number that is kept, 0 if none is.
        next: U64,
        /// The shard.
        shard: U16,
        /// Reason code: 0, or why it is not told.
        reason: u8,
        /// Zero.
        reserved: [u8; 13],
    }
}
