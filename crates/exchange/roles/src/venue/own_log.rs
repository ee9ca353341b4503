//! Opening a venue's own log.
//!
//! A venue keeps nothing in it that cannot be made again: what is recorded is in the recorders' logs, and the rest is executed once
//! more. So a log that is damaged must not keep a venue from starting. It goes aside, for the operator to look at, and the venue
//! begins another, also in the place of one of another version.

use std::fmt::Display;

use pares_config::NodeId;
use pares_log::{Config, LogReader, LogReplacement, OpenError, ReadError};
use pares_types::VenueId;

use crate::world::World;
use crate::{NodeError, repair_asked};

/// Opens the log of a venue for writing, or a new one in its place if it is damaged. It is read through first if a node met
/// damage in it.
pub(super) fn open<W: World>(world: &W, id: VenueId, config: &Config) -> Result<W::Writer, NodeError> {
    let log = NodeId::Venue(id);
    if repair_asked::is_asked(world, log)
        && let Some(why) = damage(world, log)?
    {
        set_aside(world, log, config, &why)?;
    }
    match world.write_log(log, config.clone()) {
        Err(why) if why.is_damage() || matches!(why, OpenError::Foreign { .. }) => {
            set_aside(world, log, config, &why)?;
            Ok(world.write_log(log, config.clone())?)
        }
        opened => Ok(opened?),
    }
}

/// The first place of the log that cannot be read.
fn damage<W: World>(world: &W, log: NodeId) -> Result<Option<ReadError>, NodeError> {
    let read_through = || {
        let mut reader = world.read_log_from_start(log)?;
        while reader.next()?.is_some() {}
        Ok(())
    };
    match read_through() {
        Ok(()) | Err(ReadError::NotYet { .. }) => Ok(None),
        Err(why) if why.is_damage() || matches!(why, ReadError::Foreign { .. }) => Ok(Some(why)),
        Err(error) => Err(error.into()),
    }
}

fn set_aside<W: World>(world: &W, log: NodeId, config: &Config, why: &dyn Display) -> Result<(), NodeError> {
    let aside = world.replace_log(log, config.clone())?.complete()?;
    world.complain(&format_args!(
        "{why}. The log of {log} was moved to {}, and a new one begins: the recorders have its results, or they are executed again",
        aside.display()
    ));
    Ok(())
}
