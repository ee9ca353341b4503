//! `pares site init`: a system of sites on this machine.
//!
//! For sites on several machines: make it here, put the addresses into `sites.toml`, and give each machine that file, `ca.pem`, its own site's two files
//! and its directory, which says that the database is to begin; who uses it gets `sites.toml`, `ca.pem` and the two files in its name.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use pares_link::TlsFiles;
use pares_site::SitesConfig;
use pares_site::config::{Place, Promise, SITES_FILE};
use pares_text as text;

use crate::BROKER;
use crate::error::{OperatorError, OperatorResult, usage};

/// Ports from here on are tried. They lie below those that the kernel gives to connecting sockets, and so do not get lost while a site is down.
const PORTS: std::ops::Range<u16> = 11_000..32_000;

/// Clusters, sites in each, and the name, if nothing else is said.
pub(crate) const CLUSTERS: u8 = 2;
pub(crate) const SITES: u8 = 3;
pub(crate) const SYSTEM: &str = "pares";

/// The first operator's certificate.
pub const OPERATOR: &str = "operator-admin";
/// The first client's.
pub const CLIENT: &str = "client-app";

/// Arguments of `pares site init`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Number of clusters
    #[arg(long, default_value_t = CLUSTERS, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub clusters: u8,
    /// Number of sites in each cluster; three survive the loss of one
    #[arg(long, default_value_t = SITES, value_parser = clap::value_parser!(u8).range(1..=9))]
    pub sites: u8,
    /// The system's name: letters, digits, dots and dashes
    #[arg(long, default_value = SYSTEM)]
    pub system: String,
    /// What an answer survives: `os` the death of processes, `disk` a power loss
    #[arg(long, default_value = "disk", value_parser = promise)]
    pub durability: Promise,
    /// Use no TLS or certificates: traffic is unencrypted, and anyone who reaches a port can impersonate any site or client
    #[arg(long)]
    pub no_tls: bool,
    /// Keep each site's items in its own PostgreSQL database, created if missing: a URL in which {cluster} and
    /// {number} stand for the site's, as in postgres://postgres@127.0.0.1/pares_{cluster}_{number}
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Offer the PostgreSQL protocol, on one port per site
    #[arg(long, requires = "store")]
    pub sql: bool,
    /// Use a witness, which must agree before a cluster is declared lost: `pares site witness` runs it, at a third location
    #[arg(long)]
    pub witness: bool,
}

/// Reads what an answer promises.
///
/// # Errors
/// If it is neither.
pub fn promise(text: &str) -> Result<Promise, String> {
    match text {
        "os" => Ok(Promise::Os),
        "disk" => Ok(Promise::Disk),
        _ => Err("os or disk".into()),
    }
}

/// Makes it.
///
/// # Errors
/// If there is one already, or it cannot be written.
pub fn run(args: &Args, dir: &Path) -> OperatorResult {
    if args.system == BROKER {
        return Err(usage("that name is reserved for a broker's sites: `pares broker up` makes them"));
    }
    let config = configuration(args)?;
    write(&config, dir)?;
    pares_text::say!(
        "{}: {} of {}. `pares site up --dir {}` starts them all",
        dir.join(SITES_FILE).display(),
        text::count(args.clusters.into(), "cluster"),
        text::count(args.sites.into(), "site"),
        dir.display()
    );
    if let Some(witness) = config.witness {
        pares_text::say!(
            "start the witness too: `pares site witness --dir {}`, at a third location, or here to try it ({witness}). Without it, no cluster can be declared lost",
            dir.display()
        );
    }
    Ok(())
}

/// A system on free ports of this machine.
///
/// # Errors
/// If there are not enough.
pub fn configuration(args: &Args) -> Result<SitesConfig, OperatorError> {
    let mut free = FreePorts::default();
    let mut places = Vec::new();
    for cluster in 0..args.clusters {
        for number in 0..args.sites {
            let mut place = Place::new(cluster, number, free.take()?, free.take()?);
            place.sql = args.sql.then(|| free.take()).transpose()?;
            places.push(place);
        }
    }
    Ok(SitesConfig {
        system: args.system.clone(),
        identity: SitesConfig::draw_identity(),
        durability: args.durability,
        tls: (!args.no_tls).then(|| PathBuf::from("tls")),
        store: args.store.clone(),
        witness: args.witness.then(|| free.take()).transpose()?,
        plain: args.no_tls,
        sites: places,
        ..SitesConfig::default()
    })
}

/// Writes the configuration and the certificates it needs.
///
/// # Errors
/// If there is one already, or it cannot be written.
pub fn write(config: &SitesConfig, dir: &Path) -> OperatorResult {
    // What is wrong is said now and not by each site, and while nothing is written. `sites.toml` comes last: what failed before can be done again.
    config.check().map_err(usage)?;
    let file = dir.join(SITES_FILE);
    if file.exists() {
        return Err(usage(format!("{} already exists: choose another --dir, or edit it", file.display())));
    }
    std::fs::create_dir_all(dir).map_err(OperatorError::io(format!("making {}", dir.display())))?;
    if let Some(tls) = &config.tls {
        let numbers = config.sites.iter().map(|place| u16::from_be_bytes([place.cluster, place.number]));
        let numbers: Vec<u16> = numbers.chain(config.witness.map(|_| pares_link::WITNESS)).collect();
        let tls = dir.join(tls);
        pares_link::issue(&tls, &config.system, &numbers).map_err(usage)?;
        for name in [OPERATOR, CLIENT] {
            if !TlsFiles::named(&tls, name).exist() {
                pares_link::issue_named(&tls, &config.system, name).map_err(usage)?;
            }
        }
    }
    config
        .make_directories(dir)
        .map_err(OperatorError::io(format!("making the sites' directories in {}", dir.display())))?;
    pares_os::replace_file(&file, config.to_text().as_bytes())
        .map_err(OperatorError::io(format!("writing {}", file.display())))
}

/// Ports that no process listens on, each given once.
#[derive(Default)]
pub struct FreePorts {
    told: BTreeSet<u16>,
}

impl FreePorts {
    /// Those that no site has, running or not.
    #[must_use]
    pub fn beside(config: &SitesConfig) -> Self {
        let all = config.sites.iter().flat_map(|place| [Some(place.peers), Some(place.clients), place.sql]);
        Self { told: all.flatten().chain(config.witness).map(|address| address.port()).collect() }
    }

    ///
    /// # Errors
    /// If none is free.
    pub fn take(&mut self) -> Result<SocketAddr, OperatorError> {
        // Not all systems of a machine begin to look at the same port.
        let span = u32::from(PORTS.end - PORTS.start);
        let first = std::process::id().wrapping_mul(97) % span;
        for step in 0..span {
            let port = PORTS.start + u16::try_from((first + step) % span).expect("a port");
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            if !self.told.contains(&port) && TcpListener::bind(address).is_ok() {
                self.told.insert(port);
                return Ok(address);
            }
        }
        Err(usage("this machine has no free port"))
    }
}

#[cfg(test)]
mod tests {
    use pares_wice::SiteId;

    use super::*;

    fn args(store: Option<&str>, sql: bool) -> Args {
        Args {
            clusters: 2,
            sites: 2,
            system: "test".into(),
            durability: Promise::Os,
            no_tls: true,
            store: store.map(str::to_owned),
            sql,
            witness: false,
        }
    }

    const STORE: &str = "postgres://db/pares_{cluster}_{number}";

    #[test]
    fn each_site_gets_database_and_sql_port_on_request() {
        let dir = tempfile::tempdir().unwrap();
        write(&configuration(&args(Some(STORE), true)).unwrap(), dir.path()).unwrap();
        let config = SitesConfig::load(dir.path()).unwrap();
        let database = config.database(SiteId::new(1, 0)).unwrap();
        assert_eq!(database.as_deref(), Some("postgres://db/pares_1_0"));
        let ports: BTreeSet<_> = config.sites.iter().filter_map(|place| place.sql).collect();
        assert_eq!(ports.len(), 4);
    }

    #[test]
    fn refused_init_leaves_nothing_failed_one_is_retryable() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("new");
        for store in ["postgres://db/pares", "pares"] {
            assert!(write(&configuration(&args(Some(store), false)).unwrap(), &new).is_err());
            assert!(!new.exists(), "{store}");
        }
        // A file where the last of the sites is to have its directory.
        std::fs::create_dir(&new).unwrap();
        std::fs::write(new.join("site-1-1"), "").unwrap();
        assert!(write(&configuration(&args(None, false)).unwrap(), &new).is_err());
        std::fs::remove_file(new.join("site-1-1")).unwrap();
        write(&configuration(&args(None, false)).unwrap(), &new).unwrap();
        assert_eq!(SitesConfig::load(&new).unwrap().sites.len(), 4);
    }
}
