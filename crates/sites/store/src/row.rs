//! An item as it stands in a file: sealed, so that a changed bit is never taken for a value.
//!
//! A site computes with what it reads and sends the result to all sites, and certification compares versions, not what was
//! read. So one changed value would soon be at all sites. Pages have checksums too ([`crate::checked`]), for what lies on the disk;
//! these hold from the moment an item is written to the moment it is read, whatever lies between.
//!
//! ```text
//!   0     4         12
//!   | crc | version | value ...      crc32c of version, key and value
//! ```

use pares_wice::{Key, Value, Version};

use crate::error::StoreError;

const CRC_BYTES: usize = 4;

/// Writes into `row` what stands for `value` under `key`; `version` is that of the batch that writes it.
pub(crate) fn seal(row: &mut Vec<u8>, key: &[u8], value: &[u8], version: Version) {
    let version = version.0.to_le_bytes();
    row.clear();
    row.extend(crc(&version, key, value).to_le_bytes());
    row.extend(version);
    row.extend(value);
}

/// The value that was sealed under `key`, in a store that holds versions up to `newest`.
pub(crate) fn open(key: &[u8], row: &[u8], newest: Version) -> Result<Value, StoreError> {
    let parts = row.split_first_chunk::<CRC_BYTES>();
    let parts = parts.and_then(|(crc, rest)| Some((crc, rest.split_first_chunk::<8>()?)));
    let (sealed, (version, value)) = parts.ok_or_else(|| damaged(key, "is too short"))?;
    if crc(version, key, value) != u32::from_le_bytes(*sealed) {
        return Err(damaged(key, "has changed on the disk"));
    }
    if Version(u64::from_le_bytes(*version)) > newest {
        return Err(damaged(key, "is newer than the store"));
    }
    Value::from_encoded(value).ok_or_else(|| damaged(key, "is of no kind that is known"))
}

fn crc(version: &[u8; 8], key: &[u8], value: &[u8]) -> u32 {
    let crc = crc32c::crc32c(version);
    // With its length, so that a byte of the key is never taken for one of the value.
    let crc = crc32c::crc32c_append(crc, &(key.len() as u64).to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(crc, key), value)
}

fn damaged(key: &[u8], how: &str) -> StoreError {
    StoreError::Damaged(format!("item {:?} {how}", Key::new(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"i/alice";

    fn sealed() -> Vec<u8> {
        let mut row = Vec::new();
        seal(&mut row, KEY, Value::from("1000").encoded(), Version(3));
        row
    }

    #[test]
    fn a_row_is_read_as_it_was_sealed() {
        assert_eq!(open(KEY, &sealed(), Version(3)).unwrap(), Value::from("1000"));
    }

    #[test]
    fn a_row_with_a_changed_bit_is_no_value() {
        for bit in 0..sealed().len() * 8 {
            let mut row = sealed();
            row[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(open(KEY, &row, Version(u64::MAX)), Err(StoreError::Damaged(_))), "bit {bit}");
        }
    }

    #[test]
    fn a_row_belongs_to_its_key_and_to_a_store_that_has_its_version() {
        for (key, row, newest) in [
            (&b"i/alicf"[..], &sealed()[..], Version(3)),
            (&b"i/alice1"[..], &sealed(), Version(3)),
            (KEY, &sealed()[..11], Version(3)),
            (KEY, &[], Version(3)),
            (KEY, &sealed(), Version(2)),
        ] {
            assert!(matches!(open(key, row, newest), Err(StoreError::Damaged(_))), "{key:?}");
        }
    }
}
