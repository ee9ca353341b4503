//! The operator that a new system begins with.
//!
//! An operator has to let the first member in. So before the first start a key is made: the secret for the operator's eyes, the public key
//! for the configuration, from which each shard's register begins. Later the record says who is an operator, and another key in the
//! configuration would have no effect but to make the record unreadable; so it is made only where nothing was started yet.

use std::path::Path;

use pares_config::{Layout, SignOnSetting, SystemConfig};
use pares_keys::{KeyFile, Secret, Verifier, to_hex};
use pares_register::{EXCHANGE, FIRST_OPERATOR};

use crate::NodeError;
use crate::config;

/// The configuration in force: that of the file, which is made of `config` if there is none, with the operator's key.
pub(crate) fn settled(config: &SystemConfig, layout: &Layout) -> Result<SystemConfig, NodeError> {
    config::save_if_missing(config, &layout.config())?;
    make(layout)?;
    config::load(&layout.config())
}

/// Makes the operator's key, if the system was never started, requires sign-on and names none.
fn make(layout: &Layout) -> Result<(), NodeError> {
    let config = config::load(&layout.config())?;
    let is_new = !layout.epoch().exists();
    if !is_new || config.sign_on != SignOnSetting::Required || config.operator_key.is_some() {
        return Ok(());
    }
    let key = operator_key(&layout.operator_key())?;
    let Verifier::Ed25519(public) = key.secret.verifier() else {
        return Err(NodeError::Refused("the operator's first key must be an Ed25519 key".into()));
    };
    let text =
        std::fs::read_to_string(layout.config()).map_err(NodeError::io("reading the configuration"))?;
    // In front of all tables. What people wrote stays as it is.
    let text = format!("operator_key = \"{}\"\n{text}", to_hex(&public));
    pares_os::replace_file(&layout.config(), text.as_bytes())
        .map_err(NodeError::io("writing the operator's key into the configuration"))
}

/// A new key; or the one there, if an earlier start ended before the configuration named it.
fn operator_key(path: &Path) -> Result<KeyFile, NodeError> {
    let failed = |error: pares_keys::FileError| NodeError::Refused(error.to_string());
    if path.exists() {
        return KeyFile::read(path).map_err(failed);
    }
    let key = KeyFile { member: EXCHANGE.0, session: FIRST_OPERATOR, secret: Secret::generate() };
    key.write(path).map_err(failed)?;
    Ok(key)
}
