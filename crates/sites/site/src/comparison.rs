//! Whether other sites have applied the same.
//!
//! Every second each site says its store's version, the [digest](crate::digest) of that, and with whom it agrees. Who hears it compares with its own
//! digest of the same version, now or when it gets there; a version that it no longer remembers is skipped. Digests chain,
//! so one word a second finds whatever has ever differed.
//!
//! Of two that differ nobody knows which is right. A site is *alone* if others that it differs from agree among themselves and
//! are more than it and those that agree with it. They have to say themselves that they agree: from "both differ from me" three sites that
//! all differ would each conclude that the others are right, and all end. For the same reason a site waits for some words of all before
//! it judges itself: of three against two, each of the three could have heard the two first.

use std::collections::BTreeMap;

use pares_wice::{SiteId, Stored, Version};

use crate::digest::Digests;

/// Ticks between two words.
pub(crate) const COMPARE_TICKS: u64 = 100;
/// Ticks a site has differed from others before it judges itself: all that can be reached have spoken by then.
const JUDGE_TICKS: u64 = 3 * COMPARE_TICKS;

/// What a site says of what it has applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) version: Version,
    pub(crate) digest: u64,
    /// The sites that it agrees with.
    pub(crate) agrees: Vec<SiteId>,
}
pares_wice::fields! { Said { version, digest, agrees } }

/// What is known of another site.
#[derive(Default)]
struct Other {
    /// What it said of a version that this site has not applied: the first such word, since the next may always be ahead too.
    ahead: Option<(Version, u64)>,
    /// At which version they were compared last, and whether they were the same.
    compared: Option<(Version, bool)>,
    /// The sites that it says it agrees with.
    agrees: Vec<SiteId>,
    /// Whether the difference was reported.
    is_told: bool,
}

/// What a site has applied, against what others have.
pub(crate) struct Comparison {
    digests: Digests,
    others: BTreeMap<SiteId, Other>,
    /// The tick since which it differs from others.
    differs_since: Option<u64>,
}

impl Comparison {
    /// Of a site with this store.
    pub(crate) fn new(stored: Stored) -> Self {
        let digests = Digests::new(stored.version, stored.digest);
        Self { digests, others: BTreeMap::new(), differs_since: None }
    }

    /// The store has applied the next versions, which have these digests.
    pub(crate) fn applied(&mut self, digests: &[u64]) {
        self.digests.push(digests);
        for other in self.others.values_mut() {
            let ahead = other.ahead.take_if(|(version, _)| *version <= self.digests.newest().0);
            if let Some((version, digest)) = ahead {
                other.compare(&self.digests, version, digest);
            }
        }
    }

    /// Another site has spoken.
    pub(crate) fn heard(&mut self, from: SiteId, said: Said) {
        let other = self.others.entry(from).or_default();
        other.agrees = said.agrees;
        if said.version > self.digests.newest().0 {
            other.ahead.get_or_insert((said.version, said.digest));
        } else {
            other.compare(&self.digests, said.version, said.digest);
        }
    }

    /// Another site has connected: it may have been filled again, and what it said before be void.
    pub(crate) fn connected(&mut self, site: SiteId) {
        if let Some(other) = self.others.get_mut(&site) {
            other.ahead = None;
        }
    }

    /// What to say to all; nothing while nothing was applied.
    pub(crate) fn word(&self) -> Option<Said> {
        let (version, digest) = self.digests.newest();
        let agrees = self.with(true).map(|(site, _)| site).collect();
        (version > Version(0)).then_some(Said { version, digest, agrees })
    }

    /// The digest of a version that the store has applied, if that is remembered.
    pub(crate) fn digest_at(&self, version: Version) -> Option<u64> {
        self.digests.at(version)
    }

    /// Who differs, and at which version that was seen last.
    pub(crate) fn differing(&self) -> impl Iterator<Item = (SiteId, Version)> {
        self.with(false)
    }

    /// Who differs since it was asked last.
    pub(crate) fn take_new(&mut self) -> Vec<(SiteId, Version)> {
        let mut new = Vec::new();
        for (site, other) in &mut self.others {
            match other.compared {
                Some((version, false)) if !std::mem::replace(&mut other.is_told, true) => {
                    new.push((*site, version));
                }
                Some((_, true)) => other.is_told = false,
                _ => {}
            }
        }
        new
    }

    /// The version at which this site is known to be alone with what it has applied, if it is.
    pub(crate) fn is_alone(&mut self, tick: u64) -> Option<Version> {
        if self.differing().next().is_none() {
            self.differs_since = None;
            return None;
        }
        let since = *self.differs_since.get_or_insert(tick);
        assert!(since <= tick, "ticks are only counted up");
        if tick - since < JUDGE_TICKS {
            return None;
        }
        let own = 1 + self.with(true).count();
        let group = |site: SiteId| {
            let agrees = &self.others[&site].agrees;
            1 + self.differing().filter(|(other, _)| *other != site && agrees.contains(other)).count()
        };
        let is_outdone = self.differing().any(|(site, _)| group(site) > own);
        is_outdone.then(|| self.differing().map(|(_, version)| version).min()).flatten()
    }

    fn with(&self, same: bool) -> impl Iterator<Item = (SiteId, Version)> {
        self.others.iter().filter_map(move |(site, other)| {
            other.compared.filter(|(_, is_same)| *is_same == same).map(|(version, _)| (*site, version))
        })
    }
}

impl Other {
    fn compare(&mut self, own: &Digests, version: Version, digest: u64) {
        assert!(version <= own.newest().0, "only versions that were applied here are compared");
        if let Some(same) = own.at(version).map(|own| own == digest) {
            self.compared = Some((version, same));
        }
    }
}

#[cfg(test)]
mod tests;
