//! A system and the load on it, as told on the command line: what benchmarks and drills have in common.

use std::path::PathBuf;

use pares_config::{DurabilitySetting, InstrumentConfig};
use pares_node::SystemConfig;

use crate::Rate;

/// Which system, and which load on it.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Requests per second, or `max` for the highest sustained rate
    #[arg(long, default_value = "10000")]
    pub rate: Rate,
    /// Measuring time, seconds
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Number of gateways
    #[arg(long, default_value_t = 1)]
    pub gateways: u16,
    /// Number of racing venues
    #[arg(long, default_value_t = 2)]
    pub venues: u16,
    /// Number of recorders
    #[arg(long, default_value_t = 2)]
    pub recorders: u16,
    /// Number of instruments
    #[arg(long, default_value_t = 10)]
    pub symbols: u32,
    /// Number of shards [default: one per instrument]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub shards: Option<u16>,
    /// Use the sequencer between venues; off is allowed only with one gateway
    #[arg(long, default_value = "on", value_parser = on_off, action = clap::ArgAction::Set)]
    pub sequencer: bool,
    /// What an answer survives: `os` the death of any process, `disk` a power loss
    #[arg(long, default_value = "os", value_parser = durability)]
    pub durability: DurabilitySetting,
    /// Requests in flight with `--rate max`
    #[arg(long, default_value_t = 2_048)]
    pub in_flight: usize,
    /// Random seed of the flow
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The directory for the system's files [default: a temporary directory]
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("`on` or `off`".into()),
    }
}

/// Reads `os` or `disk`.
///
/// # Errors
/// If it is neither.
pub fn durability(text: &str) -> Result<DurabilitySetting, String> {
    match text {
        "os" => Ok(DurabilitySetting::Os),
        "disk" => Ok(DurabilitySetting::Disk),
        _ => Err("`os` or `disk`".into()),
    }
}

impl Args {
    /// The system this benchmark runs on.
    #[must_use]
    pub fn config(&self) -> SystemConfig {
        SystemConfig {
            durability: self.durability,
            venues: self.venues,
            recorders: self.recorders,
            sequencer: self.sequencer,
            gateways: (0..self.gateways).map(|_| ([127, 0, 0, 1], 0).into()).collect(),
            instruments: (1..=self.symbols).map(|id| self.instrument(id)).collect(),
            ..SystemConfig::default()
        }
    }

    /// The busiest instruments lie in different shards.
    fn instrument(&self, id: u32) -> InstrumentConfig {
        let shard = self.shards.map(|shards| (id % u32::from(shards)) as u16);
        InstrumentConfig { shard, ..instrument(id) }
    }
}

/// An instrument of a benchmark, in a shard of its own.
#[must_use]
pub fn instrument(id: u32) -> InstrumentConfig {
    InstrumentConfig::new(id, &format!("SYM{id}"))
}
