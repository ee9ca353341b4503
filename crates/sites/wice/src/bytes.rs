//! Bytes of items' names and values.
//!
//! Behind a pointer each name costs an allocation, and each comparison in a map a look at memory that is seldom near. Most names and values
//! are short, and short ones lie in place.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// So many lie in place: with their number and the kind, 32 bytes.
const IN_PLACE_MAX: usize = 30;

/// Any number of bytes, cheap to clone, ordered bytewise.
#[derive(Clone)]
pub(crate) enum Bytes {
    InPlace { len: u8, bytes: [u8; IN_PLACE_MAX] },
    Shared(Arc<[u8]>),
}

impl Bytes {
    /// `head` and behind it `rest`.
    pub(crate) fn joined(head: &[u8], rest: &[u8]) -> Self {
        let len = head.len() + rest.len();
        if len > IN_PLACE_MAX {
            return Self::Shared([head, rest].concat().into());
        }
        let mut bytes = [0; IN_PLACE_MAX];
        bytes[..head.len()].copy_from_slice(head);
        bytes[head.len()..len].copy_from_slice(rest);
        Self::InPlace { len: len as u8, bytes }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::InPlace { len, bytes } => &bytes[..usize::from(*len)],
            Self::Shared(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self::joined(&[], bytes)
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Bytes {}

impl PartialOrd for Bytes {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bytes {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_wherever_they_lie() {
        assert_eq!(size_of::<Bytes>(), 32);
        let long: Vec<u8> = (0..80).collect();
        for len in 0..long.len() {
            for cut in 0..=len {
                let bytes = Bytes::joined(&long[..cut], &long[cut..len]);
                assert_eq!(bytes.as_slice(), &long[..len]);
                assert!(bytes == Bytes::Shared(long[..len].into()));
                assert!(bytes < Bytes::from(&long[..=len]) && bytes < Bytes::from(&[99][..]));
            }
        }
    }
}
