//! `pares site backup`: a copy of the running database, and its versions since.
//!
//! One site is asked; if it does not answer, another. `--follow` begins to take versions as soon as it is known of which version the copy will be: until a
//! long copy is done, sites would have let go of the first of them.

mod verifying;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use pares_os::process::stop_on_signals;
use pares_site::Access;
use pares_site::backup::{BackupError, BackupFolder, CopyFacts, Following, Hose, Pace, take};
use pares_text::{self as text, progress};

use pares_wice::{SiteId, Stored, Version};
use serde_json::json;

use crate::error::{OperatorError, OperatorResult, usage};
use crate::sites;

/// Tries of all sites before a copy is given up.
const TRIES: usize = 5;
/// Between two tries, and between two questions for versions when there are no more.
const PAUSE: Duration = Duration::from_millis(200);

/// Arguments of `pares site backup`.
#[derive(clap::Args)]
#[command(subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// The directory of backups of this database
    #[arg(long, required = true)]
    to: Option<PathBuf>,
    /// The site to ask; others are asked if it does not answer
    #[arg(long, value_parser = sites::parse)]
    site: Option<SiteId>,
    /// Also keep all versions from then on, until Ctrl-C; goes on where an earlier one has ended, and takes a copy only if there is a gap
    #[arg(long)]
    follow: bool,
    /// How fast the copy is taken at most, MiB a second
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    mib_per_s: u64,
    /// One JSON object in the end
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum What {
    /// Read all of it, say what can be restored, and fail if anything has changed or versions are missing before a log
    Verify {
        /// The directory of backups
        from: PathBuf,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    /// Takes a backup, or verifies one; `access` is an operator's.
    ///
    /// # Errors
    /// Why there is none, or what is wrong with it.
    pub fn run(&self, access: impl FnOnce() -> Result<Access, OperatorError>) -> OperatorResult {
        match (&self.what, &self.to) {
            (Some(What::Verify { from, json }), _) => verifying::verify(&BackupFolder::open(from), *json),
            (None, Some(to)) => self.take(&access()?, BackupFolder::create(to)?),
            (None, None) => Err(usage("name the directory of backups: --to DIR")),
        }
    }

    fn take(&self, access: &Access, folder: BackupFolder) -> OperatorResult {
        let mut order = sites::all(&access.config);
        if let Some(first) = self.site {
            access.config.place(first)?;
            order.sort_by_key(|site| *site != first);
        }
        let pace = Pace { bytes_per_s: self.mib_per_s << 20 };
        let taker = Taker { access, order, folder, pace, began: Instant::now(), json: self.json };
        if self.follow {
            let stop = stop_on_signals().map_err(OperatorError::io("installing a signal handler"))?;
            taker.follow(&stop)
        } else {
            taker.copy(&AtomicBool::new(false), |_, _, _| {})?;
            Ok(())
        }
    }
}

/// Who takes a backup, from whom and where to.
struct Taker<'a> {
    access: &'a Access,
    order: Vec<SiteId>,
    folder: BackupFolder,
    pace: Pace,
    began: Instant,
    json: bool,
}

impl Taker<'_> {
    /// Takes a copy, of the first site that gives one to its end, and says what it is.
    fn copy(
        &self,
        stop: &AtomicBool,
        mut begun: impl FnMut(&str, Stored, u64),
    ) -> Result<CopyFacts, BackupError> {
        let mut last = None;
        for site in self.order.iter().cycle().take(self.order.len() * TRIES) {
            let bar = progress::growing("copying");
            let goes_on = |facts: CopyFacts| {
                bar.set_position(facts.bytes);
                !stop.load(Ordering::Relaxed)
            };
            let hose = Hose::connect(&self.access.door(*site)?);
            let taken =
                hose.and_then(|mut hose| take(&mut hose, &self.folder, self.pace, &mut begun, goes_on));
            bar.finish_and_clear();
            match taken {
                Ok(facts) => {
                    self.say(&facts);
                    return Ok(facts);
                }
                Err(error) if error.may_pass() && !stop.load(Ordering::Relaxed) => last = Some(error),
                Err(error) => return Err(error),
            }
            std::thread::sleep(PAUSE);
        }
        Err(last.unwrap_or_else(|| BackupError::Absent("there is no site to ask".into())))
    }

    fn say(&self, facts: &CopyFacts) {
        let CopyFacts { version, digest, items, bytes } = facts;
        let seconds = self.began.elapsed().as_secs_f64();
        if self.json {
            let digest = format!("{digest:016x}");
            let said = json!({ "version": version.0, "items": items, "bytes": bytes, "digest": digest, "seconds": seconds });
            return text::print(&said.to_string());
        }
        text::print(&format!(
            "version {version}: {}, {} of keys and values, in {seconds:.1} s",
            text::count(*items, "item"),
            text::bytes(*bytes)
        ));
    }

    /// Keeps all versions until `stop`.
    fn follow(&self, stop: &AtomicBool) -> OperatorResult {
        let mut following = Following::resume(&self.folder)?;
        while !stop.load(Ordering::Relaxed) {
            let followed = match following.take() {
                Some(following) => self.follow_on(following, || stop.load(Ordering::Relaxed)),
                None => self.begin(stop),
            }?;
            match followed {
                Followed::Stopped(last) => {
                    pares_text::tell!("all versions up to {last} are kept");
                    return Ok(());
                }
                Followed::Gone(log) => {
                    pares_text::tell!(
                        "the versions behind {} are kept by no site that answers: taking another copy",
                        log.last()
                    );
                    log.end()?;
                }
            }
        }
        Ok(())
    }

    /// Takes a copy, and meanwhile all versions behind it.
    fn begin(&self, stop: &AtomicBool) -> Result<Followed, OperatorError> {
        let failed = AtomicBool::new(false);
        let is_over = || stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            let (begun, heard) = mpsc::channel();
            let failed = &failed;
            let copying = scope.spawn(move || {
                let copied = self.copy_for(stop, &begun);
                failed.store(copied.is_err(), Ordering::Relaxed);
                copied
            });
            // Nothing comes if no copy begins.
            let log = heard.recv().ok();
            let log =
                log.map(|(identity, stored, at_ms)| Following::begin(&self.folder, &identity, stored, at_ms));
            let followed = log.transpose().map_err(OperatorError::from).and_then(|log| match log {
                Some(log) => self.follow_on(log, is_over),
                None => Err(usage("no copy has begun")),
            });
            copying.join().map_err(|_| usage("taking the copy failed"))??;
            followed
        })
    }

    /// Takes a copy that the log which is begun meanwhile goes through: a second one, of a site that is behind the first, may lie before the log.
    fn copy_for(&self, stop: &AtomicBool, begun: &mpsc::Sender<Begun>) -> Result<(), BackupError> {
        let mut first = None;
        loop {
            let facts = self.copy(stop, |identity, stored, at_ms| {
                first.get_or_insert(stored.version);
                let _ = begun.send((identity.to_owned(), stored, at_ms));
            })?;
            if first.is_none_or(|first| facts.version >= first) || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Takes versions until that is over, or until no site has the next one.
    fn follow_on(&self, mut log: Following, is_over: impl Fn() -> bool) -> Result<Followed, OperatorError> {
        let mut hoses = Hoses::default();
        let mut asked = Asked::default();
        loop {
            if is_over() {
                return Ok(Followed::Stopped(log.last()));
            }
            match hoses.take(self, &mut log) {
                Ok(has_more) => {
                    asked = Asked::default();
                    if !has_more {
                        std::thread::sleep(PAUSE);
                    }
                    continue;
                }
                Err(BackupError::Gone(_)) => asked.has_none(hoses.site(self)),
                Err(error) if error.may_pass() => {
                    asked.is_silent(hoses.site(self));
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(error.into()),
            }
            if asked.is_in_vain(&self.order) {
                return Ok(Followed::Gone(log));
            }
            hoses.turn();
        }
    }
}

/// Whom the next version was asked of since the last one came. Sites are counted, not answers: one that says the same again is one.
#[derive(Default)]
struct Asked {
    /// Those that keep it no more.
    gone: BTreeSet<SiteId>,
    /// How often others have not answered since one has said that.
    silent: BTreeMap<SiteId, usize>,
}

impl Asked {
    fn has_none(&mut self, site: SiteId) {
        self.gone.insert(site);
    }

    fn is_silent(&mut self, site: SiteId) {
        if !self.gone.is_empty() {
            *self.silent.entry(site).or_default() += 1;
        }
    }

    /// Whether no site that answers keeps it: each of `sites` has said so, or was asked some times and said nothing.
    fn is_in_vain(&self, sites: &[SiteId]) -> bool {
        let is_silent = |site| self.silent.get(site).is_some_and(|times| *times >= TRIES);
        !self.gone.is_empty() && sites.iter().all(|site| self.gone.contains(site) || is_silent(site))
    }
}

/// What a copy is of: the database, what it says of itself, and when that was said.
type Begun = (String, Stored, u64);

/// How following has ended.
enum Followed {
    /// As it was told to, at that version.
    Stopped(Version),
    /// No site keeps what comes next.
    Gone(Following),
}

/// The connection that is used, to one site after the other.
#[derive(Default)]
struct Hoses {
    at: usize,
    hose: Option<Hose>,
}

impl Hoses {
    fn take(&mut self, taker: &Taker<'_>, log: &mut Following) -> Result<bool, BackupError> {
        let site = self.site(taker);
        let hose = match &mut self.hose {
            Some(hose) => hose,
            none => none.insert(Hose::connect(&taker.access.door(site)?)?),
        };
        log.take(hose)
    }

    /// The site that is asked.
    fn site(&self, taker: &Taker<'_>) -> SiteId {
        taker.order[self.at % taker.order.len()]
    }

    /// Another site from now on.
    fn turn(&mut self) {
        self.hose = None;
        self.at += 1;
    }
}

/// A moment for people.
pub(crate) fn moment(ms: u64) -> String {
    text::moment::format(ms.saturating_mul(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_gone_when_every_site_has_said_so_or_does_not_answer() {
        let sites: Vec<SiteId> = (0..6).map(|site| SiteId::new(0, site)).collect();
        let mut asked = Asked::default();
        (0..1_000).for_each(|_| sites.iter().for_each(|site| asked.is_silent(*site)));
        assert!(!asked.is_in_vain(&sites), "nobody has said that they are gone: it waits");
        (0..3).for_each(|_| sites[..2].iter().for_each(|site| asked.has_none(*site)));
        assert!(!asked.is_in_vain(&sites), "two sites, asked three times each, are two of six");
        for _ in 0..TRIES {
            assert!(!asked.is_in_vain(&sites));
            sites[2..].iter().for_each(|site| asked.is_silent(*site));
        }
        assert!(asked.is_in_vain(&sites), "the other four do not answer");
        let mut all = Asked::default();
        for site in &sites {
            assert!(!all.is_in_vain(&sites));
            all.has_none(*site);
        }
        assert!(all.is_in_vain(&sites), "all have said so");
    }
}
