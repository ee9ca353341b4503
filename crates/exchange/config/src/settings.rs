//! The settings of one system: `pares.toml`.

use std::net::SocketAddr;

use pares_book::Instrument;
use pares_wire::record;
use serde::{Deserialize, Serialize};

use crate::durability::DurabilitySetting;
use crate::exposure::{ClientCertificates, TlsSetting};
use crate::{
    ConfigError, DayConfig, FeedConfig, HostConfig, InstrumentConfig, LaneConfig, SignOnSetting, comments,
};

const RESULT_BYTES_MAX: usize = size_of::<record::ResultHead>()
    + record::REQUEST_BYTES_MAX
    + Instrument::EVENTS_MAX * size_of::<record::EventRecord>();

/// Milliseconds of an hour.
const CLOCK_MS_MAX: u64 = 3_600_000;
/// A gateway that sleeps looks up ten times a second; below four looks it could not tell slow from still.
const PATIENCE_MS_MIN: u64 = 400;
/// A longer target than any member would wait.
const WAIT_TARGET_MS_MAX: u64 = 10_000;
const ENGINE_BUDGET_MS_MAX: u64 = 60_000;

/// A tap keeps whole segments, of 16 MiB.
const TAP_KEEP_MIB_MIN: u64 = 64;
const TAP_KEEP_MIB_MAX: u64 = 16 << 20;

/// Requests that all gateways together may have in flight: each venue may have to keep them all in its memory.
const IN_FLIGHT_MAX: usize = 4 << 20;
/// Names fill 32 bits at most.
const NAMES_MAX: usize = 1 << 31;

/// Gateways, venues or recorders of one system, at most.
pub const ROLE_MAX: usize = 16;

/// Orders and amends that a session may send in a second, and at once, where a file does not say.
const RATE_UNSAID: u32 = 10_000;
const BURST_UNSAID: u32 = 1_000;

const fn rate_unsaid() -> u32 {
    RATE_UNSAID
}

const fn burst_unsaid() -> u32 {
    BURST_UNSAID
}

/// A whole system, as `pares.toml` describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SystemConfig {
    /// What an acknowledgement promises.
    #[serde(default = "DurabilitySetting::unsaid")]
    pub durability: DurabilitySetting,
    /// How many venues.
    pub venues: u16,
    /// How many recorders.
    pub recorders: u16,
    /// How many recorders must have a record before it counts as committed.
    pub quorum: u16,
    /// Whether venues agree through the window. Off is legal with one gateway only (paper 1 section 6.2).
    pub sequencer: bool,
    /// Positions a window holds, a power of two: at least a second of peak.
    pub window: u32,
    /// Positions, over all shards, between two checkpoints.
    pub checkpoint_every: u64,
    /// Requests a gateway may have in flight, over all sessions.
    pub in_flight_max: usize,
    /// Milliseconds that requests may wait before orders have less room; 0: as long as it takes.
    pub wait_target_ms: u64,
    /// Requests a session may have in flight.
    pub session_in_flight_max: u16,
    /// Orders and amends a session may send in a second; 0 for no limit. Cancels pass.
    #[serde(default = "rate_unsaid")]
    pub session_rate_max: u32,
    /// How many of them at once.
    #[serde(default = "burst_unsaid")]
    pub session_burst_max: u32,
    /// Milliseconds that a shard may record nothing while requests wait there, before new ones are refused; 0 for ever.
    pub quorum_patience_ms: u64,
    /// Connections a gateway accepts.
    pub sessions_max: usize,
    /// Sessions a member may have at one gateway: all of them receive each of its trades.
    pub member_sessions_max: usize,
    /// Names (member, client order id) a gateway keeps: all in flight and of living orders, and the latest of the others.
    pub names_max: usize,
    /// Rows of a run of the recorders' indexes: so many records at the end of a log are looked through for a name that was forgotten.
    pub index_rows: u32,
    /// Milliseconds between two times a gateway tells a shard in which something can become due.
    pub clock_ms: u64,
    /// How long one request may keep a venue's processor, ms, before the engine counts as hanging, and 30 ns for each order a book may hold.
    pub engine_budget_ms: u64,
    /// MiB per segment of the logs. Small ones restart faster; a roll costs next to nothing.
    pub segment_mib: u64,
    /// Whether sessions prove who they are.
    #[serde(default = "SignOnSetting::unsaid")]
    pub sign_on: SignOnSetting,
    /// The public key of the operator that the register begins with, 64 hexadecimal digits. What was made of the register since is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_key: Option<String>,
    /// The gateways' addresses, one per gateway. Port 0 takes a free one (see `run/gateway-G.addr`).
    pub gateways: Vec<SocketAddr>,
    /// Where they listen for FIX, one per gateway, or none. Port 0 takes a free one (see `run/gateway-G.fix`).
    pub fix: Vec<SocketAddr>,
    /// The same for OUCH (see `run/gateway-G.ouch`).
    pub ouch: Vec<SocketAddr>,
    /// Whether gateways keep what their connections said, byte for byte.
    pub tap: bool,
    /// How much of it each keeps, MiB.
    pub tap_keep_mib: u64,
    /// Whether gateways may listen beyond loopback although any client there may speak for any member, or read along.
    pub gateways_exposed: bool,
    /// Whether the gateways' ports are TLS 1.3.
    pub tls: TlsSetting,
    /// Names and addresses that the gateways' certificates bear besides their own.
    pub tls_names: Vec<String>,
    /// Whether members must show a certificate of this system's authority.
    pub client_certificates: ClientCertificates,
    /// Where receivers of mirrors connect, if `pares up` serves them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<SocketAddr>,
    /// For how many days before the last one recorders keep a day that is archived; 0 keeps all.
    pub retention_days: u32,
    /// When business days begin and end; left out, they do so by hand only, if at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<DayConfig>,
    /// Who tells the market data, and where to; left out, nobody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed: Option<FeedConfig>,
    /// The hosts, and which nodes run at each; left out, everything runs at one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostConfig>,
    /// Which venues execute which shards; left out, all execute all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<LaneConfig>,
    /// What is traded.
    pub instruments: Vec<InstrumentConfig>,
}

/// A system for a test or a benchmark: in the page cache, without limits of rate. [`SystemConfig::fresh`] is what operators get.
impl Default for SystemConfig {
    fn default() -> Self {
        const SYMBOLS: [&str; 10] =
            ["ALFA", "BRAVO", "CHARLIE", "DELTA", "ECHO", "FOXTROT", "GOLF", "HOTEL", "INDIA", "JULIETT"];
        Self {
            durability: DurabilitySetting::Os,
            venues: 2,
            recorders: 2,
            quorum: 1,
            sequencer: true,
            window: 65_536,
            checkpoint_every: 4_096,
            in_flight_max: 32_768,
            wait_target_ms: 10,
            session_in_flight_max: 16_384,
            session_rate_max: 0,
            session_burst_max: 100,
            quorum_patience_ms: 500,
            sessions_max: 4_096,
            member_sessions_max: 64,
            names_max: 4 << 20,
            index_rows: 1 << 18,
            clock_ms: 1_000,
            engine_budget_ms: 4,
            segment_mib: 4,
            sign_on: SignOnSetting::Open,
            operator_key: None,
            gateways: vec![SocketAddr::from(([127, 0, 0, 1], 7100))],
            fix: Vec::new(),
            ouch: Vec::new(),
            tap: false,
            tap_keep_mib: 1_024,
            gateways_exposed: false,
            tls: TlsSetting::Off,
            tls_names: Vec::new(),
            client_certificates: ClientCertificates::None,
            mirror: None,
            retention_days: 0,
            day: None,
            feed: None,
            hosts: Vec::new(),
            lanes: Vec::new(),
            instruments: SYMBOLS
                .iter()
                .zip(1..)
                .map(|(symbol, id)| InstrumentConfig::new(id, symbol))
                .collect(),
        }
    }
}

impl SystemConfig {
    /// Reads and checks the text of a configuration file.
    ///
    /// # Errors
    /// If it says something that cannot work.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        // The library's words for a host name or a missing port do not say what to write.
        let say = |error: toml::de::Error| {
            let written = "an address must be an IP address and a port, such as 127.0.0.1:7100";
            ConfigError(error.to_string().replace("invalid socket address syntax", written))
        };
        let config: Self = toml::from_str(text).map_err(say)?;
        config.check()?;
        Ok(config)
    }

    /// A new system: as a file means it that says nothing, with days, so that day orders end. Never panics: that is legal.
    #[must_use]
    pub fn fresh() -> Self {
        let day = Some(DayConfig::every_day());
        Self { day, ..Self::parse("").expect("a file that says nothing is legal") }
    }

    /// The text of the configuration file of a new system, with a comment on each setting.
    ///
    /// # Panics
    /// Never: it can always be written.
    #[must_use]
    pub fn text(&self) -> String {
        comments::with_comments(&toml::to_string_pretty(self).expect("a configuration is always valid TOML"))
    }

    /// Checks that the settings can work together.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: &str| Err(ConfigError(what.to_owned()));
        let counts = [self.gateways.len(), usize::from(self.venues), usize::from(self.recorders)];
        if counts.iter().any(|&count| !(1..=ROLE_MAX).contains(&count)) {
            return wrong("there must be 1 to 16 each of gateways, venues and recorders");
        }
        if !(1..=self.recorders).contains(&self.quorum) {
            return wrong("`quorum` must be between 1 and the number of recorders");
        }
        if !self.sequencer && self.gateways.len() > 1 {
            return wrong("`sequencer = false` needs a single gateway");
        }
        if !self.window.is_power_of_two() || self.window < 16 {
            return wrong("`window` must be a power of two, at least 16");
        }
        if self.checkpoint_every == 0 || self.segment_mib == 0 || self.segment_mib > 1024 {
            return wrong("`checkpoint_every` and `segment_mib` must be positive, segments at most 1024 MiB");
        }
        let patience = self.quorum_patience_ms;
        if patience != 0 && !(PATIENCE_MS_MIN..=CLOCK_MS_MAX).contains(&patience) {
            return wrong("`quorum_patience_ms` must be 0, or between 400 and 3600000, an hour");
        }
        if !(1..=CLOCK_MS_MAX).contains(&self.clock_ms) {
            return wrong("`clock_ms` must be between 1 and 3600000, an hour");
        }
        if !(1..=ENGINE_BUDGET_MS_MAX).contains(&self.engine_budget_ms) {
            return wrong("`engine_budget_ms` must be between 1 and 60000, a minute");
        }
        if pares_log::payload_bytes_max(self.segment_mib << 20) < RESULT_BYTES_MAX {
            return wrong(
                "`segment_mib` is too small: a record is at most a quarter of a segment, and a result must fit one",
            );
        }
        self.day.as_ref().map(DayConfig::times).transpose()?;
        self.check_operator_key()?;
        self.check_gateways()?;
        self.check_exposure()?;
        self.check_feed()?;
        self.check_hosts()?;
        for (shard, instruments) in self.shards()? {
            if instruments.len() > Instrument::SHARD_MAX {
                let (found, most) = (instruments.len(), Instrument::SHARD_MAX);
                let what = format!("shard {shard}: {found} instruments; at most {most}");
                return Err(ConfigError(what));
            }
        }
        self.placement().map(drop)
    }

    fn check_gateways(&self) -> Result<(), ConfigError> {
        let wrong = |what: &str| Err(ConfigError(what.to_owned()));
        let in_flight = self.in_flight_max.saturating_mul(self.gateways.len());
        if self.in_flight_max < self.shards()?.len() || in_flight > IN_FLIGHT_MAX {
            return wrong(
                "`in_flight_max` must be at least one per shard, and at most 4194304 over all gateways",
            );
        }
        if self.wait_target_ms > WAIT_TARGET_MS_MAX {
            return wrong("`wait_target_ms` must be between 0, for none, and 10000");
        }
        if self.session_in_flight_max == 0 || self.sessions_max == 0 || self.member_sessions_max == 0 {
            return wrong(
                "`session_in_flight_max`, `sessions_max` and `member_sessions_max` must be positive",
            );
        }
        if !(TAP_KEEP_MIB_MIN..=TAP_KEEP_MIB_MAX).contains(&self.tap_keep_mib) {
            return wrong("`tap_keep_mib` must be between 64 and 16777216");
        }
        if !(16..=NAMES_MAX).contains(&self.names_max) {
            return wrong("`names_max` must be between 16 and 2147483648");
        }
        if !(1..=1 << 24).contains(&self.index_rows) {
            return wrong("`index_rows` must be between 1 and 16777216");
        }
        Ok(())
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
    fn an_address_or_an_id_that_cannot_be_is_answered_with_what_can() {
        let of = |text: &str| SystemConfig::parse(text).unwrap_err().to_string();
        assert!(of("gateways = [\"localhost:7300\"]").contains("such as 127.0.0.1:7100"));
        let without = of("instruments = [{ symbol = \"A\" }]");
        assert!(without.contains("instrument `A`: `id` is missing, 0 or already in use"), "{without}");
        let of_id = |id: u32| of(&format!("instruments = [{{ id = {id}, symbol = \"A\" }}]"));
        let beyond = of_id(u32::MAX - 65_535);
        assert!(beyond.contains("instrument `A`: `id` must be 1 to 4294901759, not 4294901760"), "{beyond}");
        let last = format!("instruments = [{{ id = {}, symbol = \"A\" }}]", u32::MAX - 65_536);
        SystemConfig::parse(&last).unwrap();
    }

    type Change<'a> = dyn Fn(&mut SystemConfig) + 'a;

    #[test]
    fn settings_that_cannot_work_together_are_refused() {
        let is_fine = |change: &Change<'_>| {
            let mut config = SystemConfig::default();
            change(&mut config);
            config.check().is_ok()
        };
        for (mib, good) in [(1, false), (2, true)] {
            assert_eq!(is_fine(&|config| config.segment_mib = mib), good, "a result fits: {mib}");
        }
        for (ms, good) in [(0, false), (3_600_001, false), (1, true)] {
            assert_eq!(is_fine(&|config| config.clock_ms = ms), good, "it ticks, and rests: {ms}");
        }
        for (ms, good) in [(0, true), (399, false), (400, true), (3_600_001, false)] {
            assert_eq!(is_fine(&|config| config.quorum_patience_ms = ms), good, "a look or more: {ms}");
        }
        for (most, good) in [(9, false), (10, true), (4 << 20, true), ((4 << 20) + 1, false)] {
            assert_eq!(is_fine(&|config| config.in_flight_max = most), good, "{most} in flight");
        }
        let refused: [(&str, &Change<'_>); 6] = [
            ("in flight of two gateways", &|config| {
                (config.in_flight_max, config.gateways) = (4 << 20, vec![config.gateways[0]; 2]);
            }),
            ("session_in_flight_max", &|config| config.session_in_flight_max = 0),
            ("sessions_max", &|config| config.sessions_max = 0),
            ("member_sessions_max", &|config| config.member_sessions_max = 0),
            ("names_max", &|config| config.names_max = 15),
            ("quorum", &|config| config.quorum = 3),
        ];
        for (name, change) in refused {
            assert!(!is_fine(change), "{name}");
        }
    }

    #[test]
    fn a_symbol_used_twice_is_refused_in_whatever_case() {
        let second = |symbol| {
            let instruments = vec![InstrumentConfig::new(1, "ALFA"), InstrumentConfig::new(2, symbol)];
            SystemConfig { instruments, ..SystemConfig::default() }.check()
        };
        second("ALFB").unwrap();
        for symbol in ["ALFA", "alfa"] {
            assert!(second(symbol).unwrap_err().to_string().contains("instrument 2"), "{symbol}");
        }
    }
}
