//! `sites.toml`: who there is, and where.
//!
//! ```toml
//! system = "bank"            # names the system in certificates and hellos
//! identity = "5f0c..."       # names the database in its directories, for ever: 32 hexadecimal digits, drawn by `pares site init`
//! durability = "disk"        # or "os": survives the process, not the power
//! isolation = "snapshot"     # or "serialisable"; the same for ever
//! certifier = 0              # the cluster that certifies at first
//! # begins = 1234            # the version with which a restored database begins
//! tls = "tls"                # certificates, beside this file: sites and clients all show one
//! store = "postgres://pares@db/bank_{cluster}_{number}"   # each site's database; without it a file beside this one
//! # witness = "10.0.9.1:7200"  # a third place, without which no cluster is declared lost
//! # plain = true             # instead of it, beyond loopback: who reaches a port may be any site, client or operator
//!
//! [limits]                   # all of it may be left out; each site may have its own
//! patience_ms = 1500         # after how long a client receives "not known yet"
//! open_requests = 65536      # requests of clients without an answer
//! readers = 2                # threads that answer reads
//! read_ms = 10000            # how long one read may take
//!
//! [[site]]
//! cluster = 0
//! number = 0
//! peers = "10.0.0.1:7000"    # where other sites reach it
//! clients = "10.0.0.1:7100"  # where clients do
//! far = "198.51.100.1:7000"  # where sites of other clusters reach it, if that is elsewhere
//! store = "postgres:///bank?host=/run/postgresql"   # this site's database, if it is not called as the others'
//! sql = "10.0.0.1:5433"      # where it speaks PostgreSQL's protocol, if it does
//! ```

mod checks;

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pares_cluster::Durability;
use pares_link::{Agreed, ClientsConfig, LinksConfig, Peer, SiteIdentity, WITNESS, site_files};
use pares_wice::{ClusterId, Isolation, Settings, SiteId, Version};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::setup::{Bounds, Setup};

/// All sites of a system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SitesConfig {
    /// Its name: 1 to 63 letters, digits, dots and dashes.
    pub system: String,
    /// Names the database, for ever: 32 hexadecimal digits.
    pub identity: String,
    /// What an answer promises.
    #[serde(default)]
    pub durability: Promise,
    /// What counts as a conflict.
    #[serde(default, with = "isolation")]
    pub isolation: Isolation,
    /// The cluster that certifies at first.
    #[serde(default)]
    pub certifier: u8,
    /// Where the certificates are, beside this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<PathBuf>,
    /// The PostgreSQL database of each site that names none, as a URL in which `{cluster}` and `{number}` are the site's. Without
    /// it a site's items are in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// The version with which the database begins: 0, or that of the backup it was restored from.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub begins: u64,
    /// Without certificates, beyond this machine: all who reach a port are believed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain: bool,
    /// Where the witness is that must grant it before a cluster is declared lost, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<SocketAddr>,
    /// How much a site takes.
    #[serde(default, skip_serializing_if = "SiteLimits::is_default")]
    pub limits: SiteLimits,
    /// All sites.
    #[serde(rename = "site")]
    pub sites: Vec<Place>,
}

/// How much a site takes. Sites may differ in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SiteLimits {
    /// How long a client waits before it receives "not known yet", milliseconds, at least 1.
    pub patience_ms: u64,
    /// Requests of clients without an answer, at least 1.
    pub open_requests: usize,
    /// Threads that answer reads, 1 to 64.
    pub readers: usize,
    /// How long one read may take, milliseconds, at least 1.
    pub read_ms: u64,
}

impl Default for SiteLimits {
    fn default() -> Self {
        Self { patience_ms: 1_500, open_requests: 1 << 16, readers: 2, read_ms: 10_000 }
    }
}

impl SiteLimits {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn check(&self) -> Result<(), String> {
        let Self { patience_ms, open_requests, readers, read_ms } = *self;
        match patience_ms > 0 && open_requests > 0 && read_ms > 0 && (1..=64).contains(&readers) {
            true => Ok(()),
            false => Err("limits: each must be at least 1, and readers at most 64".into()),
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            answer_patience: Duration::from_millis(self.patience_ms),
            open_requests_max: self.open_requests,
            readers: self.readers,
            read_time_max: Duration::from_millis(self.read_ms),
            ..Bounds::default()
        }
    }
}

/// What survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Promise {
    /// The death of processes.
    Os,
    /// The loss of power.
    #[default]
    Disk,
}

/// What counts as a conflict, by its name: the rules' crate knows of no files.
mod isolation {
    use pares_wice::Isolation;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(isolation: &Isolation, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(isolation)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Isolation, D::Error> {
        String::deserialize(from)?.parse().map_err(Error::custom)
    }
}

/// One site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Its cluster, 0 to 63.
    pub cluster: u8,
    /// Its number there, from 0.
    pub number: u8,
    /// Where other sites reach it.
    pub peers: SocketAddr,
    /// Where clients reach it.
    pub clients: SocketAddr,
    /// Where sites of other clusters reach it, if that is elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<SocketAddr>,
    /// Its PostgreSQL database, as a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Where it speaks PostgreSQL's protocol; only over such a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<SocketAddr>,
}

impl Place {
    /// A site with these addresses, and nothing else said of it.
    #[must_use]
    pub fn new(cluster: u8, number: u8, peers: SocketAddr, clients: SocketAddr) -> Self {
        Self { cluster, number, peers, clients, far: None, store: None, sql: None }
    }

    /// Which site it is.
    #[must_use]
    pub fn id(&self) -> SiteId {
        SiteId::new(self.cluster, self.number)
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// There is none.
    #[error("{path}: {source}: name a directory with a sites.toml, or create one with `pares site init`")]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// It is not what it should be.
    #[error("{path}: {what}")]
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// There is no such site.
    #[error("{0} is not in sites.toml")]
    NoSite(SiteId),
    /// Its certificate cannot be used.
    #[error("certificate: {0}")]
    Tls(#[from] pares_link::TlsError),
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The configuration, in a system's directory.
pub const SITES_FILE: &str = "sites.toml";

/// The directory of the witness, where its system's is the one around it.
pub const WITNESS_DIRECTORY: &str = "witness";

/// The directory of a site, where its system's is `dir`.
#[must_use]
pub fn directory_of(dir: &Path, site: SiteId) -> PathBuf {
    dir.join(format!("site-{}-{}", site.cluster.0, site.number))
}

/// A site's number between sites: the cluster in the upper byte.
#[must_use]
pub(crate) fn number_of(site: SiteId) -> u16 {
    u16::from(site.cluster.0) << 8 | u16::from(site.number)
}

pub(crate) fn site_of(number: u16) -> SiteId {
    let [cluster, number] = number.to_be_bytes();
    SiteId::new(cluster, number)
}

impl SitesConfig {
    /// Reads `sites.toml` in `dir`.
    ///
    /// # Errors
    /// What is wrong, and with what.
    pub fn load(dir: &Path) -> Result<Self, ConfigError> {
        Self::read(&dir.join(SITES_FILE))
    }

    /// Reads a file that is like it, whatever its name.
    ///
    /// # Errors
    /// As [`SitesConfig::load`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let content = |what| ConfigError::Content { path: path.to_owned(), what };
        let text = std::fs::read_to_string(path).map_err(|source| match path.exists() {
            true => content(source.to_string()),
            false => ConfigError::Read { path: path.to_owned(), source },
        })?;
        let config: Self = toml::from_str(&text).map_err(|error| content(error.to_string()))?;
        config.check().map_err(content)?;
        Ok(config)
    }

    /// As the text of `sites.toml`.
    #[must_use]
    pub fn to_text(&self) -> String {
        toml::to_string(self).expect("a configuration is a table")
    }

    /// Draws the identity of another database.
    ///
    /// # Panics
    /// Only if this crate is wrong.
    #[must_use]
    pub fn draw_identity() -> String {
        let draw = |half: u8| RandomState::new().hash_one(half);
        let identity = format!("{:016x}{:016x}", draw(0), draw(1));
        assert_eq!(identity.len(), 32, "an identity has 32 hexadecimal digits");
        identity
    }

    /// Makes a new directory for every site, and for the witness, in `dir`: the word that this database is to begin.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn make_directories(&self, dir: &Path) -> std::io::Result<()> {
        let sites = self.sites.iter().map(|place| directory_of(dir, place.id()));
        let witness = self.witness.map(|_| dir.join(WITNESS_DIRECTORY));
        for own in sites.chain(witness) {
            std::fs::create_dir_all(&own)?;
            pares_os::replace_file(&own.join(crate::place::NEW), format!("{}\n", self.identity).as_bytes())?;
        }
        Ok(())
    }

    fn members(&self, cluster: ClusterId) -> impl Iterator<Item = &Place> {
        self.sites.iter().filter(move |site| site.cluster == cluster.0)
    }

    /// The place of a site.
    ///
    /// # Errors
    /// If there is no such site.
    pub fn place(&self, site: SiteId) -> Result<&Place, ConfigError> {
        self.sites.iter().find(|place| place.id() == site).ok_or(ConfigError::NoSite(site))
    }

    /// The settings of a site's rules.
    fn settings(&self, site: SiteId) -> Settings {
        let (isolation, witnessed) = (self.isolation, self.witness.is_some());
        Settings { isolation, witnessed, ..Settings::new(site, self.sites.iter().map(Place::id).collect()) }
    }

    /// What a site's duty cycle receives when it begins.
    #[must_use]
    pub fn setup(&self, site: SiteId) -> Setup {
        let (settings, log) = (self.settings(site), self.log(site));
        let (identity, certifier) = (self.identity.clone(), ClusterId(self.certifier));
        let begins = Version(self.begins);
        Setup { identity, settings, log, certifier, begins, bounds: self.limits.bounds() }
    }

    pub(crate) fn durability(&self) -> Durability {
        match self.durability {
            Promise::Os => Durability::Os,
            Promise::Disk => Durability::Disk,
        }
    }

    /// A site's place in its cluster's log.
    fn log(&self, site: SiteId) -> pares_cluster::ReplicaConfig {
        let members = self.members(site.cluster).count();
        pares_cluster::ReplicaConfig::new(site.number, u8::try_from(members).expect("at most 9"))
    }

    /// What all sites must be told alike: with another certifier two clusters would certify. The list of sites may differ while it is changed at one
    /// after the other; who founds a database compares it.
    fn agreed(&self) -> Vec<Agreed> {
        let agreed = [
            ("identity", self.identity.clone()),
            ("certifier", self.certifier.to_string()),
            ("isolation", self.isolation.to_string()),
            ("durability", format!("{:?}", self.durability).to_lowercase()),
        ];
        let restored = (self.begins > 0).then(|| ("begins", self.begins.to_string()));
        // Where it is only operators have to know: so it can be moved while sites run.
        let witness = self.witness.map(|_| ("witness", "yes".to_owned()));
        agreed
            .into_iter()
            .chain(restored)
            .chain(witness)
            .map(|(name, value)| Agreed { name, value })
            .collect()
    }

    /// The connections of the witness: a port for operators alone. Certificates are looked for beside `dir`'s `sites.toml`.
    pub(crate) fn witness_links(&self, listen: SocketAddr, dir: &Path) -> Result<LinksConfig, ConfigError> {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut links = LinksConfig::new(WITNESS, &self.system, nowhere, Vec::new());
        if let Some(tls) = &self.tls {
            links.identity = Some(SiteIdentity::load(&site_files(&dir.join(tls), WITNESS))?);
        }
        links.clients = Some(ClientsConfig { tls: self.tls.is_some(), ..ClientsConfig::listening(listen) });
        Ok(links)
    }

    /// A site's connections. Certificates are looked for beside `dir`'s `sites.toml`.
    pub(crate) fn links(&self, site: SiteId, dir: &Path) -> Result<LinksConfig, ConfigError> {
        let here = self.place(site)?;
        let tls = self.tls.as_ref();
        let peers = self.sites.iter().filter(|place| place.id() != site).map(|place| {
            let far = place.cluster != site.cluster.0;
            let address = place.far.filter(|_| far).unwrap_or(place.peers);
            Peer { number: number_of(place.id()), address, tls: tls.is_some() }
        });
        let mut links = LinksConfig::new(number_of(site), &self.system, here.peers, peers.collect());
        links.agreed = self.agreed();
        if let Some(tls) = tls {
            links.identity = Some(SiteIdentity::load(&site_files(&dir.join(tls), number_of(site)))?);
        }
        links.clients = Some(ClientsConfig { tls: tls.is_some(), ..ClientsConfig::listening(here.clients) });
        Ok(links)
    }
}

#[cfg(test)]
mod tests;
