//! One node of a system that the laboratory started, in this process. It fails where its environment says.

use std::path::PathBuf;

use pares_faults::Faulty;
use pares_load::LabResult;
use pares_node::{HostWorld, Layout, NodeId, leftovers, process};

/// What a supervisor tells a node.
#[derive(clap::Args)]
pub struct Args {
    node: NodeId,
    #[arg(long)]
    dir: PathBuf,
}

/// Runs the node until it is told to stop.
///
/// # Errors
/// Whatever ends it otherwise.
pub fn run(args: &Args) -> LabResult {
    leftovers::end_with_parent()?;
    let layout = Layout::new(&args.dir);
    let world = Faulty::from_environment(args.node, HostWorld::new(&layout)?)?;
    match args.node.only_tells() {
        true => Ok(pares_publisher::process::run_in(args.node, &layout, world)?),
        false => Ok(process::run_in(args.node, &layout, world.clone(), |sockets| world.sockets(sockets))?),
    }
}
