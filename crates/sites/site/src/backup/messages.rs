//! What a site hands out for backups, as bodies of replies, in the layouts of [`pares_wice::codec`].
//!
//! | of a copy | |
//! |---|---|
//! | 1 begun | copy `u64`, identity, what the store says of itself |
//! | 2 piece | copy `u64`, number `u32`, whether it is the last, items |
//!
//! | of versions | |
//! |---|---|
//! | identity, the store's version `u64`, the digest of the version asked behind (if it is known), versions (none at all if they are not kept any more) | of each: entry, digest (if it is known), age in milliseconds `u64` |

use std::sync::Arc;

use pares_wice::{Entry, Stored, Version};

use crate::place::standing::Piece;

/// What is handed out of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Handed {
    /// It begins.
    Begun(Begun),
    /// Its next piece.
    Piece(Piece),
}

/// What a copy is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) copy: u64,
    pub(crate) identity: String,
    pub(crate) stored: Stored,
}

/// Versions behind one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HandedVersions {
    pub(crate) identity: String,
    /// The store's version: there are no more.
    pub(crate) stored: Version,
    /// The digest of the version that they follow.
    pub(crate) before: Option<u64>,
    /// None if the first of them is kept no more.
    pub(crate) versions: Option<Vec<HandedVersion>>,
}

/// A version, and what the site knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HandedVersion {
    pub(crate) entry: Arc<Entry>,
    pub(crate) digest: Option<u64>,
    pub(crate) age_ms: u64,
}

pares_wice::kinds! { Handed, "part of a copy" { 1 => Begun(begun), 2 => Piece(piece) } }
pares_wice::fields! {
    Begun { copy, identity, stored }
    HandedVersions { identity, stored, before, versions }
    HandedVersion { entry, digest, age_ms }
}

#[cfg(test)]
mod tests {
    use pares_wice::codec::Coded;
    use pares_wice::{Body, Era, Key, TransactionId, Value, Write};

    use super::*;

    #[test]
    fn handed_out_backup_data_read_back_exactly() {
        let stored = Stored { version: Version(4), position: 5, era: Era::default(), digest: 6 };
        let items = vec![(Key::from("a"), Value::from("x"))];
        let all = [
            Handed::Begun(Begun { copy: 3, identity: "bank".into(), stored }),
            Handed::Piece(Piece { copy: 3, number: 1, items, is_last: true }),
        ];
        for handed in all {
            check(&handed);
        }
        let id = TransactionId { client: 1, sequence: 2 };
        let body = Body::Update { id, attempt: 3, writes: vec![Write::add("n", 5)] };
        let entry = Arc::new(Entry { version: Version(5), era: Era::default(), body });
        let versions = Some(vec![HandedVersion { entry, digest: Some(9), age_ms: 70 }]);
        let handed = HandedVersions { identity: "bank".into(), stored: Version(5), before: None, versions };
        check(&handed);
        check(&HandedVersions { versions: None, ..handed });
    }

    fn check<T: Coded + PartialEq + core::fmt::Debug>(handed: &T) {
        let bytes = handed.to_bytes();
        assert_eq!(T::from_bytes(&bytes).as_ref(), Ok(handed));
        (0..bytes.len())
            .for_each(|len| assert!(T::from_bytes(&bytes[..len]).is_err(), "{len} of {handed:?}"));
    }
}
