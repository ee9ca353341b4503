//! The system that is drilled: two clusters of three sites of `pares site`.

use std::path::Path;
use std::time::Duration;

use pares_load::{DistantSites, LabError, LabResult, SitesPlan};
use pares_operator::sites::{self, SITE_RUN};
use pares_site::config::{Promise, directory_of};
use pares_wice::{Isolation, SiteId};

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

/// What a site has on its disk is gone.
pub(super) fn wipe(stage: &DistantSites, site: SiteId) -> LabResult {
    let own = directory_of(stage.dir(), site);
    std::fs::remove_dir_all(&own).map_err(LabError::io(format!("removing {}", own.display())))
}

/// Starts sites again, and waits until they have read their logs and show what any shows by then.
pub(super) fn bring_back(stage: &mut DistantSites, victims: &[SiteId]) -> LabResult {
    let shown = shown(stage);
    stage.start_sites(victims)?;
    await_shown(stage, victims, shown)
}

/// Waits until these sites have read their logs and show at least that version.
pub(super) fn await_shown(stage: &DistantSites, sites: &[SiteId], version: u64) -> LabResult {
    let shows = |site: &SiteId| {
        let report = sites::report(&stage.operator, *site);
        report.is_some_and(|report| !report.recalling && report.stable >= version)
    };
    stage.until("sites that come back", |_| sites.iter().all(shows))
}

/// The highest version that any site shows.
pub(super) fn shown(stage: &DistantSites) -> u64 {
    sites::reports(&stage.operator).iter().map(|(_, report)| report.stable).max().unwrap_or(0)
}
