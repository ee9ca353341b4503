//! The application of the acceptance files: it sends back each order and each security definition that it gets, once.
//!
//! It stands for an exchange behind the session layer: it can make again each message that it sent, and a message that may be a resend
//! (97=Y) is dropped if its ClOrdID was seen. Both memories are bounded; beyond, the oldest is forgotten, and asked for it would be a gap.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pares_fix::SOH;
use pares_fix::dictionary::tag;
use pares_fix::message::{BodyField, FixMessage};

/// Messages that can be made again, and names that are known.
const REMEMBERED_MAX: usize = 10_000;

/// The answer to one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echoed {
    /// Its type.
    pub msg_type: Vec<u8>,
    /// Its fields, behind the header that every message has.
    pub fields: Vec<u8>,
    /// When it was sent, in nanoseconds since 1970.
    pub sent_ns: u64,
}

/// The application of one session.
#[derive(Debug, Default)]
pub struct Echo {
    names: BTreeSet<Vec<u8>>,
    /// The same, the oldest first.
    names_in_order: VecDeque<Vec<u8>>,
    sent: BTreeMap<u64, Echoed>,
}

impl Echo {
    /// Message types that it takes.
    pub const TYPES: &'static [&'static str] = &["D", "d"];

    /// Sequence numbers are reset: no earlier message can be requested.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The answer to a message, if it has one.
    pub fn answer(&mut self, now_ns: u64, message: &FixMessage<'_>) -> Option<Echoed> {
        let is_resend = message.flag(tag::POSS_RESEND);
        if let Some(name) = message.text(tag::CL_ORD_ID) {
            let is_new = self.learn(name);
            if is_resend && !is_new {
                return None;
            }
        }
        let mut fields = Vec::new();
        if is_resend {
            write(&mut fields, i32::from(tag::POSS_RESEND), b"Y");
        }
        in_order(message).iter().flatten().for_each(|field| write(&mut fields, field.tag, field.value));
        Some(Echoed { msg_type: message.msg_type().to_vec(), fields, sent_ns: now_ns })
    }

    /// Remembers a name, in place of the oldest; whether it is new.
    fn learn(&mut self, name: &[u8]) -> bool {
        let is_new = self.names.insert(name.to_vec());
        if is_new {
            self.names_in_order.push_back(name.to_vec());
        }
        if let Some(oldest) = self.names_in_order.pop_front_if(|_| self.names.len() > REMEMBERED_MAX) {
            self.names.remove(&oldest);
        }
        is_new
    }

    /// Remembers the message that was sent under a number.
    pub fn remember(&mut self, number: u64, echoed: Echoed) {
        self.sent.insert(number, echoed);
        if self.sent.len() > REMEMBERED_MAX {
            self.sent.pop_first();
        }
    }

    /// The first message that was sent under a number from `from` to `to`.
    #[must_use]
    pub fn sent(&self, from: u64, to: u64) -> Option<(u64, Echoed)> {
        let (number, echoed) = self.sent.range(from..).next()?;
        (*number <= to).then(|| (*number, echoed.clone()))
    }
}

/// The fields of the body by their tags, each with the entries of its group.
fn in_order<'a>(message: &FixMessage<'a>) -> Vec<Vec<BodyField<'a>>> {
    let mut fields: Vec<Vec<BodyField<'a>>> = Vec::new();
    for field in message.body() {
        match fields.last_mut().filter(|_| field.is_in_group) {
            Some(group) => group.push(field),
            None => fields.push(vec![field]),
        }
    }
    fields.sort_by_key(|field| field[0].tag);
    fields
}

fn write(fields: &mut Vec<u8>, tag: i32, value: &[u8]) {
    fields.extend_from_slice(tag.to_string().as_bytes());
    fields.push(b'=');
    fields.extend_from_slice(value);
    fields.push(SOH);
}
