//! Following at one site after another, until the caller stops it.
//!
//! A site that does not answer says nothing of what is kept, and one that keeps the next version no more speaks for itself alone. So sites are counted and
//! not answers, and those that are silent are asked some times more: for a version that is given up there is a gap in the backup.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use pares_link::Door;
use pares_wice::Version;

use super::BackupError;
use super::following::Following;
use super::hose::BackupConnection;

/// Questions to a site that does not answer, before it is not counted on.
const TRIES: usize = 5;
/// Between two questions when there are no more versions, and after one that was not answered.
const PAUSE: Duration = Duration::from_millis(200);

/// How long it may stand still before that is said, and between two times: nothing comes where nobody writes.
const STILL: Duration = Duration::from_secs(60);
/// The same while no site answers.
const SILENT: Duration = Duration::from_secs(10);
/// Between two such sayings.
const SAID_AGAIN: Duration = Duration::from_secs(600);
const _: () = assert!(SILENT.as_secs() < STILL.as_secs(), "silence is reported before mere rest");
const _: () = assert!(STILL.as_secs() < SAID_AGAIN.as_secs(), "the first report comes sooner than the next");

/// That following stalls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupStall {
    /// The last version that was taken.
    pub last: Version,
    /// For how long no version has come.
    pub since: Duration,
    /// Why, where it is not only that there are none.
    pub why: Option<String>,
}

/// What has to be said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StallEvent {
    /// It stalls, or still does.
    Stands(BackupStall),
    /// It has reported a stall, and continues.
    GoesOn(Version),
}

/// How following has ended.
pub enum Followed {
    /// As `is_over` said.
    Stopped(Following),
    /// No site that answers keeps what comes next.
    Gone(Following),
}

impl Following {
    /// Takes versions of the sites behind these doors, of which there must be one, until `is_over` says so, which hears of the last version before each question.
    /// `still` receives a stall, now and then again, and when following continues.
    ///
    /// # Errors
    /// As [`Following::take`], but for what may pass: then another site is asked.
    pub fn follow(
        mut self,
        doors: &[Door],
        is_over: impl Fn(Version) -> bool,
        mut still: impl FnMut(StallEvent),
    ) -> Result<Followed, BackupError> {
        assert!(!doors.is_empty(), "there is a site to follow");
        let (mut at, mut hose, mut asked) = (0, None, Asked::default());
        let (began, mut awaiting) = (Instant::now(), Awaiting::at(self.last()));
        while !is_over(self.last()) {
            let taken = self.take_of(&doors[at], &mut hose);
            let why = taken.as_ref().err().map(ToString::to_string);
            awaiting.note(began.elapsed(), self.last(), why).into_iter().for_each(&mut still);
            match taken {
                Ok(has_more) => {
                    asked = Asked::default();
                    if !has_more {
                        std::thread::sleep(PAUSE);
                    }
                    continue;
                }
                Err(error) => asked.note(at, error)?,
            }
            if asked.is_in_vain(doors.len()) {
                return Ok(Followed::Gone(self));
            }
            (at, hose) = ((at + 1) % doors.len(), None);
        }
        Ok(Followed::Stopped(self))
    }

    fn take_of(&mut self, door: &Door, hose: &mut Option<BackupConnection>) -> Result<bool, BackupError> {
        let hose = match hose {
            Some(hose) => hose,
            none => none.insert(BackupConnection::connect(door)?),
        };
        self.take(hose)
    }
}

/// Since when nothing has come, and when that was said. Times count from when following began.
struct Awaiting {
    last: Version,
    came: Duration,
    said: Option<Duration>,
}

impl Awaiting {
    fn at(last: Version) -> Self {
        Self { last, came: Duration::ZERO, said: None }
    }

    /// What has to be said when a question was answered, or not, for which `why` says the reason.
    fn note(&mut self, now: Duration, last: Version, why: Option<String>) -> Option<StallEvent> {
        assert!(last >= self.last, "what is followed only moves on");
        assert!(now >= self.came, "the clock never goes back");
        if last > self.last {
            (self.last, self.came) = (last, now);
            return self.said.take().map(|_| StallEvent::GoesOn(last));
        }
        let since = now - self.came;
        let patience = if why.is_some() { SILENT } else { STILL };
        let is_due = self.said.map_or(since >= patience, |said| now - said >= SAID_AGAIN);
        is_due.then(|| {
            self.said = Some(now);
            StallEvent::Stands(BackupStall { last, since, why })
        })
    }
}

/// Whom the next version was asked of since the last answer with versions. One that says the same again is one.
#[derive(Default)]
struct Asked {
    /// Those that keep it no more.
    gone: BTreeSet<usize>,
    /// How often others have not answered since one has said that.
    silent: BTreeMap<usize, usize>,
}

impl Asked {
    /// Why that site has given nothing; others may.
    fn note(&mut self, site: usize, why: BackupError) -> Result<(), BackupError> {
        match why {
            BackupError::Gone(_) => self.has_none(site),
            why if why.may_pass() => {
                self.is_silent(site);
                std::thread::sleep(PAUSE);
            }
            why => return Err(why),
        }
        Ok(())
    }

    fn has_none(&mut self, site: usize) {
        self.gone.insert(site);
    }

    fn is_silent(&mut self, site: usize) {
        if !self.gone.is_empty() {
            *self.silent.entry(site).or_default() += 1;
        }
    }

    /// Whether no site that answers keeps it: each of so many has said so, or was asked some times and said nothing.
    fn is_in_vain(&self, sites: usize) -> bool {
        assert!(
            self.gone.last().is_none_or(|site| *site < sites),
            "only a site that is asked keeps versions no more"
        );
        let is_silent = |site: &usize| self.silent.get(site).is_some_and(|times| *times >= TRIES);
        !self.gone.is_empty() && (0..sites).all(|site| self.gone.contains(&site) || is_silent(&site))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stall_is_reported_once_then_periodically_and_resume() {
        let mut awaiting = Awaiting::at(Version(7));
        let seconds = Duration::from_secs;
        let mut said = Vec::new();
        let mut note = |second, last, why: Option<&str>| {
            let noted = awaiting.note(seconds(second), Version(last), why.map(str::to_owned));
            said.extend(noted.map(|noted| (second, noted)));
        };
        (0..5).for_each(|second| note(second, 7, None));
        note(5, 8, None);
        (5..64).for_each(|second| note(second, 8, None));
        (64..1_300).for_each(|second| note(second, 8, Some("refused")));
        note(1_300, 9, None);
        note(1_301, 10, None);
        let stands = |since, why: &str| {
            let (last, since, why) = (Version(8), seconds(since), Some(why.to_owned()));
            StallEvent::Stands(BackupStall { last, since, why })
        };
        let right = [
            (64, stands(59, "refused")),
            (664, stands(659, "refused")),
            (1_264, stands(1_259, "refused")),
            (1_300, StallEvent::GoesOn(Version(9))),
        ];
        assert_eq!(said, right);
        let mut quiet = Awaiting::at(Version(7));
        assert_eq!(quiet.note(STILL - seconds(1), Version(7), None), None);
        assert!(quiet.note(STILL, Version(7), None).is_some(), "nobody writes");
    }

    #[test]
    fn versions_dropped_once_every_site_agrees_or_is_silent() {
        let mut asked = Asked::default();
        (0..1_000).for_each(|time| asked.is_silent(time % 6));
        assert!(!asked.is_in_vain(6), "nobody has said that they are gone: it waits");
        (0..6).for_each(|time| asked.has_none(time % 2));
        assert!(!asked.is_in_vain(6), "two sites, asked three times each, are two of six");
        for _ in 0..TRIES {
            assert!(!asked.is_in_vain(6));
            (2..6).for_each(|site| asked.is_silent(site));
        }
        assert!(asked.is_in_vain(6), "the other four do not answer");
        let mut all = Asked::default();
        for site in 0..6 {
            assert!(!all.is_in_vain(6));
            all.has_none(site);
        }
        assert!(all.is_in_vain(6), "all have said so");
    }
}
