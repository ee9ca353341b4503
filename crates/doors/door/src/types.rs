//! What the messages to a member and the questions of a member have in common.

use pares_fix::dictionary::{FIX42, FixDictionary};
use pares_fix::writer::FixWriter;
use pares_types::{ClientOrderId, MemberId, Position, Price, Reply, ShardId, Side};

use crate::instruments::Instruments;

/// The version a session speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Fix42,
    Fix44,
}

impl Version {
    pub(crate) fn of(dictionary: &FixDictionary) -> Self {
        if dictionary.begin_string == FIX42.begin_string { Self::Fix42 } else { Self::Fix44 }
    }
}

/// Whose session it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) member: MemberId,
    pub(crate) session: u16,
    /// The member whose streams it receives, if that is not its own member's.
    pub(crate) copied: Option<MemberId>,
}

impl Owner {
    /// The member whose orders reports are about.
    pub(crate) fn told_of(self) -> MemberId {
        self.copied.unwrap_or(self.member)
    }
}

/// A ClOrdID: a name of the exchange's, or what a member sent instead of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Of(ClientOrderId),
    Raw(Vec<u8>),
}

impl Name {
    pub(crate) fn write(&self, tag: u16, writer: &mut FixWriter<'_>) {
        match self {
            Self::Of(name) => writer.number(tag, name.0),
            Self::Raw(text) => writer.text(tag, text),
        }
    }
}

/// An ExecID. All but the last two are functions of the record, so they are the same whenever and wherever a report is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExecId {
    /// Of the answer at a position.
    Answer(ShardId, Position),
    /// Of a trade: its position, which event of it, and the member's order, since both may be the member's.
    Trade(ShardId, Position, u16, ClientOrderId),
    /// Of anything else: its number in the member's stream.
    Number(ShardId, u64),
    /// Of what was refused without being recorded: when, and a number that no earlier connection of the session used. A clock may be set back.
    Refusal(u64, u64),
    /// Of a status, which is no execution.
    Status,
}

impl ExecId {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Answer(shard, position) => format!("{shard}-{position}-A"),
            Self::Trade(shard, position, index, name) => format!("{shard}-{position}-{index}-{name}"),
            Self::Number(shard, number) => format!("{shard}-N{number}"),
            Self::Refusal(utc_ns, number) => format!("R{utc_ns}-{number}"),
            Self::Status => "0".into(),
        }
    }
}

/// What an execution report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExecKind {
    New,
    Trade,
    Canceled,
    Replaced,
    Rejected,
    Expired,
    Restated,
    Busted,
    Status,
}

/// OrdStatus (39).
pub(crate) mod status {
    pub(crate) const NEW: u8 = b'0';
    pub(crate) const PARTIAL: u8 = b'1';
    pub(crate) const FILLED: u8 = b'2';
    pub(crate) const DONE: u8 = b'3';
    pub(crate) const CANCELED: u8 = b'4';
    /// FIX 4.2 only.
    pub(crate) const REPLACED: u8 = b'5';
    pub(crate) const REJECTED: u8 = b'8';
    pub(crate) const PENDING_NEW: u8 = b'A';
    pub(crate) const EXPIRED: u8 = b'C';
}

/// What a report says of an order's terms, as they were asked for in FIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) ord_type: u8,
    /// `None`: not known.
    pub(crate) time_in_force: Option<u8>,
    pub(crate) price: Option<Price>,
    pub(crate) stop: Option<Price>,
}

/// What a report is an answer to, of a question for a status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Question {
    /// OrdStatusReqID (790).
    pub(crate) status_id: Option<Vec<u8>>,
    /// MassStatusReqID (584), and whether it is the last report.
    pub(crate) mass: Option<(Vec<u8>, bool)>,
}

/// What a message is written with.
#[derive(Clone, Copy)]
pub(crate) struct Pen<'a> {
    pub(crate) version: Version,
    pub(crate) instruments: &'a Instruments,
    pub(crate) utc_ns: u64,
    pub(crate) owner: Owner,
}

/// Something of the member's streams, and whether it arrives for the first time on this connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) reply: Reply,
    pub(crate) is_new: bool,
}

/// Side (54); 7 is undisclosed.
pub(crate) fn side(side: Option<Side>) -> u8 {
    match side {
        Some(Side::Buy) => b'1',
        Some(Side::Sell) => b'2',
        None => b'7',
    }
}
