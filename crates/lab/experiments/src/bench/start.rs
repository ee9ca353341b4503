//! `pares bench start`: how long a gateway takes to start beside a long record, and beside a tenth of it.
//!
//! The record is made quickly: shards in memory execute orders at full speed, and what they hand out is appended to a recorder's log as a
//! recorder does. Each shard has a checkpoint as far back as usual: one after the other, an interval of positions apart.
//!
//! ```text
//!  recorder-0  |------------------------ requests -------------------------|
//!  checkpoints                                         s0 . s1 . s2 . s3 .    begin ---- open, first turns ---- serves
//! ```

mod record;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pares_config::bells;
use pares_gateway_role::GatewayNode;
use pares_load::{LabError, LabResult, ScratchDirectory, failed, print_figures};
use pares_node::config;
use pares_node::sockets::{BELL, RealSockets};
use pares_node::{HostWorld, Layout, NodeId, SystemConfig, epoch, lost::OnLoss};
use pares_os::Bells;
use pares_roles::duty::Duty;
use pares_types::GatewayId;
use serde::Serialize;

const GATEWAY: GatewayId = GatewayId(0);

/// Arguments of `pares bench start`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Requests in the record; compared with a tenth as many
    #[arg(long, default_value_t = 30_000_000, value_parser = clap::value_parser!(u64).range(10..=1_000_000_000))]
    requests: u64,
    /// The directory for the files, about 250 bytes per request [default: a temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the benchmark gave.
#[derive(Clone, Debug, Serialize)]
struct Figures {
    /// Requests in the record.
    requests: u64,
    /// From the gateway's opening until it has nothing left to read.
    start_seconds: f64,
    /// Names that it then knows.
    names: usize,
    /// How large the record is.
    record_mib: u64,
    /// The same with a tenth of the requests.
    tenth_requests: u64,
    tenth_start_seconds: f64,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If the files cannot be made, or the gateway does not start.
pub fn run(args: &Args) -> LabResult {
    let tenth = start_beside(args, args.requests / 10)?;
    let whole = start_beside(args, args.requests)?;
    let figures = Figures {
        requests: args.requests,
        start_seconds: whole.took.as_secs_f64(),
        names: whole.names,
        record_mib: whole.record_bytes >> 20,
        tenth_requests: args.requests / 10,
        tenth_start_seconds: tenth.took.as_secs_f64(),
    };
    print_figures(args.json, &figures);
    Ok(())
}

struct Started {
    took: Duration,
    names: usize,
    record_bytes: u64,
}

fn start_beside(args: &Args, requests: u64) -> Result<Started, LabError> {
    let scratch = ScratchDirectory::create(args.dir.as_deref())?;
    let layout = Layout::new(scratch.path().join(requests.to_string()));
    let config = SystemConfig { recorders: 1, venues: 1, segment_mib: 64, ..SystemConfig::default() };
    let config = SystemConfig { gateways: vec![([127, 0, 0, 1], 0).into()], ..config };
    std::fs::create_dir_all(layout.run()).map_err(LabError::io("making the directory"))?;
    config::save(&config, &layout.config())?;
    let world = HostWorld::new(&layout)?;
    let record_bytes = record::make(&world, &config, requests)?;
    epoch::begin(&world, &config, None, OnLoss::Refuse)?;
    let (took, names) = start(&world, &config, &layout)?;
    remove(layout.root())?;
    Ok(Started { took, names, record_bytes })
}

/// The next record needs the room.
fn remove(dir: &Path) -> Result<(), LabError> {
    std::fs::remove_dir_all(dir).map_err(LabError::io("removing a record"))
}

/// Starts the gateway. Says how long it took until it had read all there is, and how many names it knows.
fn start(world: &HostWorld, config: &SystemConfig, layout: &Layout) -> Result<(Duration, usize), LabError> {
    let bells = Bells::create(&layout.run()).map_err(failed("making the bells"))?;
    let bell = bells.listen(bells::of(NodeId::Gateway(GATEWAY)), BELL);
    let bell = bell.map_err(LabError::io("listening to the bell"))?;
    let begun = Instant::now();
    let sockets = RealSockets::open(GATEWAY, config, layout, &bell)?;
    let mut gateway =
        GatewayNode::open(GATEWAY, config, world.clone(), sockets, Arc::new(pares_doors::Doors))?;
    while gateway.work()? > 0 {}
    let took = begun.elapsed();
    let names = pares_os::CountersReader::open(&layout.counters("gateway-0"))
        .map_err(failed("reading the gateway's counters"))?
        .get("names");
    Ok((took, names.unwrap_or_default() as usize))
}
