//! Servers whose stream could not be opened while all others were started: the note `left-out-S`.
//!
//! The others continue without it, from the last position that any of them has. No trader has received what its log has from there on, or the
//! start would have been refused; and something else stands there by the time the log can be opened again.

use std::path::Path;

use pares_roles::{NodeError, World};
use pares_types::Position;

use crate::config::MemberConfig;
use crate::notes;
use crate::server::logs;

/// Notes whose stream could not be opened at this start, which continues at `next`: from there on that log has something else, or nothing. All others
/// were compared with each other.
pub(super) fn note<W: World>(world: &W, left_out: &[bool], next: Position) -> std::io::Result<()> {
    for (server, &is_left_out) in (0..).zip(left_out) {
        match (is_left_out, first_left_out(world, server)) {
            (true, before) => {
                let first = before.map_or(next, |before| before.min(next));
                notes::write(world, &file(server), first.0)?;
            }
            (false, Some(_)) => world.remove_file(Path::new(&file(server)))?,
            (false, None) => {}
        }
    }
    Ok(())
}

/// Where a start continued that left the server out, the first since its log was compared with the others.
fn first_left_out(world: &impl World, server: u16) -> Option<Position> {
    notes::read(world, &file(server)).map(Position)
}

/// Cuts from the log of a server that was left out of a start what may stand elsewhere since.
///
/// # Errors
/// If the log, or the note, cannot be written.
pub(crate) fn cut_if_left_out<W: World>(
    world: &W,
    config: &MemberConfig,
    server: u16,
) -> Result<(), NodeError> {
    let Some(first) = first_left_out(world, server) else { return Ok(()) };
    logs::keep_below(world, config, server, first)?;
    let removed = world.remove_file(Path::new(&file(server))).and_then(|()| world.sync_dir(Path::new("")));
    removed.map_err(NodeError::io("noting that the log was cut"))
}

fn file(server: u16) -> String {
    format!("left-out-{server}")
}
