//! What is wrong with a configuration.

/// A configuration is not valid; the text says which setting, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("configuration: {0}")]
pub struct ConfigError(pub String);
