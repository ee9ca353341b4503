//! Which proven Logons of a FIX session are used up, in the log of the gateway to which they were sent.
//!
//! A Logon has no challenge: who hears one can send it again. So a gateway writes down the times of those whose proof was right, whatever became of
//! them, before it answers.

use pares_types::MemberId;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{SPENT_LOGON, VERSION, check};
use crate::WireError;

layout! {
    /// Times of a session's Logons that are used up at this gateway.
    SpentLogonRecord (32) {
        /// [`SPENT_LOGON`].
        schema: u8,
        /// [`VERSION`].
        version: u8,
        /// The number of the member's session.
        session: U16,
        /// The member.
        member: U32,
        /// SendingTime of the first, nanoseconds since 1970.
        first_ns: U64,
        /// SendingTime of the last; no Logon of a time between them is accepted.
        last_ns: U64,
        /// Until when that counts, nanoseconds since 1970.
        until_ns: U64,
    }
}

impl SpentLogonRecord {
    /// That of a session's Logons, all that were sent from `first_ns` to `last_ns` are used up until then.
    #[must_use]
    pub fn new((member, session): (MemberId, u16), (first_ns, last_ns): (u64, u64), until_ns: u64) -> Self {
        Self {
            schema: SPENT_LOGON,
            version: VERSION,
            session: session.into(),
            member: member.0.into(),
            first_ns: first_ns.into(),
            last_ns: last_ns.into(),
            until_ns: until_ns.into(),
        }
    }

    /// Reads one, which must be all of `bytes`.
    ///
    /// # Errors
    /// If the bytes are none of this version, or it ends before it begins.
    pub fn read(bytes: &[u8]) -> Result<Self, WireError> {
        let record = Self::read_from_bytes(bytes).map_err(|_| WireError::Truncated)?;
        check(record.schema, record.version, SPENT_LOGON)?;
        if record.first_ns.get() > record.last_ns.get() {
            return Err(WireError::InvalidField("last_ns"));
        }
        Ok(record)
    }

    /// Whose Logons.
    #[must_use]
    pub fn who(&self) -> (MemberId, u16) {
        (MemberId(self.member.get()), self.session.get())
    }
}
