//! What tellers and auditors write down, and all parts of the demonstration read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pares_wice::SiteId;

/// Latencies and answers count for so long.
const RECENT: Duration = Duration::from_secs(3);

/// How a site said it was, at the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Takeovers, changes and beginner of its era; ordered as eras are.
    pub era: (u64, u64, u64),
    /// The cluster that certifies.
    pub certifier: u8,
    /// The clusters that live.
    pub live: Vec<u8>,
    /// Whether it is its cluster's delegate.
    pub delegate: bool,
    /// Whether it certifies.
    pub certifies: bool,
    /// Whether it is reading its log, and answers nobody.
    pub recalling: bool,
    /// The last version that is stable, as it knows.
    pub stable: u64,
}

/// What came of the requests of one cluster's tellers.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Done, and acknowledged.
    pub done: u64,
    /// Refused by the bank's rules.
    pub refused: u64,
    /// Turned away: lost against others too often, or another cluster is too far behind.
    pub turned_away: u64,
    /// Asked again, since a site did not answer.
    pub repeated: u64,
    /// When, and how long it took, youngest last.
    recent: VecDeque<(Instant, Duration)>,
    /// The last answer, and the longest time without one since it was asked for last.
    last: Option<Instant>,
    quiet: Duration,
}

impl Tally {
    /// A transaction was acknowledged.
    pub fn done(&mut self, took: Duration) {
        let now = Instant::now();
        self.done += 1;
        if let Some(last) = self.last.replace(now) {
            self.quiet = self.quiet.max(now - last);
        }
        self.recent.push_back((now, took));
        while self.recent.front().is_some_and(|(then, _)| now - *then > RECENT) {
            self.recent.pop_front();
        }
    }

    /// The longest time without an answer since this was asked last.
    pub fn take_quiet(&mut self) -> Duration {
        let going_on = self.last.map_or(Duration::ZERO, |last| last.elapsed());
        std::mem::take(&mut self.quiet).max(going_on)
    }

    /// Answers a second, and their p50 and p99 latency, over the last seconds.
    pub fn recent(&self) -> (u64, Duration, Duration) {
        let mut took: Vec<Duration> =
            self.recent.iter().filter(|(then, _)| then.elapsed() < RECENT).map(|(_, took)| *took).collect();
        took.sort_unstable();
        let at = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
        (took.len() as u64 / RECENT.as_secs(), at(50), at(99))
    }
}

/// The board itself.
#[derive(Debug, Default)]
pub struct Board {
    /// Sites that answered at the last look.
    pub sights: BTreeMap<SiteId, Sight>,
    /// By the cluster that the tellers belong to.
    pub tallies: BTreeMap<u8, Tally>,
    /// Looks at a site's total.
    pub looks: u64,
    /// What was wrong, in words.
    pub wrong: Vec<String>,
}

impl Board {
    /// What the site that knows the latest era says.
    pub fn latest(&self) -> Option<&Sight> {
        self.sights.values().max_by_key(|sight| (sight.era, sight.stable))
    }

    /// Whether a cluster is live.
    pub fn lives(&self, cluster: u8) -> bool {
        self.latest().is_some_and(|sight| sight.live.contains(&cluster))
    }

    /// The site that certifies now, if one does.
    pub fn certifier(&self) -> Option<SiteId> {
        let certifies = self.sights.iter().filter(|(_, sight)| sight.certifies);
        certifies.max_by_key(|(_, sight)| sight.era).map(|(site, _)| *site)
    }

    /// A cluster's delegate, if it has one.
    pub fn delegate(&self, cluster: u8) -> Option<SiteId> {
        let of_it = self.sights.iter().filter(|(site, sight)| site.cluster.0 == cluster && sight.delegate);
        of_it.max_by_key(|(_, sight)| sight.stable).map(|(site, _)| *site)
    }

    /// Whether a site of this cluster would serve clients.
    pub fn serves(&self, cluster: u8) -> bool {
        self.lives(cluster) && self.delegate(cluster).is_some()
    }
}

/// The board, for all threads.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<Mutex<Board>>);

impl Shared {
    /// The board, for as long as the guard is held.
    pub fn lock(&self) -> MutexGuard<'_, Board> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_with_the_latest_era_is_believed() {
        let mut board = Board::default();
        let sight = |era, live: &[u8], certifies| Sight {
            era: (era, 0, 0),
            certifier: 0,
            live: live.to_vec(),
            delegate: true,
            certifies,
            recalling: false,
            stable: 9,
        };
        board.sights.insert(SiteId::new(0, 0), sight(0, &[0, 1], true));
        board.sights.insert(SiteId::new(1, 0), sight(1, &[1], true));
        assert!(board.serves(1) && !board.lives(0));
        assert_eq!(board.certifier(), Some(SiteId::new(1, 0)));
    }

    #[test]
    fn silence_counts_while_it_lasts() {
        let mut tally = Tally::default();
        assert_eq!(tally.take_quiet(), Duration::ZERO);
        tally.done(Duration::from_millis(3));
        std::thread::sleep(Duration::from_millis(5));
        assert!(tally.take_quiet() >= Duration::from_millis(5));
        assert_eq!(tally.recent().1, Duration::from_millis(3));
    }
}
