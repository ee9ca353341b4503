//! Gateways' taps as they are read: which connections there are, and what passed on them.
//!
//! A tap may be as large as a disk. So it is never held: a first reading finds which connections there were, and a second one gives their bytes to a
//! [`Follow`], which keeps what it needs of those that are open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pares_log::{Offset, Reader, Record};
use pares_node::{Layout, NodeId};
use pares_os::CountersReader;
use pares_port::{TAP_HEAD_BYTES, TapEntry, TapKind};
use pares_tap::{Tape, TapedConnection, TapedPiece};
use pares_types::GatewayId;

use crate::commands::journal::failed;
use crate::error::{CommandError, CommandResult};
use crate::text::grouped;

/// The taps that are looked at.
pub struct Taps {
    pub taped: Vec<Taped>,
    /// Why one could not be read to its end.
    failed: Vec<String>,
}

/// A gateway's tap.
pub struct Taped {
    pub gateway: GatewayId,
    /// Those of its connections that are wanted, by name.
    pub connections: BTreeMap<(u64, u32), TapedConnection>,
    /// Entries and bytes that the gateway lost, as its tap says or, until that can, its counters.
    pub lost: (u64, u64),
    /// Bytes of the log behind what could be read, if not all could.
    pub unread: Option<u64>,
    /// From when to when it surely was there, nanoseconds since 1970, life by life of its gateway.
    pub lives: Vec<(u64, u64)>,
    /// When it lost something.
    pub holes: Vec<(u64, u64)>,
    log: PathBuf,
    /// How far it was read first.
    end: Offset,
}

impl Taps {
    /// Reads the taps of these gateways. One that cannot be read to its end keeps nobody from the others.
    pub fn read(gateways: impl IntoIterator<Item = GatewayId>, layout: &Layout) -> Self {
        let mut taps = Self { taped: Vec::new(), failed: Vec::new() };
        for gateway in gateways {
            let (taped, failed) = Taped::read(gateway, layout);
            if let Some(error) = failed {
                pares_text::aside!("pares: {error}");
                taps.failed.push(taped.left_out());
            }
            taps.taped.push(taped);
        }
        taps
    }

    /// All is done that could be.
    ///
    /// # Errors
    /// If a tap could not be read.
    pub fn done(&self) -> CommandResult {
        match &self.failed[..] {
            [] => Ok(()),
            failed => Err(CommandError::Failed(format!(
                "not read, or not to the end: {}; all other taps are complete",
                failed.join(", ")
            ))),
        }
    }
}

/// What becomes of a connection while its tap is read again.
pub trait Follow {
    /// Kept of a connection while it is open.
    type State;

    /// One is seen first.
    fn begin(&mut self, connection: &TapedConnection) -> Self::State;

    /// Bytes passed.
    ///
    /// # Errors
    /// If nothing more can be done.
    fn pass(
        &mut self,
        state: &mut Self::State,
        connection: &TapedConnection,
        piece: &TapedPiece<'_>,
    ) -> CommandResult;

    /// It has ended, or nothing more of it is there.
    ///
    /// # Errors
    /// If nothing more can be done.
    fn end(&mut self, state: Self::State, connection: &TapedConnection) -> CommandResult;
}

/// What a gateway has lost and its tap does not say yet: it is in the counters of its last process.
pub fn untold(layout: &Layout, gateway: GatewayId) -> (u64, u64) {
    let counters = CountersReader::open(&layout.counters(&NodeId::Gateway(gateway).to_string()));
    let of = |name| counters.as_ref().ok().and_then(|counters| counters.get(name)).unwrap_or_default();
    (of("tap_untold_entries"), of("tap_untold_bytes"))
}

/// Bytes that a log has from there on, as far as it says.
fn bytes_behind(log: &Path, end: Offset) -> u64 {
    Reader::at_start(log).map_or(0, |reader| reader.written().0.saturating_sub(end.0))
}

impl Taped {
    /// Reads the tap of a gateway, and says why it could not be read to its end.
    fn read(gateway: GatewayId, layout: &Layout) -> (Self, Option<CommandError>) {
        let (mut tape, log, mut end) = (Tape::default(), layout.tap(gateway), Offset(0));
        let failed = each(&log, Offset(u64::MAX), |offset, entry| {
            tape.take(entry);
            // It lies below this, and the next one does not.
            end = Offset(offset.0 + (TAP_HEAD_BYTES + entry.bytes.len()) as u64);
            Ok(())
        });
        // Behind the tap: what it says by now is not counted twice.
        let untold = untold(layout, gateway);
        let Tape { lost, lives, mut holes, said_ns, .. } = tape;
        if failed.is_err() || untold != (0, 0) {
            holes.push((said_ns, u64::MAX));
        }
        let connections = tape.connections.into_iter().map(|one| (one.place(), one)).collect();
        let lost = (lost.0.saturating_add(untold.0), lost.1.saturating_add(untold.1));
        let unread = failed.is_err().then(|| bytes_behind(&log, end));
        (Self { gateway, connections, lost, unread, lives, holes, log, end }, failed.err())
    }

    /// What is not told of it.
    fn left_out(&self) -> String {
        let log = self.log.display();
        match self.unread {
            None | Some(0) => log.to_string(),
            Some(bytes) => format!("{log}, without its last {} bytes", grouped(bytes)),
        }
    }

    /// Reads the tap again, as far as it was read first, and gives what passed on the connections that are wanted.
    ///
    /// # Errors
    /// If it cannot be read, or the follower fails.
    pub fn follow<F: Follow>(&self, follower: &mut F) -> CommandResult {
        if self.connections.is_empty() {
            return Ok(());
        }
        let mut open = BTreeMap::<(u64, u32), F::State>::new();
        each(&self.log, self.end, |_, entry| {
            let life = entry.head.life.get();
            // Those of a life before are over.
            while let Some(&place) = open.keys().next().filter(|place| place.0 != life) {
                let state = open.remove(&place).expect("it is the first");
                follower.end(state, &self.connections[&place])?;
            }
            let place = (life, entry.head.connection.get());
            let Some(connection) = self.connections.get(&place) else { return Ok(()) };
            if matches!(entry.kind, TapKind::Began | TapKind::Lost) {
                return Ok(());
            }
            let state = open.entry(place).or_insert_with(|| follower.begin(connection));
            if let Some(piece) = TapedPiece::of(entry) {
                follower.pass(state, connection, &piece)?;
            }
            if entry.kind == TapKind::Ended
                && let Some(state) = open.remove(&place)
            {
                follower.end(state, connection)?;
            }
            Ok(())
        })?;
        open.into_iter().try_for_each(|(place, state)| follower.end(state, &self.connections[&place]))
    }
}

/// The entries of a tap that lie before `end`.
fn each(
    log: &Path,
    end: Offset,
    mut take: impl FnMut(Offset, &TapEntry<'_>) -> CommandResult,
) -> CommandResult {
    each_record(log, end, |record| {
        let entry = TapEntry::read(record.payload)
            .map_err(|fault| CommandError::Failed(format!("{}: {fault}", log.display())))?;
        take(record.offset, &entry)
    })
}

/// The records of a log that lie before `end`; the oldest may go while it is read.
pub fn each_record(
    log: &Path,
    end: Offset,
    mut take: impl FnMut(&Record<'_>) -> CommandResult,
) -> CommandResult {
    let mut reader = Reader::at_start(log).map_err(|error| failed(log, &error))?;
    loop {
        match reader.next_below(end) {
            Ok(Some(record)) => take(&record)?,
            Ok(None) => return Ok(()),
            Err(pares_log::ReadError::Released { first, .. }) => {
                reader.seek(first).map_err(|error| failed(log, &error))?;
            }
            Err(error) => return Err(failed(log, &error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use pares_log::{Config, Writer};
    use pares_port::{TapDoor, TapHead};
    use zerocopy::IntoBytes;

    use super::*;

    #[test]
    fn what_lies_behind_damage_is_left_out_and_counted() {
        const BYTES: [u8; 200] = [7; 200];
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let log = layout.tap(GatewayId(0));
        let (mut writer, _) = Writer::open(&log, Config::default()).unwrap();
        let mut damaged = Offset(0);
        for at in 0..10_u64 {
            let head = TapHead {
                wall_ns: (at + 1).into(),
                at: (at * 200).into(),
                ..TapHead::new(TapKind::In, TapDoor::Binary, 1)
            };
            let offset = writer.append(&[head.as_bytes(), &BYTES].concat()).unwrap();
            if at == 4 {
                damaged = offset;
            }
        }
        let end = writer.publish();
        drop(writer);
        let told = |of: &Taped| -> Vec<_> {
            of.connections.values().map(|one| (one.totals[0], one.seen_ns)).collect()
        };
        let read = || Taped::read(GatewayId(0), &layout);
        let (whole, failed) = read();
        assert!(failed.is_none() && whole.unread.is_none() && whole.holes.is_empty());
        assert_eq!(told(&whole), [(2_000, 10)]);

        let segment = std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path());
        let segment =
            segment.filter(|path| path.extension().is_some_and(|kind| kind == "seg")).min().unwrap();
        let mut bytes = std::fs::read(&segment).unwrap();
        bytes[damaged.0 as usize + 100] ^= 1;
        std::fs::write(&segment, bytes).unwrap();
        let (part, failed) = read();
        assert_eq!(told(&part), [(800, 4)]);
        // From the last whole entry's end, which a sum and a length begin: to the end of the log.
        let left_out = part.unread.unwrap();
        assert!((end.0 - damaged.0..end.0 - damaged.0 + 64).contains(&left_out), "{left_out}");
        assert_eq!(part.holes, [(4, u64::MAX)], "a request of then is missing, and no difference");
        assert!(failed.is_some());
        let done = Taps { failed: vec![part.left_out()], taped: vec![part] }.done();
        let Err(CommandError::Failed(said)) = done else { panic!("it is not all there") };
        assert!(said.contains(&format!("without its last {} bytes", grouped(left_out))), "{said}");
    }
}
