//! The configuration of one system as a file: `pares.toml`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use pares_config::{ConfigError, FeedConfig, Layout, SystemConfig, TlsSetting};
use pares_port::DoorPort;

use crate::NodeError;

/// Reads and checks a configuration file.
///
/// # Errors
/// If it cannot be read, or says something that cannot work.
pub fn load(path: &Path) -> Result<SystemConfig, NodeError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| NodeError::Read { path: path.into(), source })?;
    SystemConfig::parse(&text)
        .map_err(|ConfigError(what)| NodeError::Config(format!("{}: {what}", path.display())))
}

/// Gives a system that has no configuration this one.
///
/// # Errors
/// As [`save`]; and if it is not legal.
pub(crate) fn save_if_missing(config: &SystemConfig, path: &Path) -> Result<(), NodeError> {
    if path.exists() {
        return Ok(());
    }
    config.check()?;
    save(config, path)
}

/// The configuration of a system that has one.
fn there(path: &Path) -> Result<Option<SystemConfig>, NodeError> {
    path.exists().then(|| load(path)).transpose()
}

/// Where the replayers of a system answer, by UDP and TCP, as far as they have said so.
#[must_use]
pub fn replayers(layout: &Layout, config: &SystemConfig) -> Vec<SocketAddr> {
    let address = |id| std::fs::read_to_string(layout.replayer_address(id)).ok()?.trim().parse().ok();
    config.replayer_ids().filter_map(address).collect()
}

/// Where the certificate lies of the authority that replayers serve TCP by, if they do so by TLS.
#[must_use]
pub fn feed_authority(layout: &Layout, feed: &FeedConfig) -> Option<PathBuf> {
    (feed.tls == TlsSetting::On).then(|| layout.keys().join("ca.pem"))
}

/// Gives a system that has a configuration, and in it no market data, these. One that has none yet is left alone.
///
/// # Errors
/// If its configuration cannot be read or written, or would not be legal.
pub fn add_feed(layout: &Layout, feed: &FeedConfig) -> Result<(), NodeError> {
    let path = layout.config();
    if there(&path)?.is_none_or(|config| config.feed.is_some()) {
        return Ok(());
    }
    let text = std::fs::read_to_string(&path).map_err(NodeError::io("reading the configuration"))?;
    let with_feed = format!("{}\n{}", text.trim_end().to_owned() + "\n", feed.text());
    SystemConfig::parse(&with_feed)?;
    pares_os::replace_file(&path, with_feed.as_bytes()).map_err(NodeError::io("writing the configuration"))
}

/// Has the gateways of a system that has a configuration, and in it no ports for a protocol, listen for it at free ports of loopback. One that
/// has none yet is left alone.
///
/// # Errors
/// As [`add_feed`].
pub fn add_ports(layout: &Layout, protocol: DoorPort) -> Result<(), NodeError> {
    let path = layout.config();
    let Some(config) = there(&path)? else { return Ok(()) };
    let (key, ports) = match protocol {
        DoorPort::Fix => ("fix", &config.fix),
        DoorPort::Ouch => ("ouch", &config.ouch),
    };
    if !ports.is_empty() {
        return Ok(());
    }
    let ports: Vec<String> = free_ports(&config).iter().map(|port| format!("\"{port}\"")).collect();
    set(&path, key, &format!("[{}]", ports.join(", ")))
}

/// Has the gateways of a system that has a configuration keep taps. One that has none yet is left alone.
///
/// # Errors
/// As [`add_feed`].
pub fn set_tap(layout: &Layout) -> Result<(), NodeError> {
    let path = layout.config();
    if there(&path)?.is_none_or(|config| config.tap) {
        return Ok(());
    }
    set(&path, "tap", "true")
}

/// Gives a setting, which is of no table, another value in a configuration file.
fn set(path: &Path, key: &str, value: &str) -> Result<(), NodeError> {
    let text = std::fs::read_to_string(path).map_err(NodeError::io("reading the configuration"))?;
    let line = |text: &str| {
        text.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let others: Vec<&str> = text.lines().filter(|text| !line(text)).collect();
    // Before the first table.
    let changed = format!("{key} = {value}\n{}\n", others.join("\n"));
    SystemConfig::parse(&changed)?;
    pares_os::replace_file(path, changed.as_bytes()).map_err(NodeError::io("writing the configuration"))
}

/// Free ports of loopback, one for each gateway.
#[must_use]
pub fn free_ports(config: &SystemConfig) -> Vec<SocketAddr> {
    vec![SocketAddr::from(([127, 0, 0, 1], 0)); config.gateways.len()]
}

/// Writes the configuration file of a new system.
///
/// # Errors
/// If it cannot be written.
pub fn save(config: &SystemConfig, path: &Path) -> Result<(), NodeError> {
    // Half of one would be another system: every setting has a default.
    pares_os::replace_file(path, config.text().as_bytes()).map_err(NodeError::io("writing the configuration"))
}
