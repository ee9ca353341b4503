//! What sites are started with: bounds so low that all of them are come to.

use std::time::Duration;

use pares_cluster::ReplicaConfig;
use pares_site::setup::{Bounds, Setup};
use pares_wice::{ClusterId, Isolation, Settings, SiteId, Version};

use super::machine::IDENTITY;
use super::{Defect, Plan};

/// How a site starts whose `sites.toml` names these.
pub(super) fn of(site: SiteId, named: Vec<SiteId>, plan: &Plan, seed: u64) -> Setup {
    let mut settings = Settings::new(site, named);
    settings.witnessed = plan.witness;
    if plan.serialisable && plan.defect != Some(Defect::CertifiesNoReads) {
        settings.isolation = Isolation::Serialisable;
    }
    (settings.patience_ticks, settings.stream_entries_max, settings.stream_window) = (4, 5, 40);
    settings.retained_versions = 8;
    (settings.unstable_versions_max, settings.unstable_bytes_max) = (400, 300 << 10);
    (settings.index_bytes_max, settings.pending_bytes_max) = (200 << 10, 20 << 10);
    (settings.stream_bytes_max, settings.stream_window_bytes) = (4 << 10, 32 << 10);
    settings.proposed_bytes_max = 48 << 10;
    let log = ReplicaConfig { seed, ..ReplicaConfig::new(site.number, plan.sites) };
    let bounds = Bounds {
        open_requests_max: 8,
        open_bytes_max: 3 << 10,
        answer_patience: Duration::from_millis(300),
        executed_max: 3,
        unstored_max: 100,
        applied_max: 7,
        applied_bytes_max: 4 << 10,
        base_every_bytes: 48 << 10,
        flush_every: Duration::from_millis(100),
        ..Bounds::default()
    };
    Setup { identity: IDENTITY.into(), settings, log, certifier: ClusterId(0), begins: Version(0), bounds }
}
