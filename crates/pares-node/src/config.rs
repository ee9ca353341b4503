//! The configuration of one system, and where everything of it lies.
//!
//! ```text
//! DIR/pares.toml                    this configuration
//! DIR/gateway-G/                    log: requests of gateway G (journal and request stream)
//! DIR/venue-V/                      log: results of venue V
//! DIR/recorder-R/                   log: what recorder R recorded (history and committed stream)
//! DIR/recorder-R/checkpoints/       checkpoint files
//! DIR/run/                          what only lives while the system does: windows, bells, counters
//! DIR/lock                          held by the supervisor
//! ```

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use pares_book::{Instrument, Symbol};
use pares_log::Durability;
use pares_types::{GatewayId, InstrumentId, Price, Quantity, RecorderId, ShardId, VenueId};
use serde::{Deserialize, Serialize};

use crate::NodeError;

/// Gateways, venues or recorders of one system, at most.
pub const ROLE_MAX: usize = 16;
/// Orders on the books of one shard, at most.
pub const SHARD_ORDERS_MAX: u64 = 20_000;

/// What "durable" means in this system (design section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DurabilitySetting {
    /// In the page cache: survives the death of any process.
    Os,
    /// On the device: survives the loss of power.
    Disk,
}

impl From<DurabilitySetting> for Durability {
    fn from(setting: DurabilitySetting) -> Self {
        match setting {
            DurabilitySetting::Os => Self::Os,
            DurabilitySetting::Disk => Self::Disk,
        }
    }
}

/// A whole system, as `pares.toml` describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemConfig {
    /// What an acknowledgement promises.
    #[serde(default = "default_durability")]
    pub durability: DurabilitySetting,
    /// How many venues.
    #[serde(default = "two")]
    pub venues: u16,
    /// How many recorders.
    #[serde(default = "two")]
    pub recorders: u16,
    /// How many recorders must have a record before it counts as committed.
    #[serde(default = "one")]
    pub quorum: u16,
    /// Whether venues agree through the window. Off is legal with one gateway only (paper 1 section 6.2).
    #[serde(default = "yes")]
    pub sequencer: bool,
    /// Positions a window holds, a power of two: at least a second of peak.
    #[serde(default = "default_window")]
    pub window: u32,
    /// Positions, over all shards, between two checkpoints.
    #[serde(default = "default_checkpoint_every")]
    pub checkpoint_every: u64,
    /// Requests a gateway may have in flight, over all sessions.
    #[serde(default = "default_in_flight_max")]
    pub in_flight_max: usize,
    /// Requests a session may have in flight.
    #[serde(default = "default_session_in_flight_max")]
    pub session_in_flight_max: u16,
    /// Connections a gateway accepts.
    #[serde(default = "default_sessions_max")]
    pub sessions_max: usize,
    /// Names (member, client order id) a gateway remembers.
    #[serde(default = "default_names_max")]
    pub names_max: usize,
    /// MiB per segment of the logs. Small ones restart faster; a roll costs next to nothing.
    #[serde(default = "default_segment_mib")]
    pub segment_mib: u64,
    /// The gateways' addresses, one per gateway. Port 0 takes a free one (see `run/gateway-G.addr`).
    #[serde(default = "default_gateways")]
    pub gateways: Vec<SocketAddr>,
    /// What is traded.
    #[serde(default = "default_instruments")]
    pub instruments: Vec<InstrumentConfig>,
}

/// One instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstrumentConfig {
    /// Its id, from 1.
    pub id: u32,
    /// What people call it: at most 16 ASCII characters.
    pub symbol: String,
    /// The total order it belongs to; by default each instrument has its own.
    pub shard: Option<u16>,
    /// Smallest price step, price units (1/10,000).
    #[serde(default = "default_tick")]
    pub tick: i64,
    /// Smallest quantity step.
    #[serde(default = "default_lot")]
    pub lot: u64,
    /// Largest order.
    #[serde(default = "default_quantity_max")]
    pub quantity_max: u64,
    /// Lowest legal price, price units.
    #[serde(default = "default_price_min")]
    pub price_min: i64,
    /// Highest legal price, price units.
    #[serde(default = "default_price_max")]
    pub price_max: i64,
    /// Orders its book holds at most.
    #[serde(default = "default_orders_max")]
    pub orders_max: u32,
}

fn default_durability() -> DurabilitySetting {
    DurabilitySetting::Os
}
fn two() -> u16 {
    2
}
fn one() -> u16 {
    1
}
fn yes() -> bool {
    true
}
fn default_window() -> u32 {
    65_536
}
fn default_checkpoint_every() -> u64 {
    4_096
}
fn default_in_flight_max() -> usize {
    32_768
}
fn default_session_in_flight_max() -> u16 {
    16_384
}
fn default_sessions_max() -> usize {
    4_096
}
fn default_names_max() -> usize {
    16 << 20
}
fn default_segment_mib() -> u64 {
    4
}
fn default_gateways() -> Vec<SocketAddr> {
    vec![SocketAddr::from(([127, 0, 0, 1], 7100))]
}
fn default_tick() -> i64 {
    100
}
fn default_lot() -> u64 {
    1
}
fn default_quantity_max() -> u64 {
    1_000_000
}
fn default_price_min() -> i64 {
    100
}
fn default_price_max() -> i64 {
    100_000_000
}
fn default_orders_max() -> u32 {
    20_000
}
fn default_instruments() -> Vec<InstrumentConfig> {
    const SYMBOLS: [&str; 10] =
        ["ALFA", "BRAVO", "CHARLIE", "DELTA", "ECHO", "FOXTROT", "GOLF", "HOTEL", "INDIA", "JULIETT"];
    SYMBOLS.iter().zip(1..).map(|(symbol, id)| InstrumentConfig::new(id, symbol)).collect()
}

impl InstrumentConfig {
    /// An instrument with the default rules and a shard of its own.
    #[must_use]
    pub fn new(id: u32, symbol: &str) -> Self {
        Self {
            id,
            symbol: symbol.to_owned(),
            shard: None,
            tick: default_tick(),
            lot: default_lot(),
            quantity_max: default_quantity_max(),
            price_min: default_price_min(),
            price_max: default_price_max(),
            orders_max: default_orders_max(),
        }
    }

    fn instrument(&self) -> Result<Instrument, NodeError> {
        let wrong = |error: pares_book::InstrumentError| {
            NodeError::Config(format!("instrument {}: {error}", self.id))
        };
        Instrument::new(Instrument {
            id: InstrumentId(self.id),
            symbol: Symbol::new(&self.symbol).map_err(wrong)?,
            tick: Price(self.tick),
            lot: Quantity(self.lot),
            quantity_max: Quantity(self.quantity_max),
            price_min: Price(self.price_min),
            price_max: Price(self.price_max),
            orders_max: self.orders_max,
        })
        .map_err(wrong)
    }
}

impl Default for SystemConfig {
    fn default() -> Self {
        toml::from_str("").expect("every setting has a default")
    }
}

impl SystemConfig {
    /// Reads and checks a configuration file.
    ///
    /// # Errors
    /// If it cannot be read, or says something that cannot work.
    pub fn load(path: &Path) -> Result<Self, NodeError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| NodeError::Read { path: path.into(), source })?;
        let config: Self = toml::from_str(&text)
            .map_err(|error| NodeError::Config(format!("{}: {error}", path.display())))?;
        config.check()?;
        Ok(config)
    }

    /// Writes the configuration file of a new system.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), NodeError> {
        let text = toml::to_string_pretty(self).expect("a configuration is always valid TOML");
        std::fs::write(path, text).map_err(|source| NodeError::Read { path: path.into(), source })
    }

    /// Checks that the settings can work together.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn check(&self) -> Result<(), NodeError> {
        let wrong = |what: &str| Err(NodeError::Config(what.to_owned()));
        let counts = [self.gateways.len(), usize::from(self.venues), usize::from(self.recorders)];
        if counts.iter().any(|&count| !(1..=ROLE_MAX).contains(&count)) {
            return wrong("between 1 and 16 each of gateways, venues and recorders");
        }
        if !(1..=self.recorders).contains(&self.quorum) {
            return wrong("`quorum` must be between 1 and the number of recorders");
        }
        if !self.sequencer && self.gateways.len() > 1 {
            return wrong("`sequencer = false` is only right with a single gateway");
        }
        if !self.window.is_power_of_two() || self.window < 16 {
            return wrong("`window` must be a power of two, at least 16");
        }
        if self.checkpoint_every == 0 || self.segment_mib == 0 || self.segment_mib > 1024 {
            return wrong("`checkpoint_every` and `segment_mib` must be positive, segments at most 1024 MiB");
        }
        // A request that touches every order of a shard (a mass cancel, a sweep) must fit one record.
        let record_bytes = pares_log::payload_bytes_max(self.segment_mib << 20);
        let fits = (record_bytes - pares_wire::record::result_bytes(0))
            / size_of::<pares_wire::record::EventRecord>();
        let orders_max = SHARD_ORDERS_MAX.min(fits as u64);
        for (shard, instruments) in self.shards()? {
            let orders: u64 = instruments.iter().map(|instrument| u64::from(instrument.orders_max)).sum();
            if orders > orders_max {
                return Err(NodeError::Config(format!(
                    "shard {shard}: `orders_max` adds up to {orders}; with segments of {} MiB at most {orders_max} per shard",
                    self.segment_mib
                )));
            }
        }
        Ok(())
    }

    /// The instruments of each shard.
    ///
    /// # Errors
    /// If an instrument is not valid or its id or symbol is used twice.
    pub fn shards(&self) -> Result<BTreeMap<ShardId, Vec<Instrument>>, NodeError> {
        let mut shards: BTreeMap<ShardId, Vec<Instrument>> = BTreeMap::new();
        let mut ids = std::collections::BTreeSet::new();
        for (index, config) in self.instruments.iter().enumerate() {
            if config.id == 0 || !ids.insert(config.id) {
                return Err(NodeError::Config(format!("instrument id {} is 0 or used twice", config.id)));
            }
            let own = u16::try_from(index).map_err(|_| NodeError::Config("too many instruments".into()))?;
            shards.entry(ShardId(config.shard.unwrap_or(own))).or_default().push(config.instrument()?);
        }
        match shards.is_empty() {
            true => Err(NodeError::Config("no instruments".into())),
            false => Ok(shards),
        }
    }

    /// The gateways' ids.
    pub fn gateway_ids(&self) -> impl Iterator<Item = GatewayId> + use<> {
        (0..u16::try_from(self.gateways.len()).expect("checked: at most 16")).map(GatewayId)
    }

    /// The venues' ids.
    pub fn venue_ids(&self) -> impl Iterator<Item = VenueId> + use<> {
        (0..self.venues).map(VenueId)
    }

    /// The recorders' ids.
    pub fn recorder_ids(&self) -> impl Iterator<Item = RecorderId> + use<> {
        (0..self.recorders).map(RecorderId)
    }
}

/// Where everything of a system lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The system in that directory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The configuration file.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.root.join("pares.toml")
    }

    /// The supervisor's lock.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// What only lives while the system does.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// A gateway's log.
    #[must_use]
    pub fn gateway_log(&self, id: GatewayId) -> PathBuf {
        self.root.join(format!("gateway-{id}"))
    }

    /// A venue's log.
    #[must_use]
    pub fn venue_log(&self, id: VenueId) -> PathBuf {
        self.root.join(format!("venue-{id}"))
    }

    /// A recorder's log.
    #[must_use]
    pub fn recorder_log(&self, id: RecorderId) -> PathBuf {
        self.root.join(format!("recorder-{id}"))
    }

    /// A recorder's checkpoints.
    #[must_use]
    pub fn checkpoints(&self, id: RecorderId) -> PathBuf {
        self.recorder_log(id).join("checkpoints")
    }

    /// A shard's window.
    #[must_use]
    pub fn window(&self, shard: ShardId) -> PathBuf {
        self.run().join(format!("window-{shard}"))
    }

    /// A node's counters: `node` is its role and number, such as `venue-0`.
    #[must_use]
    pub fn counters(&self, node: &str) -> PathBuf {
        self.run().join(format!("{node}.counters"))
    }

    /// The process id of a node that is up.
    #[must_use]
    pub fn pid(&self, role: crate::role::Role) -> PathBuf {
        self.run().join(format!("{role}.pid"))
    }

    /// What a node has to complain about: its standard error.
    #[must_use]
    pub fn complaints(&self, role: crate::role::Role) -> PathBuf {
        self.run().join(format!("{role}.log"))
    }

    /// The address a gateway listens on.
    #[must_use]
    pub fn gateway_address(&self, id: GatewayId) -> PathBuf {
        self.run().join(format!("gateway-{id}.addr"))
    }
}

/// The bell of each node (see `pares_shm::bell`): gateways, venues, recorders, 16 each.
pub mod bells {
    use super::{GatewayId, ROLE_MAX, RecorderId, VenueId};

    /// A gateway's bell.
    #[must_use]
    pub fn gateway(id: GatewayId) -> usize {
        usize::from(id.0)
    }

    /// A venue's bell.
    #[must_use]
    pub fn venue(id: VenueId) -> usize {
        ROLE_MAX + usize::from(id.0)
    }

    /// A recorder's bell.
    #[must_use]
    pub fn recorder(id: RecorderId) -> usize {
        2 * ROLE_MAX + usize::from(id.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_system_is_valid_and_survives_a_round_trip() {
        let config = SystemConfig::default();
        config.check().unwrap();
        let text = toml::to_string_pretty(&config).unwrap();
        assert_eq!(toml::from_str::<SystemConfig>(&text).unwrap(), config);
        assert_eq!(config.shards().unwrap().len(), 10);
    }

    #[test]
    fn an_unknown_setting_is_named() {
        let error = toml::from_str::<SystemConfig>("venuse = 3").unwrap_err();
        assert!(error.to_string().contains("venuse"));
    }

    #[test]
    fn a_quorum_no_system_can_reach_is_refused() {
        let config = SystemConfig { quorum: 3, ..SystemConfig::default() };
        assert!(config.check().is_err());
    }
}
