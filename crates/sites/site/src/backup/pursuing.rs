//! Following at one site after another, until the caller stops it.
//!
//! A site that does not answer says nothing of what is kept, and one that keeps the next version no more speaks for itself alone. So sites are counted and
//! not answers, and those that are silent are asked some times more: for a version that is given up there is a gap in the backup.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pares_link::Door;
use pares_wice::Version;

use super::BackupError;
use super::following::Following;
use super::hose::Hose;

/// Questions to a site that does not answer, before it is not counted on.
const TRIES: usize = 5;
/// Between two questions when there are no more versions, and after one that was not answered.
const PAUSE: Duration = Duration::from_millis(200);

/// How following has ended.
pub enum Followed {
    /// As it was told to.
    Stopped(Following),
    /// No site that answers keeps what comes next.
    Gone(Following),
}

impl Following {
    /// Takes versions of the sites behind these doors, of which there must be one, until `is_over` says so, which hears of the last version before each question.
    ///
    /// # Errors
    /// As [`Following::take`], but for what may pass: then another site is asked.
    pub fn follow(
        mut self,
        doors: &[Door],
        is_over: impl Fn(Version) -> bool,
    ) -> Result<Followed, BackupError> {
        let (mut at, mut hose, mut asked) = (0, None, Asked::default());
        while !is_over(self.last()) {
            match self.take_of(&doors[at], &mut hose) {
                Ok(has_more) => {
                    asked = Asked::default();
                    if !has_more {
                        std::thread::sleep(PAUSE);
                    }
                    continue;
                }
                Err(BackupError::Gone(_)) => asked.has_none(at),
                Err(error) if error.may_pass() => {
                    asked.is_silent(at);
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(error),
            }
            if asked.is_in_vain(doors.len()) {
                return Ok(Followed::Gone(self));
            }
            (at, hose) = ((at + 1) % doors.len(), None);
        }
        Ok(Followed::Stopped(self))
    }

    fn take_of(&mut self, door: &Door, hose: &mut Option<Hose>) -> Result<bool, BackupError> {
        let hose = match hose {
            Some(hose) => hose,
            none => none.insert(Hose::connect(door)?),
        };
        self.take(hose)
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
        let is_silent = |site: &usize| self.silent.get(site).is_some_and(|times| *times >= TRIES);
        !self.gone.is_empty() && (0..sites).all(|site| self.gone.contains(&site) || is_silent(&site))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_gone_when_every_site_has_said_so_or_does_not_answer() {
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
