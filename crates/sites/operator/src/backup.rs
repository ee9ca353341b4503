//! `pares site backup`: a copy of the running database, and its versions since.
//!
//! One site is asked; if it does not answer, another. `--follow` begins to take versions as soon as it is known of which version the copy will be: until a
//! long copy is done, sites would have let go of the first of them.
//!
//! If that copy breaks off, the next one is of another site, which may be behind the first: a copy that lies before the log leads nowhere, and one may be taken after the
//! other for ever. So such a site is skipped before it gives anything, and all are asked some times only.

pub mod origin;
mod source_site;
mod verifying;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use pares_os::process::stop_on_signals;
use pares_site::Access;
use pares_site::backup::{
    BackupConnection, BackupError, BackupFolder, CopyFacts, DamagedLog, Finding, Followed, Following, Pace,
    SoundBase, StallEvent, UnusableBase, take,
};
use pares_text::{self as text, progress};
use pares_wice::{SiteId, Stored};
use serde_json::json;

use self::source_site::Asking;
use crate::error::{OperatorError, OperatorResult, usage};
use crate::sites;

/// Arguments of `pares site backup`.
#[derive(clap::Args)]
#[command(subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// The database's backup directory
    #[arg(long, required = true)]
    to: Option<PathBuf>,
    /// The site to ask first; others are asked if it does not answer
    #[arg(long, value_parser = sites::parse)]
    site: Option<SiteId>,
    /// Also store all later versions, until Ctrl-C; continues an earlier backup, and copies the database only if versions are missing
    #[arg(long)]
    follow: bool,
    /// Limit the copying rate, MiB per second
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    mib_per_s: u64,
    /// One JSON object at the end
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum What {
    /// Read the whole backup and list what can be restored; fails if files have changed or versions are missing
    Verify {
        /// The backup directory
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
            (None, None) => Err(usage("name the backup directory with --to DIR")),
        }
    }

    fn take(&self, access: &Access, folder: BackupFolder) -> OperatorResult {
        let order = sites::from(&access.config, self.site)?;
        let pace = Pace { bytes_per_s: self.mib_per_s << 20 };
        let taker = Taker { access, order, folder, pace, began: Instant::now(), json: self.json };
        if self.follow {
            let stop = stop_on_signals().map_err(OperatorError::io("installing a signal handler"))?;
            taker.follow(&stop)
        } else {
            taker.copy(|| false, |_, _| Ok(()))?;
            origin::note(&access.config, taker.folder.path())
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
    /// Takes a copy, of the first site that gives one to its end, and says what it is; `begun` may refuse what a site would give.
    fn copy(
        &self,
        is_over: impl Fn() -> bool,
        mut begun: impl FnMut(SiteId, Begun) -> Result<(), BackupError>,
    ) -> Result<CopyFacts, BackupError> {
        let mut asking = Asking::of(&self.order);
        while let Some(site) = asking.next() {
            match self.copy_of(site, &is_over, &mut begun) {
                Ok(facts) => {
                    self.say(&facts);
                    return Ok(facts);
                }
                Err(error) if error.may_pass() && !is_over() => {
                    let denial = asking.note(error);
                    denial.is_new.then(|| pares_text::tell!("{}; asking another site", denial.why));
                    std::thread::sleep(denial.pause);
                }
                Err(error) => return Err(error),
            }
        }
        Err(asking.why())
    }

    /// One of that site.
    fn copy_of(
        &self,
        site: SiteId,
        is_over: &impl Fn() -> bool,
        begun: &mut impl FnMut(SiteId, Begun) -> Result<(), BackupError>,
    ) -> Result<CopyFacts, BackupError> {
        let mut hose = BackupConnection::connect(&self.access.door(site)?)?;
        let bar = progress::growing("copying");
        let goes_on = |facts: CopyFacts| {
            bar.set_position(facts.bytes);
            !is_over()
        };
        let begun = |identity: &str, stored, at_ms| begun(site, (identity.to_owned(), stored, at_ms));
        let taken = take(&mut hose, &self.folder, self.pace, begun, goes_on);
        bar.finish_and_clear();
        taken
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

    fn say_damaged(&self, damaged: &DamagedLog) {
        let DamagedLog { why, kept, last } = damaged;
        if self.json {
            let said =
                json!({ "damaged": why.to_string(), "kept": kept.display().to_string(), "version": last.0 });
            return text::print(&said.to_string());
        }
        pares_text::tell!(
            "{why}. The log is kept as {}; following continues after version {last}, from the sites",
            kept.display()
        );
    }

    /// What following was begun again with.
    fn say_found(&self, found: &Finding) {
        match found {
            Finding::Log(log) => self.say_damaged(log),
            Finding::Base(base) => self.say_unusable(base),
            Finding::Sound(base) => self.say_sound(*base),
        }
    }

    fn say_unusable(&self, UnusableBase { why, kept }: &UnusableBase) {
        if self.json {
            let said = json!({ "damaged": why.to_string(), "kept": kept.display().to_string() });
            return text::print(&said.to_string());
        }
        pares_text::tell!(
            "{why}. It is kept as {} but no longer used; a new copy is taken if no other one precedes the log",
            kept.display()
        );
    }

    fn say_sound(&self, SoundBase { version, was_read }: SoundBase) {
        if self.json {
            let said = json!({ "goes_on_from": version.0, "was_read": was_read });
            return text::print(&said.to_string());
        }
        let looked = match was_read {
            true => "all of it was read",
            false => "only its head and end were checked; `pares site backup verify` reads all of it",
        };
        pares_text::tell!("continuing from the copy of version {version}: {looked}");
    }

    fn say_still(&self, still: &StallEvent) {
        let (last, standing) = match still {
            StallEvent::Stands(standing) => (standing.last, Some(standing)),
            StallEvent::GoesOn(last) => (*last, None),
        };
        let seconds = standing.map(|standing| standing.since.as_secs());
        let why = standing.map(|standing| standing.why.as_deref().unwrap_or("no site has a later one"));
        if self.json {
            let said = json!({ "stands_still": standing.is_some(), "version": last.0, "seconds": seconds, "why": why });
            return text::print(&said.to_string());
        }
        match seconds.zip(why) {
            Some((seconds, why)) => {
                let since = moment((pares_os::clock::now_ns() / 1_000_000).saturating_sub(seconds * 1_000));
                pares_text::tell!("no version after {last} has arrived since {since}: {why}");
            }
            None => pares_text::tell!("following continues: version {last} has arrived"),
        }
    }

    /// Keeps all versions until `stop`.
    fn follow(&self, stop: &AtomicBool) -> OperatorResult {
        let mut following = Following::resume(&self.folder, |found| self.say_found(&found))?;
        while !stop.load(Ordering::Relaxed) {
            let followed = match following.take() {
                Some(following) => self.follow_on(following, || stop.load(Ordering::Relaxed)),
                None => self.begin(stop),
            }?;
            match followed {
                Followed::Stopped(log) => {
                    pares_text::tell!("all versions up to {} are stored", log.last());
                    return Ok(());
                }
                Followed::Gone(log) => {
                    pares_text::tell!(
                        "no site that answers still has the versions after {}: taking another copy",
                        log.last()
                    );
                    log.end()?;
                }
            }
        }
        Ok(())
    }

    /// Takes a copy, and meanwhile all versions behind it. Who fails first ends the other.
    fn begin(&self, stop: &AtomicBool) -> Result<Followed, OperatorError> {
        let failed = AtomicBool::new(false);
        let is_over = || stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            let (begun, heard) = mpsc::channel();
            let copying = scope.spawn(|| {
                let copied = self.copy_behind(is_over, begun);
                failed.fetch_or(copied.is_err(), Ordering::Relaxed);
                copied
            });
            // Nothing comes if no copy begins.
            let followed = heard.recv().ok().map(|begun| self.follow_from(&begun, is_over)).transpose();
            failed.fetch_or(followed.is_err(), Ordering::Relaxed);
            let copied = copying.join().map_err(|_| usage("taking the copy failed"))?;
            let followed = followed?;
            copied?;
            followed.ok_or_else(|| usage("no copy has begun"))
        })
    }

    /// Follows behind a copy that has begun.
    fn follow_from(
        &self,
        (identity, stored, at_ms): &Begun,
        is_over: impl Fn() -> bool,
    ) -> Result<Followed, OperatorError> {
        let say = |damaged| self.say_damaged(&damaged);
        let log = Following::begin(&self.folder, identity, *stored, *at_ms, say)?;
        origin::note(&self.access.config, self.folder.path())?;
        self.follow_on(log, is_over)
    }

    fn follow_on(&self, log: Following, is_over: impl Fn() -> bool) -> Result<Followed, OperatorError> {
        let doors = self.order.iter().map(|site| self.access.door(*site)).collect::<Result<Vec<_>, _>>()?;
        Ok(log.follow(&doors, |_| is_over(), |still| self.say_still(&still))?)
    }

    /// Takes a copy that the log which is begun with the first one goes through: none that lies before it.
    fn copy_behind(
        &self,
        is_over: impl Fn() -> bool,
        begun: mpsc::Sender<Begun>,
    ) -> Result<CopyFacts, BackupError> {
        let mut log = None;
        self.copy(is_over, |site, copy| {
            source_site::lies_behind(&mut log, site, copy.1.version)?;
            // Who follows may have failed.
            let _ = begun.send(copy);
            Ok(())
        })
    }
}

/// What a copy is of: the database, what it says of itself, and when that was said.
type Begun = (String, Stored, u64);

/// A moment for people.
pub(crate) fn moment(ms: u64) -> String {
    text::moment::format(ms.saturating_mul(1_000_000))
}
