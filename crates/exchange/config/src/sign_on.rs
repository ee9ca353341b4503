//! Who may sign on, as far as the configuration says it.

use pares_register::Register;
use pares_types::Key;
use serde::{Deserialize, Serialize};

use crate::{ConfigError, SystemConfig};

/// Whether sessions prove who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignOnSetting {
    /// By a key of the register.
    Required,
    /// Every client is whom it says it is.
    Open,
}

impl SignOnSetting {
    /// What a file means that does not say.
    pub(crate) const fn unsaid() -> Self {
        Self::Required
    }
}

impl SystemConfig {
    /// The register that each shard begins with.
    #[must_use]
    pub fn register(&self) -> Register {
        let key = self.operator_key.as_deref().and_then(pares_keys::from_hex);
        Register::new(key.map(Key::Ed25519))
    }

    pub(crate) fn check_operator_key(&self) -> Result<(), ConfigError> {
        match self.operator_key.as_deref().map(pares_keys::from_hex) {
            Some(None) => {
                Err(ConfigError("`operator_key` must be a public key of 64 hexadecimal digits".into()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_operator_s_key_is_refused_in_clear_words() {
        let key = "9d".repeat(32);
        let with = |key: &str| SystemConfig { operator_key: Some(key.to_owned()), ..SystemConfig::default() };
        assert!(with(&key).check_operator_key().is_ok());
        for damaged in
            ["", &key[..63], &format!("{key}0"), &key.replace("9d9d9d", "9d9g9d"), &"\u{e9}".repeat(32)]
        {
            let said = with(damaged).check_operator_key().unwrap_err().to_string();
            assert!(
                said.contains("`operator_key` must be a public key of 64 hexadecimal digits"),
                "{damaged}: {said}"
            );
        }
    }
}
