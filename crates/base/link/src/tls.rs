//! Who a site is, and how it proves it: certificates of the system's own authority.
//!
//! Between clusters lies a network that others own, so both ends show a certificate (mutual TLS), and it must name the very site
//! that its owner says it is.

use std::path::Path;
use std::sync::Arc;

use pares_tls::{
    Authority, Callers, ClientConnection, IssueError, Lifetime, ServerConfig, TlsError, TlsFiles, Trust,
};

use crate::ended::Ended;

/// The name a site's certificate must bear: cluster and number within it are the halves of the site's number.
#[must_use]
pub fn site_name(number: u16, system: &str) -> String {
    format!("{}.{system}", stem(number))
}

/// Where the certificate of site `number` lies in `dir`. [`issue`] writes it under these names.
#[must_use]
pub fn site_files(dir: &Path, number: u16) -> TlsFiles {
    TlsFiles::named(dir, &stem(number))
}

fn stem(number: u16) -> String {
    format!("site-{}-{}", number >> 8, number & 0xff)
}

/// Makes the certificates of `sites` in `dir`: `ca.pem`, `ca.key.pem`, and for each site `site-C-N.pem` and
/// `site-C-N.key.pem`. What is there already stays as it is, so that sites can be added later; to replace a
/// certificate, delete it first. Keys are readable by their owner only. Each site needs `ca.pem` and its own two files;
/// `ca.key.pem` is needed only here, and anybody who has it can be any site. The certificates do not expire.
///
/// # Errors
/// If `ca.pem` is there without its key, a file cannot be read or written, or a name cannot stand in a certificate. Files already written stay.
pub fn issue(dir: &Path, system: &str, sites: &[u16]) -> Result<(), IssueError> {
    let authority = Authority::in_dir(dir, system)?;
    for &site in sites {
        let files = site_files(dir, site);
        if !files.exist() {
            authority.issue(&files, &[site_name(site, system)], Lifetime::Endless)?;
        }
    }
    Ok(())
}

/// A site's certificate and what it believes of others'.
#[derive(Clone, Debug)]
pub struct SiteIdentity {
    own: Arc<pares_tls::Identity>,
    /// For sites that dial here: they must show a certificate.
    pub(crate) sites: Arc<ServerConfig>,
    /// For sites dialled from here: they are shown one.
    dial: Trust,
    /// For applications: only this end shows a certificate.
    pub(crate) clients: Arc<ServerConfig>,
}

impl SiteIdentity {
    /// Reads the files.
    ///
    /// # Errors
    /// If one is missing or not what it should be, or they do not go together.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let own = pares_tls::Identity::load(files)?;
        let (sites, clients) = (own.server(Callers::Certified)?, own.server(Callers::Anybody)?);
        Ok(Self { dial: own.trust()?, own: Arc::new(own), sites, clients })
    }

    /// Whether the certificate bears `name`.
    pub(crate) fn check_own_name(&self, name: &str) -> Result<(), TlsError> {
        self.own.check_name(name)
    }

    /// The TLS of a connection to the site of that name.
    pub(crate) fn dial(&self, name: &str) -> Result<ClientConnection, Ended> {
        self.dial.dial(name).map_err(|_| Ended::WrongName(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_site_added_later_has_the_same_authority() {
        let dir = tempfile::tempdir().unwrap();
        issue(dir.path(), "pares", &[0x0100]).unwrap();
        let before = fs::read(dir.path().join("site-1-0.pem")).unwrap();
        let authority = fs::read(dir.path().join("ca.pem")).unwrap();
        issue(dir.path(), "pares", &[0x0100, 0x0101]).unwrap();
        assert_eq!(fs::read(dir.path().join("site-1-0.pem")).unwrap(), before);
        assert_eq!(fs::read(dir.path().join("ca.pem")).unwrap(), authority);
        let added = SiteIdentity::load(&site_files(dir.path(), 0x0101)).unwrap();
        added.check_own_name("site-1-1.pares").unwrap();
        added.check_own_name("site-1-0.pares").unwrap_err();
    }
}
