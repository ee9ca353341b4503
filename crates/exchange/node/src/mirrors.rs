//! The logs of a system at another host: the process that sends them, and the one that receives them.
//!
//! The receiver dials: a source needs to know nobody, and any number of hosts may have its logs. Connections are those of applications to a site
//! (`pares-link`): frames, TLS by the system's authority, an end to who does not read. What is in the frames lies in `pares_roles::mirror`.

mod hosts;
mod receive;
mod serve;

pub(crate) use hosts::keep;
pub use receive::{ReceiverNews, door, receive};
pub use serve::serve;

use std::collections::BTreeSet;

use pares_config::Layout;
use pares_roles::mirror::{LogName, Scope, log_of};

use crate::world::complain;
use crate::{NodeError, NodeId};

/// What a receiver's certificate is called: no member's is.
const RECEIVERS: &str = "mirror-";

/// Makes the mirrors in a system's directory its own logs: its nodes continue them. The processes that wrote the originals must not write any more.
///
/// # Errors
/// If one is still being written, or cannot be changed.
pub(crate) fn take_over(layout: &Layout, nodes: &[NodeId]) -> Result<(), NodeError> {
    for &node in nodes.iter().filter(|&&node| log_of(node).is_some()) {
        if pares_log::take_over(&layout.log(node))? {
            complain(&format_args!(
                "pares: {node} continues the log of another host, which was mirrored here"
            ));
        }
    }
    // If it stays, the logs still refuse a receiver.
    let _there_is_none = std::fs::remove_file(layout.mirrored());
    Ok(())
}

/// The logs in a system's directory that are mirrored, of those in `scope`.
fn logs_in(layout: &Layout, scope: &Scope) -> Vec<LogName> {
    let entries = std::fs::read_dir(layout.root()).into_iter().flatten().flatten();
    let logs = entries.filter_map(|entry| log_of(entry.file_name().to_str()?.parse().ok()?));
    logs.filter(|&log| scope.has(log)).collect()
}

fn refused(error: impl std::fmt::Display) -> NodeError {
    NodeError::Refused(error.to_string())
}

/// Lines that were said: each once, until something changes. Of a peer that makes up new ones only so many.
#[derive(Default)]
struct Told(BTreeSet<String>);

impl Told {
    const LINES_MAX: usize = 64;

    fn is_new(&mut self, line: &str) -> bool {
        self.0.len() < Self::LINES_MAX && self.0.insert(line.to_owned())
    }
}

#[cfg(test)]
mod tests;
