//! What is recorded, as one of several hosts knows it when it starts.

use std::collections::BTreeMap;

use pares_config::{NodeId, SystemConfig};
use pares_types::HostId;

use super::Found;
use crate::recorder::{self, Contents};
use crate::world::World;
use crate::{NodeError, durable_log};

/// What this host's recorder has, and the mirrors of the others' logs. What cannot be read is left to who repairs it: a position that is taken for
/// unrecorded is only decided in the windows once more, as it was.
pub(super) fn found<W: World>(world: &W, config: &SystemConfig, host: HostId) -> Result<Found, NodeError> {
    let mut found =
        Found { each: BTreeMap::new(), all: Contents::nothing(config)?, unread: Vec::new(), why: None };
    for id in config.recorder_ids() {
        let node = NodeId::Recorder(id);
        if config.host_of(node) == Some(host) {
            // Whole records that were not published yet are kept: the recorder will find them too.
            let opened = world.write_log(node, durable_log(config)).map(drop);
            opened.unwrap_or_else(|error| world.complain(&format_args!("{node}: {error}")));
        }
        match recorder::recorded(world, id, config) {
            Ok(contents) => drop(found.each.insert(id, contents)),
            Err(error) => world.complain(&format_args!("{node}: {error}")),
        }
    }
    found.sum_up();
    Ok(found)
}
