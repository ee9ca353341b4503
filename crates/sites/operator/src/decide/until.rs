//! A decision is sent until it holds; what an operator reads meanwhile.

use std::time::{Duration, Instant};

use pares_site::{Access, SiteReport};
use pares_wice::{Command, SiteId};

use super::{NOBODY, latest, of, tell};
use crate::error::{OperatorError, OperatorResult};
use crate::sites::{self, ANSWER_PATIENCE};

/// Pause between two tries.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);
/// Between two lines about what is waited for, at least.
const LINES_PAUSE: Duration = Duration::from_secs(1);
/// So much is said of a site's reason, characters.
const WHY_MAX: usize = 1_000;
/// Why a run ends that a site has agreed to, before all have begun the era.
const AGREED: &str =
    "a site has agreed, but not all have begun the new era; they may still do so: see `pares site status`";

/// Tells all that have to be told, until the latest era is as wanted.
pub(super) fn until(
    access: &Access,
    command: impl Fn((SiteId, &SiteReport)) -> Result<Result<Command, String>, OperatorError>,
    patience: Duration,
    whom: impl Fn(&[(SiteId, SiteReport)]) -> Result<SiteId, String>,
    is_so: impl Fn(&[(SiteId, SiteReport)], &SiteReport) -> bool,
) -> OperatorResult {
    let began = Instant::now();
    let mut why = NOBODY.to_owned();
    let (mut told, mut waiting) = (None::<Instant>, Waiting { patience, said: None });
    loop {
        let reports = sites::reports(access);
        if latest(&reports).is_some_and(|latest| is_so(&reports, latest)) {
            return Ok(());
        }
        if began.elapsed() >= patience {
            return Err(OperatorError::Failed(format!("not within {patience:?}: {why}")));
        }
        // Once agreed to, it is under way, unless the one that agreed has died.
        if told.is_none_or(|told| told.elapsed() > ANSWER_PATIENCE) {
            match decided(access, &reports, &whom, &command)? {
                Ok(()) => (told, why) = (Some(Instant::now()), AGREED.into()),
                Err(no) if no == NOBODY => {} // silence just now explains less than what was said before
                Err(no) => why = no,
            }
            if let Some(line) = waiting.line(&why, Instant::now()) {
                pares_text::aside!("{line}");
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// What an operator reads of why it takes time.
struct Waiting {
    patience: Duration,
    /// What was said last, and when.
    said: Option<(String, Instant)>,
}

impl Waiting {
    /// What to say now: a new reason only, and not at once again where one changes at each look.
    fn line(&mut self, why: &str, now: Instant) -> Option<String> {
        let is_said = self.said.as_ref().is_some_and(|(said, at)| said == why || now < *at + LINES_PAUSE);
        if why == AGREED || is_said {
            return None;
        }
        self.said = Some((why.to_owned(), now));
        Some(format!("waiting, {} s in all: {}", self.patience.as_secs(), pares_text::shown(why, WHY_MAX)))
    }
}

/// Tells who has to be told; `Ok(Err)` if it may yet be done.
fn decided(
    access: &Access,
    reports: &[(SiteId, SiteReport)],
    whom: impl Fn(&[(SiteId, SiteReport)]) -> Result<SiteId, String>,
    command: impl Fn((SiteId, &SiteReport)) -> Result<Result<Command, String>, OperatorError>,
) -> Result<Result<(), String>, OperatorError> {
    let site = match whom(reports) {
        Ok(site) => site,
        Err(why) => return Ok(Err(why)),
    };
    match command((site, of(reports, site).expect("it has reported")))? {
        Ok(command) => tell(access, site, command),
        Err(why) => Ok(Err(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_that_changes_at_each_look_is_said_once_a_second() {
        let mut waiting = Waiting { patience: Duration::from_secs(60), said: None };
        let began = Instant::now();
        let at = |look: u32| began + PAUSE * look;
        let look = |look| waiting.line(&format!("{look} behind"), at(look));
        let said: Vec<_> = (0..=100).filter_map(look).collect();
        assert_eq!(said, [0, 50, 100].map(|look| format!("waiting, 60 s in all: {look} behind")));
        assert_eq!(waiting.line("100 behind", at(1_000)), None, "it is said already");
        assert_eq!(waiting.line(AGREED, at(1_000)), None);
        let line = waiting.line(&"\u{1b}".repeat(9_000), at(1_000)).unwrap();
        assert!(line.len() < 4_000 && !line.contains('\u{1b}'), "{} bytes", line.len());
    }
}
