//! The system that is drilled: two clusters of three sites of `pares site`.

use std::path::Path;
use std::time::Duration;

use pares_load::{DistantSites, LabError, SitesPlan};
use pares_operator::sites::SITE_RUN;
use pares_site::config::Promise;
use pares_wice::Isolation;

/// Sites in each cluster.
pub(super) const SITES: u8 = 3;

/// Starts both clusters, and waits until they answer.
pub(super) fn start(
    durability: Promise,
    isolation: Isolation,
    rtt: Duration,
    dir: Option<&Path>,
    store: Option<&str>,
) -> Result<DistantSites, LabError> {
    let command = SITE_RUN;
    DistantSites::start(&SitesPlan {
        clusters: 2,
        sites: SITES,
        durability,
        isolation,
        rtt,
        dir,
        store,
        command,
    })
}
