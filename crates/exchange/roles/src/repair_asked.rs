//! Asking a node to repair its log.
//!
//! A node does not read its own log while it runs, so damage in it is found by others. They continue with what is whole, and leave
//! a note; the node finds it, ends, and repairs its log as it starts again, as any node does whose log it cannot open.
//!
//! ```text
//! DIR/run/repair-recorder-0        a node asks recorder 0 to repair its log
//! ```

use std::io::ErrorKind;
use std::path::PathBuf;

use pares_config::NodeId;

use crate::NodeError;
use crate::world::{File, World};

/// Duty cycles between two looks for notes: a look is a system call, and a few hundred cycles are soon over.
const LOOK_EVERY: u32 = 256;

fn note(node: NodeId) -> PathBuf {
    PathBuf::from("run").join(format!("repair-{node}"))
}

/// Asks a node to repair its log. Best effort: the next to meet the damage asks again.
pub fn ask<W: World>(world: &W, node: NodeId) {
    let asked = world.create_file(&note(node)).and_then(|mut file| file.append(b"damaged\n"));
    if let Err(error) = asked {
        world.complain(&format_args!("{node} cannot be asked to repair its log: {error}"));
    }
}

/// Whether the node is asked to.
pub fn is_asked<W: World>(world: &W, node: NodeId) -> bool {
    world.open_file(&note(node)).is_ok()
}

/// Removes the note: the node has read its log through, and repaired it if need be. The node then looks for the next one.
///
/// One that cannot be removed would end the node at its first look, and every process after it. So the operator is informed, and
/// this process looks for it no more.
pub fn done<W: World>(world: &W, node: NodeId) -> RepairWatch {
    let removed = world.remove_file(&note(node));
    let stays = removed.err().filter(|error| error.kind() != ErrorKind::NotFound);
    if let Some(error) = &stays {
        world.complain(&format_args!(
            "{} cannot be removed ({error}): until then, {node} repairs damage in its log only at a start",
            note(node).display()
        ));
    }
    RepairWatch { node, cycles: 0, is_deaf: stays.is_some() }
}

/// A node's looks for notes, now and then.
pub struct RepairWatch {
    node: NodeId,
    cycles: u32,
    is_deaf: bool,
}

impl RepairWatch {
    /// Called once per duty cycle. Says whether it is time to look for notes.
    ///
    /// # Errors
    /// [`NodeError::RepairAsked`].
    pub fn is_due(&mut self, world: &impl World) -> Result<bool, NodeError> {
        self.cycles = self.cycles.wrapping_add(1);
        let is_due = self.cycles.is_multiple_of(LOOK_EVERY);
        match is_due && !self.is_deaf && is_asked(world, self.node) {
            true => Err(NodeError::RepairAsked),
            false => Ok(is_due),
        }
    }
}
