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

/// Writes a message: its fields, then its appendage.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    fields: Vec<u8>,
    appendage: Vec<u8>,
}

impl Writer {
    /// Begins a message with what all of them begin with: its type and a time, which the stream does not tell.
    pub(crate) fn begin(kind: u8) -> Self {
        let mut writer = Self::default();
        writer.byte(kind).u64(0);
        writer
    }

    /// Its type.
    pub(crate) fn kind(&self) -> u8 {
        self.fields[0]
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
        self.fields.extend_from_slice(value);
        self
    }

    /// Text, filled up with spaces.
    pub(crate) fn alpha<const WIDTH: usize>(&mut self, text: &str) -> &mut Self {
        let mut field = [b' '; WIDTH];
        field.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
        self.bytes(&field)
    }

    pub(crate) fn tag(&mut self, tag: u8, value: &[u8]) -> &mut Self {
        let length = u8::try_from(value.len() + 1).expect("values are short");
        self.appendage.extend_from_slice(&[length, tag]);
        self.appendage.extend_from_slice(value);
        self
    }

    /// The fields of a message that has no appendage.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.fields)
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let length = u16::try_from(self.appendage.len()).expect("an appendage is short");
        self.bytes(&length.to_be_bytes());
        self.fields.append(&mut self.appendage);
        self.fields
    }
}
