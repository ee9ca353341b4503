//! What must hold in a `sites.toml`, and what follows from what it leaves open.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use pares_wice::{ClusterId, ClusterSet, SiteId};

use super::{ConfigError, Place, SitesConfig};

/// How a PostgreSQL URL begins.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Whether that may be the URL of a site's database, once it is known where the site is.
fn check_url(url: &str, site: SiteId) -> Result<(), String> {
    if !SCHEMES.iter().any(|scheme| url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty())) {
        return Err(format!("store: {site} needs a URL that begins with postgres://HOST"));
    }
    let Some((_, unknown)) = url.split_once('{') else { return Ok(()) };
    let unknown = unknown.split('}').next().unwrap_or_default();
    Err(format!("store: {{{unknown}}} is no placeholder: {{cluster}} and {{number}} are"))
}

impl SitesConfig {
    /// Whether all of it can be.
    ///
    /// # Errors
    /// What cannot.
    pub fn check(&self) -> Result<(), String> {
        if self.identity.len() != 32 || !self.identity.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("identity must be 32 hexadecimal digits, as `pares site init` generates them".into());
        }
        pares_link::check_system(&self.system)?;
        self.check_exposure()?;
        let clusters: ClusterSet = self.sites.iter().map(|site| ClusterId(site.cluster.min(63))).collect();
        if self.sites.iter().any(|site| site.cluster > 63) {
            return Err("cluster numbers must be from 0 to 63".into());
        }
        if self.certifier > 63 {
            return Err(format!("certifier = {}: cluster numbers must be from 0 to 63", self.certifier));
        }
        self.check_stores()?;
        self.limits.check()?;
        for cluster in clusters.iter() {
            let mut numbers: Vec<u8> = self.members(cluster).map(|site| site.number).collect();
            numbers.sort_unstable();
            let is_once = numbers.is_sorted_by(|one, next| one < next);
            if !is_once || numbers.iter().any(|number| *number > 8) {
                return Err(format!("the sites of {cluster} must have numbers from 0 to 8, each once"));
            }
        }
        Ok(())
    }

    fn check_stores(&self) -> Result<(), String> {
        let mut databases = BTreeMap::new();
        for place in &self.sites {
            let Some(database) = self.database_of(place) else {
                match place.sql {
                    Some(_) => {
                        return Err(format!("sql: {} needs a PostgreSQL store: set `store`", place.id()));
                    }
                    None => continue,
                }
            };
            check_url(&database, place.id())?;
            if let Some(other) = databases.insert(database, place.id()) {
                return Err(format!(
                    "store: {} uses the same database as {other}: {}",
                    place.id(),
                    self.how_to_differ()
                ));
            }
        }
        Ok(())
    }

    /// What makes each site's database its own.
    fn how_to_differ(&self) -> String {
        let url = self.store.as_deref().unwrap_or_default();
        let first = self.sites.first();
        let differ = |of: fn(&Place) -> u8| self.sites.iter().any(|place| first.map(of) != Some(of(place)));
        let wanted =
            [("{cluster}", differ(|place| place.cluster)), ("{number}", differ(|place| place.number))];
        let missing = wanted.iter().filter(|(name, is_wanted)| *is_wanted && !url.contains(name));
        match missing.map(|(name, _)| *name).collect::<Vec<_>>().join(" and ") {
            none if none.is_empty() || url.is_empty() => "give each its own".into(),
            missing => {
                format!("put {missing} into the URL, as in postgres://HOST/NAME_{{cluster}}_{{number}}")
            }
        }
    }

    fn database_of(&self, place: &Place) -> Option<String> {
        let url = place.store.as_ref().or(self.store.as_ref())?;
        let url = url.replace("{cluster}", &place.cluster.to_string());
        Some(url.replace("{number}", &place.number.to_string()))
    }

    /// The PostgreSQL database of a site, as a URL; none if its items are in a file.
    ///
    /// # Errors
    /// If there is no such site.
    pub fn database(&self, site: SiteId) -> Result<Option<String>, ConfigError> {
        Ok(self.database_of(self.place(site)?))
    }

    /// What another machine can reach needs proof of who speaks, unless the operator does without it.
    fn check_exposure(&self) -> Result<(), String> {
        if self.plain && self.tls.is_some() {
            return Err("`tls` and `plain = true` exclude each other: remove one".into());
        }
        if self.plain || self.tls.is_some() {
            return Ok(());
        }
        let addresses = |place: &Place| {
            let far = place.far.map(|far| ("far", far));
            let site = format!("{}.{}", place.cluster, place.number);
            let sql = place.sql.map(|sql| ("sql", sql));
            let all = [("peers", place.peers), ("clients", place.clients)].into_iter().chain(far).chain(sql);
            all.map(move |(name, address)| (site.clone(), name, address)).collect::<Vec<_>>()
        };
        let exposed = |(_, _, address): &(String, &str, SocketAddr)| !address.ip().is_loopback();
        let witness = self.witness.map(|address| ("of the witness".to_owned(), "address", address));
        match self.sites.iter().flat_map(addresses).chain(witness).find(exposed) {
            None => Ok(()),
            Some((site, name, address)) => Err(format!(
                "site {site}: {name} = \"{address}\" is not a loopback address, and without `tls` anyone \
                 who reaches it can act as any site, client or operator. Set `tls` to a directory of \
                 certificates (`pares site init` makes one), or `plain = true` if that network is trusted"
            )),
        }
    }
}
