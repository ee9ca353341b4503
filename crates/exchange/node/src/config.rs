//! The configuration of one system as a file: `pares.toml`.

use std::path::Path;

pub use pares_roles::config::*;

use crate::NodeError;

/// Reads and checks a configuration file.
///
/// # Errors
/// If it cannot be read, or says something that cannot work.
pub fn load(path: &Path) -> Result<SystemConfig, NodeError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| NodeError::Read { path: path.into(), source })?;
    SystemConfig::parse(&text).map_err(|error| match error {
        NodeError::Config(what) => NodeError::Config(format!("{}: {what}", path.display())),
        other => other,
    })
}

/// Gives a system that has no configuration this one.
///
/// # Errors
/// As [`save`]; and if it is not legal.
pub(crate) fn save_if_missing(config: &SystemConfig, path: &Path) -> Result<(), NodeError> {
    match path.exists() {
        true => Ok(()),
        false => config.check().and_then(|()| save(config, path)),
    }
}

/// Writes the configuration file of a new system.
///
/// # Errors
/// If it cannot be written.
pub fn save(config: &SystemConfig, path: &Path) -> Result<(), NodeError> {
    // Half of one would be another system: every setting has a default.
    pares_os::replace_file(path, config.text().as_bytes()).map_err(NodeError::io("writing the configuration"))
}
