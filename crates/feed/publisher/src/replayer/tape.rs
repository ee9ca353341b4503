//! The sessions of a shard in a publisher's log, and where in it their messages lie.
//!
//! An index of every message would be as long as the log. So it has a place now and then: from there on the log is walked, past what is of other shards.

use pares_feed::publication::Session;
use pares_feed::store::{SESSIONS_KEPT, SessionStanding, SessionStore, StoreError, find};
use pares_log::{LogReader, Offset, ReadError};
use pares_types::ShardId;

use crate::logged::{Logged, Published};

/// A place is noted after so many messages, and after so many bytes of the log.
const PLACE_EVERY_MESSAGES: u64 = 64;
const PLACE_EVERY_BYTES: u64 = 64 << 10;

/// Where a message lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    number: u64,
    offset: Offset,
}

/// The sessions of a shard that are kept.
#[derive(Debug, Default)]
pub(super) struct Tape {
    standing: Vec<SessionStanding>,
    /// By session, as `standing`.
    places: Vec<Vec<Place>>,
}

impl Tape {
    /// The next messages of the shard. Says whether they follow what came before; otherwise nothing is changed.
    pub(super) fn on_published(&mut self, offset: Offset, published: &Published<'_>) -> bool {
        let Published { first, reached, .. } = *published;
        if first == 1 {
            self.begin(reached.session);
        }
        let (Some(standing), Some(places)) = (self.standing.last_mut(), self.places.last_mut()) else {
            // The rest of a session whose beginning was dropped.
            return true;
        };
        if (standing.session, standing.next, standing.over) != (reached.session, first, false) {
            return false;
        }
        (standing.next, standing.over) = (reached.next, reached.over);
        let is_due = places.last().is_none_or(|last| {
            let (messages, bytes) = (first - last.number, offset.0 - last.offset.0);
            messages >= PLACE_EVERY_MESSAGES || bytes >= PLACE_EVERY_BYTES
        });
        if is_due {
            places.push(Place { number: first, offset });
        }
        true
    }

    fn begin(&mut self, session: Session) {
        if self.standing.len() >= SESSIONS_KEPT {
            self.standing.remove(0);
            self.places.remove(0);
        }
        self.standing.push(SessionStanding { session, next: 1, over: false });
        self.places.push(Vec::new());
    }

    pub(super) fn standing(&self) -> &[SessionStanding] {
        &self.standing
    }
}

/// A shard's sessions as they are read again.
pub(super) struct TapeStore<'a, R> {
    pub(super) shard: ShardId,
    pub(super) tape: &'a Tape,
    pub(super) log: &'a mut R,
    /// What could not be read.
    pub(super) failed: &'a mut Option<ReadError>,
}

impl<R: LogReader> TapeStore<'_, R> {
    /// Hands out messages from `from` on, up to `end`, as they lie behind a place. None if something else lies there: another log took the
    /// place of the one that the places are of.
    fn walk(
        &mut self,
        (session, places): (Session, &[Place]),
        (from, end): (u64, u64),
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), ReadError> {
        let Some(at) = places.partition_point(|place| place.number <= from).checked_sub(1) else {
            return Ok(());
        };
        let mut ahead = places[at + 1..].iter().peekable();
        self.log.seek(places[at].offset)?;
        let mut next = from;
        while next < end {
            // What lies between is of other shards.
            while let Some(place) = ahead.next_if(|place| place.number <= next) {
                self.log.seek(place.offset)?;
            }
            let Some(record) = self.log.next()? else { return Ok(()) };
            let Ok(Logged::Published(published)) = Logged::read(record.payload) else { continue };
            if published.shard != self.shard || published.reached.next <= next {
                continue;
            }
            if published.reached.session != session || published.first > next {
                return Ok(());
            }
            for (number, message) in (published.first..).zip(published.messages()) {
                if number < next {
                    continue;
                }
                if !take(message) {
                    return Ok(());
                }
                next = number + 1;
            }
        }
        Ok(())
    }
}

impl<R: LogReader> SessionStore for TapeStore<'_, R> {
    fn standing(&self) -> &[SessionStanding] {
        self.tape.standing()
    }

    fn read(
        &mut self,
        session: Session,
        from: u64,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let end = find(&self.tape.standing, session).ok_or(StoreError::NotKept)?.next;
        let places = self.tape.standing.iter().position(|one| one.session == session);
        let places = places.and_then(|at| self.tape.places.get(at)).ok_or(StoreError::NotKept)?;
        self.walk((session, places), (from, end), take).map_err(|error| {
            *self.failed = Some(error);
            StoreError::Unreadable
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logged::{HEAD_BYTES, Reached, push_block};
    use pares_log::{Config, LogWriter, Reader, Writer};
    use pares_types::Position;
    use zerocopy::IntoBytes;

    const DAYS: [Session; 3] = [Session(*b"0001000001"), Session(*b"0001000002"), Session(*b"0001000003")];

    struct Rig {
        writer: Writer,
        tape: Tape,
        reader: Reader,
        _dir: tempfile::TempDir,
    }

    impl Rig {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let (writer, _) = Writer::open(dir.path(), Config::default().segment_bytes(1 << 20)).unwrap();
            let reader = Reader::open(dir.path(), Offset::START).unwrap();
            Self { writer, tape: Tape::default(), reader, _dir: dir }
        }

        fn publish(&mut self, shard: u16, day: usize, first: u64, count: u16) -> bool {
            let mut blocks = Vec::new();
            (first..first + u64::from(count)).for_each(|n| push_block(&mut blocks, &n.to_be_bytes()));
            let reached =
                Reached { session: DAYS[day], next: first + u64::from(count), chain: 0, over: false };
            let (shard, position) = (ShardId(shard), Position(0));
            let published = Published { shard, first, count, reached, position, blocks: &blocks };
            let payload = [published.head().as_bytes(), &blocks].concat();
            assert_eq!(payload.len(), HEAD_BYTES + blocks.len());
            let offset = LogWriter::append(&mut self.writer, &payload).unwrap();
            self.writer.publish();
            shard != ShardId(1) || self.tape.on_published(offset, &published)
        }

        fn read(&mut self, day: usize, from: u64, most: usize) -> Result<Vec<u64>, StoreError> {
            let (tape, log, failed) = (&self.tape, &mut self.reader, &mut None);
            let mut store = TapeStore { shard: ShardId(1), tape, log, failed };
            let mut read = Vec::new();
            store.read(DAYS[day], from, &mut |message| {
                let has_room = read.len() < most;
                if has_room {
                    read.push(u64::from_be_bytes(message.try_into().unwrap()));
                }
                has_room
            })?;
            Ok(read)
        }
    }

    #[test]
    fn messages_found_among_other_shards() {
        let mut rig = Rig::new();
        let mut next = 1;
        for turn in 0..400_u16 {
            let count = 1 + turn % 7;
            assert!(rig.publish(1, 0, next, count));
            next += u64::from(count);
            rig.publish(2, 0, u64::from(turn) + 1, 200);
        }
        for from in [1, 2, 63, 64, 65, 777, next - 1] {
            assert_eq!(rig.read(0, from, 5).unwrap(), (from..next.min(from + 5)).collect::<Vec<_>>());
        }
        assert_eq!(rig.read(0, 1, usize::MAX).unwrap(), (1..next).collect::<Vec<_>>());
        assert_eq!(rig.read(0, next, 5).unwrap(), [0; 0]);
        assert!(rig.tape.places[0].len() < 200, "{}", rig.tape.places[0].len());
    }

    #[test]
    fn the_last_two_sessions_are_kept() {
        let mut rig = Rig::new();
        for day in 0..3 {
            assert!(rig.publish(1, day, 1, 3));
        }
        assert_eq!(rig.read(0, 1, 9), Err(StoreError::NotKept));
        assert_eq!((rig.read(1, 2, 9).unwrap(), rig.read(2, 1, 1).unwrap()), (vec![2, 3], vec![1]));
    }

    #[test]
    fn replaced_log_positions_give_no_foreign_messages() {
        let mut rig = Rig::new();
        assert!(rig.publish(1, 0, 1, 3) && rig.publish(1, 0, 4, 3));
        let first = rig.tape.places[0][0].offset;
        rig.tape.begin(DAYS[1]);
        rig.tape.standing[1].next = 9;
        rig.tape.places[1].push(Place { number: 1, offset: first });
        assert_eq!(rig.read(1, 1, 9).unwrap(), [0; 0], "of another session");
        rig.tape.places[0] = vec![Place { number: 1, offset: rig.reader.offset() }];
        assert_eq!(rig.read(0, 1, 9).unwrap(), [0; 0], "behind a gap");
        assert_eq!(rig.read(0, 4, 9).unwrap(), [4, 5, 6]);
    }

    #[test]
    fn non_consecutive_refused_rest_of_old_session_skipped() {
        let mut rig = Rig::new();
        assert!(rig.publish(1, 0, 7, 3), "its beginning was dropped");
        assert_eq!(rig.tape.standing(), []);
        assert!(rig.publish(1, 1, 1, 3));
        assert!(!rig.publish(1, 1, 5, 3));
        assert_eq!(rig.tape.standing()[0].next, 4);
    }
}
