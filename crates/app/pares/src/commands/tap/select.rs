//! Which taps, and which connections of them.
//!
//! A tap may be as large as a disk. So it is never held: a first reading finds which connections there were, and a second one gives their bytes to a
//! [`Follow`], which keeps what it needs of those that are open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pares_log::{Offset, Reader, Record};
use pares_node::{Layout, NodeId, SystemConfig};
use pares_os::CountersReader;
use pares_tap::{TAP_HEAD_BYTES, TapEntry, TapKind, Tape, TapedConnection, TapedPiece};
use pares_types::GatewayId;

use crate::commands::journal::failed;
use crate::commands::stat::configuration;
use crate::error::{CommandError, CommandResult};
use crate::text::grouped;
use crate::utc::Moment;

/// What to look at; every condition given must hold.
#[derive(clap::Args)]
pub struct Select {
    /// Only this gateway's tap
    #[arg(long, global = true)]
    gateway: Option<u16>,
    /// Only connections of this member
    #[arg(long, global = true)]
    member: Option<u32>,
    /// Only those of this session of its
    #[arg(long, global = true)]
    session: Option<u16>,
    /// Only this connection, by its name in the list of connections: LIFE.NUMBER, or NUMBER for that one of each life of its gateway
    #[arg(long, global = true)]
    connection: Option<Named>,
    /// Only what passed at or after this moment: 2026-08-01, 2026-08-01T09:30:00 (UTC), or how long ago: 90s, 15m, 2h, 3d
    #[arg(long, global = true)]
    from: Option<Moment>,
    /// Only what passed before this moment
    #[arg(long, global = true)]
    until: Option<Moment>,
}

/// The name of a connection: `NUMBER`, of every life of its gateway, or `LIFE.NUMBER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named {
    life: Option<u64>,
    number: u32,
}

impl std::str::FromStr for Named {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once('.') {
            Some((life, number)) => Self { life: Some(life.parse()?), number: number.parse()? },
            None => Self { life: None, number: text.parse()? },
        })
    }
}

/// The name of a connection, as `--connection` takes it.
pub fn name(connection: &TapedConnection) -> String {
    format!("{}.{}", connection.life, connection.number)
}

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

/// The moments that are looked at, nanoseconds since 1970.
#[derive(Clone, Copy)]
pub struct Span {
    from_ns: u64,
    to_ns: u64,
}

impl Span {
    pub fn has(self, ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&ns)
    }
}

impl Select {
    /// The moments that are looked at.
    pub fn span(&self) -> Span {
        let now_ns = pares_os::clock::now_ns();
        let resolve = |moment: Option<Moment>| moment.map(|moment| moment.resolve(now_ns));
        Span {
            from_ns: resolve(self.from).unwrap_or_default(),
            to_ns: resolve(self.until).unwrap_or(u64::MAX),
        }
    }

    fn wants(&self, connection: &TapedConnection, span: Span) -> bool {
        let of = |wanted: Option<u32>, found: Option<u32>| wanted.is_none() || wanted == found;
        let is_named = |named: Named| {
            named.number == connection.number && named.life.is_none_or(|life| life == connection.life)
        };
        of(self.member, connection.who.map(|(member, _)| member))
            && of(self.session.map(u32::from), connection.who.map(|(_, session)| session.into()))
            && self.connection.is_none_or(is_named)
            && connection.seen_ns >= span.from_ns
            && connection.opened_ns < span.to_ns
    }

    /// Whether nothing is left out.
    pub fn is_all(&self) -> bool {
        self.gateway.is_none()
            && self.member.is_none()
            && self.session.is_none()
            && self.connection.is_none()
            && self.from.is_none()
            && self.until.is_none()
    }

    /// Reads which connections there are; their bytes are read by [`Taped::follow`], since who a connection was is known only once it has signed on.
    /// One that cannot be read to its end keeps nobody from the others.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(&self, layout: &Layout) -> Result<Taps, CommandError> {
        let (config, span) = (configuration(layout)?, self.span());
        let mut taps = Taps { taped: Vec::new(), failed: Vec::new() };
        for gateway in self.gateways(&config, layout) {
            let (mut taped, failed) = Taped::read(gateway, layout);
            if let Some(error) = failed {
                eprintln!("pares: {error}");
                taps.failed.push(taped.left_out());
            }
            taped.connections.retain(|_, one| self.wants(one, span));
            taps.taped.push(taped);
        }
        if taps.taped.is_empty() {
            return Err(CommandError::Usage(format!(
                "there is no tap in {}: set `tap = true` in its pares.toml, or start it with `pares up --tap`",
                layout.root().display()
            )));
        }
        Ok(taps)
    }

    fn gateways(&self, config: &SystemConfig, layout: &Layout) -> Vec<GatewayId> {
        let wanted = |id: &GatewayId| self.gateway.is_none_or(|wanted| wanted == id.0);
        let is_there = |id: &GatewayId| layout.tap(*id).exists() || untold(layout, *id) != (0, 0);
        config.gateway_ids().filter(wanted).filter(is_there).collect()
    }
}

impl Taps {
    /// All is done that could be.
    ///
    /// # Errors
    /// If a tap could not be read.
    pub fn done(&self) -> CommandResult {
        match &self.failed[..] {
            [] => Ok(()),
            failed => Err(CommandError::Failed(format!(
                "not read, or not to its end: {}; of the others everything is told",
                failed.join(", ")
            ))),
        }
    }
}

/// Says that there is nothing to tell, where it is not taken for something that is told.
pub fn nothing(what: &str) {
    eprintln!("pares: the taps have no {what} of what is asked for");
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
fn untold(layout: &Layout, gateway: GatewayId) -> (u64, u64) {
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
            Some(bytes) => format!("{log}, whose last {} bytes are left out", grouped(bytes)),
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

/// Member and session, as they are written.
pub fn who(connection: &TapedConnection) -> String {
    connection.who.map_or_else(|| "-".to_owned(), |(member, session)| format!("{member}/{session}"))
}

#[cfg(test)]
mod tests {
    use pares_log::{Config, Writer};
    use pares_tap::{TapDoor, TapHead};
    use zerocopy::IntoBytes;

    use super::*;
    use crate::error::CommandError;

    #[test]
    fn a_connection_is_named_with_its_life_or_in_every_life() {
        let (of_one, of_all) = (Named { life: Some(64), number: 3 }, Named { life: None, number: 3 });
        assert_eq!(("64.3".parse(), "3".parse()), (Ok(of_one), Ok(of_all)));
        for wrong in ["", ".", "3.", "x.3", "1.2.3"] {
            assert!(wrong.parse::<Named>().is_err(), "{wrong}");
        }
    }

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
        assert!(said.contains(&format!("whose last {} bytes are left out", grouped(left_out))), "{said}");
    }
}
