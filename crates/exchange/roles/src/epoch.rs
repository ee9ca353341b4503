//! Starting the window's next life (design section 5).
//!
//! When everything restarts together, decisions that no recorder has are void: nobody was answered
//! because of them, and after a power failure nobody could tell what they were. So the windows begin again after
//! the last recorded position, under a new epoch that no record and no window of the past carries. The
//! requests behind the void decisions lie in the gateways' logs and are ordered again.
//!
//! An epoch that is used twice makes void decisions look like those of today. Windows may be lost with everything else that lies
//! in memory, and a life in which nothing was recorded leaves nothing in the recorders' logs. So the number is kept in a file
//! of its own, written before the windows are made.
//!
//! ```text
//! DIR/epoch        7 8f2b1c55        the epoch begun last, and a checksum of it
//! ```
//! Only the supervisor does this, holding the system's lock, before any node runs.
//!
//! **A system of several hosts** decides nothing in a host's windows: they show what the hosts have decided together, and what that
//! was no host's restart makes void. So its records bear one epoch, [`of_records`], and the number counted here is the host's own.

mod host;
mod past;

use std::collections::BTreeMap;
use std::path::PathBuf;

use pares_config::{Layout, NodeId, SystemConfig};
use pares_log::{Config, LogSalvage, OpenError, ReadError};
use pares_sequencer::{EPOCH_MAX, Sequencer};
use pares_types::{Epoch, HostId, Position, RecorderId, ShardId};
use pares_wire::record::ResultRecord;

use crate::left_out::LeftOut;
use crate::lost::{self, OnLoss};
use crate::recorder::Contents;
use crate::world::World;
use crate::{NodeError, durable_log, lanes, recorder, venue, whole_file};

/// The epoch of records in a system of several hosts.
const OF_HOSTS: Epoch = Epoch(1);

/// Creates every shard's window for the next epoch. Says which that is. Continues without a recorder that cannot be read, as long
/// as a quorum of them can. At a host of several (`host`) it continues with what there is: the others have the rest.
///
/// # Errors
/// If too few recorders can be read, one that cannot may be the only one to have what is known to be recorded, recorded positions are
/// lost that `on_loss` does not give up, or a window cannot be created.
pub fn begin<W: World>(
    world: &W,
    config: &SystemConfig,
    host: Option<HostId>,
    on_loss: OnLoss,
) -> Result<Epoch, NodeError> {
    lanes::carry_over(world, config)?;
    let found = match host {
        None => Found::by(world, config)?,
        Some(host) => host::found(world, config, host)?,
    };
    let Contents { next: first, epoch: recorded, .. } = &found.all;
    let before = recorded.max(&windows(world, first)).max(&noted_or_seen(world, config)).0;
    let epoch = Epoch(before + 1);
    if epoch > EPOCH_MAX {
        let why = format!("this system was started {before} times, the most that it supports");
        return Err(NodeError::Refused(why));
    }
    assert!(epoch > *recorded, "no record bears the epoch that begins");
    if host.is_none() {
        lost::settle(world, config, first, on_loss)?;
    }
    note(world, epoch)?;
    for &id in &found.unread {
        let lives = first.iter().map(|(&shard, &position)| (shard, epoch, position));
        LeftOut::new(lives).note(world, id)?;
    }
    // What nodes of the last life said of themselves must not be taken for what those of this one say.
    let nodes = NodeId::at(config, host);
    for &node in &nodes {
        let emptied = world.create_counters(&node.to_string(), &[]);
        emptied.map_err(NodeError::io("emptying the counters of the last start"))?;
    }
    make_logs(world, config, &nodes, &found.all);
    for (&shard, &position) in first {
        let made = world.create_window(shard, config.window as usize, epoch, position);
        made.map_err(NodeError::io("making a window"))?;
    }
    Ok(epoch)
}

/// Makes the logs of nodes that have none: no gateway makes its own, and what is there need not be looked for. Those of recorders are.
fn make_logs<W: World>(world: &W, config: &SystemConfig, nodes: &[NodeId], recorded: &Contents) {
    for &node in nodes {
        match node {
            NodeId::Gateway(id) => {
                make_log(world, node, &durable_log(config), recorded.gateways.contains(&id));
            }
            NodeId::Venue(_) | NodeId::Orderer(_) => {
                make_log(world, node, &venue::log_config(config), false);
            }
            _ => {}
        }
    }
}

/// `had_one`: the record has requests of it.
fn make_log<W: World>(world: &W, log: NodeId, how: &Config, had_one: bool) {
    if !matches!(world.read_log_from_start(log), Err(ReadError::NotYet { .. })) {
        return;
    }
    // There is none, or another is just taking its place.
    let opened = match world.write_log(log, how.clone().existing()).map(drop) {
        Err(OpenError::Absent { .. }) => {
            if had_one {
                world.complain(&format_args!(
                    "the log of {log} is missing: members must repeat requests that it had accepted and no recorder has"
                ));
            }
            world.write_log(log, how.clone()).map(drop)
        }
        opened => opened,
    };
    if let Err(error) = opened {
        // The others trade without it. It repairs what can be repaired, and says what cannot.
        world.complain(&format_args!("{log}: {error}"));
    }
}

/// What the recorders have.
struct Found {
    /// What lies in each of their logs.
    each: BTreeMap<RecorderId, Contents>,
    /// What lies in any of them.
    all: Contents,
    /// Those that cannot be read.
    unread: Vec<RecorderId>,
    /// What is wrong with the first of them.
    why: Option<NodeError>,
}

impl Found {
    fn by<W: World>(world: &W, config: &SystemConfig) -> Result<Self, NodeError> {
        let mut found =
            Self { each: BTreeMap::new(), all: Contents::nothing(config)?, unread: Vec::new(), why: None };
        // Opening for writing keeps whole records that were not published yet; what the recorder will find when it starts
        // must be counted here. All are opened before any is read.
        let open = |id| world.write_log(NodeId::Recorder(id), durable_log(config)).map(drop);
        let opened: Vec<_> = config.recorder_ids().map(|id| (id, open(id))).collect();
        let read = |id| recorder::recorded(world, id, config);
        let logs = opened
            .into_iter()
            .map(|(id, opened)| (id, opened.map_err(NodeError::from).and_then(|()| read(id))));
        let logs: Vec<_> = logs.collect();
        // A repair takes from the others what they have: all that does not count is noted before the first.
        past::note(world, config, &logs)?;
        for (id, log) in logs {
            let mut log = Some(log);
            let whole = recorder::repair::whole(world, id, config, || log.take().unwrap_or_else(|| read(id)));
            found.add(world, id, whole)?;
        }
        past::check(&found.each)?;
        let counted = found.each.len() + found.unread.len();
        assert_eq!(counted, usize::from(config.recorders), "each recorder is read, or it is not");
        assert_eq!(found.why.is_some(), !found.unread.is_empty(), "who is not read has a reason");
        found.sum_up();
        match found.why.take() {
            None => Ok(found),
            Some(why) => found.without_unread(world, config, why),
        }
    }

    /// Takes what was read of a recorder.
    fn add(
        &mut self,
        world: &impl World,
        id: RecorderId,
        read: Result<Contents, NodeError>,
    ) -> Result<(), NodeError> {
        match read {
            Ok(contents) => drop(self.each.insert(id, contents)),
            Err(error) if is_its_own(&error) => {
                world.complain(&format_args!("{} cannot be read: {error}", NodeId::Recorder(id)));
                self.unread.push(id);
                self.why.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn sum_up(&mut self) {
        for contents in self.each.values() {
            self.all.epoch = self.all.epoch.max(contents.epoch);
            self.all.gateways.extend(&contents.gateways);
            for (shard, &position) in &contents.next {
                self.all.next.entry(*shard).and_modify(|first| *first = (*first).max(position));
            }
        }
    }

    /// Whether to continue with the others. Not if that surely gives up what a member received.
    fn without_unread(
        self,
        world: &impl World,
        config: &SystemConfig,
        why: NodeError,
    ) -> Result<Self, NodeError> {
        assert!(!self.unread.is_empty(), "there is a reason why one is not read, and whose it is");
        if usize::from(config.recorders) - self.unread.len() < usize::from(config.quorum) {
            return Err(why);
        }
        for (&shard, &first) in &self.all.next {
            let recorded = match world.open_window(shard) {
                Ok(Some(window)) => window.recorded(),
                _ => continue,
            };
            if recorded > first {
                let log = PathBuf::from(NodeId::Recorder(self.unread[0]).to_string());
                let missing = format!("shard {shard}: positions {first} to {}", recorded.0 - 1);
                return Err(NodeError::Irreparable { log, why: why.to_string(), missing });
            }
        }
        for &id in &self.unread {
            let node = NodeId::Recorder(id);
            world.complain(&format_args!(
                "starting without {node}: records that only it had are lost; its log will be rebuilt from \
                 the others as soon as it can be opened"
            ));
        }
        Ok(self)
    }
}

/// Whether it is that recorder's trouble alone.
fn is_its_own(error: &NodeError) -> bool {
    match error {
        NodeError::Open(OpenError::Locked { .. } | OpenError::SegmentBytes { .. }) => false,
        NodeError::Open(_) | NodeError::Log(_) | NodeError::Append(_) | NodeError::Io { .. } => true,
        NodeError::Irreparable { .. } | NodeError::Read { .. } | NodeError::DamagedNote(_) => true,
        _ => false,
    }
}

fn windows(world: &impl World, shards: &BTreeMap<ShardId, Position>) -> Epoch {
    let windows = shards.keys().filter_map(|&shard| world.open_window(shard).ok().flatten());
    windows.map(|window| window.epoch()).max().unwrap_or(Epoch(0))
}

/// The epoch that the file says. Without one that can be believed, the latest that a venue met.
fn noted_or_seen(world: &impl World, config: &SystemConfig) -> Epoch {
    let venues = || config.venue_ids().map(|id| seen(world, NodeId::Venue(id))).max();
    noted(world).or_else(venues).unwrap_or(Epoch(0))
}

fn file() -> PathBuf {
    Layout::new("").epoch()
}

fn text(epoch: Epoch) -> String {
    format!("{epoch} {:08x}\n", crc32c::crc32c(epoch.to_string().as_bytes()))
}

fn note(world: &impl World, epoch: Epoch) -> Result<(), NodeError> {
    whole_file::write(world, &file(), &text(epoch)).map_err(NodeError::io("noting the epoch"))
}

fn noted(world: &impl World) -> Option<Epoch> {
    let said = whole_file::read(world, &file()).ok()?;
    let epoch = Epoch(said.split_once(' ')?.0.parse().ok()?);
    (text(epoch) == said).then_some(epoch)
}

fn seen(world: &impl World, log: NodeId) -> Epoch {
    let mut latest = Epoch(0);
    if let Ok(mut log) = world.salvage_log(log) {
        while let Some(entry) = log.next() {
            latest = ResultRecord::read(entry.payload).map_or(latest, |record| latest.max(record.epoch()));
        }
    }
    latest
}

/// The epoch that records bear.
///
/// # Errors
/// As [`current`].
pub fn of_records(world: &impl World, config: &SystemConfig) -> Result<Epoch, NodeError> {
    if config.hosts.is_empty() { current(world, config) } else { Ok(OF_HOSTS) }
}

/// The epoch in force; of a system of several hosts, the life of this host's windows.
///
/// # Errors
/// If no window exists: the system was not started.
pub fn current(world: &impl World, config: &SystemConfig) -> Result<Epoch, NodeError> {
    let shards = config.shards()?;
    let (&shard, _) = shards.first_key_value().expect("a system has a shard");
    window(world, shard).map(|window| window.epoch())
}

/// A shard's window.
///
/// # Errors
/// [`NodeError::NotStarted`] if there is none.
pub fn window<W: World>(world: &W, shard: ShardId) -> Result<W::Window, NodeError> {
    world.open_window(shard).map_err(NodeError::io("opening a window"))?.ok_or(NodeError::NotStarted(shard))
}

#[cfg(test)]
mod tests;
