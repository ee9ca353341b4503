//! The same for a `sites.toml`: who there is, and what a system of sites must think about.

use std::path::Path;

use pares_site::SitesConfig;
use pares_site::config::{Promise, SITES_FILE};
use pares_text::count;

use super::Point;

/// Whether a file is of sites, and not of an exchange: by its name, or by what stands in it.
pub(super) fn is_of_sites(file: &Path) -> bool {
    let is_named = file.file_name().is_some_and(|name| name == SITES_FILE);
    is_named || std::fs::read_to_string(file).is_ok_and(|text| text.contains("[[site]]"))
}

/// What it is of.
pub(super) fn named(config: &SitesConfig) -> String {
    let (sites, clusters) =
        (count(config.sites.len() as u64, "site"), count(clusters(config).len() as u64, "cluster"));
    format!("sites of the database {} of `{}`, {sites} in {clusters}", config.identity, config.system)
}

/// How many sites each cluster has.
fn clusters(config: &SitesConfig) -> Vec<usize> {
    let mut sizes = std::collections::BTreeMap::new();
    config.sites.iter().for_each(|place| *sizes.entry(place.cluster).or_default() += 1);
    sizes.into_values().collect()
}

/// What to think about.
pub(super) fn points(config: &SitesConfig) -> Vec<Point> {
    let sizes = clusters(config);
    let smallest = sizes.iter().min().copied().unwrap_or(0);
    let is_disk = config.durability == Promise::Disk;
    vec![
        Point::new(
            "durability",
            if is_disk { "disk" } else { "os" },
            is_disk,
            "with `os`, a power loss of a whole cluster can lose its last seconds of data",
        ),
        Point::new(
            "[[site]]",
            format_args!("{} in the smallest cluster", count(smallest as u64, "site")),
            smallest >= 3,
            "a cluster of one or two sites stops while one of them is down; three sites survive the loss of any one",
        ),
        Point::new(
            "clusters",
            sizes.len(),
            sizes.len() >= 2,
            "a single cluster is lost with its location: `pares site backup --follow` keeps its versions elsewhere",
        ),
        Point::new(
            "witness",
            config.witness.map_or("none".into(), |address| address.to_string()),
            config.witness.is_some() || sizes.len() < 2,
            "without a witness, two operators who each declare the other's cluster lost create two histories that cannot be merged",
        ),
        doors(config),
    ]
}

/// Who reaches the sites, and what protects them there.
fn doors(config: &SitesConfig) -> Point {
    let all =
        config.sites.iter().flat_map(|place| [Some(place.peers), Some(place.clients), place.far, place.sql]);
    let is_local = all.flatten().chain(config.witness).all(|address| address.ip().is_loopback());
    let in_force = match &config.tls {
        Some(dir) => dir.display().to_string(),
        None => "none".into(),
    };
    let risk = "without TLS, anyone who reaches a port can act as any site, client or operator";
    Point::new(
        "tls",
        in_force,
        config.tls.is_some() || is_local,
        if is_local && config.tls.is_none() { super::ALL_HERE } else { risk },
    )
}
