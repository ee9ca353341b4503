//! Where a broker's processes are, in a file beside `sites.toml`; and a directory that is not what it should be.
//!
//! A directory without `sites.toml` is begun anew, unless there is something in it that only a site can have written: then somebody has lost a file, and a broker with no accounts in it is the last thing
//! that he wants. Where only `broker.toml` is missing nothing is lost: it is made again, and fronts and desks have other ports.

use std::net::SocketAddr;
use std::path::Path;

use pares_operator::init::{self, FreePorts};
use pares_site::SitesConfig;
use pares_site::config::{Promise, SITES_FILE};
use serde::{Deserialize, Serialize};

use crate::error::{BrokerageError, failed};

/// The file that says where fronts and desks are.
const BROKER_FILE: &str = "broker.toml";
/// What the system of a broker's sites is called.
const SYSTEM: &str = "broker";
/// All that a site's directory has before the site has run.
const UNUSED: &str = "new";

/// Where a broker's processes are; kept beside `sites.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerPlaces {
    /// The quote server that desks ask.
    pub quote_server: SocketAddr,
    /// Where fronts reach each desk.
    pub desks: Vec<SocketAddr>,
    /// Where loaders reach each front.
    pub fronts: Vec<SocketAddr>,
    /// Where people reach each front, if they do.
    #[serde(default)]
    pub pages: Vec<SocketAddr>,
}

impl BrokerPlaces {
    /// Those of the broker in `dir`.
    ///
    /// # Errors
    /// If they cannot be read, or are damaged.
    pub fn of(dir: &Path) -> Result<Self, BrokerageError> {
        Self::read(&dir.join(BROKER_FILE))
    }

    fn read(path: &Path) -> Result<Self, BrokerageError> {
        let shown = path.display();
        let text = pares_os::read_file(path).map_err(BrokerageError::io(format!("reading {shown}")))?;
        let is_damaged = |why: &dyn std::fmt::Display| {
            failed(format!(
                "{shown} is damaged ({why}): move it away, and it is made again, with other ports"
            ))
        };
        let text = String::from_utf8(text).map_err(|_| is_damaged(&"it is no text"))?;
        let places: Self = toml::from_str(&text).map_err(|error| is_damaged(&error.message()))?;
        match places.fronts.is_empty() || places.desks.is_empty() {
            true => Err(is_damaged(&"it names no front, or no desk")),
            false => Ok(places),
        }
    }
}

/// The directory of a site that has run in `dir`, if there is one.
fn used_site(dir: &Path) -> Result<Option<String>, BrokerageError> {
    let reading = || BrokerageError::io(format!("reading {}", dir.display()));
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        entries => entries.map_err(reading())?,
    };
    for entry in entries {
        let entry = entry.map_err(reading())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with("site-") || !entry.path().is_dir() {
            continue;
        }
        let inside = std::fs::read_dir(entry.path()).map_err(reading())?;
        if inside.filter_map(Result::ok).any(|inside| inside.file_name() != UNUSED) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// How many of each, and what the sites promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerPlan {
    /// Clusters, and sites in each.
    pub sites: (u8, u8),
    /// Fronts.
    pub fronts: u16,
    /// Desks.
    pub desks: u16,
    /// What a reply promises.
    pub durability: Promise,
    /// The URL of each site's PostgreSQL database, as in `sites.toml`; without, files.
    pub store: Option<String>,
    /// The quote server.
    pub quote_server: SocketAddr,
    /// Where people reach the first front; the others at the ports behind it. Without, none has pages.
    pub http: Option<SocketAddr>,
}

impl BrokerPlan {
    fn pages(&self) -> Vec<SocketAddr> {
        let Some(first) = self.http else { return Vec::new() };
        let at = |front| Some(SocketAddr::new(first.ip(), first.port().checked_add(front)?));
        (0..self.fronts).filter_map(at).collect()
    }

    /// Writes it as a new broker's directory; what is there already is read instead.
    ///
    /// # Errors
    /// If it cannot be read or written, is damaged, or there are sites without their `sites.toml`.
    pub fn settle(&self, dir: &Path) -> Result<(SitesConfig, BrokerPlaces), BrokerageError> {
        let (file, path) = (dir.join(SITES_FILE), dir.join(BROKER_FILE));
        let config = match file.exists() {
            true => SitesConfig::load(dir).map_err(failed)?,
            false => self.begin(dir)?,
        };
        if config.system != SYSTEM {
            let (file, system) = (file.display(), &config.system);
            return Err(BrokerageError::Usage(format!(
                "{file} is of the system {system:?}, which is no broker"
            )));
        }
        if path.exists() {
            return Ok((config, BrokerPlaces::read(&path)?));
        }
        let places = self.places(&config)?;
        let text = toml::to_string(&places).map_err(failed)?;
        pares_os::replace_file(&path, text.as_bytes())
            .map_err(BrokerageError::io(format!("writing {}", path.display())))?;
        Ok((config, places))
    }

    fn begin(&self, dir: &Path) -> Result<SitesConfig, BrokerageError> {
        if let Some(found) = used_site(dir)? {
            let dir = dir.display();
            return Err(BrokerageError::Usage(format!(
                "{dir} has no {SITES_FILE}, and a site has run there ({found}): bring the file back, or begin in another --dir"
            )));
        }
        if dir.join(BROKER_FILE).exists() {
            let dir = dir.display();
            return Err(BrokerageError::Usage(format!(
                "{dir} has a {BROKER_FILE} and no {SITES_FILE}: bring that back, or begin in another --dir"
            )));
        }
        let config = self.configuration()?;
        init::write(&config, dir).map_err(failed)?;
        Ok(config)
    }

    fn places(&self, config: &SitesConfig) -> Result<BrokerPlaces, BrokerageError> {
        let mut free = FreePorts::beside(config);
        let mut ports = |count: u16| -> Result<Vec<SocketAddr>, BrokerageError> {
            (0..count).map(|_| free.take().map_err(failed)).collect()
        };
        let (desks, fronts) = (ports(self.desks)?, ports(self.fronts)?);
        Ok(BrokerPlaces { quote_server: self.quote_server, desks, fronts, pages: self.pages() })
    }

    fn configuration(&self) -> Result<SitesConfig, BrokerageError> {
        let args = init::Args {
            clusters: self.sites.0,
            sites: self.sites.1,
            system: SYSTEM.into(),
            durability: self.durability,
            no_tls: true,
            store: self.store.clone(),
            sql: false,
            witness: false,
        };
        init::configuration(&args).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

    fn plan() -> BrokerPlan {
        let (durability, store, quote_server, http) = (Promise::Os, None, ANY, None);
        BrokerPlan { sites: (1, 1), fronts: 1, desks: 1, durability, store, quote_server, http }
    }

    fn refused(dir: &Path) -> String {
        plan().settle(dir).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn a_directory_is_begun_once_and_read_from_then_on() {
        let dir = tempfile::tempdir().unwrap();
        let first = plan().settle(dir.path()).unwrap();
        assert_eq!(plan().settle(dir.path()).unwrap(), first);
        std::fs::remove_file(dir.path().join(BROKER_FILE)).unwrap();
        let (config, places) = plan().settle(dir.path()).unwrap();
        assert_eq!((config, places.fronts.len()), (first.0, 1), "the same accounts, by other ports");
    }

    #[test]
    fn a_directory_that_is_half_there_or_damaged_is_refused_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (sites, broker) = (dir.path().join(SITES_FILE), dir.path().join(BROKER_FILE));
        plan().settle(dir.path()).unwrap();
        let whole = std::fs::read_to_string(&broker).unwrap();
        for damaged in
            ["", &whole[..whole.len() / 2], "fronts = []", "\0\0\0\0", &whole.replace("127", "927")]
        {
            std::fs::write(&broker, damaged).unwrap();
            let why = refused(dir.path());
            assert!(why.contains("broker.toml is damaged"), "{damaged:?}: {why}");
        }
        std::fs::write(&broker, whole.as_bytes()).unwrap();
        let config = std::fs::read_to_string(&sites).unwrap();
        for damaged in ["", &config[..config.len() / 2], "\0"] {
            std::fs::write(&sites, damaged).unwrap();
            let why = refused(dir.path());
            assert!(why.contains("sites.toml"), "{damaged:?}: {why}");
        }
        std::fs::write(&sites, config.replace("\"broker\"", "\"bank\"")).unwrap();
        assert!(refused(dir.path()).contains("\"bank\", which is no broker"));
        std::fs::remove_file(&sites).unwrap();
        assert!(refused(dir.path()).contains("a broker.toml and no sites.toml"));
        std::fs::write(dir.path().join("site-0-0/place"), "").unwrap();
        assert!(refused(dir.path()).contains("a site has run there (site-0-0)"));
        std::fs::remove_file(&broker).unwrap();
        assert!(refused(dir.path()).contains("a site has run there (site-0-0)"));
        assert!(!sites.exists() && !broker.exists());
    }
}
