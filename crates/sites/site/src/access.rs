//! A system as clients see it: where its sites accept them, and the certificate that they show there.

use std::path::Path;

use pares_link::{Door, TlsFiles, Trust, WITNESS};
use pares_wice::SiteId;

use crate::client::Client;
use crate::config::{ConfigError, SitesConfig, number_of};
use crate::protocol::database_of;

/// The way to the sites of a system for one owner of a certificate.
#[derive(Clone, Debug)]
pub struct Access {
    /// Who there is, and where.
    pub config: SitesConfig,
    /// What is shown; nothing where nobody shows anything.
    trust: Option<Trust>,
}

impl Access {
    /// With the first of these certificates that is in the system's directory of certificates (`client-app`, say), beside `sites.toml` in `dir`. Without
    /// `tls` in the configuration none is looked for.
    ///
    /// # Errors
    /// If none is there, or it cannot be used.
    ///
    /// # Panics
    /// If no name is given.
    pub fn named(config: SitesConfig, dir: &Path, names: &[&str]) -> Result<Self, ConfigError> {
        let Some(tls) = &config.tls else { return Ok(Self { config, trust: None }) };
        let tls = dir.join(tls);
        let mut all = names.iter().map(|name| TlsFiles::named(&tls, name));
        let first = all.next().expect("a name");
        let found = std::iter::once(first.clone()).chain(all).find(TlsFiles::exist);
        Self::shown(config, &found.unwrap_or(first))
    }

    /// With the certificate `file`, called `NAME.pem`; its key, `NAME.key.pem`, and `ca.pem` lie beside it.
    ///
    /// # Errors
    /// If one of them is missing or cannot be used, or the system has no certificates.
    pub fn by_file(config: SitesConfig, file: &Path) -> Result<Self, ConfigError> {
        if config.tls.is_none() {
            let what =
                "this system uses no certificates (sites.toml has no `tls`): leave --identity out".to_owned();
            return Err(ConfigError::Content { path: file.to_owned(), what });
        }
        let files = TlsFiles {
            ca: file.with_file_name("ca.pem"),
            certificate: file.to_owned(),
            key: file.with_extension("key.pem"),
        };
        Self::shown(config, &files)
    }

    fn shown(config: SitesConfig, files: &TlsFiles) -> Result<Self, ConfigError> {
        assert!(config.tls.is_some(), "a certificate is shown only where the system has them");
        let trust = pares_link::Identity::load(files)?.trust()?;
        Ok(Self { config, trust: Some(trust) })
    }

    /// Where a site lets its clients in.
    ///
    /// # Errors
    /// If there is no such site.
    pub fn door(&self, site: SiteId) -> Result<Door, ConfigError> {
        let address = self.config.place(site)?.clients;
        Ok(match &self.trust {
            None => address.into(),
            Some(trust) => Door::with_tls(address, trust.clone(), number_of(site), &self.config.system),
        })
    }

    /// A client of the witness; none if there is no witness.
    #[must_use]
    pub fn witness(&self) -> Option<Client> {
        let address = self.config.witness?;
        let door = match &self.trust {
            None => address.into(),
            Some(trust) => Door::with_tls(address, trust.clone(), WITNESS, &self.config.system),
        };
        Some(Client::new(u64::MAX, 0, vec![door]))
    }

    /// The database, as those who ask the witness name it.
    #[must_use]
    pub fn database(&self) -> u32 {
        database_of(&self.config.identity)
    }

    /// A client of these sites, the first one first; `number` and `sequence` as in [`Client::new`].
    ///
    /// # Errors
    /// If there is no such site.
    pub fn client(&self, number: u64, sequence: u64, sites: &[SiteId]) -> Result<Client, ConfigError> {
        let doors: Result<Vec<Door>, _> = sites.iter().map(|site| self.door(*site)).collect();
        Ok(Client::new(number, sequence, doors?))
    }
}
