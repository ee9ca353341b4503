//! A parsed message: look up a field.

use crate::SOH;
use crate::dictionary::{FieldSet, FixDictionary, Section, tag};
use crate::fault::FixFault;
use crate::framing::FixFrame;
use crate::parser::{Entry, number};
use crate::time::read_stamp;

/// A message, and the first thing that is wrong with it.
#[derive(Clone, Copy, Debug)]
pub struct FixMessage<'a> {
    pub(crate) dictionary: &'static FixDictionary,
    pub(crate) frame: FixFrame<'a>,
    pub(crate) entries: &'a [Entry],
    pub(crate) slots: &'a [u16; 256],
    pub(crate) seen: FieldSet,
    pub(crate) is_served: bool,
    pub(crate) fault: Option<FixFault>,
}

/// A field of a message's body, in the order in which it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyField<'a> {
    /// Its tag.
    pub tag: i32,
    /// Its value.
    pub value: &'a [u8],
    /// Whether it belongs to a repeating group, whose count stands before.
    pub is_in_group: bool,
}

impl<'a> FixMessage<'a> {
    /// The value of a field that stands outside of groups.
    #[must_use]
    pub fn text(&self, tag: u16) -> Option<&'a [u8]> {
        let place = self.dictionary.place(i32::from(tag));
        // The frame's own fields count as seen and have no entry.
        let is_there = place != 0 && self.seen.has(place) && !matches!(tag, 8..=10);
        let entry = self.entries[usize::from(*self.slots.get(usize::from(place)).filter(|_| is_there)?)];
        Some(self.value(&entry))
    }

    /// The same without what has no value.
    #[must_use]
    pub fn text_or_none(&self, tag: u16) -> Option<&'a [u8]> {
        self.text(tag).filter(|value| !value.is_empty())
    }

    /// A number without a sign.
    #[must_use]
    pub fn number(&self, tag: u16) -> Option<u64> {
        number(self.text(tag)?)
    }

    /// Whether a field says `Y`.
    #[must_use]
    pub fn flag(&self, tag: u16) -> bool {
        self.text(tag) == Some(b"Y")
    }

    /// A time, in nanoseconds since 1970.
    #[must_use]
    pub fn time_ns(&self, tag: u16) -> Option<u64> {
        read_stamp(self.text(tag)?)
    }

    /// Its type: `D` is a NewOrderSingle.
    #[must_use]
    pub fn msg_type(&self) -> &'a [u8] {
        self.text(tag::MSG_TYPE).expect("a message begins with its type")
    }

    /// Whether the dictionary has its type. If not, only its header was checked.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.is_served
    }

    /// The first thing that is wrong with it.
    #[must_use]
    pub fn fault(&self) -> Option<FixFault> {
        self.fault
    }

    /// All of it, as it came.
    #[must_use]
    pub fn frame(&self) -> &FixFrame<'a> {
        &self.frame
    }

    /// The fields of its body.
    pub fn body(&self) -> impl Iterator<Item = BodyField<'a>> + '_ {
        let mut section = Section::Header;
        let in_body = move |entry: &&Entry| {
            // A group stands where its count does.
            if entry.depth == 0 {
                section = self.dictionary.field(entry.place).section;
            }
            section == Section::Body
        };
        self.entries.iter().filter(in_body).map(|entry| BodyField {
            tag: entry.tag,
            value: self.value(entry),
            is_in_group: entry.depth > 0,
        })
    }

    /// BeginString and all fields as they were sent, each ended by SOH, but BodyLength, CheckSum and these two: what a proof is of that stands in them.
    #[must_use]
    pub fn proven_form(&self, without: [u16; 2]) -> Vec<u8> {
        let mut form = [b"8=", self.frame.begin_string, &[SOH]].concat();
        let mut from = 0;
        for entry in self.entries {
            let end = usize::from(entry.end) + 1;
            if !without.iter().any(|tag| i32::from(*tag) == entry.tag) {
                form.extend_from_slice(&self.frame.body[from..end]);
            }
            from = end;
        }
        form.extend_from_slice(&self.frame.body[from..]);
        form
    }

    fn value(&self, entry: &Entry) -> &'a [u8] {
        &self.frame.body[usize::from(entry.start)..usize::from(entry.end)]
    }
}
