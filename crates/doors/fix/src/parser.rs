//! Fields of a message, found and checked in one pass.
//!
//! A tree of fields costs an allocation for each; a second pass for the dictionary reads everything again. Here each field is read once: its tag, its place
//! in the dictionary, its value up to the end while it is checked, and whether it may stand there. What is kept is a row of
//! places in the bytes, in a list that the parser uses again for the next message.
//!
//! A message with a fault is read to its end all the same, since its number counts; the first fault is reported. So does the number count of a message that
//! stops being fields behind it: if that were ignored, it would be asked for without end.

use crate::dictionary::{DEPTH_MAX, FieldSet, FixDictionary, Form, GroupRule, MessageRule, Section, tag};
use crate::fault::{FixFault, FixRejectReason};
use crate::framing::{FixFrame, MESSAGE_BYTES_MAX};
use crate::message::FixMessage;
use crate::{SOH, values};

/// The shortest field: `1=`, a letter, SOH; without the letter it is a fault, but a field.
const FIELD_BYTES_MIN: usize = 3;

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) tag: i32,
    pub(crate) place: u8,
    /// In how many groups.
    pub(crate) depth: u8,
    /// In the body of the frame; below [`MESSAGE_BYTES_MAX`].
    pub(crate) start: u16,
    pub(crate) end: u16,
}

/// Memory for the fields of one message after the other.
#[derive(Debug)]
pub struct FixParser {
    entries: Vec<Entry>,
    /// The entry of each field that stands outside groups; true for those that were seen.
    slots: [u16; 256],
}

impl Default for FixParser {
    fn default() -> Self {
        Self { entries: Vec::with_capacity(MESSAGE_BYTES_MAX / FIELD_BYTES_MIN), slots: [0; 256] }
    }
}

/// A message whose number cannot be read, or that does not begin with its type: to be ignored, as the standard says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

impl FixParser {
    /// Reads a message and checks all of it.
    ///
    /// # Errors
    /// If it is garbled.
    ///
    /// # Panics
    /// If the frame was not made by [`cut`](crate::framing::cut).
    pub fn parse<'a>(
        &'a mut self,
        dictionary: &'static FixDictionary,
        frame: &FixFrame<'a>,
    ) -> Result<FixMessage<'a>, Unreadable> {
        assert!(frame.body.len() <= MESSAGE_BYTES_MAX && frame.body.ends_with(&[SOH]), "frames are cut");
        self.entries.clear();
        let mut walk = Walk::new(dictionary, frame.body)?;
        while walk.at < walk.body.len() {
            let Some(entry) = walk.field(&self.entries) else {
                walk.stop()?;
                break;
            };
            if entry.depth == 0 && entry.place != 0 && !walk.was_there {
                self.slots[usize::from(entry.place)] = self.entries.len() as u16;
            }
            self.entries.push(entry);
        }
        walk.finish();
        Ok(FixMessage {
            dictionary,
            frame: *frame,
            entries: &self.entries,
            slots: &self.slots,
            seen: walk.seen,
            is_served: walk.message.is_some(),
            fault: walk.fault,
        })
    }
}

/// A group that is being read.
#[derive(Clone, Copy, Debug)]
struct Open {
    rule: &'static GroupRule,
    /// The field that begins an entry.
    first: u8,
    declared: u64,
    entries: u64,
    /// Fields of the present entry.
    seen: FieldSet,
}

struct Walk<'a> {
    dictionary: &'static FixDictionary,
    body: &'a [u8],
    at: usize,
    message: Option<&'static MessageRule>,
    section: Section,
    seen: FieldSet,
    /// Whether the field just read stood in the message before.
    was_there: bool,
    groups: [Option<Open>; DEPTH_MAX],
    depth: usize,
    fault: Option<FixFault>,
}

impl<'a> Walk<'a> {
    fn new(dictionary: &'static FixDictionary, body: &'a [u8]) -> Result<Self, Unreadable> {
        let value = body.strip_prefix(b"35=").ok_or(Unreadable)?;
        let msg_type =
            value.split(|byte| *byte == SOH).next().filter(|kind| !kind.is_empty()).ok_or(Unreadable)?;
        let message = dictionary.message(msg_type);
        let is_known = message.is_some() || dictionary.is_type(msg_type);
        Ok(Self {
            dictionary,
            body,
            at: 0,
            message,
            section: Section::Header,
            seen: dictionary.framed(),
            was_there: false,
            groups: [None; DEPTH_MAX],
            depth: 0,
            fault: (!is_known).then_some(FixFault::of_message(FixRejectReason::InvalidMsgType)),
        })
    }

    /// Reads the next field, behind those before; `None` if no tag is there.
    #[inline]
    fn field(&mut self, before: &[Entry]) -> Option<Entry> {
        let (tag, start) = self.tag()?;
        let place = self.dictionary.place(tag);
        let rule = self.dictionary.field(place);
        let rest = &self.body[start..];
        let (length, wrong) = match place {
            0 => self.unknown(tag, rest, before.last()),
            _ if rule.form == Form::Data => self.data(tag, rest, before.last()),
            _ => values::check(rule, rest),
        };
        let misplaced = if place == 0 { None } else { self.misplaced(place) };
        // A value that is not there is the field's first fault, wherever it stands.
        let reason = if wrong == Some(FixRejectReason::NoValue) { wrong } else { misplaced.or(wrong) };
        if let Some(reason) = reason {
            self.note(reason, tag);
        }
        let (depth, end) = (self.depth, start + length);
        self.at = end + 1;
        if rule.group != 0 && wrong.is_none() {
            self.open(rule.group, &self.body[start..end]);
        }
        Some(Entry { tag, place, depth: depth as u8, start: start as u16, end: end as u16 })
    }

    /// The rest of the body is not TAG=VALUE.
    #[cold]
    fn stop(&mut self) -> Result<(), Unreadable> {
        if !self.seen.has(self.dictionary.place(i32::from(tag::MSG_SEQ_NUM))) {
            return Err(Unreadable);
        }
        self.fault.get_or_insert(FixFault::of_message(FixRejectReason::InvalidTag));
        Ok(())
    }

    /// Reads `TAG=`: the tag, and where its value begins.
    #[inline]
    fn tag(&self) -> Option<(i32, usize)> {
        let digit = |byte: u8| byte.wrapping_sub(b'0');
        let [a, b, c, d, ..] = self.body[self.at..] else { return self.long_tag() };
        let [first, second, third] = [digit(a), digit(b), digit(c)];
        if first < 10 && b == b'=' {
            return Some((i32::from(first), self.at + 2));
        }
        if first < 10 && second < 10 {
            let two = i32::from(first) * 10 + i32::from(second);
            if c == b'=' {
                return Some((two, self.at + 3));
            }
            if third < 10 && d == b'=' {
                return Some((two * 10 + i32::from(third), self.at + 4));
            }
        }
        self.long_tag()
    }

    /// The same for a tag of any length. One may be negative; that is a fault and not garbage.
    #[cold]
    fn long_tag(&self) -> Option<(i32, usize)> {
        let rest = &self.body[self.at..];
        let sign = usize::from(rest.first() == Some(&b'-'));
        let digits = rest[sign..].iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
        let end = sign + digits;
        if digits == 0 || rest.get(end) != Some(&b'=') {
            return None;
        }
        let tag = rest[sign..end].iter().fold(0, |tag, digit| tag * 10 + i32::from(digit - b'0'));
        Some((if sign == 1 { -tag } else { tag }, self.at + end + 1))
    }

    /// A tag that no served message has. If it is data, its length field says where it ends. A message type that is not served may have it.
    #[cold]
    fn unknown(&self, tag: i32, rest: &[u8], last: Option<&Entry>) -> (usize, Option<FixRejectReason>) {
        let (length, wrong) = match self.dictionary.length_of(tag) {
            Some(_) => self.data(tag, rest, last),
            None => (values::end(rest), (rest[0] == SOH).then_some(FixRejectReason::NoValue)),
        };
        let reason = match wrong {
            _ if !self.dictionary.is_tag(tag) => Some(FixRejectReason::InvalidTag),
            Some(FixRejectReason::NoValue) => wrong,
            _ if self.message.is_some() => Some(FixRejectReason::TagNotDefined),
            wrong => wrong,
        };
        (length, reason)
    }

    /// Data may hold anything: the field before says how long it is.
    fn data(&self, tag: i32, rest: &[u8], last: Option<&Entry>) -> (usize, Option<FixRejectReason>) {
        let said = last.filter(|last| Some(last.tag) == self.dictionary.length_of(tag));
        let said = said.and_then(|last| number(&self.body[usize::from(last.start)..usize::from(last.end)]));
        let length = said.and_then(|length| usize::try_from(length).ok());
        match length.filter(|&length| rest.get(length) == Some(&SOH)) {
            Some(0) => (0, Some(FixRejectReason::NoValue)),
            Some(length) => (length, None),
            None => (values::end(rest), Some(FixRejectReason::FormatIncorrect)),
        }
    }

    /// Whether the field may stand here.
    #[inline]
    fn misplaced(&mut self, place: u8) -> Option<FixRejectReason> {
        self.was_there = false;
        while self.depth > 0 {
            if let Some(found) = self.in_group(place) {
                return found;
            }
            self.close();
        }
        let section = self.dictionary.field(place).section;
        let is_known =
            section != Section::Body || self.message.is_none_or(|message| message.allowed.has(place));
        self.was_there = self.seen.has(place);
        self.seen.add(place);
        let is_behind = section < self.section;
        self.section = self.section.max(section);
        match () {
            () if !is_known => Some(FixRejectReason::TagNotDefined),
            () if self.was_there => Some(FixRejectReason::TagAppearsTwice),
            () if is_behind => Some(FixRejectReason::TagOutOfOrder),
            () => None,
        }
    }

    /// Whether the innermost group has the field, and what is wrong with it there; `None` if the group ends here.
    fn in_group(&mut self, place: u8) -> Option<Option<FixRejectReason>> {
        let open = self.groups[self.depth - 1].as_mut().expect("open down to its depth");
        if !open.rule.members.has(place) {
            return None;
        }
        if open.entries == 0 && place == open.rule.or {
            open.first = place;
        }
        if place == open.first {
            open.entries += 1;
            open.seen = FieldSet::default();
        }
        let is_twice = open.seen.has(place);
        open.seen.add(place);
        Some(match () {
            () if open.entries == 0 => Some(FixRejectReason::GroupOutOfOrder),
            () if is_twice => Some(FixRejectReason::TagAppearsTwice),
            () => None,
        })
    }

    fn open(&mut self, group: u8, count: &[u8]) {
        let rule = self.dictionary.group(group);
        let declared = number(count).expect("a count was checked");
        let place = self.groups.get_mut(self.depth).expect("dictionaries nest no deeper");
        *place = Some(Open { rule, first: rule.first, declared, entries: 0, seen: FieldSet::default() });
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth -= 1;
        let open = self.groups[self.depth].take().expect("open down to its depth");
        if open.entries != open.declared {
            self.note(
                FixRejectReason::GroupCountIncorrect,
                i32::from(self.dictionary.field(open.rule.count).tag),
            );
        }
    }

    /// What can be said only at the end.
    fn finish(&mut self) {
        while self.depth > 0 {
            self.close();
        }
        let of_message = self.message.map(|message| &message.required);
        let mut lacking = [Some(self.dictionary.required()), of_message].into_iter().flatten();
        if let Some(place) = lacking.find_map(|required| required.first_beside(&self.seen)) {
            self.note(FixRejectReason::RequiredTagMissing, i32::from(self.dictionary.field(place).tag));
        }
    }

    #[cold]
    fn note(&mut self, reason: FixRejectReason, tag: i32) {
        self.fault.get_or_insert(FixFault::of(reason, tag));
    }
}

/// Reads digits, of which there are 18 at most.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.len() <= 18 && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| text.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests;
