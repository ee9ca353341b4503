//! Messages of PostgreSQL's protocol, version 3: a byte that says which, a length, a body (its manual, chapter 55).

use std::io::{self, Read, Write};

/// Longest message that is taken, bytes: what one statement with its values may have.
pub(crate) const MESSAGE_MAX: usize = 64 << 20;
const ENCODING: &str = "only UTF-8 is supported: SET client_encoding = 'UTF8'";

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) tag: u8,
    pub(crate) body: Vec<u8>,
}

impl Message {
    pub(crate) fn new(tag: u8, body: impl Into<Vec<u8>>) -> Self {
        Self { tag, body: body.into() }
    }

    /// What ends a statement well.
    pub(crate) fn complete(tag: &str) -> Self {
        Self::new(b'C', text(tag))
    }

    /// What a client receives when it may continue.
    pub(crate) fn ready(status: u8) -> Self {
        Self::new(b'Z', [status])
    }

    /// An error that ends a statement: SQLSTATE, what is wrong.
    pub(crate) fn error(code: &str, why: &str) -> Self {
        Self::said(b'E', "ERROR", code, why)
    }

    /// The same with another field behind, if there is anything in it.
    pub(crate) fn with(mut self, kind: u8, value: &str) -> Self {
        if !value.is_empty() {
            self.body.pop();
            self.body.extend([&[kind][..], value.as_bytes(), &[0, 0]].concat());
        }
        self
    }

    /// An error that ends the session.
    pub(crate) fn fatal(code: &str, why: &str) -> Self {
        Self::said(b'E', "FATAL", code, why)
    }

    /// Something to know.
    pub(crate) fn warning(code: &str, why: &str) -> Self {
        Self::said(b'N', "WARNING", code, why)
    }

    fn said(tag: u8, severity: &str, code: &str, why: &str) -> Self {
        let fields = [(b'S', severity), (b'V', severity), (b'C', code), (b'M', why)];
        let mut body: Vec<u8> =
            fields.iter().flat_map(|(kind, value)| [&[*kind][..], value.as_bytes(), &[0]].concat()).collect();
        body.push(0);
        Self { tag, body }
    }

    /// Whether it is an error that ends the session.
    pub(crate) fn is_last(&self) -> bool {
        self.tag == b'E' && matches!(self.field(b'V'), "FATAL" | "PANIC")
    }

    /// Name and value, if it reports a parameter of the server.
    pub(crate) fn parameter(&self) -> Option<(&[u8], &[u8])> {
        let mut parts = self.body.split(|byte| *byte == 0);
        if self.tag == b'S' { parts.next().zip(parts.next()) } else { None }
    }

    /// A field of an error.
    pub(crate) fn field(&self, kind: u8) -> &str {
        let mut fields = self.body.split(|byte| *byte == 0);
        let found = fields.find_map(|field| field.split_first().filter(|(first, _)| **first == kind));
        found.and_then(|(_, value)| std::str::from_utf8(value).ok()).unwrap_or_default()
    }

    /// Columns of a row, as text.
    pub(crate) fn columns(&self) -> io::Result<Vec<Option<String>>> {
        let mut rest = &self.body[..];
        let count = u16::from_be_bytes(take(&mut rest)?);
        (0..count)
            .map(|_| match i32::from_be_bytes(take(&mut rest)?) {
                -1 => Ok(None),
                length => {
                    let length = usize::try_from(length).map_err(io::Error::other)?;
                    let (value, more) = rest.split_at_checked(length).ok_or_else(odd)?;
                    rest = more;
                    Ok(Some(String::from_utf8(value.to_vec()).map_err(io::Error::other)?))
                }
            })
            .collect()
    }

    /// Why a client's message cannot be read, as the server says it: by its strings, and by what is behind them where the server may not see it.
    pub(crate) fn fault(&self) -> Option<Self> {
        let odd = |why| Some(Self::error("08P01", why));
        let (strings, behind) = match self.tag {
            b'Q' => (1, Some(0)),
            b'E' => (1, Some(4)),
            b'P' | b'B' => (2, None),
            b'H' | b'S' => (0, Some(0)),
            _ => return None,
        };
        let mut rest = &self.body[..];
        for _ in 0..strings {
            let Some(end) = rest.iter().position(|byte| *byte == 0) else {
                return odd("invalid string in message");
            };
            if std::str::from_utf8(&rest[..end]).is_err() {
                return Some(Self::error("22021", ENCODING));
            }
            rest = &rest[end + 1..];
        }
        if behind.is_some_and(|bytes| rest.len() != bytes) { odd("invalid message format") } else { None }
    }

    /// The strings that it begins with.
    pub(crate) fn strings<const N: usize>(&self) -> io::Result<[&str; N]> {
        let mut parts = self.body.split(|byte| *byte == 0);
        let mut strings = [""; N];
        for string in &mut strings {
            *string = std::str::from_utf8(parts.next().ok_or_else(odd)?).map_err(io::Error::other)?;
        }
        Ok(strings)
    }
}

fn take<const N: usize>(from: &mut &[u8]) -> io::Result<[u8; N]> {
    let (first, rest) = from.split_first_chunk().ok_or_else(odd)?;
    *from = rest;
    Ok(*first)
}

fn odd() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message that is too short")
}

/// A string as it stands in a body.
pub(crate) fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// Reads a message of at most so many bytes.
pub(crate) fn receive(from: &mut impl Read, most: usize) -> io::Result<Message> {
    let mut tag = [0];
    from.read_exact(&mut tag)?;
    Ok(Message { tag: tag[0], body: receive_body(from, most)? })
}

/// Reads what follows a tag; or the first message of a connection, which has none.
pub(crate) fn receive_body(from: &mut impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)?;
    let length = length.checked_sub(4).filter(|length| *length <= most).ok_or_else(odd)?;
    // Memory only for what comes.
    let mut body = Vec::new();
    from.take(length as u64).read_to_end(&mut body)?;
    if body.len() == length { Ok(body) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Writes a message.
pub(crate) fn send(to: &mut impl Write, tag: u8, body: &[u8]) -> io::Result<()> {
    to.write_all(&[tag])?;
    send_body(to, body)
}

/// Writes the first message of a connection.
pub(crate) fn send_body(to: &mut impl Write, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len() + 4).map_err(io::Error::other)?;
    to.write_all(&length.to_be_bytes())?;
    to.write_all(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let message = Message::error("40001", "again").with(b'D', "").with(b'D', "why");
        let mut bytes = Vec::new();
        send(&mut bytes, message.tag, &message.body).unwrap();
        assert_eq!(receive(&mut &bytes[..], MESSAGE_MAX).unwrap(), message);
        receive(&mut &bytes[..], message.body.len() - 1).unwrap_err();
        assert_eq!([b'C', b'M', b'D', b'H'].map(|kind| message.field(kind)), ["40001", "again", "why", ""]);
        for cut in 0..bytes.len() {
            receive(&mut &bytes[..cut], MESSAGE_MAX).unwrap_err();
        }
        receive(&mut &[b'Q', 0xff, 0xff, 0xff, 0xff][..], MESSAGE_MAX).unwrap_err();
        receive(&mut &[b'Q', 0, 0, 0, 3][..], MESSAGE_MAX).unwrap_err();
    }

    #[test]
    fn a_row_has_texts_and_nulls() {
        let row = Message::new(b'D', [&[0, 2, 0, 0, 0, 1][..], b"x", &[0xff; 4]].concat());
        assert_eq!(row.columns().unwrap(), [Some("x".to_owned()), None]);
        for wrong in [&[0, 1][..], &[0, 1, 0, 0, 0, 9, 1], &[0, 1, 0xff, 0xff, 0xff, 0xfe], &[]] {
            Message::new(b'D', wrong).columns().unwrap_err();
        }
    }
}
