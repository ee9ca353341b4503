//! `pares site add`: another site of a system, in one of its clusters or as the first of another.
//!
//! It is named in `sites.toml`, and gets a certificate. It gets no directory: that would say that a database is to begin, and this one is to be filled by
//! those that are there.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use pares_link::TlsFiles;
use pares_site::SitesConfig;
use pares_site::config::Place;
use pares_wice::SiteId;
use serde::Serialize;

use crate::error::{OperatorError, OperatorResult, usage};
use crate::init::FreePorts;
use crate::{issue, sites};

/// Arguments of `pares site add`.
#[derive(clap::Args)]
pub struct Args {
    /// Which site: cluster and number there, as in 0.3
    #[arg(value_parser = sites::parse)]
    site: SiteId,
    /// Where other sites reach it; otherwise a free port of this machine
    #[arg(long, value_name = "ADDRESS")]
    peers: Option<SocketAddr>,
    /// Where clients reach it; otherwise a free port of this machine
    #[arg(long, value_name = "ADDRESS")]
    clients: Option<SocketAddr>,
    /// Let it speak PostgreSQL's protocol there
    #[arg(long, value_name = "ADDRESS")]
    sql: Option<SocketAddr>,
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
        config.sites.push(place.clone());
        config.check().map_err(usage)?;
        let name = format!("site-{}-{}", place.cluster, place.number);
        // One that was taken out and not revoked has its certificate still.
        let has_one = |tls: &PathBuf| TlsFiles::named(&dir.join(tls), &name).exist();
        if config.tls.as_ref().is_some_and(|tls| !has_one(tls)) {
            issue::issue(&config, dir, &name)?;
        }
        let path = dir.join("sites.toml");
        let writing = || OperatorError::io(format!("writing {}", path.display()));
        let before = std::fs::read_to_string(&path).map_err(writing())?;
        let more = toml::to_string(&Another { site: [place] }).expect("a site is a table");
        let text = format!("{}\n\n{more}", before.trim_end());
        pares_os::replace_file(&path, text.as_bytes()).map_err(writing())?;
        pares_text::say!(
            "{name} is named in {}: give that file to every machine, its certificate to its own, and restart the sites one after the other (a running \
             `pares site up` does that by itself); it is filled by the others",
            path.display()
        );
        Ok(())
    }

    fn place(&self, config: &SitesConfig) -> Result<Place, OperatorError> {
        if config.place(self.site).is_ok() {
            return Err(usage(format!("{} is in sites.toml already", sites::name(self.site))));
        }
        let mut free = FreePorts::beside(config);
        let mut or_free = |address: Option<SocketAddr>| address.map_or_else(|| free.next(), Ok);
        let (peers, clients) = (or_free(self.peers)?, or_free(self.clients)?);
        let place = Place::new(self.site.cluster.0, self.site.number, peers, clients);
        Ok(Place { sql: self.sql, ..place })
    }
}
