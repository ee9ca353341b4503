//! Where a broker's processes are, in a file beside `sites.toml`; and a directory that is not what it should be.
//!
//! A directory without `sites.toml` begins as a new one, unless there is something in it that only a site can have written: then a file is lost, and a broker with no accounts in it is the last thing
//! that he wants. Where only `broker.toml` is missing nothing is lost: it is made again, and fronts and desks have other ports.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use pares_operator::BROKER;
use pares_operator::init::{self, FreePorts};
use pares_site::SitesConfig;
use pares_site::config::{Promise, SITES_FILE};
use serde::{Deserialize, Serialize};

use crate::error::{BrokerageError, BrokerageResult, failed, usage};

/// The file that says where fronts and desks are.
const BROKER_FILE: &str = "broker.toml";
/// Another program may let a port go within this: so may processes of a broker that was killed.
const PORT_PATIENCE: Duration = Duration::from_secs(1);
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
    pub fn of(dir: &Path) -> BrokerageResult<Self> {
        Self::read(&dir.join(BROKER_FILE))
    }

    /// Writes them as those of the broker in `dir`.
    fn write(&self, dir: &Path) -> BrokerageResult {
        let (path, text) = (dir.join(BROKER_FILE), toml::to_string(self).map_err(failed)?);
        pares_os::replace_file(&path, text.as_bytes())
            .map_err(BrokerageError::io(format!("writing {}", path.display())))
    }

    /// From now on people reach the first front there, and the others at the ports behind it.
    ///
    /// # Errors
    /// If there are not so many ports, or it cannot be written.
    pub fn move_pages(&mut self, http: SocketAddr, dir: &Path) -> BrokerageResult {
        let pages = pages_from(http, self.fronts.len())?;
        if pages != self.pages {
            self.pages = pages;
            self.write(dir)?;
        }
        Ok(())
    }

    /// Whether nobody else listens where desks and fronts are to be.
    ///
    /// # Errors
    /// [`BrokerageError::Usage`]: who does, and what to do.
    pub fn are_free(&self) -> BrokerageResult {
        const MOVED: &str =
            "stop the program that uses it, or move broker.toml away, so that desks and fronts get new ports";
        const NAMED: &str = "name another with --http, as in --http 127.0.0.1:9080";
        let all = [
            ("desk", &self.desks, MOVED),
            ("front", &self.fronts, MOVED),
            ("pages of front", &self.pages, NAMED),
        ];
        for (what, addresses, advice) in all {
            for (number, address) in addresses.iter().enumerate() {
                is_free(*address).map_err(|error| {
                    usage(format!("{address}, for {what} {number}, cannot be used ({error}): {advice}"))
                })?;
            }
        }
        Ok(())
    }

    fn read(path: &Path) -> BrokerageResult<Self> {
        let shown = path.display();
        let text = pares_os::read_file(path).map_err(BrokerageError::io(format!("reading {shown}")))?;
        let is_damaged = |why: &dyn std::fmt::Display| {
            failed(format!(
                "{shown} is damaged ({why}): move it away; the next start creates a new one, with other ports"
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

fn is_free(address: SocketAddr) -> std::io::Result<()> {
    let began = Instant::now();
    loop {
        match TcpListener::bind(address) {
            Err(error)
                if error.kind() == std::io::ErrorKind::AddrInUse && began.elapsed() < PORT_PATIENCE =>
            {
                std::thread::sleep(PORT_PATIENCE / 20);
            }
            bound => return bound.map(drop),
        }
    }
}

/// Where people reach so many fronts, the first of them there.
fn pages_from(http: SocketAddr, fronts: usize) -> BrokerageResult<Vec<SocketAddr>> {
    let at = |front: u16| Some(SocketAddr::new(http.ip(), http.port().checked_add(front)?));
    let pages: Option<Vec<_>> = (0..=u16::MAX).take(fronts).map(at).collect();
    pages.ok_or_else(|| usage(format!("there are not {fronts} ports from {http} on")))
}

/// The sites of the broker in `dir`.
///
/// # Errors
/// [`BrokerageError::Usage`] if there is none there.
pub fn sites_of(dir: &Path) -> BrokerageResult<SitesConfig> {
    let (file, shown) = (dir.join(SITES_FILE), dir.display());
    if !file.exists() {
        return Err(usage(format!(
            "there is no broker in {shown}: name its directory with --dir, or create one with `pares broker up --dir {shown}`"
        )));
    }
    let config = SitesConfig::load(dir).map_err(failed)?;
    match config.system == BROKER {
        true => Ok(config),
        false => Err(usage(format!(
            "{} belongs to the system {:?}, which is not a broker: create one with `pares broker up --dir DIR`",
            file.display(),
            config.system
        ))),
    }
}

/// The directory of a site that has run in `dir`, if there is one.
fn used_site(dir: &Path) -> BrokerageResult<Option<String>> {
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
    /// Whether pages can be where they are to be, if nothing is there yet: a first start that fails leaves nothing that says how many of each there are.
    ///
    /// # Errors
    /// As [`BrokerPlaces::are_free`]; if there are not so many ports.
    pub fn can_begin(&self, dir: &Path) -> BrokerageResult {
        let Some(http) = self.http.filter(|_| !dir.join(SITES_FILE).exists()) else { return Ok(()) };
        let pages = pages_from(http, self.fronts.into())?;
        let (quote_server, desks, fronts) = (self.quote_server, Vec::new(), Vec::new());
        BrokerPlaces { quote_server, desks, fronts, pages }.are_free()
    }

    /// Writes it as a new broker's directory; what is there already is read instead.
    ///
    /// # Errors
    /// If it cannot be read or written, is damaged, or there are sites without their `sites.toml`.
    pub fn settle(&self, dir: &Path) -> BrokerageResult<(SitesConfig, BrokerPlaces)> {
        let (file, path) = (dir.join(SITES_FILE), dir.join(BROKER_FILE));
        let config = if file.exists() { sites_of(dir)? } else { self.begin(dir)? };
        if path.exists() {
            return Ok((config, BrokerPlaces::read(&path)?));
        }
        let places = self.places(&config)?;
        places.write(dir)?;
        Ok((config, places))
    }

    fn begin(&self, dir: &Path) -> BrokerageResult<SitesConfig> {
        if let Some(found) = used_site(dir)? {
            let dir = dir.display();
            return Err(usage(format!(
                "{dir} has no {SITES_FILE}, but data of a site ({found}): restore the file, or use another --dir"
            )));
        }
        if dir.join(BROKER_FILE).exists() {
            let dir = dir.display();
            return Err(usage(format!(
                "{dir} has a {BROKER_FILE} but no {SITES_FILE}: restore it, or use another --dir"
            )));
        }
        let config = self.configuration()?;
        init::write(&config, dir).map_err(failed)?;
        Ok(config)
    }

    fn places(&self, config: &SitesConfig) -> BrokerageResult<BrokerPlaces> {
        let mut free = FreePorts::beside(config);
        let mut ports = |count: u16| -> BrokerageResult<Vec<SocketAddr>> {
            (0..count).map(|_| free.take().map_err(failed)).collect()
        };
        let (desks, fronts) = (ports(self.desks)?, ports(self.fronts)?);
        let pages = self.http.map_or(Ok(Vec::new()), |http| pages_from(http, fronts.len()))?;
        Ok(BrokerPlaces { quote_server: self.quote_server, desks, fronts, pages })
    }

    fn configuration(&self) -> BrokerageResult<SitesConfig> {
        let args = init::Args {
            clusters: self.sites.0,
            sites: self.sites.1,
            system: BROKER.into(),
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
    fn pages_port_persists_and_conflict_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (_, mut places) = plan().settle(dir.path()).unwrap();
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = other.local_addr().unwrap();
        places.move_pages(taken, dir.path()).unwrap();
        assert_eq!(BrokerPlaces::of(dir.path()).unwrap().pages, [taken], "the next start knows it");
        let why = places.are_free().unwrap_err().to_string();
        assert!(
            why.starts_with(&format!("{taken}, for pages of front 0,")) && why.contains("--http"),
            "{why}"
        );
        drop(other);
        places.are_free().unwrap();
        let last = SocketAddr::new(ANY.ip(), u16::MAX);
        places.fronts.push(ANY);
        assert!(places.move_pages(last, dir.path()).is_err(), "there is no port behind it");
        assert_eq!(BrokerPlaces::of(dir.path()).unwrap().pages, [taken]);
    }

    #[test]
    fn a_first_start_whose_port_is_taken_makes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let wanted = BrokerPlan { http: Some(other.local_addr().unwrap()), ..plan() };
        let why = wanted.can_begin(dir.path()).unwrap_err().to_string();
        assert!(why.contains("--http"), "{why}");
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
        plan().settle(dir.path()).unwrap();
        wanted.can_begin(dir.path()).unwrap();
    }

    #[test]
    fn where_no_broker_is_it_is_said_how_one_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let why = || sites_of(dir.path()).unwrap_err().to_string();
        assert!(why().contains("`pares broker up --dir") && !why().contains("pares site"), "{}", why());
        let (mut config, _) = plan().settle(dir.path()).unwrap();
        assert!(sites_of(dir.path()).is_ok());
        config.system = "bank".into();
        std::fs::write(dir.path().join(SITES_FILE), config.to_text()).unwrap();
        assert!(why().contains("is not a broker"), "{}", why());
    }

    #[test]
    fn partial_or_damaged_directory_is_refused_unchanged() {
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
        assert!(refused(dir.path()).contains("\"bank\", which is not a broker"));
        std::fs::remove_file(&sites).unwrap();
        assert!(refused(dir.path()).contains("a broker.toml but no sites.toml"));
        std::fs::write(dir.path().join("site-0-0/place"), "").unwrap();
        assert!(refused(dir.path()).contains("data of a site (site-0-0)"));
        std::fs::remove_file(&broker).unwrap();
        assert!(refused(dir.path()).contains("data of a site (site-0-0)"));
        assert!(!sites.exists() && !broker.exists());
    }
}
