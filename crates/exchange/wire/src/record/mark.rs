//! How far a FIX session's numbers may have gone, in the log of the gateway that serves it.
//!
//! A gateway dies with the numbers it gave to messages. So before it uses any, it writes down up to which it may, and where in each
//! shard's stream the session was by then; the next gateway continues behind that.

use pares_types::{GatewayId, MemberId, ShardId};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{SESSION_MARK, VERSION, check};
use crate::WireError;

layout! {
    /// The head of a mark; its shards follow.
    MarkHead (32) {
        /// [`SESSION_MARK`].
        schema: u8,
        /// [`VERSION`].
        version: u8,
        /// The number of the member's session.
        session: U16,
        /// The member.
        member: U32,
        /// The next number expected of the member, at least.
        next_in: U64,
        /// The last number that may have been given to a message to the member.
        out_max: U64,
        /// How often the session had gone to another connection.
        reign: U32,
        /// The gateway that gives these numbers.
        gateway: U16,
        /// How many [`MarkedShard`]s follow.
        shards: U16,
    }
}

layout! {
    /// Where in one shard's stream a session was.
    MarkedShard (16) {
        /// The number of the next message of the member's stream that is to be told.
        next: U64,
        /// The shard.
        shard: U16,
        /// The member whose stream it is, the same in all; 0: the session's own.
        copied: U32,
        /// Zero; later fields go here.
        reserved: [u8; 2],
    }
}

layout! {
    /// Behind the shards, if any Logon of the session was proven.
    MarkedLogon (8) {
        /// When the last one was sent by its own words, nanoseconds since 1970; above 0.
        logon_ns: U64,
    }
}

/// What another gateway must know of a FIX session to continue it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionMark {
    /// The member.
    pub member: MemberId,
    /// Which of its sessions.
    pub session: u16,
    /// A number that the peer is not beyond: the next that was expected of it.
    pub next_in: u64,
    /// No higher number has gone out.
    pub out_max: u64,
    /// The member whose streams it receives, if that is not its own member.
    pub copied: Option<MemberId>,
    /// Of each shard: the first number of the member's stream that the peer may not have been told.
    pub told: Vec<(ShardId, u64)>,
}

/// A mark as it lies in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionMarkRecord {
    /// How often the session had gone to another connection.
    pub reign: u32,
    /// Who gives these numbers.
    pub gateway: GatewayId,
    /// When the session's last Logon that was proven says it was sent, nanoseconds since 1970; 0 if none was. A gateway takes none that is not later.
    pub logon_ns: u64,
    /// What it says.
    pub mark: SessionMark,
}

impl SessionMarkRecord {
    /// Reads a mark, which must be all of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not a mark of this version.
    pub fn read(bytes: &[u8]) -> Result<Self, WireError> {
        let (head, rest) = MarkHead::ref_from_prefix(bytes).map_err(|_| WireError::Truncated)?;
        check(head.schema, head.version, SESSION_MARK)?;
        let (shards, rest) = <[MarkedShard]>::ref_from_prefix_with_elems(rest, head.shards.get().into())
            .map_err(|_| WireError::InvalidField("shards"))?;
        let logon_ns = read_logon(rest)?;
        if shards.iter().any(|one| one.reserved != [0; 2]) {
            return Err(WireError::InvalidField("reserved"));
        }
        let copied = shards.first().map_or(0, |one| one.copied.get());
        if shards.iter().any(|one| one.copied.get() != copied) {
            return Err(WireError::InvalidField("copied"));
        }
        let told = shards.iter().map(|one| (ShardId(one.shard.get()), one.next.get())).collect();
        let mark = SessionMark {
            member: MemberId(head.member.get()),
            session: head.session.get(),
            next_in: head.next_in.get(),
            out_max: head.out_max.get(),
            copied: Some(MemberId(copied)).filter(|member| member.0 != 0),
            told,
        };
        Ok(Self { reign: head.reign.get(), gateway: GatewayId(head.gateway.get()), logon_ns, mark })
    }

    /// The mark's bytes.
    ///
    /// # Panics
    /// If it names more shards than there can be.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let SessionMark { member, session, next_in, out_max, copied, ref told } = self.mark;
        let head = MarkHead {
            schema: SESSION_MARK,
            version: VERSION,
            session: session.into(),
            member: member.0.into(),
            next_in: next_in.into(),
            out_max: out_max.into(),
            reign: self.reign.into(),
            gateway: self.gateway.0.into(),
            shards: u16::try_from(told.len()).expect("a shard is named once").into(),
        };
        let mut bytes = head.as_bytes().to_vec();
        let copied = copied.map_or(0, |member| member.0).into();
        for &(shard, next) in told {
            let one = MarkedShard { next: next.into(), shard: shard.0.into(), copied, reserved: [0; 2] };
            bytes.extend_from_slice(one.as_bytes());
        }
        if self.logon_ns > 0 {
            bytes.extend_from_slice(MarkedLogon { logon_ns: self.logon_ns.into() }.as_bytes());
        }
        bytes
    }
}

/// What is behind the shards: nothing, or when the last proven Logon was sent.
fn read_logon(rest: &[u8]) -> Result<u64, WireError> {
    if rest.is_empty() {
        return Ok(0);
    }
    let logon = MarkedLogon::ref_from_bytes(rest).map_err(|_| WireError::InvalidField("shards"))?;
    match logon.logon_ns.get() {
        0 => Err(WireError::InvalidField("logon_ns")),
        logon_ns => Ok(logon_ns),
    }
}
