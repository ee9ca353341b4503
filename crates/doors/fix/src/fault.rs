//! Why a message is rejected: SessionRejectReason (373) and the words that go with it.

/// A rejection of the session layer. Its number is the value of tag 373.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixRejectReason {
    /// The standard has no such tag.
    InvalidTag = 0,
    /// A required field is not there.
    RequiredTagMissing = 1,
    /// The message type has no such field.
    TagNotDefined = 2,
    /// Nothing stands behind the `=`.
    NoValue = 4,
    /// None of the values that the field may have.
    ValueIncorrect = 5,
    /// Not written as the field's type is.
    FormatIncorrect = 6,
    /// The comp ids are not this session's.
    CompIdProblem = 9,
    /// The sending time is too far from now, or before the original one.
    SendingTimeAccuracy = 10,
    /// The standard has no such message type.
    InvalidMsgType = 11,
    /// A field stands twice.
    TagAppearsTwice = 13,
    /// Header, body and trailer do not follow each other.
    TagOutOfOrder = 14,
    /// An entry of a group does not begin with its first field.
    GroupOutOfOrder = 15,
    /// A group has more or fewer entries than its count says.
    GroupCountIncorrect = 16,
}

impl FixRejectReason {
    /// The value of tag 373; FIX 4.2 has none above 11.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The text of tag 58.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::InvalidTag => "Invalid tag number",
            Self::RequiredTagMissing => "Required tag missing",
            Self::TagNotDefined => "Tag not defined for this message type",
            Self::NoValue => "Tag specified without a value",
            Self::ValueIncorrect => "Value is incorrect (out of range) for this tag",
            Self::FormatIncorrect => "Incorrect data format for value",
            Self::CompIdProblem => "CompID problem",
            Self::SendingTimeAccuracy => "SendingTime accuracy problem",
            Self::InvalidMsgType => "Invalid MsgType",
            Self::TagAppearsTwice => "Tag appears more than once",
            Self::TagOutOfOrder => "Tag specified out of required order",
            Self::GroupOutOfOrder => "Repeating group fields out of order",
            Self::GroupCountIncorrect => "Incorrect NumInGroup count for repeating group",
        }
    }
}

/// The first thing that is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixFault {
    /// What is wrong.
    pub reason: FixRejectReason,
    /// With which field, as far as it is one field's fault.
    pub tag: Option<i32>,
}

impl FixFault {
    pub(crate) const fn of(reason: FixRejectReason, tag: i32) -> Self {
        Self { reason, tag: Some(tag) }
    }

    pub(crate) const fn of_message(reason: FixRejectReason) -> Self {
        Self { reason, tag: None }
    }
}
