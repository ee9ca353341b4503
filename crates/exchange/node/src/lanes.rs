//! The operator's command that moves a shard to other venues while members trade.

use std::time::Duration;

use pares_config::{Layout, Placement, SystemConfig};
use pares_os::process::Lock;
use pares_roles::lanes::{self, MoveProgress};
use pares_roles::world::{Ring, World};
use pares_types::{ShardId, VenueSet};

use crate::{HostWorld, NodeError, NodeId};

/// Between two looks at who has followed.
const PAUSE: Duration = Duration::from_millis(10);

/// Which venue executes which shards now.
///
/// # Errors
/// As [`lanes::placement`].
pub fn placement(config: &SystemConfig, layout: &Layout) -> Result<Placement, NodeError> {
    lanes::placement(&HostWorld::new(layout)?, config)
}

/// Moves a shard to those venues, or back from where it is on its way to; gives to `progress` each step, and what the next one waits for. Ends when
/// all follow the last step. If it is killed, the same call continues.
///
/// # Errors
/// If the shard cannot be moved there, or another process is just moving one.
pub fn move_shard(
    (shard, to): (ShardId, VenueSet),
    (config, layout): (&SystemConfig, &Layout),
    mut progress: impl FnMut(&str),
) -> Result<(), NodeError> {
    if !config.hosts.is_empty() {
        return Err(NodeError::Refused("a shard is moved in a system of one host only, as yet".into()));
    }
    let busy = || NodeError::Refused("another process is moving a shard: wait until it has ended".into());
    let lock = Lock::take(&layout.run().join("lanes.lock")).map_err(NodeError::io("starting a move"))?;
    let _alone = lock.ok_or_else(busy)?;
    let world = HostWorld::new(layout)?;
    let mut ringer = world.ringer();
    let runs = |node: NodeId| Ok(pares_log::writing_process(&layout.log(node))?.is_some());
    let mut told = String::new();
    loop {
        let step = match lanes::advance(&world, config, (shard, to), runs)? {
            MoveProgress::Done => return Ok(()),
            MoveProgress::Stepped(seats) => format!("shard {shard}: {seats}"),
            MoveProgress::Waits(what) => format!("waits for {what}"),
        };
        if step != told {
            progress(&step);
            told = step;
        }
        // Who sleeps looks at its files now and then only.
        NodeId::all(config).into_iter().for_each(|node| ringer.ring(node));
        std::thread::sleep(PAUSE);
    }
}
