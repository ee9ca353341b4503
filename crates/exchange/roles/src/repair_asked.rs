//! Asking a node to repair its log.
//!
//! A node does not read its own log while it runs, so damage in it is found by others. They go on with what is whole, and leave
//! a note; the node finds it, ends, and repairs its log as it starts again, as any node does whose log it cannot open.
//!
//! ```text
//! DIR/run/repair-recorder-0        somebody asks recorder 0 to repair its log
//! ```

use std::path::PathBuf;

use crate::NodeId;
use crate::world::{File, World};

fn note(node: NodeId) -> PathBuf {
    PathBuf::from("run").join(format!("repair-{node}"))
}

/// Asks a node to repair its log. Best effort: whoever meets the damage next asks again.
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

/// The node has read its log through, and repaired it if need be.
pub fn done<W: World>(world: &W, node: NodeId) {
    // One that stays costs another restart.
    let _ = world.remove_file(&note(node));
}
