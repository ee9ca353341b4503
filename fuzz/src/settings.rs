//! What an operator writes: `pares.toml`.

use pares_config::SystemConfig;

/// Reads a configuration: one that is taken is written, with its comments, as it was read.
pub fn settings(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(config) = SystemConfig::parse(text) else { return };
    assert_eq!(SystemConfig::parse(&config.text()).expect("what was written is legal"), config, "as read");
}

/// A new system's, and one with most of what can be said.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let fresh = SystemConfig::fresh();
    let more = SystemConfig { recorders: 3, quorum: 2, venues: 3, retention_days: 7, ..fresh.clone() };
    [fresh.text(), more.text(), String::new()].map(String::into_bytes).into()
}
