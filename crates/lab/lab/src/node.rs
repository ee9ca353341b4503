//! `pares-lab node`: one node in this process. It fails where its environment says.

use std::path::PathBuf;
use std::sync::Arc;

use pares_doors::Doors;
use pares_faults::Faulty;
use pares_load::LabResult;
use pares_node::{HostWorld, Layout, NodeId, leftovers, process};

/// Arguments of `pares-lab node`.
#[derive(clap::Args)]
pub struct Args {
    /// The node: gateway-0, venue-1, recorder-0, publisher-0, replayer-1, ...
    node: NodeId,
    /// The system's directory
    #[arg(long, default_value = "pares-data")]
    dir: PathBuf,
}

/// Runs the node until it receives a request to stop.
///
/// # Errors
/// Whatever ends it otherwise.
pub fn run(args: &Args) -> LabResult {
    leftovers::end_with_parent()?;
    let layout = Layout::new(&args.dir);
    let world = Faulty::from_environment(args.node, HostWorld::new(&layout)?)?;
    match args.node {
        NodeId::Gateway(id) => {
            let wrap = |sockets| world.sockets(sockets);
            Ok(process::run_gateway(id, &layout, world.clone(), Arc::new(Doors), wrap)?)
        }
        node if node.only_tells() => Ok(pares_publisher::process::run_in(node, &layout, world)?),
        node => Ok(process::run_in(node, &layout, world)?),
    }
}
