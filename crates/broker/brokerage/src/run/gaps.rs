//! How long users had commands and no reply, and which fault that was.
//!
//! A gap is seen by a loader, and not by who causes faults. The one that it belongs to is the latest before its middle: a gap that a fault falls into late had another cause.
//! So no gap counts before the first fault, when sites begin, nor any when faults have ended: the whole log as a file takes its time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

/// A way to hit parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultKind {
    /// A front is killed.
    Front,
    /// A desk is killed.
    Desk,
    /// The site that certifies is killed.
    Certifier,
    /// Another site is killed.
    Site,
    /// One of each is killed, any site.
    OneOfEach,
    /// The site that certifies is stopped.
    SilentCertifier,
    /// A desk is stopped.
    SilentDesk,
    /// A site that does not certify is stopped.
    SilentSite,
}

impl FaultKind {
    /// Whether parts are stopped, and live.
    pub(crate) fn is_silence(self) -> bool {
        matches!(self, Self::SilentCertifier | Self::SilentDesk | Self::SilentSite)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Front => "front",
            Self::Desk => "desk",
            Self::Certifier => "certifier",
            Self::Site => "site",
            Self::OneOfEach => "one_of_each",
            Self::SilentCertifier => "silent_certifier",
            Self::SilentDesk => "silent_desk",
            Self::SilentSite => "silent_site",
        }
    }
}

/// The longest gap of each fault of a kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GapTimes {
    /// Faults.
    pub count: u64,
    /// Half of them cost no more than this, ms.
    pub p50: f64,
    /// None cost more than this, ms.
    pub max: f64,
}

impl GapTimes {
    /// Of these times.
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
        let (p50, max) = (ms(times.get(times.len().saturating_sub(1) / 2)), ms(times.last()));
        Self { count: times.len() as u64, p50, max }
    }
}

struct Fault {
    kind: FaultKind,
    at: Instant,
    /// The longest gap of users whose front lived.
    longest: Duration,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Gaps {
    struck: Vec<Fault>,
    /// The longest of users whose front lived, but for silence.
    pub(crate) longest: Duration,
    /// The longest of them while something was silent.
    pub(crate) silent: Duration,
    /// The longest of users whose front was lost.
    pub(crate) moved: Duration,
}

impl Gaps {
    /// Something was killed or stopped at that moment, later than all before.
    pub(crate) fn struck(&mut self, kind: FaultKind, at: Instant) {
        self.struck.push(Fault { kind, at, longest: Duration::ZERO });
    }

    /// A loader had commands and no reply for so long, until `ended`; `has_moved` if its front was lost meanwhile.
    pub(crate) fn heard(&mut self, gap: Duration, ended: Instant, has_moved: bool) {
        if has_moved {
            self.moved = self.moved.max(gap);
            return;
        }
        let Some(blow) = self.struck.iter_mut().rev().find(|blow| blow.at + gap / 2 <= ended) else { return };
        let longest = if blow.kind.is_silence() { &mut self.silent } else { &mut self.longest };
        *longest = gap.max(*longest);
        blow.longest = gap.max(blow.longest);
    }

    /// Of each kind of fault.
    pub(crate) fn by_kind(&self) -> BTreeMap<&'static str, GapTimes> {
        let mut times: BTreeMap<FaultKind, Vec<Duration>> = BTreeMap::new();
        for blow in &self.struck {
            times.entry(blow.kind).or_default().push(blow.longest);
        }
        times.into_iter().map(|(kind, times)| (kind.name(), GapTimes::of(times))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_gap_belongs_to_the_latest_blow_before_its_middle() {
        let (mut gaps, began) = (Gaps::default(), Instant::now());
        let heard = |gaps: &mut Gaps, gap: u32, ended: u32| gaps.heard(gap * MS, began + ended * MS, false);
        heard(&mut gaps, 400, 500); // none was struck before
        gaps.struck(FaultKind::Site, began + 600 * MS);
        heard(&mut gaps, 60, 610); // it was nearly over
        heard(&mut gaps, 20, 630);
        gaps.struck(FaultKind::Site, began + 700 * MS);
        heard(&mut gaps, 100, 790);
        gaps.struck(FaultKind::SilentDesk, began + 800 * MS);
        heard(&mut gaps, 300, 1_200);
        gaps.heard(900 * MS, began + 1_500 * MS, true);
        let by_kind = gaps.by_kind();
        assert_eq!(by_kind.keys().copied().collect::<Vec<_>>(), ["silent_desk", "site"]);
        assert_eq!((by_kind["site"].count, by_kind["site"].max), (2, 100.0));
        assert_eq!(by_kind["site"].p50, 20.0);
        assert_eq!((gaps.longest, gaps.silent, gaps.moved), (100 * MS, 300 * MS, 900 * MS));
    }
}
