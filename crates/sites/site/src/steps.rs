//! Requests to [`Items`](crate::items::Items) that carry any name and any value: what a program says that has no use for text.
//!
//! The text of a request ends a value at a semicolon or at its end, and takes `5` for a counter. So a program that put what it was given could not read it again.
//! Here names and values have lengths and forms of their own, in the layouts of [`pares_wice::codec`]:
//!
//! ```text
//!   0 u8, count u32, for each: kind u8, name, and
//!     1 expect   value, or that there is none     refused unless it is so; held, as `expect` in text
//!     2 get                                       the reply has what is there
//!     3 put      value
//!     4 delete
//!     5 add      i64
//!   reply: count u32, for each get: value, or that there is none
//! ```
//! All of them are one transaction, in this order. Only the first two can be read.

use pares_store::{Reads, Work};
use pares_wice::Value;
use pares_wice::codec::{Coded, DecodeError};

use crate::application::ApplicationError;
use crate::items::{expected, named, refuse, told};
use crate::protocol::REPLY_BYTES_MAX;
use crate::view::View;

/// What no text begins with.
const STEPS: u8 = 0;

/// Something to be done with an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemStep {
    pub(crate) name: String,
    pub(crate) what: StepKind,
}

/// What.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepKind {
    Expect(Option<Value>),
    Get,
    Put(Value),
    Delete,
    Add(i64),
}

impl Coded for ItemStep {
    fn encode(&self, to: &mut Vec<u8>) {
        let kind: u8 = match self.what {
            StepKind::Expect(_) => 1,
            StepKind::Get => 2,
            StepKind::Put(_) => 3,
            StepKind::Delete => 4,
            StepKind::Add(_) => 5,
        };
        (kind, self.name.as_bytes().to_vec()).encode(to);
        match &self.what {
            StepKind::Expect(value) => value.encode(to),
            StepKind::Put(value) => value.encode(to),
            StepKind::Add(amount) => amount.encode(to),
            StepKind::Get | StepKind::Delete => {}
        }
    }

    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let (kind, name) = <(u8, Vec<u8>)>::decode(from)?;
        let name = String::from_utf8(name).map_err(|_| DecodeError::Kind(kind, "step with a name"))?;
        let what = match kind {
            1 => StepKind::Expect(Coded::decode(from)?),
            2 => StepKind::Get,
            3 => StepKind::Put(Coded::decode(from)?),
            4 => StepKind::Delete,
            5 => StepKind::Add(Coded::decode(from)?),
            other => return Err(DecodeError::Kind(other, "step")),
        };
        Ok(Self { name, what })
    }
}

/// The request for these steps.
pub(crate) fn written(steps: &[ItemStep]) -> Vec<u8> {
    let mut request = vec![STEPS];
    encode_all(steps, &mut request);
    request
}

/// As a list of them is encoded.
fn encode_all<T: Coded>(parts: &[T], to: &mut Vec<u8>) {
    u32::try_from(parts.len()).expect("as many as a frame holds").encode(to);
    parts.iter().for_each(|part| part.encode(to));
}

/// The steps of a request, if it is one of steps.
pub(crate) fn read(request: &[u8]) -> Option<Result<Vec<ItemStep>, ApplicationError>> {
    let mut rest = request.strip_prefix(&[STEPS])?;
    let steps = Vec::<ItemStep>::decode(&mut rest);
    Some(match steps {
        Ok(steps) if rest.is_empty() => Ok(steps),
        Ok(_) => refuse("invalid steps: data follow them"),
        Err(error) => refuse(format!("invalid steps: {error}")),
    })
}

/// What a reply to steps has.
pub(crate) fn found(mut reply: &[u8]) -> Result<Vec<Option<Value>>, DecodeError> {
    Coded::decode(&mut reply)
}

/// Carries them out.
pub(crate) fn execute(steps: &[ItemStep], work: &mut Work<View<'_>>) -> Result<Vec<u8>, ApplicationError> {
    let mut found = Vec::new();
    for ItemStep { name, what } in steps {
        let key = named(name);
        match what {
            StepKind::Expect(value) => expected(name, work.hold(&key)?.as_ref(), value.as_ref())?,
            StepKind::Get => found.push(work.get(&key)?),
            StepKind::Put(value) => work.put(&key, value.clone()),
            StepKind::Delete => work.delete(&key),
            StepKind::Add(amount) => {
                work.add(&key, *amount).map_err(|error| told(error, &format!("item {name}")))?;
            }
        }
    }
    reply(&found)
}

/// Answers those that change nothing.
pub(crate) fn look(steps: &[ItemStep], items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
    let mut found = Vec::new();
    for ItemStep { name, what } in steps {
        let value = items.get(&named(name))?;
        match what {
            StepKind::Expect(expect) => expected(name, value.as_ref(), expect.as_ref())?,
            StepKind::Get => found.push(value),
            _ => return refuse("a read cannot change data: execute this request instead"),
        }
    }
    reply(&found)
}

fn reply(found: &[Option<Value>]) -> Result<Vec<u8>, ApplicationError> {
    let mut reply = Vec::new();
    encode_all(found, &mut reply);
    if reply.len() > REPLY_BYTES_MAX {
        return refuse("the reply would be too long: ask for less together");
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use pares_store::{Memory, Store};

    use super::*;

    fn step(name: &str, what: StepKind) -> ItemStep {
        ItemStep { name: name.into(), what }
    }

    #[test]
    fn steps_are_read_as_they_were_written() {
        let name = "a b;\n\"c";
        let steps = vec![
            step(name, StepKind::Expect(Some(Value::from("5")))),
            step("", StepKind::Expect(None)),
            step("n", StepKind::Get),
            step("n", StepKind::Put(Value::counter(-5))),
            step("d", StepKind::Delete),
            step("n", StepKind::Add(-3)),
        ];
        let request = written(&steps);
        assert_eq!(read(&request).unwrap().unwrap(), steps);
        for wrong in
            [&request[..request.len() - 1], &[&request[..], b"x"].concat(), b"\0", b"\0\x01\0\0\0\x09"]
        {
            assert!(read(wrong).unwrap().is_err());
        }
        assert!(read(b"get a").is_none() && read(b"").is_none());
    }

    #[test]
    fn a_read_of_steps_answers_gets_and_changes_nothing() {
        let items = Memory::default().snapshot().unwrap();
        let gets = [step("a", StepKind::Expect(None)), step("b", StepKind::Get)];
        assert_eq!(found(&look(&gets, &*items).unwrap()), Ok(vec![None]));
        let differs = look(&[step("a", StepKind::Expect(Some(Value::from("x"))))], &*items).unwrap_err();
        assert_eq!(differs.to_string(), "changed: there is no item a");
        assert!(look(&[step("a", StepKind::Delete)], &*items).is_err());
    }
}
