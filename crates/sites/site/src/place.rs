//! What a site's directory says of itself, and what becomes of one that has no past.
//!
//! An empty directory looks the same whether its database is new or its disk was lost. The obvious reading, "begin", makes a site forget
//! what it promised: a certifier's cluster on empty disks acknowledges commits on an empty database, and a site that votes again on an empty log
//! has its cluster give versions away twice. So a directory is nothing until it has a *place*, and it gets one in three ways only:
//!
//! ```text
//!   new      made by `pares site init`, and every other site of the database says "new": the database is founded
//!   empty    a site of its cluster participates: it is filled from there, learns, and votes under the name of this life of its disk
//!   empty    every site of its cluster is empty, and the clusters that live have continued without it: the cluster begins its log again, votes
//!            for nothing before that era, and adopts the past of the others
//! ```
//! In every other case it waits, says for what, and neither votes nor certifies.
//!
//! The notes, each replaced whole:
//!
//! | note | content |
//! |---|---|
//! | `new` | the database's identity; from `pares site init`, taken away when the site has its place |
//! | `place` | identity, incarnation, whether it participates, how its cluster's log began, whether it has shown a version |
//! | `lacks` | what it must get before it participates |
//! | `copied` | where its log begins again, behind what it got |
//! | `differs` | up to which version it is alone with what it has applied: it serves no more |
//!
//! | module | what |
//! |---|---|
//! | `standing` | what sites say of their places |
//! | `forming` | when a site without a past gets a place |
//! | `filling` | taking a copy |
//! | `failures` | copies that could not be written |
//! | `loading` | the task that writes it |
//! | `giving` | giving copies |
//! | `apart` | the duty cycle of a site that takes no part |

pub(crate) mod apart;
pub(crate) mod failures;
pub(crate) mod filling;
pub(crate) mod forming;
pub(crate) mod giving;
pub(crate) mod loading;
pub(crate) mod standing;

use std::io::ErrorKind;

use pares_cluster::{Beginning, Incarnation};
use pares_wice::Version;
use pares_wice::codec::{Coded, DecodeError};

use crate::error::ProcessError;
use crate::world::{Notes, World};
use standing::{Form, Lack};

/// The note of a directory whose database is to begin: its identity.
pub const NEW: &str = "new";
const PLACE: &str = "place";
const LACKS: &str = "lacks";
const COPIED: &str = "copied";
const DIFFERS: &str = "differs";
/// The note that holds the last base.
pub(crate) const BASE: &str = "base";
/// The form of these notes. It changes when an older release could no longer read them.
const FORM: u32 = 4;

/// Whether a site participates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It has no past: it neither votes nor certifies.
    None,
    /// It has one, and its cluster's log is to let it in.
    Joins,
    /// It is a member.
    Member,
}
pares_wice::kinds! { Part, "part" { 0 => None, 1 => Joins, 2 => Member } }

/// A site's place in its database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The database that it is of.
    pub(crate) identity: String,
    /// Which life of its disk.
    pub(crate) incarnation: Incarnation,
    pub(crate) part: Part,
    /// How its cluster's log began, if it was there.
    pub(crate) form: Option<Form>,
    /// Whether a version has been stable here: noted before a client is shown one.
    pub(crate) has_shown: bool,
}

impl Place {
    /// The place of the site whose notes `world` has; one without takes its name first.
    ///
    /// # Errors
    /// [`ProcessError::Stranger`] if it belongs to another database, [`ProcessError::Note`] if it is damaged, [`ProcessError::NoPlace`] if it is gone from among the others.
    pub(crate) fn open(world: &mut impl World, identity: &str) -> Result<Self, ProcessError> {
        let place = match read::<Self>(world.notes(), PLACE)? {
            Some(place) => place,
            None if has_base(world.notes())? => return Err(ProcessError::NoPlace),
            None => {
                let incarnation = Incarnation::drawn(world.draw());
                let place = Self {
                    identity: identity.to_owned(),
                    incarnation,
                    part: Part::None,
                    form: None,
                    has_shown: false,
                };
                place.write(world.notes())?;
                place
            }
        };
        if place.identity != identity {
            return Err(ProcessError::Stranger { found: place.identity, expected: identity.to_owned() });
        }
        Ok(place)
    }

    /// It is so from now on.
    pub(crate) fn write(&self, notes: &impl Notes) -> Result<(), ProcessError> {
        assert!(!self.has_shown || self.part != Part::None, "a site without a place has shown no version");
        assert!(
            self.form.is_none() || self.part == Part::Member,
            "who was there when its log began is a member"
        );
        write(notes, PLACE, self)?;
        if self.part != Part::None {
            notes.remove_note(NEW)?;
        }
        Ok(())
    }
}

/// Whether the directory was made for a database that is to begin.
pub(crate) fn is_new(notes: &impl Notes, identity: &str) -> Result<bool, ProcessError> {
    let note = note(notes, NEW)?;
    Ok(note.is_some_and(|note| String::from_utf8_lossy(&note).trim() == identity))
}

/// Whether the site whose notes these are had its place once: its first base is written before.
fn has_base(notes: &impl Notes) -> Result<bool, ProcessError> {
    Ok(note(notes, BASE)?.is_some())
}

/// What the site lacks, if it was noted.
pub(crate) fn lack(notes: &impl Notes) -> Result<Option<Lack>, ProcessError> {
    read(notes, LACKS)
}

/// Notes what it lacks; it is to begin again then.
pub(crate) fn note_lack(notes: &impl Notes, lack: &Lack) -> Result<(), ProcessError> {
    write(notes, LACKS, lack)
}

pub(crate) fn lacks_nothing(notes: &impl Notes) -> Result<(), ProcessError> {
    Ok(notes.remove_note(LACKS)?)
}

/// Where the site's log is to begin again.
pub(crate) fn copied(notes: &impl Notes) -> Result<Option<Beginning>, ProcessError> {
    Ok(read::<Behind>(notes, COPIED)?.map(|behind| behind.0))
}

pub(crate) fn note_copied(notes: &impl Notes, beginning: Beginning) -> Result<(), ProcessError> {
    write(notes, COPIED, &Behind(beginning))
}

pub(crate) fn has_begun_anew(notes: &impl Notes) -> Result<(), ProcessError> {
    Ok(notes.remove_note(COPIED)?)
}

/// Up to which version the site is alone with what it has applied, if that was noted.
pub(crate) fn differs(notes: &impl Notes) -> Result<Option<Version>, ProcessError> {
    read(notes, DIFFERS)
}

pub(crate) fn note_differs(notes: &impl Notes, version: Version) -> Result<(), ProcessError> {
    write(notes, DIFFERS, &version)
}

/// Makes a site of a cluster of `members` out of an empty machine, as if it had been there when its log began.
#[cfg(test)]
pub(crate) fn found(
    world: &mut impl World,
    identity: &str,
    members: u8,
    base: pares_wice::Base,
) -> Result<(), ProcessError> {
    let place = Place { incarnation: Incarnation(0), part: Part::Member, ..Place::open(world, identity)? };
    note_copied(
        world.notes(),
        Beginning { members: pares_cluster::Members::first(members), ..Beginning::default() },
    )?;
    crate::checkpoint::Bases::replace(world.notes(), (0, base))?;
    place.write(world.notes())
}

/// A beginning, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Behind(pub(crate) Beginning);

/// ```text
///   | form u32 | crc u32 | content |     crc32c of the content
/// ```
pub(crate) fn write<T: Coded>(
    notes: &impl Notes,
    name: &'static str,
    content: &T,
) -> Result<(), ProcessError> {
    let content = content.to_bytes();
    assert!(T::from_bytes(&content).is_ok(), "a note that is written can be read");
    write_bytes(notes, name, &sealed(FORM, &content))
}

/// Writes the bytes of a note.
///
/// # Errors
/// [`ProcessError::Unwritten`].
pub(crate) fn write_bytes(notes: &impl Notes, name: &'static str, bytes: &[u8]) -> Result<(), ProcessError> {
    notes.write_note(name, bytes).map_err(|source| ProcessError::Unwritten { note: name, source })
}

/// The bytes of a note of this form.
pub(crate) fn sealed(form: u32, content: &[u8]) -> Vec<u8> {
    [&form.to_le_bytes(), &crc32c::crc32c(content).to_le_bytes(), content].concat()
}

/// The bytes of a note; none if there is none.
///
/// # Errors
/// [`ProcessError::Note`] if something else than a file has its name, [`ProcessError::Unread`] as the operating system says.
pub(crate) fn note(notes: &impl Notes, name: &'static str) -> Result<Option<Vec<u8>>, ProcessError> {
    notes.read_note(name).map_err(|source| match source.kind() {
        ErrorKind::InvalidData => ProcessError::Note(name),
        _ => ProcessError::Unread { note: name, source },
    })
}

pub(crate) fn read<T: Coded>(notes: &impl Notes, name: &'static str) -> Result<Option<T>, ProcessError> {
    let Some(note) = note(notes, name)? else { return Ok(None) };
    T::from_bytes(opened(&note, name, FORM)?).map(Some).map_err(|_| ProcessError::Note(name))
}

/// The content of a note, which is of this form.
///
/// # Errors
/// [`ProcessError::Form`] if it is of another one, [`ProcessError::Note`] if it is damaged.
pub(crate) fn opened<'a>(note: &'a [u8], name: &'static str, form: u32) -> Result<&'a [u8], ProcessError> {
    let (found, rest) = note.split_first_chunk().ok_or(ProcessError::Note(name))?;
    let found = u32::from_le_bytes(*found);
    if found != form {
        return Err(ProcessError::Form { note: name, found, known: form });
    }
    match rest.split_first_chunk() {
        Some((crc, content)) if crc32c::crc32c(content) == u32::from_le_bytes(*crc) => Ok(content),
        _ => Err(ProcessError::Note(name)),
    }
}

impl Coded for Place {
    fn encode(&self, to: &mut Vec<u8>) {
        self.identity.encode(to);
        self.incarnation.0.encode(to);
        self.part.encode(to);
        self.form.encode(to);
        self.has_shown.encode(to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(Self {
            identity: Coded::decode(from)?,
            incarnation: Incarnation::drawn(Coded::decode(from)?),
            part: Coded::decode(from)?,
            form: Coded::decode(from)?,
            has_shown: Coded::decode(from)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::NotesDirectory;
    use crate::testing::Machine;

    #[test]
    fn a_directory_takes_its_name_once_and_belongs_to_one_database() {
        let mut machine = Machine::default();
        let place = Place::open(&mut machine, "bank").unwrap();
        assert_eq!(place.part, Part::None);
        assert_eq!(Place::open(&mut machine, "bank").unwrap(), place);
        assert!(matches!(Place::open(&mut machine, "other"), Err(ProcessError::Stranger { .. })));
        machine.remove_note(PLACE).unwrap();
        assert_ne!(Place::open(&mut machine, "bank").unwrap().incarnation, place.incarnation, "another life");
    }

    #[test]
    fn directory_without_identity_is_not_treated_as_empty() {
        let machine = Machine::default();
        drop(machine.begin(&[1]).unwrap());
        machine.remove_note(PLACE).unwrap();
        let before = machine.notes.borrow().clone();
        let refused = machine.begin(&[1]).err().unwrap();
        assert!(matches!(refused, ProcessError::NoPlace) && refused.is_damage(), "{refused}");
        assert_eq!(*machine.notes.borrow(), before);
    }

    #[test]
    fn a_note_that_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let notes = NotesDirectory::at(dir.path().join("gone")).unwrap();
        std::fs::remove_dir(notes.path()).unwrap();
        let why = write_bytes(&notes, PLACE, b"").unwrap_err().to_string();
        assert!(why.starts_with("the file `place` cannot be written: No such file"), "{why}");
    }

    #[test]
    fn a_note_with_a_changed_bit_is_none() {
        let mut machine = Machine::default();
        Place::open(&mut machine, "bank").unwrap();
        let note = machine.read_note(PLACE).unwrap().unwrap();
        for bit in 0..note.len() * 8 {
            let mut changed = note.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            machine.write_note(PLACE, &changed).unwrap();
            let refused = Place::open(&mut machine, "bank").unwrap_err();
            assert!(refused.is_damage(), "bit {bit}: {refused}");
        }
    }
}
