//! Messages of the files: made whole, and compared with what came.

use pares_fix::time::read_stamp;

const SOH: u8 = 1;

/// Adds length and sum where a file's message has none; what it has stays, right or wrong.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let Some(end) = message.iter().position(|byte| *byte == SOH).filter(|_| message.starts_with(b"8="))
    else {
        return message.to_vec();
    };
    let (head, rest) = message.split_at(end + 1);
    let (rest, trailer) = rest.split_at(trailer_at(rest).unwrap_or(rest.len()));
    let mut framed = head.to_vec();
    let has_length = rest.starts_with(b"9=") || rest.windows(3).any(|window| window == b"\x019=");
    if !has_length {
        framed.extend_from_slice(format!("9={}\x01", rest.len()).as_bytes());
    }
    framed.extend_from_slice(rest);
    if trailer.is_empty() {
        framed.extend_from_slice(&sum(&framed));
    } else {
        framed.extend_from_slice(trailer);
    }
    framed
}

/// Where the last field begins, if it is the sum.
fn trailer_at(rest: &[u8]) -> Option<usize> {
    let inner = &rest[..rest.len() - usize::from(rest.ends_with(&[SOH]))];
    let begin = inner.iter().rposition(|byte| *byte == SOH)? + 1;
    rest[begin..].starts_with(b"10=").then_some(begin)
}

fn sum(bytes: &[u8]) -> Vec<u8> {
    let sum = bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    format!("10={sum:03}\x01").into_bytes()
}

/// The same tags in the same order with equal values. Times need only be times; length and sum must be right for what came.
pub(crate) fn compare(expected: &[u8], came: &[u8]) -> Result<(), String> {
    let differ =
        |what: &str| Err(format!("{what}\n  expected {}\n  came     {}", readable(expected), readable(came)));
    let (wanted, found) = (fields(expected), fields(came));
    if wanted.len() != found.len() {
        return differ("another number of fields");
    }
    for ((tag, value), (came_tag, came_value)) in wanted.iter().zip(&found) {
        let is_equal = match *tag {
            _ if tag != came_tag => false,
            b"9" => *came_value == length_of(came).to_string().as_bytes(),
            b"10" => came.ends_with(&sum(&came[..came.len() - 7])),
            b"42" | b"52" | b"60" | b"122" => read_stamp(came_value).is_some(),
            _ => value == came_value,
        };
        if !is_equal {
            return differ(&format!("field {}", readable(tag)));
        }
    }
    Ok(())
}

/// Bytes between the length and the sum.
fn length_of(message: &[u8]) -> usize {
    let mut ends = message.iter().enumerate().filter(|(_, byte)| **byte == SOH).map(|(at, _)| at);
    let body = ends.nth(1).unwrap() + 1;
    message.len() - 7 - body
}

fn fields(message: &[u8]) -> Vec<(&[u8], &[u8])> {
    let fields = message.split(|byte| *byte == SOH).filter(|field| !field.is_empty());
    fields
        .map(|field| field.split_at(field.iter().position(|byte| *byte == b'=').unwrap_or(0)))
        .map(|(tag, value)| (tag, value.get(1..).unwrap_or_default()))
        .collect()
}

/// A message as people read it.
pub(crate) fn readable(message: &[u8]) -> String {
    String::from_utf8_lossy(message).replace('\x01', "|")
}
