//! Which venue executes which shards while the system runs: the file `lanes`, as nodes follow it and as a move writes it.
//!
//! ```text
//! DIR/lanes        the number of the placement, and for each shard its venues and the step of its move
//! ```
//! Nobody is asked to follow: each node looks now and then whether the file is another, does what it says and then says its number by a
//! counter. Who moves a shard writes the next step ([`advance`]) once these have said the present one:
//!
//! | who | otherwise |
//! |---|---|
//! | all recorders that run | two could judge by sets of venues that have no majority in common |
//! | all gateways that run | a venue would sleep over what they journal |
//! | the venues that the shard comes to, and one of those that are left | it would be nowhere while they restore it |
//!
//! A node opens its log, which one process can, makes its counters again, and only then reads the file. So who has no log open reads what is
//! written before it opens it, and a word of its last life does not count. Where no recorder runs nothing is written: one may be about to.

use std::io::ErrorKind;
use std::path::PathBuf;

use pares_config::{Layout, NodeId, Placement, Seats, SystemConfig};
use pares_types::{ShardId, VenueId, VenueSet};

use crate::world::World;
use crate::{NodeError, shut_out, whole_file};

/// The counter of a node that says which placement it follows.
pub const NUMBER_COUNTER: &str = "lanes";

fn file() -> PathBuf {
    Layout::new("").lanes()
}

fn text(world: &impl World) -> Result<Option<String>, NodeError> {
    match whole_file::read(world, &file()) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(NodeError::Read { path: file(), source }),
    }
}

/// Which venue executes which shards.
///
/// # Errors
/// If that cannot be read, or `pares.toml` contradicts it.
pub fn placement(world: &impl World, config: &SystemConfig) -> Result<Placement, NodeError> {
    Ok(of(text(world)?.as_deref(), config)?)
}

fn of(text: Option<&str>, config: &SystemConfig) -> Result<Placement, pares_config::ConfigError> {
    text.map_or_else(|| config.placement(), |text| Placement::read(text, config, false))
}

/// Takes over what `pares.toml` says of shards that were not moved: everything is about to start.
///
/// # Errors
/// If `pares.toml` contradicts a move, or the file cannot be read or written.
pub(crate) fn carry_over(world: &impl World, config: &SystemConfig) -> Result<(), NodeError> {
    let Some(old) = text(world)? else { return Ok(()) };
    let new = Placement::read(&old, config, true)?.text(config)?;
    if new == old { Ok(()) } else { write(world, &new) }
}

fn write(world: &impl World, text: &str) -> Result<(), NodeError> {
    whole_file::write(world, &file(), text)
        .map_err(NodeError::io("writing which venue executes which shards"))
}

/// The file as a node looks at it while it runs.
pub struct LanesWatch {
    config: SystemConfig,
    text: Option<String>,
    number: u64,
    /// Whether the operator knows that it cannot be followed.
    told: bool,
}

impl LanesWatch {
    /// What it says now. The node has its log open and its counters made.
    ///
    /// # Errors
    /// As [`placement`].
    pub fn open(world: &impl World, config: &SystemConfig) -> Result<(Self, Placement), NodeError> {
        let text = text(world)?;
        let placement = of(text.as_deref(), config)?;
        let number = placement.number();
        Ok((Self { config: config.clone(), text, number, told: false }, placement))
    }

    /// What it says if that is something else now. What cannot be read or understood is not followed, and the operator is informed once.
    pub fn look(&mut self, world: &impl World) -> Option<Placement> {
        let read = text(world).and_then(|text| {
            if text.is_none() || text == self.text {
                return Ok(None);
            }
            let placement = of(text.as_deref(), &self.config)?;
            self.text = text;
            Ok((placement.number() > self.number).then_some(placement))
        });
        let told = std::mem::replace(&mut self.told, read.is_err());
        let placement = read
            .inspect_err(|error| {
                if !told {
                    world.complain(error);
                }
            })
            .ok()??;
        self.number = placement.number();
        Some(placement)
    }
}

/// What came of the wish for the next step of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveProgress {
    /// The shard is where it should be, and all follow.
    Done,
    /// A step was written: who has the shard now.
    Stepped(Seats),
    /// It is not time for one yet.
    Waits(String),
}

/// Writes the next step by which a shard comes to those venues, if all have followed the last one. `runs` says of a node whether a process
/// has its log open. One caller at a time.
///
/// # Errors
/// If it cannot be moved there, or not now.
pub fn advance<W: World>(
    world: &W,
    config: &SystemConfig,
    (shard, to): (ShardId, VenueSet),
    runs: impl Fn(NodeId) -> Result<bool, NodeError>,
) -> Result<MoveProgress, NodeError> {
    let placement = placement(world, config)?;
    let seats = placement.seats(shard);
    let next = checked(config, &placement, (shard, to))?;
    let says = |node: NodeId| world.counter(&node.to_string(), NUMBER_COUNTER) == Some(placement.number());
    let behind = match not_followed(config, says, &runs)? {
        None => without_the_shard((seats, next), says, runs)?,
        reader => reader,
    };
    if let Some(why) = behind {
        return Ok(MoveProgress::Waits(why));
    }
    if next == seats {
        return Ok(MoveProgress::Done);
    }
    for venue in seats.all().or(to).iter() {
        if shut_out::is_shut_out(world, venue)? {
            return refused(format!(
                "venue-{venue} is shut out: readmit it first, `pares admin readmit venue-{venue}`"
            ));
        }
    }
    let stepped = placement.with(shard, next, config)?;
    assert!(
        stepped.number() > placement.number(),
        "who has followed the last step has not followed the next"
    );
    write(world, &stepped.text(config)?)?;
    Ok(MoveProgress::Stepped(next))
}

fn refused<T>(what: String) -> Result<T, NodeError> {
    Err(NodeError::Refused(what))
}

/// The next step, if there can be one.
fn checked(
    config: &SystemConfig,
    placement: &Placement,
    (shard, to): (ShardId, VenueSet),
) -> Result<Seats, NodeError> {
    let seats = placement.seats(shard);
    if seats.all().is_empty() {
        return refused(format!("no instrument is in shard {shard}"));
    }
    if to.is_empty() || !to.without(VenueSet::first(config.venues)).is_empty() {
        return refused(format!("a shard has one venue or more, of those from 0 to {}", config.venues - 1));
    }
    if !config.sequencer {
        return refused("with `sequencer = false` no shard moves while trading".into());
    }
    if let Some(other) = placement.moving().find(|&other| other != shard) {
        let seats = placement.seats(other);
        return refused(format!(
            "shard {other} is being moved ({seats}): finish that first, or take it back"
        ));
    }
    placement.with(shard, Seats::Settled(to), config)?;
    let elsewhere = || format!("shard {shard} is being moved ({seats}): finish that first, or take it back");
    seats.next(to).map_or_else(|| refused(elsewhere()), Ok)
}

/// Which recorder or gateway has not followed yet, if any.
fn not_followed(
    config: &SystemConfig,
    says: impl Fn(NodeId) -> bool,
    runs: impl Fn(NodeId) -> Result<bool, NodeError>,
) -> Result<Option<String>, NodeError> {
    let mut runs_a_recorder = false;
    for id in config.recorder_ids().map(NodeId::Recorder) {
        match (says(id), runs(id)?) {
            (false, true) => {
                return Ok(Some(format!("{id} to follow, and to settle what venues say of the shard")));
            }
            (_, is_up) => runs_a_recorder |= is_up,
        }
    }
    if !runs_a_recorder {
        return Ok(Some("a recorder to run".into()));
    }
    for id in config.gateway_ids().map(NodeId::Gateway) {
        if !says(id) && runs(id)? {
            return Ok(Some(format!("{id} to follow")));
        }
    }
    Ok(None)
}

/// Which venue does not have the shard yet, if any that is to have it.
fn without_the_shard(
    (seats, next): (Seats, Seats),
    says: impl Fn(NodeId) -> bool,
    runs: impl Fn(NodeId) -> Result<bool, NodeError>,
) -> Result<Option<String>, NodeError> {
    assert!(!next.all().is_empty(), "a step of a move leaves the shard with a venue");
    let has_it = |id: VenueId| Ok::<_, NodeError>(says(NodeId::Venue(id)) && runs(NodeId::Venue(id))?);
    for id in seats.coming().and(next.all()).iter() {
        if !has_it(id)? {
            return Ok(Some(format!("venue-{id} to have the shard")));
        }
    }
    for id in next.all().without(next.coming()).iter() {
        if has_it(id)? {
            return Ok(None);
        }
    }
    Ok(Some("a venue that stays to have the shard".into()))
}
