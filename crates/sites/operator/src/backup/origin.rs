//! What a backup says of its system, so that another like it can be made.
//!
//! Copies hold items and versions, and not how many sites there were. So `sites.toml` lies beside them as it was when the latest copy was taken, under another name: this directory is no system. Where
//! the stores were is left out: a restore must not fill the databases of the system that it is to replace, and their URLs may have passwords in them. A checksum in its first line
//! finds what has changed: another number of sites or another promise would be restored unseen. Earlier builds wrote none.

use std::io::ErrorKind;
use std::path::Path;

use pares_site::SitesConfig;

use crate::error::{OperatorError, OperatorResult};

/// The file.
pub(super) const ORIGIN_FILE: &str = "system.toml";

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
    let text = origin.to_text();
    pares_os::replace_file(&path, (first_line(text.as_bytes()) + &text).as_bytes())
        .map_err(OperatorError::io(format!("writing {}", path.display())))
}

fn first_line(text: &[u8]) -> String {
    format!("# crc32c of what follows: {:08x}\n", crc32c::crc32c(text))
}

/// The system that a backup is of; none if it does not say.
///
/// # Errors
/// If what it says cannot be read, or has changed.
pub fn of(folder: &Path) -> Result<Option<SitesConfig>, OperatorError> {
    let path = folder.join(ORIGIN_FILE);
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(OperatorError::io(format!("reading {}", path.display())))?,
    };
    let behind = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let (first, text) = bytes.split_at(behind);
    // Without the line it begins with the first setting.
    if first != first_line(text).as_bytes() && !bytes.starts_with(b"system = ") {
        return Err(OperatorError::Failed(format!(
            "{} has changed. Take another copy into this directory, which writes it again; or remove it, and \
             name to `pares site restore` in what the new system is another than `pares site init` makes",
            path.display()
        )));
    }
    Ok(Some(SitesConfig::read(&path)?))
}

#[cfg(test)]
mod tests {
    use pares_site::config::Place;

    use super::*;

    #[test]
    fn changed_or_cut_system_of_a_backup_is_found() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(of(dir.path()).unwrap(), None);
        let path = dir.path().join(ORIGIN_FILE);
        let address = "127.0.0.1:7000".parse().unwrap();
        let sites = vec![Place::new(0, 0, address, "127.0.0.1:7100".parse().unwrap())];
        let (system, identity) = ("bank".into(), SitesConfig::draw_identity());
        let config = SitesConfig { system, identity, plain: true, sites, ..SitesConfig::default() };
        note(&config, dir.path()).unwrap();
        assert_eq!(of(dir.path()).unwrap().as_ref(), Some(&config));
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 0x81;
            for bytes in [&good[..at], &changed] {
                std::fs::write(&path, bytes).unwrap();
                let why = of(dir.path()).unwrap_err().to_string();
                assert!(why.contains("system.toml has changed"), "{at}: {why}");
            }
        }
        std::fs::write(&path, config.to_text()).unwrap();
        assert_eq!(of(dir.path()).unwrap(), Some(config), "of an earlier build");
    }
}
