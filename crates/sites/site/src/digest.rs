//! A running digest of all that a site has applied.
//!
//! Sites that apply the same versions hold the same items, unless memory, a disk, an engine or a build has erred at one of them. Checksums
//! of items do not see that: a wrong sum is stored with a good checksum. Hashing all items now and then costs a walk over the database,
//! and no two sites are at the same version when they do it. So each site chains, over every version it applies, what the version wrote:
//!
//! ```text
//!   digest of a version = chain(digest of the version before, version, writes, for each: key length, key, 0 or 1 + value length, value)
//! ```
//! The values are those that are stored, sums already made; batches, restarts and engines change nothing of it. The digest stands in the
//! store beside the items, so it is lost, replayed and copied with them.
//!
//! Each step is a bijection of the digest before (the finalizer of SplitMix64: Steele, Lea, Flood, *Fast splittable pseudorandom number
//! generators*, 2014): once two sites differ, equal versions never make them equal again. Two CRCs of one polynomial with different seeds
//! would be no more than one of 32 bits. It finds accidents and bugs. It is no protection from a site that lies.

use std::collections::VecDeque;

use pares_wice::{Key, Value, Version};

/// Versions whose digests a site remembers: half a mebibyte.
const VERSIONS_MAX: usize = 65_536;

/// The digest of a version that follows one with the digest `before`.
pub(crate) fn digest(before: u64, version: Version, writes: &[(Key, Option<Value>)]) -> u64 {
    let begun = mixed(mixed(before, version.0), writes.len() as u64);
    writes.iter().fold(begun, |digest, (key, value)| {
        let key = key.as_bytes();
        let digest = chained(mixed(digest, key.len() as u64), key);
        let Some(value) = value else { return mixed(digest, 0) };
        let value = value.as_bytes();
        chained(mixed(digest, 1 + value.len() as u64), value)
    })
}

/// Eight bytes at a time; zeros fill the last. The length was mixed before.
fn chained(digest: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let digest = words.iter().fold(digest, |digest, word| mixed(digest, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    if rest.is_empty() { digest } else { mixed(digest, u64::from_le_bytes(last)) }
}

/// Another for each digest, and another for each word.
fn mixed(digest: u64, word: u64) -> u64 {
    let mut mix = (digest ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15);
    mix = (mix ^ (mix >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mix = (mix ^ (mix >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mix ^ (mix >> 31)
}

/// The digests of the last versions applied.
pub(crate) struct Digests {
    newest: Version,
    digests: VecDeque<u64>,
}

impl Digests {
    /// Those of a store that begins with `version`.
    pub(crate) fn new(version: Version, digest: u64) -> Self {
        Self { newest: version, digests: VecDeque::from([digest]) }
    }

    /// The next versions' digests, in order.
    pub(crate) fn push(&mut self, digests: &[u64]) {
        self.newest.0 += digests.len() as u64;
        self.digests.extend(digests);
        assert!(self.digests.len() as u64 <= self.newest.0 + 1, "digests are of versions that were applied");
        self.digests.drain(..self.digests.len().saturating_sub(VERSIONS_MAX));
    }

    /// The last version applied, and its digest.
    pub(crate) fn newest(&self) -> (Version, u64) {
        (self.newest, *self.digests.back().expect("the newest is always there"))
    }

    /// The digest of a version, if that is remembered.
    pub(crate) fn at(&self, version: Version) -> Option<u64> {
        let back = usize::try_from(self.newest.0.checked_sub(version.0)?).ok()?;
        let place = self.digests.len().checked_sub(1 + back)?;
        self.digests.get(place).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(values: &[(&str, Option<&str>)]) -> Vec<(Key, Option<Value>)> {
        values.iter().map(|(key, value)| (Key::from(*key), value.map(Value::from))).collect()
    }

    /// Sites of two builds compare: a function that changes makes every site differ from every other.
    #[test]
    fn the_digest_is_the_same_in_every_build() {
        let first =
            digest(0, Version(1), &writes(&[("alice", Some("a value of some bytes")), ("bob", None)]));
        let second = digest(first, Version(2), &[(Key::from("n"), Some(Value::counter(-7)))]);
        assert_eq!((first, second), (2_803_455_227_286_946_439, 13_168_457_256_530_873_712));
    }

    #[test]
    fn whatever_differs_gives_another_digest() {
        let all = [
            (1, writes(&[])),
            (2, writes(&[])),
            (1, writes(&[("a", None)])),
            (1, writes(&[("a", Some(""))])),
            (1, writes(&[("a", Some("\0"))])),
            (1, writes(&[("a\0", Some(""))])),
            (1, writes(&[("a", Some("b"))])),
            (1, writes(&[("ab", Some(""))])),
            (1, writes(&[("a", Some("x")), ("b", Some("y"))])),
            (1, writes(&[("b", Some("y")), ("a", Some("x"))])),
            (1, writes(&[("a", Some("12345678"))])),
            (1, writes(&[("a", Some("12345679"))])),
        ];
        let digests = all.iter().map(|(version, writes)| digest(0, Version(*version), writes));
        let distinct: std::collections::BTreeSet<u64> = digests.collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn the_last_versions_are_remembered_and_no_others() {
        let mut digests = Digests::new(Version(10), 100);
        assert_eq!([9, 10, 11].map(|version| digests.at(Version(version))), [None, Some(100), None]);
        digests.push(&[101, 102]);
        assert_eq!(digests.newest(), (Version(12), 102));
        assert_eq!([10, 11, 12].map(|version| digests.at(Version(version))), [100, 101, 102].map(Some));
        digests.push(&vec![7; VERSIONS_MAX - 1]);
        assert_eq!([11, 12, 13].map(|version| digests.at(Version(version))), [None, Some(102), Some(7)]);
        assert_eq!(digests.at(Version(u64::MAX)), None);
    }
}
