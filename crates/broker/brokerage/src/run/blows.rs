//! Parts of a running broker are killed, with SIGKILL, one after the other, and started again: a front, a desk, a site by turns, then one of each at once.
//!
//! What a death costs users of *other* fronts is the figure; those of a front that died have to find another.

use std::time::{Duration, Instant};

use pares_wice::SiteId;

use crate::children::{BrokerPart, Children};
use crate::error::BrokerageResult;

/// What was killed is away for so long.
const AWAY: Duration = Duration::from_millis(300);

/// See the [module](self).
pub(super) struct Blows {
    every: Duration,
    sites: Vec<SiteId>,
    next: Instant,
    count: usize,
    /// What is to be started again, and when.
    away: Vec<(BrokerPart, Instant)>,
    killed: u64,
}

impl Blows {
    /// The first blow comes after `every`.
    pub(super) fn new(every: Duration, sites: Vec<SiteId>) -> Self {
        Self { every, sites, next: Instant::now() + every, count: 0, away: Vec::new(), killed: 0 }
    }

    /// Kills what is due, and starts again what was away.
    pub(super) fn look(&mut self, children: &mut Children) -> BrokerageResult {
        let now = Instant::now();
        for (part, _) in self.away.extract_if(.., |(_, back)| *back <= now) {
            children.begin(part)?;
        }
        if now >= self.next && self.away.is_empty() {
            let victims = self.victims(children);
            children.kill(&victims);
            self.killed += victims.len() as u64;
            self.away.extend(victims.into_iter().map(|part| (part, now + AWAY)));
            (self.count, self.next) = (self.count + 1, now + self.every);
        }
        Ok(())
    }

    /// Starts again what is away, and kills no more; how many were killed.
    pub(super) fn end(self, children: &mut Children) -> Result<u64, crate::error::BrokerageError> {
        for (part, _) in self.away {
            children.begin(part)?;
        }
        Ok(self.killed)
    }

    fn victims(&self, children: &Children) -> Vec<BrokerPart> {
        let turn = self.count / 4;
        let places = children.places();
        let front = BrokerPart::Front(turn % places.fronts.len());
        let desk = BrokerPart::Desk(turn % places.desks.len());
        // Another site each time, also when all at once are hit.
        let site = BrokerPart::Site(self.sites[self.count / 2 % self.sites.len()]);
        match self.count % 4 {
            0 => vec![front],
            1 => vec![desk],
            2 => vec![site],
            _ => vec![front, desk, site],
        }
    }
}
