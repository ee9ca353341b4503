//! Which site is asked for a copy, and what is said when it gives none.

use std::time::Duration;

use pares_site::backup::BackupError;
use pares_wice::{SiteId, Version};

/// Tries of all sites before a copy is given up.
const TRIES: usize = 5;
/// Behind a site that does not answer.
const PAUSE: Duration = Duration::from_millis(200);
/// Behind one that others are ahead of: it, or the next, may catch up.
const PAUSE_BEHIND: Duration = Duration::from_secs(1);

/// One site after the other, some times.
pub(super) struct Asking<'a> {
    sites: &'a [SiteId],
    asked: usize,
    last: Option<BackupError>,
}

/// That a site has given nothing.
pub(super) struct Denial {
    /// For people.
    pub(super) why: String,
    /// Whether it is to be said: that a site is behind, the first time.
    pub(super) is_new: bool,
    /// Before the next is asked.
    pub(super) pause: Duration,
}

impl<'a> Asking<'a> {
    /// These, in this order.
    pub(super) fn of(sites: &'a [SiteId]) -> Self {
        Self { sites, asked: 0, last: None }
    }

    /// The next one; none when all were asked often enough.
    pub(super) fn next(&mut self) -> Option<SiteId> {
        let site =
            self.sites.iter().cycle().nth(self.asked).filter(|_| self.asked < self.sites.len() * TRIES);
        self.asked += 1;
        site.copied()
    }

    /// The one that was asked last has given nothing, and another may.
    pub(super) fn note(&mut self, error: BackupError) -> Denial {
        let is_behind = matches!(error, BackupError::Behind { .. });
        let is_new = is_behind && self.asked <= self.sites.len();
        let why = error.to_string();
        self.last = Some(error);
        Denial { why, is_new, pause: if is_behind { PAUSE_BEHIND } else { PAUSE } }
    }

    /// Why there is no copy.
    pub(super) fn why(self) -> BackupError {
        self.last.unwrap_or_else(|| BackupError::Absent("there is no site to ask".into()))
    }
}

/// That a copy of `version` is none before the log, which begins behind the first copy that was begun.
pub(super) fn lies_behind(
    log: &mut Option<Version>,
    site: SiteId,
    version: Version,
) -> Result<(), BackupError> {
    let log = *log.get_or_insert(version);
    match version < log {
        true => Err(BackupError::Behind { site: site.to_string(), version, log }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITES: [SiteId; 2] = [SiteId::new(0, 1), SiteId::new(1, 0)];

    /// Whom a taker asks whose first copy breaks off when it was of version 9, and which versions all have then; what was said.
    fn asked(versions: [u64; 2]) -> (Vec<SiteId>, Result<(), BackupError>, usize) {
        let (mut log, mut asking, mut asked, mut said) =
            (Some(Version(9)), Asking::of(&SITES), Vec::new(), 0);
        while let Some(site) = asking.next() {
            asked.push(site);
            let version = versions[usize::from(site == SITES[1])];
            match lies_behind(&mut log, site, Version(version)) {
                Ok(()) => return (asked, Ok(()), said),
                Err(error) => said += usize::from(asking.note(error).is_new),
            }
        }
        (asked, Err(asking.why()), said)
    }

    #[test]
    fn a_site_behind_the_log_is_passed_over_for_another() {
        let (sites, copied, said) = asked([8, 10]);
        assert!(copied.is_ok() && sites == SITES, "{sites:?}");
        assert_eq!(said, 1);
    }

    #[test]
    fn if_all_sites_stay_behind_the_log_that_is_said_and_has_an_end() {
        let (sites, copied, said) = asked([8, 7]);
        assert!(matches!(copied, Err(BackupError::Behind { version: Version(7), log: Version(9), .. })));
        assert_eq!((sites.len(), said), (SITES.len() * TRIES, SITES.len()), "each is named once");
        assert!(sites.windows(2).all(|two| two[0] != two[1]), "never the last one again");
    }
}
