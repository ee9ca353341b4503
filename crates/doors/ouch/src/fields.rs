//! What a message is made of: fields of fixed widths, numbers with the highest byte first, and an appendage of tagged values.

/// Reads fields one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.bytes().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_be_bytes)
    }

    /// The appendage, which ends the message. It may be left out altogether.
    pub(crate) fn appendage(self) -> Option<Appendage<'a>> {
        if self.0.is_empty() {
            return Some(Appendage(&[]));
        }
        let (length, values) = self.0.split_first_chunk()?;
        (usize::from(u16::from_be_bytes(*length)) == values.len()).then_some(Appendage(values))
    }
}

/// Tagged values: a byte of length that counts the tag, the tag, the value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appendage<'a>(&'a [u8]);

impl<'a> Iterator for Appendage<'a> {
    /// A tag and its value; `None` if the rest cannot be read.
    type Item = Option<(u8, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.0.split_first()?;
        let Some((value, after)) = rest.split_at_checked(usize::from(*length)) else {
            self.0 = &[];
            return Some(None);
        };
        self.0 = after;
        Some(value.split_first().map(|(tag, value)| (*tag, value)))
    }
}

/// The longest message is a U, of 127 bytes.
const MESSAGE_MAX: usize = 160;

/// A message that is being written: its fields, then its appendage. It lies where it is made; nothing is allocated.
#[derive(Debug)]
pub(crate) struct Writer {
    bytes: [u8; MESSAGE_MAX],
    len: usize,
    /// Where the appendage begins, with its length; 0 as long as there is none.
    appendage_at: usize,
}

impl Writer {
    /// Begins a message with what all of them begin with: its type and a time, which the stream does not tell.
    pub(crate) fn begin(kind: u8) -> Self {
        let mut writer = Self { bytes: [0; MESSAGE_MAX], len: 0, appendage_at: 0 };
        writer.byte(kind).u64(0);
        writer
    }

    /// What is written so far: a whole message.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Its type.
    pub(crate) fn kind(&self) -> u8 {
        self.bytes[0]
    }

    pub(crate) fn byte(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.bytes[self.len..self.len + value.len()].copy_from_slice(value);
        self.len += value.len();
        self
    }

    /// Bytes of text that is left blank.
    pub(crate) fn blank<const WIDTH: usize>(&mut self) -> &mut Self {
        self.bytes(&[b' '; WIDTH])
    }

    /// Appends a value to the appendage; no field follows.
    pub(crate) fn tag(&mut self, tag: u8, value: &[u8]) -> &mut Self {
        if self.appendage_at == 0 {
            self.appendage_at = self.len;
            self.bytes(&[0; 2]);
        }
        let length = u8::try_from(value.len() + 1).expect("values are short");
        self.bytes(&[length, tag]).bytes(value);
        let appended = u16::try_from(self.len - self.appendage_at - 2).expect("a message is short");
        self.bytes[self.appendage_at..][..2].copy_from_slice(&appended.to_be_bytes());
        self
    }
}
