//! `pares site add`: another site of a system, in one of its clusters or as the first of another.
//!
//! It is named in `sites.toml`, and gets a certificate. It gets no directory: that would say that a database is to begin, and this one is to be filled by
//! those that are there.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use pares_link::TlsFiles;
use pares_site::SitesConfig;
use pares_site::config::{Place, SITES_FILE, directory_of};
use pares_wice::SiteId;
use serde::Serialize;

use crate::error::{OperatorError, OperatorResult, usage};
use crate::init::FreePorts;
use crate::{issue, sites};

/// Arguments of `pares site add`.
#[derive(clap::Args)]
pub struct Args {
    /// The site: CLUSTER.NUMBER, as in 0.3
    #[arg(value_parser = sites::parse)]
    site: SiteId,
    /// Its address for other sites [default: a free port of this machine]
    #[arg(long, value_name = "ADDRESS")]
    peers: Option<SocketAddr>,
    /// Its address for clients [default: a free port of this machine]
    #[arg(long, value_name = "ADDRESS")]
    clients: Option<SocketAddr>,
    /// Its address for the PostgreSQL protocol [default: a free port of this machine, if the other sites speak it]
    #[arg(long, value_name = "ADDRESS")]
    sql: Option<SocketAddr>,
    /// Do not offer the PostgreSQL protocol, even if other sites do
    #[arg(long, conflicts_with = "sql")]
    no_sql: bool,
}

/// What is written behind the others.
#[derive(Serialize)]
struct Another {
    site: [Place; 1],
}

impl Args {
    /// Adds it.
    ///
    /// # Errors
    /// If it is there, no configuration has room for it, or its certificate cannot be issued.
    pub fn run(&self, mut config: SitesConfig, dir: &Path) -> OperatorResult {
        let place = self.place(&config)?;
        self.is_new(dir)?;
        config.sites.push(place.clone());
        config.check().map_err(usage)?;
        let name = format!("site-{}-{}", place.cluster, place.number);
        // One that was taken out and not revoked has its certificate still.
        let has_one = |tls: &PathBuf| TlsFiles::named(&dir.join(tls), &name).exist();
        if config.tls.as_ref().is_some_and(|tls| !has_one(tls)) {
            issue::issue(&config, dir, &name)?;
        }
        let path = dir.join(SITES_FILE);
        let writing = || OperatorError::io(format!("writing {}", path.display()));
        let before = std::fs::read_to_string(&path).map_err(writing())?;
        let port = place.sql.map_or(String::new(), |sql| format!(", with SQL clients at {sql}"));
        let more = toml::to_string(&Another { site: [place] }).expect("a site is a table");
        let text = format!("{}\n\n{more}", before.trim_end());
        pares_os::replace_file(&path, text.as_bytes()).map_err(writing())?;
        pares_text::say!(
            "{name} is now in {}{port}. Copy that file to every machine and the certificate to the new \
             site's machine, then restart the sites one after the other (a running `pares site up` does \
             so); other sites fill the new one",
            path.display()
        );
        Ok(())
    }

    /// Whether nothing of an earlier site of that name lies here: a removed one would end at its first word, and be filled by nobody.
    fn is_new(&self, dir: &Path) -> OperatorResult {
        let own = directory_of(dir, self.site);
        let is_there = std::fs::read_dir(&own).is_ok_and(|mut entries| entries.next().is_some());
        let (own, name) = (own.display(), sites::name(self.site));
        let why = || {
            format!(
                "{own} already exists from an earlier {name}, but a new site must start empty, and a \
                 removed site cannot return with its old data. Move that directory away (and drop its \
                 database, if any), or add another number. If the site was never removed, put its [[site]] \
                 back into sites.toml by hand"
            )
        };
        if is_there { Err(usage(why())) } else { Ok(()) }
    }

    fn place(&self, config: &SitesConfig) -> Result<Place, OperatorError> {
        if config.place(self.site).is_ok() {
            return Err(usage(format!("{} is already in sites.toml", sites::name(self.site))));
        }
        let next = sites::clusters(config).last().map_or(0, |last| last.saturating_add(1));
        if self.site.cluster.0 > next {
            return Err(usage(format!(
                "there is no cluster {}: clusters are numbered without gaps, and the next one is {next}; did you mean {next}.{}?",
                self.site.cluster.0, self.site.number
            )));
        }
        let mut free = FreePorts::beside(config);
        let mut or_free = |address: Option<SocketAddr>| address.map_or_else(|| free.take(), Ok);
        let (peers, clients) = (or_free(self.peers)?, or_free(self.clients)?);
        let sql = match self.sql {
            None if self.no_sql || config.sites.iter().all(|place| place.sql.is_none()) => None,
            None if !clients.ip().is_loopback() => {
                return Err(usage(format!(
                    "the other sites speak the PostgreSQL protocol: give {} an address with --sql ADDRESS, or use --no-sql",
                    sites::name(self.site)
                )));
            }
            named => Some(or_free(named)?),
        };
        let place = Place::new(self.site.cluster.0, self.site.number, peers, clients);
        Ok(Place { sql, ..place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(sql: bool) -> SitesConfig {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let place = Place { sql: sql.then(|| address(3)), ..Place::new(0, 0, address(1), address(2)) };
        let text = "system = \"x\"\nidentity = \"0123456789abcdef0123456789abcdef\"\nplain = true\nstore = \"postgres://db/x_{number}\"\nsite = []";
        SitesConfig { sites: vec![place], ..toml::from_str(text).unwrap() }
    }

    fn args() -> Args {
        Args { site: SiteId::new(0, 1), peers: None, clients: None, sql: None, no_sql: false }
    }

    #[test]
    fn a_site_of_a_system_that_speaks_sql_gets_a_port_for_it() {
        let added = args().place(&system(true)).unwrap();
        let ports = [added.peers, added.clients, added.sql.unwrap()].map(|address| address.port());
        assert!(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2], "{ports:?}");
        assert_eq!(args().place(&system(false)).unwrap().sql, None);
        assert_eq!(Args { no_sql: true, ..args() }.place(&system(true)).unwrap().sql, None);
    }

    #[test]
    fn a_port_of_another_machine_is_asked_for() {
        let clients = Some("10.0.0.1:7".parse().unwrap());
        let refused = Args { clients, ..args() }.place(&system(true)).unwrap_err().to_string();
        assert!(refused.contains("--sql ADDRESS") && refused.contains("--no-sql"), "{refused}");
        let sql = Some("10.0.0.1:8".parse().unwrap());
        assert_eq!(Args { clients, sql, ..args() }.place(&system(true)).unwrap().sql, sql);
        assert!(Args { clients, ..args() }.place(&system(false)).is_ok());
    }

    #[test]
    fn earlier_site_leftovers_block_add_clusters_gapless() {
        let dir = tempfile::tempdir().unwrap();
        let own = directory_of(dir.path(), args().site);
        assert!(args().is_new(dir.path()).is_ok());
        std::fs::create_dir(&own).unwrap();
        assert!(args().is_new(dir.path()).is_ok(), "nothing is in it");
        std::fs::write(own.join("place"), "").unwrap();
        let refused = args().is_new(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("site-0-1 already exists from an earlier 0.1"), "{refused}");
        let config = system(false);
        assert!(Args { site: SiteId::new(1, 0), ..args() }.place(&config).is_ok());
        let refused = Args { site: SiteId::new(4, 0), ..args() }.place(&config).unwrap_err().to_string();
        assert!(refused.contains("no cluster 4") && refused.contains("did you mean 1.0?"), "{refused}");
    }
}
