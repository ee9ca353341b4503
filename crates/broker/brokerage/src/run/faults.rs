//! Parts of a running broker are killed, with SIGKILL, one after the other, and started again: a front, a desk, the site that certifies, another site by turns,
//! then one of each at once. If that is asked for, every fifth fault is a silence instead: a part is stopped for a while, and knows nothing of it.
//!
//! What a death costs users of *other* fronts is the figure; those of a front that died have to find another.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use pares_operator::sites::{all, certifier};
use pares_site::Access;
use pares_wice::SiteId;

use super::gaps::{FaultKind, GapTimes, Gaps};
use crate::children::{BrokerPart, Children};
use crate::error::BrokerageResult;

/// What was killed is away for so long.
const AWAY: Duration = Duration::from_millis(300);
/// A part that is stopped is silent for so long.
const SILENT: Duration = Duration::from_secs(3);
/// Of so many faults one is a silence, if that is asked for.
const SILENCE_EVERY: usize = 5;
/// Between two looks whether another site certifies.
const LOOK: Duration = Duration::from_millis(5);
/// Whether another site certifies is not waited for any longer.
const ELECTION_MAX: Duration = Duration::from_secs(5);

/// How parts are hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// Between two faults.
    pub every: Duration,
    /// Whether some of them are silences.
    pub stops: bool,
}

/// A part that comes back, and when.
struct Away {
    part: BrokerPart,
    back: Instant,
    is_silent: bool,
}

/// See the [module](self).
pub(super) struct Faults {
    plan: FaultPlan,
    access: Arc<Access>,
    sites: Vec<SiteId>,
    next: Instant,
    count: usize,
    away: Vec<Away>,
    killed: u64,
    stopped: u64,
    /// From the loss of a site that certified until another one did.
    elections: (Sender<Duration>, Receiver<Duration>),
}

/// What was done.
pub(super) struct Struck {
    pub(super) killed: u64,
    pub(super) stopped: u64,
    pub(super) elections: GapTimes,
}

impl Faults {
    /// The first fault comes after the time between two.
    pub(super) fn new(plan: FaultPlan, access: Access) -> Self {
        Self {
            plan,
            sites: all(&access.config),
            access: Arc::new(access),
            next: Instant::now() + plan.every,
            count: 0,
            away: Vec::new(),
            killed: 0,
            stopped: 0,
            elections: channel(),
        }
    }

    /// Brings back what was away long enough, and hits the next.
    pub(super) fn look(&mut self, children: &mut Children, gaps: &mut Gaps) -> BrokerageResult {
        let now = Instant::now();
        for away in self.away.extract_if(.., |away| away.back <= now).collect::<Vec<_>>() {
            come_back(&away, children)?;
        }
        if now >= self.next && self.away.is_empty() {
            self.strike(children, gaps);
            (self.count, self.next) = (self.count + 1, Instant::now() + self.plan.every);
        }
        Ok(())
    }

    fn strike(&mut self, children: &mut Children, gaps: &mut Gaps) {
        // Who certifies is asked for before every fault, so that all are alike.
        let certifies = certifier(&self.access);
        let (kind, victims) = self.victims(children, certifies);
        let now = Instant::now();
        let is_silent = kind.is_silence();
        if is_silent {
            children.stop_short(&victims);
            self.stopped += victims.len() as u64;
        } else {
            children.kill(&victims);
            self.killed += victims.len() as u64;
        }
        gaps.struck(kind, now);
        let back = now + if is_silent { SILENT } else { AWAY };
        self.away.extend(victims.iter().map(|part| Away { part: *part, back, is_silent }));
        if let Some(site) = certifies.filter(|site| victims.contains(&BrokerPart::Site(*site))) {
            self.time_election(site, now);
        }
    }

    /// Notes how long it takes until another site certifies.
    fn time_election(&self, lost: SiteId, at: Instant) {
        let (access, tell) = (Arc::clone(&self.access), self.elections.0.clone());
        let watch = move || {
            while at.elapsed() < ELECTION_MAX {
                if certifier(&access).is_some_and(|site| site != lost) {
                    // Who counts may have ended.
                    let _ = tell.send(at.elapsed());
                    return;
                }
                std::thread::sleep(LOOK);
            }
        };
        // Without a thread a figure is missing.
        let _ = std::thread::Builder::new().name("election".into()).spawn(watch);
    }

    /// Has all there again that is away, and hits nothing more; what was done.
    pub(super) fn end(self, children: &mut Children) -> BrokerageResult<Struck> {
        for away in &self.away {
            come_back(away, children)?;
        }
        let elections = GapTimes::of(self.elections.1.try_iter().collect());
        Ok(Struck { killed: self.killed, stopped: self.stopped, elections })
    }

    fn victims(&self, children: &Children, certifies: Option<SiteId>) -> (FaultKind, Vec<BrokerPart>) {
        let silences = if self.plan.stops { self.count / SILENCE_EVERY } else { 0 };
        let count = self.count - silences;
        let turn = count / 5;
        let places = children.places();
        let front = BrokerPart::Front(turn % places.fronts.len());
        let desk = |turn: usize| BrokerPart::Desk(turn % places.desks.len());
        let any = self.sites[turn % self.sites.len()];
        let certifier = BrokerPart::Site(certifies.unwrap_or(any));
        let others: Vec<SiteId> =
            self.sites.iter().copied().filter(|site| BrokerPart::Site(*site) != certifier).collect();
        let other = |turn: usize| BrokerPart::Site(*others.get(turn % others.len().max(1)).unwrap_or(&any));
        if self.plan.stops && self.count % SILENCE_EVERY == SILENCE_EVERY - 1 {
            return match silences % 3 {
                0 => (FaultKind::SilentCertifier, vec![certifier]),
                1 => (FaultKind::SilentDesk, vec![desk(silences / 3)]),
                _ => (FaultKind::SilentSite, vec![other(silences / 3)]),
            };
        }
        match count % 5 {
            0 => (FaultKind::Front, vec![front]),
            1 => (FaultKind::Desk, vec![desk(turn)]),
            2 => (FaultKind::Certifier, vec![certifier]),
            3 => (FaultKind::Site, vec![other(turn)]),
            _ => (FaultKind::OneOfEach, vec![front, desk(turn), BrokerPart::Site(any)]),
        }
    }
}

fn come_back(away: &Away, children: &mut Children) -> BrokerageResult {
    if away.is_silent {
        children.go_on(away.part);
        return Ok(());
    }
    children.begin(away.part)
}
