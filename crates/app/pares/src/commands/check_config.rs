//! `pares check-config`: whether a configuration is legal, and what a production system must think about.

#[cfg(feature = "sites")]
mod sites;

use std::fmt::Display;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pares_config::{ClientCertificates, DurabilitySetting, FeedConfig, SignOnSetting, TlsSetting};
use pares_node::config;
use pares_node::{Layout, SystemConfig};
#[cfg(feature = "sites")]
use pares_operator::OperatorError;
#[cfg(feature = "sites")]
use pares_site::{SitesConfig, config::SITES_FILE};
use serde_json::json;

use crate::error::{CommandError, CommandResult};

/// Why encryption may be off.
const ALL_HERE: &str = "every port is on this machine: nothing passes a network";

/// Arguments of `pares check-config`.
#[derive(clap::Args)]
pub struct Args {
    /// The configuration: `pares.toml` of an exchange, `sites.toml` of sites, or a directory with one [default: the system's]
    file: Option<PathBuf>,
    /// The system's directory
    #[arg(long, default_value = "pares-data")]
    dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A setting that a production system must think about.
#[derive(Clone)]
struct Point {
    setting: &'static str,
    in_force: String,
    /// Whether it is as it should be for trading in earnest.
    is_safe: bool,
    why: &'static str,
}

impl Point {
    fn new(setting: &'static str, in_force: impl Display, is_safe: bool, why: &'static str) -> Self {
        Self { setting, in_force: in_force.to_string(), is_safe, why }
    }

    fn tls(setting: &'static str, tls: TlsSetting, is_local: bool, risk: &'static str) -> Self {
        let is_on = tls == TlsSetting::On;
        let why = if is_local && !is_on { ALL_HERE } else { risk };
        Self::new(setting, if is_on { "on" } else { "off" }, is_on || is_local, why)
    }
}

/// Checks the file and says what to think about.
///
/// # Errors
/// If the file cannot be read or is not legal.
pub fn run(args: &Args) -> CommandResult {
    let file = match &args.file {
        Some(dir) if dir.is_dir() => of_system(dir),
        Some(file) => file.clone(),
        None => of_system(&args.dir),
    };
    let (what, points) = checked(&file)?;
    if args.json {
        let points = points.iter().map(|point| {
            json!({ "setting": point.setting, "in_force": point.in_force, "safe": point.is_safe, "why": point.why })
        });
        let points: Vec<_> = points.collect();
        pares_text::say!("{}", json!({ "legal": true, "what": what, "points": points }));
        return Ok(());
    }
    print(&format!("{} is legal: {what}", file.display()), &points);
    Ok(())
}

/// What a file is of, and what to think about.
fn checked(file: &Path) -> Result<(String, Vec<Point>), CommandError> {
    #[cfg(feature = "sites")]
    if sites::is_of_sites(file) {
        let config = SitesConfig::read(file).map_err(OperatorError::from)?;
        return Ok((sites::named(&config), sites::points(&config)));
    }
    let config = config::load(file)?;
    Ok(("an exchange".to_owned(), of_exchange(&config, file.parent().unwrap_or(Path::new(".")))))
}

/// The configuration in a system's directory.
fn of_system(dir: &Path) -> PathBuf {
    let exchange = dir.join("pares.toml");
    #[cfg(feature = "sites")]
    if !exchange.exists() && dir.join(SITES_FILE).exists() {
        return dir.join(SITES_FILE);
    }
    exchange
}

/// What an exchange must think about.
fn of_exchange(config: &SystemConfig, dir: &Path) -> Vec<Point> {
    [record(config, dir), lanes(config), doors(config), market_data(config), limits(config)].concat()
}

fn print(head: &str, points: &[Point]) {
    pares_text::say!("{head}. Before production, consider:");
    for point in points {
        let mark = if point.is_safe { "ok   " } else { "LOOK " };
        pares_text::say!("{mark} {} = {}", point.setting, point.in_force);
        pares_text::say!("      {}", point.why);
    }
}

/// Whether what members receive is kept.
fn record(config: &SystemConfig, dir: &Path) -> Vec<Point> {
    let durability = match config.durability {
        DurabilitySetting::Disk => "disk",
        DurabilitySetting::Os => "os",
    };
    let disks = disks(config, dir);
    vec![
        Point::new(
            "durability",
            durability,
            config.durability == DurabilitySetting::Disk,
            "with `os`, a power loss can lose the last seconds of answers already sent to members",
        ),
        Point::new(
            "quorum",
            format_args!("{} of {} recorders", config.quorum, config.recorders),
            config.quorum >= 2,
            "with 1, the loss of one disk can lose records; 2 of 3 recorders survive the loss of any one disk",
        ),
        Point::new(
            "recorders' disks",
            format_args!("{disks} for {} recorders", config.recorders),
            disks >= usize::from(config.recorders),
            "recorders on one disk are lost together: mount or link each recorder-R from its own disk",
        ),
        Point::new(
            "retention_days",
            match config.retention_days {
                0 => "0: recorders keep the record for ever".to_owned(),
                days => format!("{days}, once archived"),
            },
            config.retention_days > 0,
            "each recorder's log grows by 128 bytes per request and 48 per fill: archive and drop days, or provide the disk space",
        ),
    ]
}

/// Whether a venue's death leaves another one for each shard, if there are lanes.
fn lanes(config: &SystemConfig) -> Vec<Point> {
    if config.lanes.is_empty() {
        return Vec::new();
    }
    let alone: Vec<String> = config.lanes_of_one_venue().map(|lane| lane.to_string()).collect();
    let in_force = match alone.as_slice() {
        [] => format!("{}, each of two venues or more", config.lanes.len()),
        _ => format!("{}; of one venue: lane {}", config.lanes.len(), alone.join(", ")),
    };
    let why = "the shards of a lane of one venue stand still from its death until it is back; three find a wrong one among them";
    vec![Point::new("lanes", in_force, alone.is_empty(), why)]
}

/// Disks that the recorders' directories lie on; of those that are not there yet, that of the nearest directory above.
fn disks(config: &SystemConfig, dir: &Path) -> usize {
    let layout = Layout::new(dir);
    let device = |path: PathBuf| {
        let above = path.ancestors().find_map(|path| std::fs::metadata(path).ok());
        above.or_else(|| std::fs::metadata(".").ok()).map(|found| found.dev())
    };
    let devices = config.recorder_ids().map(|id| device(layout.recorder_log(id)));
    devices.collect::<std::collections::BTreeSet<_>>().len()
}

/// Who reaches the gateways, and what protects them there.
fn doors(config: &SystemConfig) -> Vec<Point> {
    let ports = config.gateways.len() + config.fix.len() + config.ouch.len();
    let exposed = config.exposed_ports().count();
    let is_local = exposed == 0;
    let risk = "without it, anyone on the network path can read and change the traffic";
    let (certificates, who_connects) = match config.client_certificates {
        ClientCertificates::Required => ("required", "only their holders connect; none is bound to a member"),
        ClientCertificates::None => (
            "none",
            "none is asked for; with `required` only holders of one connect (none is bound to a member)",
        ),
    };
    let is_required = config.sign_on == SignOnSetting::Required;
    vec![
        Point::new(
            "sign_on",
            if is_required { "required" } else { "open" },
            is_required,
            "with `open`, any client can sign on as any member, including the exchange",
        ),
        Point::new(
            "gateways, fix, ouch",
            format_args!("{exposed} of {ports} ports beyond this machine"),
            is_local || !config.gateways_exposed,
            "`gateways_exposed` disables the checks for gateways that other machines can reach",
        ),
        Point::tls("tls", config.tls, is_local, risk),
        Point::new("client_certificates", certificates, certificates == "required" || is_local, who_connects),
        Point::new(
            "tap",
            match config.tap {
                true => format!("on, {} MiB a gateway", config.tap_keep_mib),
                false => "off".to_owned(),
            },
            config.tap,
            "without it, only the record shows what a member's connection sent, and when",
        ),
    ]
}

/// Who reaches the replayers of market data, if there are any.
fn market_data(config: &SystemConfig) -> Vec<Point> {
    let point = |feed: &FeedConfig| {
        let is_local = feed.replayers.iter().all(|address| address.ip().is_loopback());
        let risk = "without it, anyone on the network path can forge snapshots and replays; multicast lines are never authenticated";
        Point::tls("[feed] tls", feed.tls, is_local, risk)
    };
    config.feed.iter().map(point).collect()
}

/// What one member may take from the others.
fn limits(config: &SystemConfig) -> Vec<Point> {
    vec![
        Point::new(
            "session_rate_max",
            format_args!("{} a second, {} at once", config.session_rate_max, config.session_burst_max),
            config.session_rate_max != 0,
            "0: one member's program can use the whole capacity",
        ),
        Point::new(
            "session_in_flight_max",
            format_args!("{} of {}", config.session_in_flight_max, config.in_flight_max),
            usize::from(config.session_in_flight_max) <= config.in_flight_max / 2,
            "one session can use up all of a gateway's in-flight requests",
        ),
        Point::new(
            "quorum_patience_ms",
            config.quorum_patience_ms,
            config.quorum_patience_ms != 0,
            "0: members wait without an answer while recording is stalled",
        ),
    ]
}
