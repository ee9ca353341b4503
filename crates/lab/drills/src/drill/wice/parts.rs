//! What is measured while nothing dies.

use std::time::{Duration, Instant};

use pares_load::{LabError, LabResult, PATIENCE};
use pares_site::Worked;
use pares_wice::SiteId;

use super::Drill;
use super::figures::{Aborts, Latency, Throughput, latency, rate, tenth};
use super::load::{Load, Mix, Pace, Told, finish_all};
use super::stage::SITES;

/// Hot rows, where there are several.
pub(super) const ROWS: u64 = 20;
/// Before it counts: until requests, aborts and forwards are as they will be.
const WARM_UP: Duration = Duration::from_millis(500);
/// Clients of a site, unless told otherwise.
const CLIENTS: u64 = 8;
/// Requests a second of each cluster while a commit's latency is measured.
const LATENCY_RATE: u64 = 50;

const A0: SiteId = SiteId::new(0, 0);
const A1: SiteId = SiteId::new(0, 1);
const B0: SiteId = SiteId::new(1, 0);

/// Clients of a part: site, how many, requests open at each.
type Who = (SiteId, u64, u64);

impl Drill {
    pub(super) fn parts(&mut self) -> LabResult {
        self.commits()?;
        self.figures.read = [self.reads(A1)?, self.reads(B0)?];
        self.figures.hot_row_one_open = self.hot(1, &[(A1, CLIENTS, 1)])?;
        self.figures.hot_row = self.hot(1, &[(A1, CLIENTS, 64)])?;
        self.figures.hot_row_commits_per_s = self.figures.hot_row.commits_per_s;
        self.figures.hot_row_two_sites = self.hot(1, &[(A0, CLIENTS / 2, 64), (A1, CLIENTS / 2, 64)])?;
        self.figures.hot_row_two_clusters = self.hot(1, &[(A1, CLIENTS / 2, 64), (B0, CLIENTS / 2, 64)])?;
        let everywhere: Vec<Who> = self.stage.all().into_iter().map(|site| (site, CLIENTS, 1)).collect();
        self.figures.twenty_rows = self.hot(ROWS, &everywhere)?;
        Ok(())
    }

    /// Transfers that conflict with none, on a schedule, from all sites.
    fn commits(&mut self) -> LabResult {
        let pace = Pace::PerSecond(LATENCY_RATE / u64::from(SITES));
        let all = self.stage.all();
        let loads: Vec<Load> =
            all.iter().map(|site| self.load(*site, CLIENTS, Mix::Apart, pace)).collect::<Result<_, _>>()?;
        std::thread::sleep(WARM_UP);
        let (from, before) = (self.now(), self.worked()?);
        std::thread::sleep(self.part);
        let (to, after) = (self.now(), self.worked()?);
        let told = finish_all(loads);
        let of = |cluster: u8| {
            let here = all.iter().zip(&told).filter(|(site, _)| site.cluster.0 == cluster);
            latency(
                here.flat_map(|(_, told)| &told.done)
                    .filter(|(at, _)| *at >= from)
                    .map(|done| done.1)
                    .collect(),
            )
        };
        self.figures.commit = [of(0), of(1)];
        let commits =
            told.iter().flat_map(|told| &told.done).filter(|(at, _)| (from..to).contains(at)).count();
        self.figures.unconflicted = aborts(&all, &told, commits as f64, before, after);
        self.told.extend(told);
        Ok(())
    }

    /// One read after the other.
    fn reads(&self, site: SiteId) -> Result<Latency, LabError> {
        let mut client = self.stage.reader(site)?;
        let began = Instant::now();
        let mut all = Vec::new();
        while began.elapsed() < self.part / 4 {
            let asked = Instant::now();
            let read = client.read(b"get account/among/7", PATIENCE);
            read.map_err(|error| LabError::Failed(format!("{site}: {error}")))?;
            all.push(asked.elapsed());
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(latency(all))
    }

    /// Transfers that all want the same rows.
    fn hot(&mut self, rows: u64, who: &[Who]) -> Result<Throughput, LabError> {
        let loads: Vec<Load> = who
            .iter()
            .map(|&(site, clients, open)| self.load(site, clients, Mix::Hot(rows), Pace::Open(open)))
            .collect::<Result<_, _>>()?;
        std::thread::sleep(WARM_UP);
        let (from, before) = (self.now(), self.worked()?);
        std::thread::sleep(self.part);
        let (to, after) = (self.now(), self.worked()?);
        let told = finish_all(loads);
        let shares: Vec<f64> = told.iter().map(|told| rate(told, from, to)).collect();
        let commits = shares.iter().sum::<f64>();
        let sites: Vec<SiteId> = who.iter().map(|who| who.0).collect();
        let aborts = aborts(&sites, &told, commits * (to - from).as_secs_f64(), before, after);
        self.told.extend(told);
        Ok(Throughput { commits_per_s: tenth(commits), shares_per_s: shares, aborts })
    }

    fn worked(&self) -> Result<[Worked; 2], LabError> {
        Ok([self.stage.worked(0)?, self.stage.worked(1)?])
    }
}

/// What was for nothing while the sites' clients received that, and the clusters worked from `before` to `after`.
fn aborts(sites: &[SiteId], told: &[Told], commits: f64, before: [Worked; 2], after: [Worked; 2]) -> Aborts {
    let denied = |cluster: u8| {
        let here = sites.iter().zip(told).filter(|(site, _)| site.cluster.0 == cluster).map(|(_, told)| told);
        let (done, denied) = here.fold((0, 0), |(done, denied), told| {
            (done + told.acknowledged.len() as u64, denied + told.denied.len() as u64)
        });
        percent(denied, done + denied)
    };
    let work = [0, 1].map(|at| (after[at].executed - before[at].executed, after[at].lost - before[at].lost));
    Aborts {
        aborted_percent: [denied(0), denied(1)],
        // Some that lose were executed before.
        wasted_percent: work.map(|(executed, lost)| percent(lost.min(executed), executed)),
        executions_per_commit: tenth(work.iter().map(|work| work.0 as f64).sum::<f64>() / commits),
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { tenth(part as f64 * 100.0 / whole as f64) }
}
