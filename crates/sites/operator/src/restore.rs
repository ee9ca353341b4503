//! `pares site restore`: another database, which begins with what a backup holds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pares_site::SitesConfig;
use pares_site::backup::{BackupError, BackupFolder, Restoration, Restored, Until};
use pares_site::config::Promise;
use pares_text::moment::Moment;
use pares_text::{self as text, progress};
use pares_wice::{SiteId, Version};
use serde_json::json;

use crate::backup::{moment, origin};
use crate::error::{OperatorError, OperatorResult, usage};
use crate::{init, sites, starts, stat};

/// Stores that are filled at a time: each has a cache of some size.
const FILLED_MAX: usize = 4;

/// Arguments of `pares site restore`.
#[derive(clap::Args)]
pub struct Args {
    /// The backup directory
    #[arg(long)]
    from: PathBuf,
    /// The last version to restore, or a time such as 2026-08-01T09:30:00 (UTC) or 15m (ago) [default: everything]
    #[arg(long, value_parser = until)]
    until: Option<Bound>,
    /// One JSON object at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    other: Other,
}

/// In what the new system is to be another than the one that was backed up, or than `pares site init` makes it if the backup does not say.
#[derive(clap::Args)]
struct Other {
    /// Number of clusters [default: as backed up]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=64))]
    clusters: Option<u8>,
    /// Number of sites in each cluster [default: as in the largest one backed up]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=9))]
    sites: Option<u8>,
    /// The system's name [default: as backed up]
    #[arg(long)]
    system: Option<String>,
    /// What an answer survives, `os` or `disk` [default: as backed up]
    #[arg(long, value_parser = init::promise)]
    durability: Option<Promise>,
    /// Use no certificates; also the default if the backup had none
    #[arg(long)]
    no_tls: bool,
    /// Keep each site's items in its own, empty PostgreSQL database, as in `pares site init`
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Offer the PostgreSQL protocol, on one port per site
    #[arg(long, requires = "store")]
    sql: bool,
    /// Use a witness, as in `pares site init`
    #[arg(long)]
    witness: bool,
}

impl Other {
    fn than(&self, origin: Option<&SitesConfig>) -> init::Args {
        let count = |of: fn(&SitesConfig) -> usize| origin.and_then(|origin| u8::try_from(of(origin)).ok());
        let system = self.system.clone().or_else(|| origin.map(|origin| origin.system.clone()));
        let durability = self.durability.or(origin.map(|origin| origin.durability));
        init::Args {
            clusters: self.clusters.or(count(|origin| sizes(origin).len())).unwrap_or(init::CLUSTERS),
            sites: self
                .sites
                .or(count(|origin| sizes(origin).into_values().max().unwrap_or(0)))
                .unwrap_or(init::SITES),
            system: system.unwrap_or_else(|| init::SYSTEM.into()),
            durability: durability.unwrap_or_default(),
            no_tls: self.no_tls || origin.is_some_and(|origin| origin.plain),
            store: self.store.clone(),
            sql: self.sql,
            witness: self.witness,
        }
    }
}

/// How many sites each cluster has.
fn sizes(config: &SitesConfig) -> BTreeMap<u8, usize> {
    let mut sizes = BTreeMap::new();
    config.sites.iter().for_each(|site| *sizes.entry(site.cluster).or_insert(0) += 1);
    sizes
}

/// Up to where, as it was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Version(u64),
    Moment(Moment),
}

fn until(said: &str) -> Result<Bound, String> {
    match said.parse() {
        Ok(version) => Ok(Bound::Version(version)),
        Err(_) => Moment::from_str(said).map(Bound::Moment),
    }
}

impl Bound {
    /// What that is when it is `now_ns`; a moment to come is none.
    fn until(self, now_ns: u64) -> Result<Until, OperatorError> {
        let at_ns = match self {
            Self::Version(version) => return Ok(Until::Version(Version(version))),
            Self::Moment(moment) => moment.resolve(now_ns),
        };
        let told = |ns: u64| moment(ns / 1_000_000);
        match at_ns > now_ns {
            true => Err(usage(format!(
                "--until {} is in the future; the time here is {}. Without --until, everything is restored",
                told(at_ns),
                told(now_ns)
            ))),
            false => Ok(Until::Moment(at_ns / 1_000_000)),
        }
    }
}

impl Args {
    /// Makes it in `dir`, which must be empty or missing.
    ///
    /// # Errors
    /// If the backup is not whole, or does not go so far, or something is there already.
    pub fn run(&self, dir: &Path) -> OperatorResult {
        let now_ns = pares_os::clock::now_ns();
        let until = self.until.map_or(Ok(Until::Newest), |bound| bound.until(now_ns))?;
        let origin = origin::of(&self.from)?;
        let config = init::configuration(&self.other.than(origin.as_ref()))?;
        let starts = starts(&config);
        let restored = restore(&BackupFolder::open(&self.from), until, config, dir)?;
        match self.json {
            true => text::print(&as_json(restored).to_string()),
            false => print(restored, until, &format!("{starts} --dir {}", dir.display())),
        }
        Ok(())
    }
}

fn as_json(restored: Restored) -> serde_json::Value {
    let Restored { version, digest, base, items, at_ms, torn_at, is_last } = restored;
    let digest = format!("{digest:016x}");
    json!({
        "version": version.0,
        "base": base.0,
        "items": items,
        "digest": digest,
        "at_ms": at_ms,
        "torn_at": torn_at,
        "is_last": is_last,
    })
}

/// What was restored, and what was asked for and is not in the backup, for people.
fn print(restored: Restored, until: Until, starts: &str) {
    let Restored { version, base, items, at_ms, torn_at, is_last, .. } = restored;
    text::print(&format!(
        "version {version}, stored at {} (base {base} with {}): `{starts}` starts the new database",
        moment(at_ms),
        text::count(items, "item")
    ));
    if let Until::Moment(until) = until
        && is_last
    {
        text::print(&format!(
            "the backup ends there: anything stored later, up to {}, is not in it",
            moment(until)
        ));
    }
    if let Some(at) = torn_at {
        text::print(&format!(
            "the last log has no complete record from byte {at} on: later versions are not in the backup"
        ));
    }
}

/// Makes another database in `dir`, which must be empty or missing: every site's store first, then what lets them begin.
///
/// # Errors
/// As [`Args::run`].
pub fn restore(
    folder: &BackupFolder,
    until: Until,
    mut config: SitesConfig,
    dir: &Path,
) -> Result<Restored, OperatorError> {
    config.check().map_err(usage)?;
    must_be_free(dir)?;
    let plan = Restoration::plan(folder, until).map_err(|error| OperatorError::Failed(said(&error)))?;
    let mut restored = None;
    for sites in sites::all(&config).chunks(FILLED_MAX) {
        for filled in fill(&plan, &config, sites, dir) {
            restored = Some(filled.map_err(|error| in_vain(&error, &config, dir))?);
        }
    }
    let restored = restored.ok_or_else(|| usage("a database without sites"))?;
    config.begins = restored.version.0;
    init::write(&config, dir)?;
    Ok(restored)
}

/// Why nothing came of it, with all that is left over.
fn in_vain(error: &BackupError, config: &SitesConfig, dir: &Path) -> OperatorError {
    let claimed = Restoration::claimed(config).unwrap_or_default();
    let databases = match &claimed[..] {
        [] => String::new(),
        names => format!(", and drop the databases that it has used: {}", names.join(", ")),
    };
    let remove = if dir.exists() { format!(": remove it{databases}") } else { databases };
    OperatorError::Failed(format!(
        "{}. The incomplete system in {} cannot be started{remove}",
        said(error),
        dir.display()
    ))
}

/// Fills the stores of these sites, all at a time.
fn fill(
    plan: &Restoration,
    config: &SitesConfig,
    sites: &[SiteId],
    dir: &Path,
) -> Vec<Result<Restored, BackupError>> {
    let bar = progress::growing("filling stores");
    let filled = std::thread::scope(|scope| {
        let fill = |site: &SiteId| {
            let (site, bar) = (*site, &bar);
            scope.spawn(move || plan.fill(config, site, dir, &mut |bytes| bar.inc(bytes)))
        };
        let threads: Vec<_> = sites.iter().map(fill).collect();
        threads.into_iter().map(|thread| thread.join().expect("filling a store does not panic")).collect()
    });
    bar.finish_and_clear();
    filled
}

/// With the moment, where there is one.
fn said(error: &BackupError) -> String {
    match error {
        BackupError::Gap { last_ms, .. } => format!("{error} (the gap begins at {})", moment(*last_ms)),
        error => error.to_string(),
    }
}

fn must_be_free(dir: &Path) -> OperatorResult {
    match std::fs::read_dir(dir) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(usage(format!("{}: name a new directory", taken(dir)))),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(OperatorError::io(format!("reading {}", dir.display()))(error)),
    }
}

/// What stands where another database was to be.
fn taken(dir: &Path) -> String {
    let name = dir.display();
    let Ok(config) = SitesConfig::load(dir) else { return format!("{name} is not empty") };
    let running: Vec<String> = stat::running(&config, dir).into_iter().map(sites::name).collect();
    let state = match &running[..] {
        [] => "its sites are stopped".to_owned(),
        running => format!("running there now: {}", running.join(" and ")),
    };
    let identity = &config.identity;
    format!(
        "{name} contains the database {identity} ({state}), which stays unchanged: restore into another directory"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BROKER;

    #[test]
    fn a_bound_is_a_version_or_a_moment() {
        let at = |said: &str, now_ns| until(said).unwrap().until(now_ns).unwrap();
        assert_eq!(at("17", 0), Until::Version(Version(17)));
        assert_eq!(at("1970-01-01T00:00:01.5", 2_000_000_000), Until::Moment(1_500));
        assert_eq!(at("2s", 5_000_000_000), Until::Moment(3_000));
        assert!(until("yesterday").is_err() && until("-1").is_err());
    }

    #[test]
    fn a_moment_to_come_is_refused_and_not_taken_for_the_newest() {
        let bound = until("1970-01-01T00:00:02").unwrap();
        assert_eq!(bound.until(2_000_000_000).unwrap(), Until::Moment(2_000));
        let refused = bound.until(1_999_999_999).unwrap_err().to_string();
        assert!(refused.contains("is in the future"), "{refused}");
    }

    #[test]
    fn restored_system_matches_backup_except_stores() {
        let dir = tempfile::tempdir().unwrap();
        let other = |clusters| Other {
            clusters,
            sites: None,
            system: None,
            durability: None,
            no_tls: false,
            store: None,
            sql: false,
            witness: false,
        };
        let first = other(None).than(None);
        assert_eq!(
            (first.clusters, first.sites, first.system.as_str(), first.no_tls),
            (2, 3, "pares", false)
        );
        let store = Some("postgres://me:secret@db/x_{cluster}_{number}".into());
        let made = init::Args { sites: 1, system: BROKER.into(), no_tls: true, store, sql: true, ..first };
        origin::note(&init::configuration(&made).unwrap(), dir.path()).unwrap();
        let noted = origin::of(dir.path()).unwrap();
        let again = other(None).than(noted.as_ref());
        assert_eq!((again.clusters, again.sites, again.system.as_str(), again.no_tls), (2, 1, BROKER, true));
        assert_eq!((again.store, other(Some(1)).than(noted.as_ref()).clusters), (None, 1));
        assert!(!noted.unwrap().to_text().contains("secret"));
        assert!(must_be_free(dir.path()).is_err());
    }

    #[test]
    fn what_stands_in_the_way_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(must_be_free(dir.path()).is_ok());
        std::fs::write(dir.path().join("x"), "").unwrap();
        assert!(must_be_free(dir.path()).unwrap_err().to_string().contains("is not empty"));
    }
}
