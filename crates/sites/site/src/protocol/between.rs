//! Frames between sites; those about places begin at a higher kind ([`crate::place`]).
//!
//! | | | |
//! |---|---|---|
//! | 1 | a message of the rules | |
//! | 2 | a message of the cluster's log | |
//! | 3 | forward: execute this on so much at least, you are the certifier | id, version `u64`, request |
//! | 4 | forwarded: what became of it, and on which version that rests | id, code `u8`, version `u64`, reply |

use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{TransactionId, Version};

use super::Code;

/// A frame between sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Between<'a> {
    /// A message of the rules.
    Rules(&'a [u8]),
    /// A message of the cluster's log.
    Log(&'a [u8]),
    /// Execute this request, on that version or later: the receiver certifies.
    Forward(TransactionId, Version, &'a [u8]),
    /// What became of a request that was forwarded, and the version on which that rests.
    Forwarded(TransactionId, Code, Version, &'a [u8]),
}

impl<'a> Between<'a> {
    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let body = match *self {
            Self::Rules(body) => {
                bytes.push(1);
                body
            }
            Self::Log(body) => {
                bytes.push(2);
                body
            }
            Self::Forward(id, least, body) => {
                (3u8, (id, least)).encode(&mut bytes);
                body
            }
            Self::Forwarded(id, code, version, body) => {
                ((4u8, id), (code, version)).encode(&mut bytes);
                body
            }
        };
        bytes.extend_from_slice(body);
        bytes
    }

    /// From its bytes.
    ///
    /// # Errors
    /// If they are none.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut from = bytes;
        match u8::decode(&mut from)? {
            1 => Ok(Self::Rules(from)),
            2 => Ok(Self::Log(from)),
            3 => Ok(Self::Forward(Coded::decode(&mut from)?, Coded::decode(&mut from)?, from)),
            4 => {
                let (id, (code, version)) = Coded::decode(&mut from)?;
                Ok(Self::Forwarded(id, code, version, from))
            }
            other => Err(DecodeError::Kind(other, "frame")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_between_sites_are_read_as_they_were_written() {
        let id = TransactionId { client: 1, sequence: 2 };
        let frames = [
            Between::Rules(b"r"),
            Between::Log(b""),
            Between::Forward(id, Version(3), b"x"),
            Between::Forwarded(id, Code::Done, Version(4), b"y"),
        ];
        for frame in frames {
            assert_eq!(Between::from_bytes(&frame.to_bytes()), Ok(frame));
        }
    }
}
