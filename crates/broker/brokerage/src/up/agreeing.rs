//! Whether what a start says of a broker is what its directory says.

use std::collections::BTreeSet;

use pares_site::SitesConfig;
use pares_site::config::Promise;

use super::{Args, HowMany};
use crate::children::BrokerPlaces;
use crate::error::{BrokerageResult, usage};

impl Args {
    /// The options agree with a directory that is there already: it cannot become another.
    pub(super) fn agrees(&self, config: &SitesConfig, places: &BrokerPlaces) -> BrokerageResult {
        let HowMany { sites, fronts, desks } = self.how_many;
        let differs = |found: usize, told: Option<u16>| told.is_some_and(|told| usize::from(told) != found);
        let of_each = |(clusters, sites): (u8, u8)| {
            let of = |cluster| config.sites.iter().filter(|place| place.cluster == cluster).count();
            let all = usize::from(clusters) * usize::from(sites);
            config.sites.len() == all
                && config.sites.iter().all(|place| of(place.cluster) == usize::from(sites))
        };
        let durability = match config.durability {
            Promise::Os => "--durability os",
            Promise::Disk => "--durability disk",
        };
        let store = config.store.as_ref().map_or("no --store", |_| "another --store");
        let odd = [
            ("--sites", sites.is_some_and(|sites| !of_each(sites)), sites_told(config)),
            ("--fronts", differs(places.fronts.len(), fronts), format!("--fronts {}", places.fronts.len())),
            ("--desks", differs(places.desks.len(), desks), format!("--desks {}", places.desks.len())),
            (
                "--durability",
                self.durability.is_some_and(|told| told != config.durability),
                durability.into(),
            ),
            ("--store", self.store.is_some() && self.store != config.store, store.into()),
        ];
        let Some((option, _, has)) = odd.into_iter().find(|(_, is_odd, _)| *is_odd) else { return Ok(()) };
        let dir = self.dir.display();
        Err(usage(format!(
            "{dir} already exists with {has}, which cannot change: leave {option} out, or name another --dir"
        )))
    }
}

/// The sites that there are, as `--sites` would say them.
fn sites_told(config: &SitesConfig) -> String {
    let clusters = config.sites.iter().map(|place| place.cluster).collect::<BTreeSet<_>>().len();
    let sites = config.sites.len();
    match clusters {
        2.. if sites.is_multiple_of(clusters) => format!("--sites {clusters}x{}", sites / clusters),
        2.. => format!("{sites} sites in {clusters} clusters"),
        _ => format!("--sites {sites}"),
    }
}
