//! What a site shows to all processes on its machine: numbers by name, in a mapped file of its directory.
//!
//! A site that must be asked how it is answers late exactly when the answer matters. So ten times a second it stores its figures where `pares site stat` reads them, of a live, a
//! stuck or a dead site alike. Counters begin at the site's start. They are the figures of its report, so there is one list of them.

use std::io::ErrorKind;
use std::path::Path;

use pares_os::{CountersReader, CountersWriter, MapError};
use pares_wice::SiteId;

use crate::report::SiteReport;

/// The file, in a site's directory.
const COUNTERS_FILE: &str = "counters";

/// A figure, by its name in the file.
type Figure = (&'static str, u64);

/// Each figure of a report.
fn figures(report: &SiteReport) -> Vec<Figure> {
    [&standing(report)[..], &progress(report), &work(report), &memory(report)].concat()
}

/// What part it has.
fn standing(report: &SiteReport) -> [Figure; 13] {
    [
        ("process", u64::from(std::process::id())),
        ("takes_part", u64::from(report.apart.is_none())),
        ("recalling", u64::from(report.recalling)),
        ("votes", u64::from(report.votes)),
        ("delegate", u64::from(report.delegate)),
        ("certifies", u64::from(report.certifies)),
        ("behind", u64::from(report.behind)),
        ("era_takeovers", report.era.0.into()),
        ("era_number", report.era.1.into()),
        ("certifier_cluster", report.certifier.into()),
        ("clusters_live", report.live.len() as u64),
        ("speaks", report.speaks.into()),
        ("all_speak", report.all_speak.into()),
    ]
}

/// How far it is, and who it is connected to.
fn progress(report: &SiteReport) -> [Figure; 9] {
    let links = &report.links;
    [
        ("delivered", report.delivered),
        ("stable", report.stable),
        ("stored", report.stored),
        ("lag", links.lag),
        ("sites_connected", links.connected as u64),
        ("link_backlog_bytes", links.backlog as u64),
        ("refused_peers", report.refused.len() as u64),
        ("differing", report.differing.len() as u64),
        ("open", report.open as u64),
    ]
}

/// What it did since it started.
fn work(report: &SiteReport) -> [Figure; 20] {
    let SiteReport { work, told, .. } = report;
    [
        ("executed", work.executed),
        ("conflicts", work.lost),
        ("forwarded", work.forwarded),
        ("done", work.done),
        ("told_refused", told.refused),
        ("told_aborted", told.aborted),
        ("told_behind", told.behind),
        ("told_impossible", told.impossible),
        ("told_denied", told.denied),
        ("told_unknown", work.unknown),
        ("told_busy", told.busy),
        ("told_elsewhere", told.elsewhere),
        ("copies_given", work.copies),
        ("backups_given", work.backups),
        ("is_filling", u64::from(report.is_filling)),
        ("fills_failed", report.fills_failed.into()),
        ("store_batches", work.batches),
        ("store_versions", work.stored),
        ("store_flushes", work.flushes),
        ("log_bases", work.bases),
    ]
}

/// What it keeps in memory.
fn memory(report: &SiteReport) -> [Figure; 8] {
    let held = &report.held;
    [
        ("requests_bytes", held.requests as u64),
        ("pending_bytes", held.pending as u64),
        ("unstable_bytes", held.unstable as u64),
        ("unstored_bytes", held.unstored as u64),
        ("retained_bytes", held.retained as u64),
        ("index_bytes", held.index as u64),
        ("proposed_bytes", held.proposed as u64),
        ("early_bytes", held.early as u64),
    ]
}

/// Whose figures a file holds.
fn owner(identity: &str, site: SiteId) -> String {
    format!("{site} of {identity}")
}

/// The figures in the directory of a site of the database `identity`, which may run or not.
///
/// # Errors
/// If they cannot be read, or are another site's: why, and what to do.
pub fn site_figures(own: &Path, identity: &str, site: SiteId) -> Result<CountersReader, String> {
    let path = own.join(COUNTERS_FILE);
    let read = CountersReader::open(&path).map_err(|why| {
        format!("its counters cannot be read ({}: {why}): the site recreates them at its next start, unless another file has that name", path.display())
    })?;
    let own = owner(identity, site);
    match read.owner() {
        owner if owner == own => Ok(read),
        "" => Err(format!(
            "{} was written by an older build: the site recreates it at its next start",
            path.display()
        )),
        other => Err(format!(
            "{} contains the counters of {other}, from a copied directory: the site recreates its own at its next start",
            path.display()
        )),
    }
}

/// The site's end of the file.
#[derive(Debug)]
pub(crate) struct SiteCounters(CountersWriter);

impl SiteCounters {
    /// All of them, 0, in the directory of a site of the database `identity`.
    ///
    /// # Errors
    /// If the file cannot be made: why, and what to do.
    pub(crate) fn create(own: &Path, identity: &str, site: SiteId) -> Result<Self, String> {
        let names: Vec<&str> = figures(&SiteReport::default()).into_iter().map(|(name, _)| name).collect();
        let made = CountersWriter::create_for(&owner(identity, site), &own.join(COUNTERS_FILE), &names);
        made.map(Self).map_err(|error| {
            format!("its counters are not available: {error}: {}, and restart the site", what_to_do(&error))
        })
    }

    /// Shows a report.
    pub(crate) fn show(&self, report: &SiteReport) {
        for (index, (_, value)) in figures(report).into_iter().enumerate() {
            self.0.set(index, value);
        }
    }
}

/// What the operator can do so that the file can be made.
fn what_to_do(error: &MapError) -> &'static str {
    let kind = match error {
        MapError::Io { source, .. } => source.kind(),
        MapError::Empty { .. } => ErrorKind::Other,
    };
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free space on its disk",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "let the site write to its directory",
        _ if error.is_full() => "raise its limit of open files",
        ErrorKind::IsADirectory | ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => {
            "move what has that name away"
        }
        _ => "repair its disk or directory",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SITE: SiteId = SiteId::new(0, 1);

    #[test]
    fn figures_that_were_copied_are_not_taken_for_the_sites_own() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let _shown = SiteCounters::create(dir.path(), "a", SITE).unwrap();
        assert!(site_figures(dir.path(), "a", SITE).is_ok());
        std::fs::copy(dir.path().join(COUNTERS_FILE), other.path().join(COUNTERS_FILE)).unwrap();
        for (identity, site) in [("a", SiteId::new(1, 1)), ("a", SiteId::new(0, 2)), ("b", SITE)] {
            let refused = site_figures(other.path(), identity, site).unwrap_err();
            assert!(refused.contains("counters") && refused.contains("site 0.1 of a"), "{refused}");
        }
        std::fs::remove_file(other.path().join(COUNTERS_FILE)).unwrap();
        std::fs::create_dir(other.path().join(COUNTERS_FILE)).unwrap();
        assert!(site_figures(other.path(), "a", SITE).is_err());
        let why = SiteCounters::create(other.path(), "a", SITE).unwrap_err();
        assert!(why.contains("move what has that name away"), "{why}");
        let fresh = other.path().join("counters.tmp");
        std::fs::remove_file(&fresh).and_then(|()| std::fs::create_dir(&fresh)).unwrap();
        let why = SiteCounters::create(other.path(), "a", SITE).unwrap_err();
        assert!(why.contains("counters.tmp") && why.contains("move what has that name away"), "{why}");
    }

    #[test]
    fn on_a_full_disk_space_is_to_be_freed() {
        let full = |kind: ErrorKind| MapError::Io {
            step: "allocate",
            path: "counters.tmp".into(),
            source: kind.into(),
        };
        assert_eq!(what_to_do(&full(ErrorKind::StorageFull)), "free space on its disk");
    }

    #[test]
    fn a_report_is_shown_under_names_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let counters = SiteCounters::create(dir.path(), "a", SITE).unwrap();
        counters.show(&SiteReport { stable: 7, delegate: true, ..SiteReport::default() });
        let shown = CountersReader::open(&dir.path().join(COUNTERS_FILE)).unwrap();
        let names: BTreeSet<&str> = shown.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), shown.iter().count(), "no name twice");
        let of = |name| shown.get(name).unwrap();
        assert_eq!((of("stable"), of("delegate"), of("certifies")), (7, 1, 0));
    }
}
