//! The faults.

use std::time::Duration;

use pares_load::{LabError, LabResult, PATIENCE};
use pares_operator::decide;
use pares_wice::SiteId;

use super::ACCOUNTS;
use super::Drill;
use super::figures::{Fault, gap, millis};
use super::load::{Load, Mix, Pace, Told, finish_all};
use super::stage;

/// Clients of each site.
const CLIENTS: u64 = 4;
/// From the death of a cluster to the operator's decision: so long that what was under way has arrived.
pub(super) const INDECISION: Duration = Duration::from_secs(1);

/// When things happened.
pub(super) struct Times {
    pub(super) quiet: Duration,
    pub(super) struck: Duration,
    pub(super) end: Duration,
    /// The operator's decision, or the healing of a cut.
    pub(super) resumed: Option<Duration>,
    pub(super) back: Option<Duration>,
}

impl Drill {
    pub(super) fn faults(&mut self) -> LabResult {
        let delegate = self.stage.delegate(1)?;
        let ordinary = self.stage.of(1).into_iter().find(|site| *site != delegate).expect("three sites");
        self.fault("kill-remote-site", &[ordinary], Self::kill)?;
        let delegate = self.stage.delegate(1)?;
        self.fault("kill-remote-delegate", &[delegate], Self::kill)?;
        let certifier = self.stage.certifier()?;
        self.fault("kill-certifier", &[certifier], Self::kill)?;
        self.fault("cut", &[], Self::cut)?;
        let (here, there) = (self.stage.of(0), self.stage.of(1));
        self.fault("kill-remote-cluster", &there, |drill, victims| drill.lose(victims, false))?;
        self.fault("wipe-remote-cluster", &there, |drill, victims| drill.lose(victims, true))?;
        self.fault("kill-certifiers-cluster", &here, |drill, victims| drill.lose(victims, false))?;
        self.disks()
    }

    /// Causes a fault under load. The clients whose sites are `victims` turn to others; the gaps are those of the rest.
    pub(super) fn fault(
        &mut self,
        name: &str,
        victims: &[SiteId],
        inject: impl FnOnce(&mut Self, &[SiteId]) -> Result<Times, LabError>,
    ) -> LabResult {
        let all = self.stage.all();
        let loads = self.steady_load(&all)?;
        let times = inject(self, victims)?;
        let told = finish_all(loads);
        let others: Vec<&Told> =
            all.iter().zip(&told).filter(|(site, _)| !victims.contains(site)).map(|(_, told)| told).collect();
        let longest = |from, to| others.iter().map(|told| gap(told, from, to)).max().map_or(0.0, millis);
        let first_after = |moment: Duration| {
            let after =
                others.iter().flat_map(|told| &told.done).map(|done| done.0).filter(|at| *at > moment);
            after.min().map_or(f64::INFINITY, |at| millis(at - moment))
        };
        self.figures.faults.push(Fault {
            fault: name.to_owned(),
            max_gap_ms: longest(times.struck, times.end),
            quiet_max_gap_ms: longest(times.quiet, times.struck),
            resumed_ms: times.resumed.map(first_after),
            back_ms: times.back.map(millis),
        });
        self.told.extend(told);
        Ok(())
    }

    /// Clients of these sites move money as long as they are let, and each has been answered.
    pub(super) fn steady_load(&mut self, sites: &[SiteId]) -> Result<Vec<Load>, LabError> {
        let (mix, pace) = (Mix::Among(ACCOUNTS), Pace::PerSecond(self.rate));
        let loads = sites.iter().map(|site| self.load(*site, CLIENTS, mix, pace));
        let loads = loads.collect::<Result<Vec<Load>, _>>()?;
        self.stage.until("commits from all sites", |_| loads.iter().all(|load| load.done() > 0))?;
        Ok(loads)
    }

    pub(super) fn quiet(&self) -> Duration {
        let quiet = self.now();
        std::thread::sleep(self.part);
        quiet
    }

    /// One site dies and is started again.
    fn kill(&mut self, victims: &[SiteId]) -> Result<Times, LabError> {
        let (quiet, struck) = (self.quiet(), self.now());
        self.stage.processes.kill_all(victims);
        std::thread::sleep(self.part);
        let end = self.now();
        let back = self.bring_back(victims)?;
        Ok(Times { quiet, struck, end, resumed: None, back: Some(back) })
    }

    /// Nothing passes between the clusters for a while.
    fn cut(&mut self, _: &[SiteId]) -> Result<Times, LabError> {
        let (quiet, struck) = (self.quiet(), self.now());
        self.stage.link.black_hole();
        std::thread::sleep(self.part);
        self.stage.link.heal();
        let healed = self.now();
        std::thread::sleep(self.part);
        Ok(Times { quiet, struck, end: self.now(), resumed: Some(healed), back: None })
    }

    /// A whole cluster dies, is declared lost, returns, is admitted, and certifies again if it did.
    fn lose(&mut self, victims: &[SiteId], wipe: bool) -> Result<Times, LabError> {
        let cluster = victims[0].cluster.0;
        let certified = self.stage.certifier()?.cluster.0 == cluster;
        let (quiet, struck) = (self.quiet(), self.now());
        self.stage.processes.kill_all(victims);
        std::thread::sleep(INDECISION);
        let decided = self.now();
        decide::lost(&self.stage.operator, cluster, None, PATIENCE)?;
        std::thread::sleep(self.part);
        let end = self.now();
        if wipe {
            self.wipe(victims)?;
        }
        let began = self.now();
        self.bring_back(victims)?;
        decide::admit(&self.stage.operator, cluster, PATIENCE)?;
        let back = self.now() - began;
        if certified {
            decide::migrate(&self.stage.operator, cluster, PATIENCE)?;
        }
        std::thread::sleep(self.part);
        Ok(Times { quiet, struck, end, resumed: Some(decided), back: Some(back) })
    }

    pub(super) fn wipe(&self, victims: &[SiteId]) -> LabResult {
        victims.iter().try_for_each(|site| stage::wipe(&self.stage, *site))
    }

    /// Starts sites again, and waits until they show what the others show by then. How long that took.
    pub(super) fn bring_back(&mut self, victims: &[SiteId]) -> Result<Duration, LabError> {
        let began = self.now();
        stage::bring_back(&mut self.stage, victims)?;
        Ok(self.now() - began)
    }
}
