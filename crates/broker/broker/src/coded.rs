//! Texts and digests as bytes, beside the layouts of [`pares_wice::codec`].

use pares_wice::codec::{Coded, DecodeError};

/// Longest text in a request, bytes.
const TEXT_BYTES_MAX: usize = 256;

/// Visible ASCII and blanks: the log's XML can show all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Text(pub(crate) String);

/// Appends a text as [`Text`] does.
pub(crate) fn encode_text(text: &str, to: &mut Vec<u8>) {
    u32::try_from(text.len()).expect("texts are short").encode(to);
    to.extend_from_slice(text.as_bytes());
}

/// SHA-256 of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Coded for Digest {
    fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.0);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let (digest, rest) = from.split_first_chunk().ok_or(DecodeError::Length)?;
        *from = rest;
        Ok(Self(*digest))
    }
}

impl Coded for Text {
    fn encode(&self, to: &mut Vec<u8>) {
        encode_text(&self.0, to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let length = u32::decode(from)? as usize;
        let (bytes, rest) = from.split_at_checked(length).ok_or(DecodeError::Length)?;
        if length > TEXT_BYTES_MAX {
            return Err(DecodeError::Length);
        }
        if let Some(other) = bytes.iter().find(|byte| !matches!(byte, b' '..=b'~')) {
            return Err(DecodeError::Kind(*other, "letter"));
        }
        *from = rest;
        Ok(Self(bytes.iter().copied().map(char::from).collect()))
    }
}
