//! Venues that are shut out: who is, why, and how one comes back.
//!
//! A recorder that finds a venue wrong takes nothing of it any more, but its finding must outlive the recorder, reach the other
//! recorders and stop the venue. So it writes a note: a file that says in plain words who said what. While a
//! venue has a note it ends and does not start, and the supervisor leaves it down; the operator who has put in a right build
//! removes the notes (`pares admin readmit`).
//!
//! ```text
//! DIR/shut-out/venue-0.recorder-1        what recorder 1 knows of venue 0 being wrong
//! DIR/shut-out/venue-0.log-1             the log venue 0 had when it was readmitted for the first time
//! DIR/shut-out/venue-0.recorder-1.readmitted-1    and the note
//! ```
//! A recorder writes its own note last, when the checkpoints that the venue may have spoilt are gone; one that dies in
//! between finds the others' notes, misses its own, and does it again. The log goes aside because it is full of
//! results of the wrong build, which a recorder that starts later would read and find wrong once more. For the same reason the notes
//! are kept: a recorder's own log continues to hold what the wrong build had recorded.

use std::io;
use std::path::PathBuf;

use pares_config::{Layout, NodeId, SystemConfig};
use pares_types::{RecorderId, VenueId};
use serde::{Deserialize, Serialize};

use crate::world::World;
use crate::{NodeError, whole_file};

/// What one recorder knows of a venue that is shut out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The venue.
    pub venue: u16,
    /// The recorder.
    pub recorder: u16,
    /// The shards that it executed when that was found, here or by another: it may have spoilt their checkpoints, whatever it executes today.
    #[serde(default)]
    pub shards: Vec<u16>,
    /// What showed it; `None` if the recorder goes by another one's note.
    pub found: Option<Found>,
    /// What the recorder had taken from it alone since it was last known to be right, shard by shard.
    #[serde(default)]
    pub disputed: Vec<DisputedIn>,
}

/// What showed that a venue is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The shard.
    pub shard: u16,
    /// The position about which different things were said.
    pub position: u64,
    /// All that was said.
    pub said: Vec<Said>,
}

/// What some venues said about a position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Which venues.
    pub venues: Vec<u16>,
    /// Whether more than half of the shard's venues said so.
    pub believed: bool,
    /// The request at that place.
    pub request: String,
    /// A digest of outcome and events.
    pub result: String,
    /// The state after it, where one was taken.
    pub state: Option<String>,
}

/// What was taken from a wrong venue alone, in one shard. It has been answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisputedIn {
    /// The shard.
    pub shard: u16,
    /// The last position at which the venue was right about the state, if that is remembered.
    pub right_at: Option<u64>,
    /// How many positions.
    pub count: u64,
    /// The first of them.
    pub first: u64,
    /// The last of them.
    pub last: u64,
}

impl Note {
    /// The note as a file: what it means, and then what is known.
    fn text(&self) -> String {
        let (venue, known) = (self.venue, toml::to_string(self).expect("a note is always valid TOML"));
        format!(
            "# venue-{venue} is shut out: its results differ from those of more than half of a shard's \
             venues. Its results are\n# ignored, it does not start, and the others continue. Install a correct \
             build, then `pares admin readmit venue-{venue}`.\n# Positions listed as disputed were answered \
             from its results alone; see docs/operations/failures.md.\n\n{known}"
        )
    }

    /// Writes it, durably, in place of what the recorder may have noted before.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub fn write(&self, world: &impl World) -> Result<(), NodeError> {
        let is_stretch = |one: &DisputedIn| one.first <= one.last;
        assert!(self.disputed.iter().all(is_stretch), "disputed positions are a stretch, from first to last");
        let (path, text) = (path(VenueId(self.venue), RecorderId(self.recorder)), self.text());
        let read = toml::from_str(&text);
        assert!(read.is_ok_and(|read: Self| read == *self), "a note is read as it was written");
        // A name of its own: another recorder may be writing at the same moment.
        whole_file::write(world, &path, &text).map_err(NodeError::io("noting that a venue is shut out"))
    }

    /// What that recorder noted of the venue, if anything.
    ///
    /// # Errors
    /// If the note cannot be read, or is none.
    pub fn read(world: &impl World, venue: VenueId, by: RecorderId) -> Result<Option<Self>, NodeError> {
        whole_file::read_note(world, &path(venue, by))
    }
}

fn dir() -> PathBuf {
    Layout::new("").shut_out()
}

fn path(venue: VenueId, by: RecorderId) -> PathBuf {
    dir().join(format!("venue-{venue}.recorder-{by}"))
}

fn names(world: &impl World) -> Result<Vec<String>, NodeError> {
    world.list(&dir()).map_err(|source| NodeError::MaybeShutOut { dir: dir(), source })
}

fn notes(world: &impl World, venue: VenueId) -> Result<Vec<PathBuf>, NodeError> {
    let start = format!("venue-{venue}.recorder-");
    let is_note = |name: &String| name.strip_prefix(&start).is_some_and(|by| by.parse::<u16>().is_ok());
    Ok(names(world)?.into_iter().filter(is_note).map(|name| dir().join(name)).collect())
}

/// Whether the venue is shut out.
///
/// # Errors
/// [`NodeError::MaybeShutOut`].
pub fn is_shut_out(world: &impl World, venue: VenueId) -> Result<bool, NodeError> {
    Ok(!notes(world, venue)?.is_empty())
}

/// The shards that the venue executed when it was found wrong, as far as notes can be read.
pub(crate) fn shards_of(world: &impl World, venue: VenueId) -> Vec<u16> {
    let notes = notes(world, venue).unwrap_or_default();
    let notes = notes.iter().filter_map(|path| whole_file::read_note::<Note>(world, path).ok().flatten());
    notes.flat_map(|note| note.shards).collect()
}

pub(crate) fn is_noted_by(world: &impl World, venue: VenueId, by: RecorderId) -> bool {
    world.open_file(&path(venue, by)).is_ok()
}

/// Lets a venue participate again: its log and its notes go aside. It starts by itself then, under a supervisor, and
/// restores what is believed. The caller has seen that no process writes the venue's log.
///
/// # Errors
/// If it is not shut out, or a recorder has not taken note yet: that one may have checkpoints of it left.
pub fn readmit(world: &impl World, config: &SystemConfig, venue: VenueId) -> Result<(), NodeError> {
    let node = NodeId::Venue(venue);
    let notes = notes(world, venue)?;
    if notes.is_empty() {
        return Err(NodeError::Refused(format!("{node} is not shut out")));
    }
    if let Some(behind) = config.recorder_ids().find(|&by| !is_noted_by(world, venue, by)) {
        return Err(NodeError::Refused(format!(
            "recorder-{behind} has not noted yet that {node} is shut out: start that recorder if it is \
             down, and try again in a moment"
        )));
    }
    let number = set_log_aside(world, venue).map_err(NodeError::io("setting the log of a venue aside"))?;
    for note in notes {
        let kept = note.with_added_extension(format!("readmitted-{number}"));
        world.rename(&note, &kept).map_err(NodeError::io("setting a note about a venue aside"))?;
    }
    Ok(())
}

/// Says for which time.
fn set_log_aside(world: &impl World, venue: VenueId) -> io::Result<u32> {
    let taken = world.list(&dir())?;
    let name = |number: u32| format!("venue-{venue}.log-{number}");
    let number = (1..).find(|&number| !taken.contains(&name(number))).expect("there is no end of numbers");
    match world.rename(&Layout::new("").venue_log(venue), &dir().join(name(number))) {
        // A venue without a log has nothing to set aside.
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(number),
    }
}

/// All that was ever disputed, with the venue that said so: of venues that are shut out, and of those readmitted. A note that
/// cannot be read says nothing; at worst a venue is found once more by what it did before.
///
/// # Errors
/// [`NodeError::MaybeShutOut`].
pub(crate) fn all_disputed(world: &impl World) -> Result<Vec<(VenueId, DisputedIn)>, NodeError> {
    let names = names(world)?.into_iter().filter(|name| name.contains(".recorder-"));
    let notes =
        names.filter_map(|name| whole_file::read_note::<Note>(world, &dir().join(name)).ok().flatten());
    Ok(notes.flat_map(|note| note.disputed.into_iter().map(move |one| (VenueId(note.venue), one))).collect())
}

/// Fails if the venue is shut out, or may be.
///
/// # Errors
/// [`NodeError::ShutOut`], [`NodeError::MaybeShutOut`].
pub fn check(world: &impl World, venue: VenueId) -> Result<(), NodeError> {
    match notes(world, venue)?.into_iter().next() {
        None => Ok(()),
        Some(note) => Err(NodeError::ShutOut { venue, note }),
    }
}

/// The notes as a node looks at them while it runs.
#[derive(Debug, Default)]
pub(crate) struct ShutOutWatch {
    /// Whether the operator knows that they cannot be listed.
    told: bool,
}

impl ShutOutWatch {
    /// Whether the venue is shut out. `None` if the notes cannot be listed for now, because descriptors are out or the disk fails:
    /// that stops no node and readmits no venue, and the operator is informed once.
    pub(crate) fn is_shut_out(&mut self, world: &impl World, venue: VenueId) -> Option<bool> {
        let listed = is_shut_out(world, venue);
        let told = std::mem::replace(&mut self.told, listed.is_err());
        listed
            .inspect_err(|error| {
                if !told {
                    world.complain(error)
                }
            })
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestWorld;
    use std::path::Path;

    const VENUE: VenueId = VenueId(0);

    fn note(recorder: u16) -> Note {
        let said = |venues: &[u16], believed| Said {
            venues: venues.to_vec(),
            believed,
            request: "0:17".into(),
            result: "00000007".into(),
            state: believed.then(|| "0000000000000001".into()),
        };
        let said = vec![said(&[1, 2], true), said(&[0], false)];
        let disputed = vec![DisputedIn { shard: 3, right_at: None, count: 2, first: 5, last: 9 }];
        let found = Some(Found { shard: 3, position: 9, said });
        Note { venue: 0, recorder, shards: vec![1, 3], found, disputed }
    }

    #[test]
    fn recorders_note_side_by_side() {
        let world = TestWorld::new();
        let write = |by: u16| {
            let world = world.clone();
            std::thread::spawn(move || (0..200).for_each(|_| note(by).write(&world).unwrap()))
        };
        [write(0), write(1)].into_iter().for_each(|one| one.join().unwrap());
        for by in [0, 1] {
            assert_eq!(Note::read(&world, VENUE, RecorderId(by)).unwrap(), Some(note(by)));
        }
    }

    #[test]
    fn a_note_says_in_words_what_it_means_and_is_read_as_written() {
        let world = TestWorld::new();
        assert!(!is_shut_out(&world, VENUE).unwrap());
        note(1).write(&world).unwrap();
        assert_eq!(Note::read(&world, VENUE, RecorderId(1)).unwrap(), Some(note(1)));
        assert_eq!(Note::read(&world, VENUE, RecorderId(0)).unwrap(), None);
        let text = whole_file::read(&world, &path(VENUE, RecorderId(1))).unwrap();
        assert!(text.starts_with("# venue-0 is shut out") && text.contains("readmit venue-0"), "{text}");
        assert_eq!([0, 1].map(|id| is_shut_out(&world, VenueId(id)).unwrap()), [true, false]);
        let refused = check(&world, VENUE).unwrap_err().to_string();
        assert!(refused.contains("pares admin readmit venue-0"), "{refused}");
    }

    #[test]
    fn venue_readmitted_after_all_recorders_without_log() {
        let (world, config) = (TestWorld::new(), SystemConfig::default());
        let readmit = || readmit(&world, &config, VENUE);
        assert!(readmit().unwrap_err().to_string().contains("is not shut out"));
        note(0).write(&world).unwrap();
        assert!(readmit().unwrap_err().to_string().contains("recorder-1 has not noted yet"));
        note(1).write(&world).unwrap();
        world.create_file(Path::new("venue-0/of the wrong build")).unwrap();
        readmit().unwrap();
        assert!(!is_shut_out(&world, VENUE).unwrap() && world.list(Path::new("venue-0")).unwrap().is_empty());
        assert_eq!(world.list(&dir().join("venue-0.log-1")).unwrap(), ["of the wrong build"]);
        assert_eq!(all_disputed(&world).unwrap().len(), 2, "what it said then is still disputed");
    }
}
