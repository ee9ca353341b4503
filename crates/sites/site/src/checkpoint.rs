//! Where a site's log begins, and what a site gets that lacks what lies before.
//!
//! A log that is kept whole grows for ever, in memory too. But all that its beginning says of items is in the store, once that is on the disk; what
//! is left of it is small: the version, the promise and the eras it came to, a [`Base`]. So now and then a site notes the base at some entry, waits until the
//! store durably holds that version, writes the base to a file, and lets the entries before go, those since the last base but one excepted: for
//! members that are a little behind. Who is further behind gets a copy (see [`crate::place`]). A site that was killed comes to bases on its way through the log which the
//! store holds already: they are written too, or one that is killed again and again would read more each time.
//!
//! ```text
//!   base      | form u32 | crc u32 | index u64 | base |    the file `base`, replaced whole; crc32c of what follows it
//! ```

use pares_wice::codec::Coded;
use pares_wice::{Base, Version};

use crate::error::ProcessError;
use crate::place::{self, BASE, note};
use crate::world::Notes;

/// The form of that note. It changes when an older release could no longer read it; those before 2 had no number.
const FORM: u32 = 3;

/// A base, and the place in the log behind which it stands.
pub(crate) type Placed = (u64, Base);

/// The bases of a site: one is being waited for, one is on the disk.
pub(crate) struct Bases {
    /// Bytes handed out by the log between two bases.
    every_bytes: u64,
    /// Bytes since the last one was noted.
    bytes: u64,
    noted: Option<Placed>,
    /// Up to here the store holds everything durably.
    durable: Version,
    /// The last one on the disk. The first is written when the site gets its place.
    pub(crate) written: Placed,
}

impl Bases {
    /// Those of the site whose notes these are, which has its place.
    pub(crate) fn open(notes: &impl Notes, every_bytes: u64) -> Result<Self, ProcessError> {
        let written = opened(&note(notes, BASE)?.ok_or(ProcessError::Note(BASE))?)?;
        Ok(Self { every_bytes, bytes: 0, noted: None, durable: Version(0), written })
    }

    /// The log has handed out an entry of so many bytes at `index`, and `base` is what it has come to.
    pub(crate) fn handed_out(&mut self, index: u64, bytes: usize, base: impl FnOnce() -> Base) {
        assert!(index > self.written.0, "the log is handed out from behind the last base on");
        let is_behind_noted = self.noted.as_ref().is_none_or(|(noted, _)| index > *noted);
        assert!(is_behind_noted, "the log is handed out in its order");
        self.bytes += bytes as u64;
        if self.bytes >= self.every_bytes && self.noted.is_none() {
            self.bytes = 0;
            self.noted = Some((index, base()));
        }
    }

    /// Whether a base waits for the store to hold `version` durably. Until then the log is kept, in memory too, so it must not wait for a time.
    pub(crate) fn wait_for(&self, version: Version) -> bool {
        self.noted.as_ref().is_some_and(|(_, base)| base.delivered <= version)
    }

    /// The store durably holds everything up to `version`.
    pub(crate) fn flushed(&mut self, version: Version) {
        assert!(version >= self.durable, "what the store holds durably only grows");
        self.durable = version;
    }

    /// Writes the base that was noted, once the store durably holds its version. Up to which place the log may be let go of, if that is new.
    pub(crate) fn write(&mut self, notes: &impl Notes) -> Result<Option<u64>, ProcessError> {
        let Some(noted) = self.noted.take_if(|(_, base)| base.delivered <= self.durable) else {
            return Ok(None);
        };
        Self::replace(notes, noted.clone())?;
        let (index, before) = std::mem::replace(&mut self.written, noted);
        assert!(index < self.written.0, "bases follow each other along the log");
        assert!(before.position <= self.written.1.position, "a base counts the entries of the one before it");
        Ok(Some(index))
    }

    /// The log of the site whose notes these are begins there.
    pub(crate) fn replace(notes: &impl Notes, placed: Placed) -> Result<(), ProcessError> {
        let note = place::sealed(FORM, &placed.to_bytes());
        assert!(opened(&note).is_ok_and(|read| read == placed), "a base is read as it was written");
        place::write_bytes(notes, BASE, &note)
    }
}

/// A promise or an era that has changed would break what the site has told others.
fn opened(note: &[u8]) -> Result<Placed, ProcessError> {
    Ok(Placed::from_bytes(place::opened(note, BASE, FORM)?)?)
}

#[cfg(test)]
mod tests {
    use pares_wice::{ClusterId, ClusterSet, Configuration};

    use super::*;
    use crate::testing::Machine;

    fn base(delivered: u64) -> Base {
        let first = Configuration::first(ClusterSet::default().with(ClusterId(0)), ClusterId(0));
        Base { delivered: Version(delivered), ..Base::first(first) }
    }

    #[test]
    fn base_counts_once_stored_and_frees_older_logs() {
        let notes = Machine::default();
        assert!(matches!(Bases::open(&notes, 100), Err(ProcessError::Note(BASE))), "it is gone");
        Bases::replace(&notes, (0, base(0))).unwrap();
        let mut bases = Bases::open(&notes, 100).unwrap();
        bases.handed_out(7, 100, || base(10));
        assert!(bases.wait_for(Version(10)) && !bases.wait_for(Version(9)));
        bases.flushed(Version(9));
        assert_eq!(bases.write(&notes).unwrap(), None);
        bases.flushed(Version(10));
        assert_eq!(bases.write(&notes).unwrap(), Some(0), "the first one lets nothing go");
        assert!(!bases.wait_for(Version(99)));
        bases.flushed(Version(31));
        bases.handed_out(20, 100, || base(30));
        assert_eq!(bases.write(&notes).unwrap(), Some(7), "the store holds it already");
        assert_eq!(Bases::open(&notes, 100).unwrap().written, (20, base(30)));
    }

    #[test]
    fn a_base_with_a_changed_bit_is_none() {
        let notes = Machine::default();
        Bases::replace(&notes, (20, base(30))).unwrap();
        let note = notes.read_note(BASE).unwrap().unwrap();
        for bit in 0..note.len() * 8 {
            let mut changed = note.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            notes.write_note(BASE, &changed).unwrap();
            match Bases::open(&notes, 0).err() {
                Some(ProcessError::Form { .. }) if bit < 32 => {}
                Some(ProcessError::Note(BASE)) => {}
                other => panic!("bit {bit}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_base_of_another_release_is_not_called_damaged() {
        let notes = Machine::default();
        let placed = (20u64, base(30)).to_bytes();
        let with_crc = [&crc32c::crc32c(&placed).to_le_bytes()[..], &placed].concat();
        for note in [placed, with_crc] {
            notes.write_note(BASE, &note).unwrap();
            let refused = Bases::open(&notes, 0).err().unwrap();
            assert!(refused.to_string().contains("start the release that wrote it"), "{refused}");
            assert!(refused.is_damage());
        }
    }
}
