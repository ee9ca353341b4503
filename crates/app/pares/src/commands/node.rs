//! `pares node`: one node in this process.

use std::path::PathBuf;
use std::sync::Arc;

use pares_doors::Doors;
use pares_node::{Layout, NodeId, leftovers, process};

use crate::commands::market;
use crate::error::CommandResult;

/// Arguments of `pares node`.
#[derive(clap::Args)]
pub struct Args {
    /// The node: gateway-0, venue-1, recorder-0, publisher-0, replayer-1, ...
    node: NodeId,
    /// The system's directory
    #[arg(long, default_value = "pares-data")]
    dir: PathBuf,
    /// Continue when the parent process ends
    #[arg(long)]
    detached: bool,
}

/// Runs the node until a signal stops it.
///
/// # Errors
/// Whatever ends it otherwise.
pub fn run(args: &Args) -> CommandResult {
    if !args.detached {
        leftovers::end_with_parent()?;
    }
    let (node, layout) = (args.node, Layout::new(&args.dir));
    match node {
        NodeId::Gateway(id) => {
            let world = market::world_of(node, &layout)?;
            process::run_gateway(id, &layout, world, Arc::new(Doors), |sockets| sockets)?
        }
        _ => pares_publisher::process::run(node, &layout)?,
    }
    Ok(())
}
