//! What stands beside the items and says which version they are.

use pares_wice::Version;

use crate::error::StoreError;

/// The form of what is stored. It changes when an older release could no longer read it.
pub(crate) const FORM: u32 = 3;

/// Written in the same engine transaction as the items it speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Whether no state transfer is under way.
    pub whole: bool,
    /// The last version applied.
    pub version: Version,
    /// Whatever the site wants to find again with the items, such as its configuration; small.
    pub meta: Vec<u8>,
}

impl Default for Mark {
    fn default() -> Self {
        Self { whole: true, version: Version(0), meta: Vec::new() }
    }
}

/// ```text
///   0      4     8       9         17
///   | form | crc | whole | version | meta ...      crc32c of what follows it
/// ```
const META_AT: usize = 17;

impl Mark {
    /// Itself, if the items it stands with are all there.
    ///
    /// # Errors
    /// [`StoreError::Unfinished`] during a state transfer.
    pub fn readable(self) -> Result<Self, StoreError> {
        if self.whole { Ok(self) } else { Err(StoreError::Unfinished) }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(META_AT + self.meta.len());
        bytes.extend(FORM.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.push(u8::from(self.whole));
        bytes.extend(self.version.0.to_le_bytes());
        bytes.extend(&self.meta);
        let crc = crc32c::crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let short = || StoreError::Damaged(format!("its mark has {} bytes", bytes.len()));
        let (form, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
        check_form(u32::from_le_bytes(*form))?;
        let (crc, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        if crc32c::crc32c(rest) != u32::from_le_bytes(*crc) {
            return Err(StoreError::Damaged("its mark has changed on the disk".into()));
        }
        let (whole, rest) = rest.split_first().ok_or_else(short)?;
        let (version, meta) = rest.split_first_chunk::<8>().ok_or_else(short)?;
        Ok(Self { whole: *whole == 1, version: Version(u64::from_le_bytes(*version)), meta: meta.to_vec() })
    }
}

pub(crate) fn check_form(found: u32) -> Result<(), StoreError> {
    match found {
        FORM => Ok(()),
        found => Err(StoreError::Form { found, known: FORM }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for mark in [Mark::default(), Mark { whole: false, version: Version(1 << 40), meta: vec![1, 2] }] {
            assert_eq!(Mark::decode(&mark.encode()).unwrap(), mark);
        }
    }

    #[test]
    fn a_mark_with_a_changed_bit_is_never_another_mark() {
        let bytes = Mark { whole: true, version: Version(7), meta: vec![1, 2] }.encode();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            Mark::decode(&changed).unwrap_err();
        }
    }

    #[test]
    fn another_form_and_a_cut_mark_are_refused() {
        let mut bytes = Mark::default().encode();
        assert!(matches!(Mark::decode(&bytes[..7]), Err(StoreError::Damaged(_))));
        assert!(matches!(Mark::decode(&bytes[..12]), Err(StoreError::Damaged(_))));
        bytes[0] = 9;
        assert!(matches!(Mark::decode(&bytes), Err(StoreError::Form { found: 9, .. })));
    }
}
