//! A backup under load, the end of everything, and what is restored.
//!
//! ```text
//!  quiet | a copy, and all versions behind it, under load | stop: this is right | spoiled on | all disks gone | restored up to what was right
//! ```

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Instant;

use pares_link::Door;
use pares_load::{DistantSites, LabError, LabResult, PATIENCE};
use pares_operator::sites::{self, ChildOutput, Processes, SITE_RUN};
use pares_operator::{OperatorError, init, restore};
use pares_site::backup::{
    BackupConnection, BackupError, BackupFolder, CopyFacts, Followed, Following, Pace, Until, take,
};
use pares_site::{Access, ConfigError};
use pares_wice::{SiteId, Version};

use super::Drill;
use super::figures::{millis, p99_ms};
use super::load::{Mix, Pace as Rate, finish_all};
use super::stage::SITES;

/// As `pares site backup` takes a copy, if it is not told otherwise.
const PACE: Pace = Pace { bytes_per_s: 50 << 20 };
/// Accounts that get money out of nothing, which the operator does not want restored.
const SPOILED: u64 = 9;

impl Drill {
    /// Backs up, spoils, wrecks, restores and compares.
    pub(super) fn back_up(&mut self) -> LabResult {
        let folder = BackupFolder::create(&self.stage.dir().join("backups")).map_err(failed)?;
        let (follower, facts) = self.copy_under_load(&folder)?;
        self.stage.until("all sites in step", DistantSites::in_step)?;
        let all = self.stage.all();
        let right = seen(&self.stage.operator, all[0])?;
        let version = self.stable()?;
        let load = self.load(all[0], 1, Mix::Fund { funds: 1, accounts: SPOILED }, Rate::Open(9))?;
        self.stage.until("what is spoiled", |_| load.done() as u64 >= SPOILED)?;
        self.told.push(load.finish());
        let followed = follower.end_at(self.stable()?)?;
        self.stage.processes.kill_all(&all);
        self.wipe(&all)?;
        let began = Instant::now();
        let restored = self.restored(&folder, version)?;
        let figures = &mut self.figures.backup;
        figures.restored_ms = millis(began.elapsed());
        figures.restored_differing = restored.iter().filter(|seen| **seen != right).count() as u64;
        (figures.items, figures.versions) = (facts.items, followed.0 - facts.version.0);
        Ok(())
    }

    /// Takes a copy while all sites have a steady load, which continues for a while.
    fn copy_under_load(&mut self, folder: &BackupFolder) -> Result<(Follower, CopyFacts), LabError> {
        let loads = self.steady_load(&self.stage.all())?;
        let quiet = self.quiet();
        let began = self.now();
        let doors = self.stage.of(1).iter().map(|site| self.stage.operator.door(*site)).collect();
        let (follower, facts) = Follower::copy(doors, folder).map_err(failed)?;
        let copied = self.now();
        std::thread::sleep(self.part);
        let told = finish_all(loads);
        let figures = &mut self.figures.backup;
        figures.mib = facts.bytes >> 20;
        figures.copied_ms = millis(copied - began);
        (figures.quiet_p99_ms, figures.copy_p99_ms) =
            (p99_ms(&told, quiet, began), p99_ms(&told, began, copied));
        self.told.extend(told);
        Ok((follower, facts))
    }

    /// The version up to which all is answered.
    fn stable(&self) -> Result<Version, LabError> {
        let reports = sites::reports(&self.stage.operator);
        let stable = reports.iter().map(|(_, report)| report.stable).max();
        stable.map(Version).ok_or_else(|| LabError::Failed("no site says how far it is".into()))
    }

    /// Another database with what was so at that version; what each of its sites shows.
    fn restored(&self, folder: &BackupFolder, version: Version) -> Result<Vec<[String; 2]>, LabError> {
        let dir = self.stage.dir().join("restored");
        let args = init::Args {
            clusters: 2,
            sites: SITES,
            system: "restored".into(),
            durability: self.stage.operator.config.durability,
            no_tls: false,
            store: None,
            sql: false,
            witness: false,
        };
        let config = init::configuration(&args)?;
        restore::restore(folder, Until::Version(version), config.clone(), &dir)?;
        let access = Access::named(config, &dir, &[init::OPERATOR])?;
        let mut processes = Processes::new(&dir, ChildOutput::File, SITE_RUN)?;
        let all = sites::all(&access.config);
        all.iter().try_for_each(|site| processes.start(*site))?;
        let shows = |_: &DistantSites| {
            let reports = sites::reports(&access);
            reports.len() == all.len()
                && reports.iter().all(|(_, report)| !report.recalling && report.stable >= version.0)
        };
        self.stage.until("the restored sites", shows)?;
        let seen = all.iter().map(|site| seen(&access, *site)).collect();
        processes.stop();
        seen
    }
}

/// What one site shows of all there is.
fn seen(access: &Access, site: SiteId) -> Result<[String; 2], LabError> {
    let mut client = sites::operator(access, site)?;
    let mut read = |request: &str| {
        let reply = client.read(request.as_bytes(), PATIENCE);
        let reply = reply.map_err(|error| LabError::Failed(format!("{site}: {error}")))?;
        Ok::<_, LabError>(String::from_utf8_lossy(&reply).into_owned())
    };
    Ok([read("digest")?, read("sum account/")?])
}

fn failed(error: BackupError) -> LabError {
    OperatorError::from(error).into()
}

/// Follows, in a thread of its own, up to the version it is given.
struct Follower {
    /// Up to which version, and until when at most.
    target: Arc<OnceLock<(Version, Instant)>>,
    thread: JoinHandle<Result<Version, BackupError>>,
}

impl Follower {
    /// Takes a copy from the first of these sites, and follows as soon as it is known what it will be of.
    fn copy(
        doors: Result<Vec<Door>, ConfigError>,
        folder: &BackupFolder,
    ) -> Result<(Self, CopyFacts), BackupError> {
        let doors = doors?;
        let mut follower = None;
        let begun = |identity: &str, stored, at_ms| {
            let log = Following::begin(folder, identity, stored, at_ms, |_| {})?; // a directory of its own
            follower = Some(Self::start(log, doors.clone()));
            Ok(())
        };
        let facts = take(&mut BackupConnection::connect(&doors[0])?, folder, PACE, begun, |_| true)?;
        Ok((follower.expect("a copy that is whole has begun"), facts))
    }

    fn start(log: Following, doors: Vec<Door>) -> Self {
        let target = Arc::new(OnceLock::new());
        let wanted: Arc<OnceLock<(Version, Instant)>> = Arc::clone(&target);
        let thread = std::thread::spawn(move || {
            let is_over = |last| {
                wanted
                    .get()
                    .is_some_and(|(version, deadline)| last >= *version || Instant::now() >= *deadline)
            };
            log.follow(&doors, is_over, |_| {}).map(|followed| match followed {
                Followed::Stopped(log) | Followed::Gone(log) => log.last(),
            })
        });
        Self { target, thread }
    }

    /// Has it come to `version` within [`PATIENCE`]; the last one that it has.
    fn end_at(self, version: Version) -> Result<Version, LabError> {
        let _ = self.target.set((version, Instant::now() + PATIENCE));
        let ended = self.thread.join().map_err(|_| LabError::Failed("following panicked".into()))?;
        match ended.map_err(failed)? {
            last if last >= version => Ok(last),
            last => Err(LabError::Failed(format!("following has come to {last}, and not to {version}"))),
        }
    }
}
