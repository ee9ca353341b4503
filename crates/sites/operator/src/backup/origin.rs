//! What a backup says of its system, so that another like it can be made.
//!
//! Copies hold items and versions, and not how many sites there were. So `sites.toml` lies beside them as it was when the latest copy was taken, under another name: this directory is no system. Where
//! the stores were is left out: a restore must not fill the databases of the system that it is to replace, and their URLs may have passwords in them.

use std::path::Path;

use pares_site::SitesConfig;

use crate::error::{OperatorError, OperatorResult};

/// The file.
const ORIGIN_FILE: &str = "system.toml";

/// Writes it into the directory of backups.
///
/// # Errors
/// If it cannot be written.
pub fn note(config: &SitesConfig, folder: &Path) -> OperatorResult {
    let mut origin = SitesConfig { store: None, ..config.clone() };
    for site in &mut origin.sites {
        (site.store, site.sql) = (None, None);
    }
    let path = folder.join(ORIGIN_FILE);
    pares_os::replace_file(&path, origin.to_text().as_bytes())
        .map_err(OperatorError::io(format!("writing {}", path.display())))
}

/// The system that a backup is of; none if it does not say.
///
/// # Errors
/// If what it says cannot be read.
pub fn of(folder: &Path) -> Result<Option<SitesConfig>, OperatorError> {
    let path = folder.join(ORIGIN_FILE);
    if path.exists() { Ok(Some(SitesConfig::read(&path)?)) } else { Ok(None) }
}
