//! The benchmark's parts, one after the other.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use pares_load::{DistantSites, LabError, PATIENCE, SitesPlan, failed};
use pares_operator::sites::reports;
use pares_tpcc::Kind;
use pares_wholesale::{DatabaseSize, FoundRows, Terminal};
use pares_wice::{Isolation, SiteId};

use super::clients::{Asked, Told, User, execute_all, work};
use super::figures::{Figures, KindCost, hundredth};
use super::store::Engine;
use super::{Args, Think, site};
use crate::bench::processor;

/// Not measured at the beginning of a part.
const WARM_UP: Duration = Duration::from_secs(2);
/// How long nobody asks, to see what sites use then; and before that, since stores still write what they were given.
const IDLE: Duration = Duration::from_secs(3);
/// Clients that make the initial database, of all sites.
const POPULATORS: usize = 12;
/// Users of the parts with one kind alone: enough that what sites do for nobody is a small share.
const ALONE: u32 = 16;
/// The same of deliveries, which would soon have delivered everything.
const DELIVERERS: u32 = 6;
/// Conditions that are printed when they do not hold.
const TOLD_MAX: usize = 10;
/// Making a database of the standard's size takes long, and a store that is behind catches up.
const SETTLE_PATIENCE: Duration = Duration::from_secs(3_600);

/// What each site has used of processors.
type Used = BTreeMap<SiteId, Duration>;

struct Bench<'a> {
    args: &'a Args,
    engine: Engine,
    sites: DistantSites,
    size: DatabaseSize,
    /// Numbers below it belong to clients.
    clients: u32,
    /// What a site uses when nobody asks, share of a processor.
    idle: f64,
    told: Told,
    figures: Figures,
}

/// Runs all parts.
///
/// # Errors
/// If the sites fail.
pub(super) fn measure(args: &Args) -> Result<Figures, LabError> {
    let mut bench = Bench::start(args)?;
    let ran = bench.run();
    if ran.is_err() {
        bench.sites.keep();
    }
    ran.map(|()| bench.figures)
}

impl<'a> Bench<'a> {
    fn start(args: &'a Args) -> Result<Self, LabError> {
        let engine = Engine::start(&args.store)?;
        let sites = DistantSites::start(&SitesPlan {
            clusters: args.clusters,
            sites: args.sites,
            durability: args.durability,
            isolation: Isolation::Snapshot,
            rtt: Duration::from_millis(args.rtt_ms),
            dir: args.dir.as_deref(),
            store: engine.url.as_deref(),
            command: site::COMMAND,
        })?;
        let figures = Figures::begun(args, engine.name);
        let size = args.size();
        Ok(Self { args, engine, sites, size, clients: 1, idle: 0.0, told: Told::default(), figures })
    }

    fn run(&mut self) -> Result<(), LabError> {
        self.populate()?;
        self.rest()?;
        self.mix()?;
        if self.args.costs {
            for kind in Kind::ALL {
                self.alone(kind)?;
            }
        }
        self.check()
    }

    /// A number no client has had.
    fn number(&mut self) -> u32 {
        self.clients += 1;
        self.clients
    }

    fn populate(&mut self) -> Result<(), LabError> {
        let began = Instant::now();
        let all = self.sites.all();
        let mut clients = Vec::new();
        for at in 0..POPULATORS {
            let number = self.number();
            clients.push(self.sites.client.client(number.into(), 0, &self.order(all[at % all.len()]))?);
        }
        execute_all(clients, self.size.population())?;
        self.settle()?;
        self.figures.population_s = hundredth(began.elapsed().as_secs_f64());
        Ok(())
    }

    /// That site, then those of its cluster, then the others: where its clients turn to when it does not answer.
    fn order(&self, site: SiteId) -> Vec<SiteId> {
        let mut order = self.sites.all();
        order.sort_by_key(|other| (*other != site, other.cluster != site.cluster));
        order
    }

    /// Waits until every site has everything, in its store too: what it is behind there it would do in the next part's time.
    fn settle(&self) -> Result<(), LabError> {
        self.sites.until_within("everything at every site", SETTLE_PATIENCE, |sites| {
            let reports = reports(&sites.operator);
            sites.in_step() && reports.iter().all(|(_, report)| report.stored == report.stable)
        })
    }

    /// What sites use when nobody asks.
    fn rest(&mut self) -> Result<(), LabError> {
        std::thread::sleep(IDLE);
        let (began, before) = (Instant::now(), self.used());
        std::thread::sleep(IDLE);
        let used = sum(&between(&before, &self.used()));
        let all = used.as_secs_f64() / began.elapsed().as_secs_f64();
        self.idle = all / self.sites.all().len() as f64;
        self.figures.idle_cpu_percent = hundredth(all * 100.0);
        Ok(())
    }

    /// What each site's process has used, and those of its database server.
    fn used(&self) -> Used {
        let of = |(site, process): (SiteId, u32)| {
            let all = self.engine.processes_of(site).into_iter().chain([process]);
            (site, all.filter_map(processor::used).sum())
        };
        self.sites.processes.ids().map(of).collect()
    }

    /// Users of a site, at terminals of these warehouses by turns.
    fn users(&mut self, site: SiteId, count: u32, homes: &[u32]) -> Result<Vec<User>, LabError> {
        let order = self.order(site);
        let user = |at: u32| {
            let number = self.number();
            let home = homes[at as usize % homes.len()];
            Ok(User {
                cluster: site.cluster.0,
                client: self.sites.client.client(number.into(), 0, &order)?,
                terminal: Terminal::new(self.size, home, number, !self.args.ytd_in_rows),
            })
        };
        (0..count).map(user).collect()
    }

    /// All users, spread over the sites; a warehouse's are at one site, if there are as many warehouses as sites.
    fn everybody(&mut self) -> Result<Vec<User>, LabError> {
        let all = self.sites.all();
        let mut users = Vec::new();
        for (at, site) in (0u32..).zip(&all) {
            let own =
                (1..=self.size.warehouses).filter(|home| (home - 1) as usize % all.len() == at as usize);
            let mut homes: Vec<u32> = own.collect();
            if homes.is_empty() {
                homes.push(at % self.size.warehouses + 1);
            }
            let (clients, sites) = (self.args.clients, u32::from(self.args.sites));
            let count = clients / sites + u32::from(u32::from(site.number) < clients % sites);
            users.extend(self.users(*site, count, &homes)?);
        }
        Ok(users)
    }

    /// Lets users work; what they received, what the sites used of processors for it, and how long it was measured.
    fn part(
        &self,
        users: Vec<User>,
        asked: Asked,
        think: Think,
        seconds: f64,
    ) -> Result<(Told, Used, Duration), LabError> {
        self.settle()?;
        let time = (WARM_UP, Duration::from_secs_f64(seconds));
        let (told, [before, after], measured) = work(users, asked, think, time, || Ok(self.used()))?;
        let idle = measured.mul_f64(self.idle);
        let mut used = between(&before, &after);
        used.values_mut().for_each(|used| *used = used.saturating_sub(idle));
        Ok((told, used, measured))
    }

    /// The mix, and then reads alone, by which the mix's processor time is divided.
    fn mix(&mut self) -> Result<(), LabError> {
        let executed_before = self.executed()?;
        let users = self.everybody()?;
        let (told, used, measured) = self.part(users, Asked::Mix, self.args.think, self.args.seconds)?;
        let executed = self.executed()? - executed_before;
        let readers = self.everybody()?;
        let (read, used_reading, _) = self.part(readers, Asked::Reads, Think::None, self.beside())?;
        let per_read = micros(sum(&used_reading)) / read.count(|_, _| true) as f64;
        let updates = told.count(|_, kind| !kind.reads_only()) as f64;
        let reads = told.count(|_, kind| kind.reads_only()) as f64;
        let asked = told.receipts.updates() + told.rolled_back;
        let figures = &mut self.figures;
        figures.seen(&told, measured);
        figures.cpu_us_per_read = hundredth(per_read);
        figures.cpu_us_per_update = hundredth((micros(sum(&used)) - reads * per_read).max(0.0) / updates);
        figures.executions_per_update = hundredth(executed as f64 / asked as f64);
        self.told.add(told);
        self.told.add(read);
        Ok(())
    }

    /// How long a part beside the mix is measured, s.
    fn beside(&self) -> f64 {
        (self.args.seconds / 4.0).max(1.0)
    }

    /// Executions at all sites so far.
    fn executed(&self) -> Result<u64, LabError> {
        (0..self.args.clusters).map(|cluster| Ok(self.sites.worked(cluster)?.executed)).sum()
    }

    /// What one kind takes where it is executed, and elsewhere. It is asked at a site that does nothing else: one that is not its cluster's delegate,
    /// if there is one.
    fn alone(&mut self, kind: Kind) -> Result<(), LabError> {
        let cluster = self.args.clusters - 1;
        let delegate = self.sites.delegate(cluster)?;
        let own = self.sites.of(cluster);
        let at = own.iter().copied().find(|site| *site != delegate).unwrap_or(delegate);
        let homes: Vec<u32> = (1..=self.size.warehouses).collect();
        let count = if kind == Kind::Delivery { DELIVERERS } else { ALONE };
        let users = self.users(at, count, &homes)?;
        let (told, used, _) = self.part(users, Asked::Only(kind), Think::None, self.beside())?;
        let count = told.count(|_, _| true) as f64;
        let others = used.iter().filter(|(site, _)| **site != at);
        let elsewhere: f64 = others.clone().map(|(_, used)| micros(*used)).sum();
        let cost = KindCost {
            execute_us: hundredth(micros(used[&at]) / count),
            apply_us: hundredth(elsewhere / count / others.count() as f64),
        };
        self.figures.costs.insert(kind.name(), cost);
        self.told.add(told);
        Ok(())
    }

    /// Conditions and content of every site, and what users received against what the first site has.
    fn check(&mut self) -> Result<(), LabError> {
        self.settle()?;
        let all = self.sites.all();
        let mut digests = Vec::new();
        for site in &all {
            digests.push(self.sites.read(*site, &DatabaseSize::digest())?);
            self.check_conditions(*site)?;
        }
        let differing = digests.iter().filter(|digest| **digest != digests[0]).count();
        let mut first = self.sites.reader(all[0])?;
        let there = FoundRows::read(&self.size, |ask| Ok::<_, Box<dyn Error>>(first.read(ask, PATIENCE)?))
            .map_err(failed("reading rows"))?;
        let figures = &mut self.figures;
        figures.sites_differing = differing as u64;
        figures.consistency = figures.broken.is_empty();
        figures.broken.truncate(TOLD_MAX);
        figures.lost_and_repeated = self.told.receipts.lost_and_repeated(&there, &self.size);
        figures.rolled_back = self.told.rolled_back;
        figures.refused = self.told.refused;
        figures.unanswered = self.told.unanswered;
        Ok(())
    }

    fn check_conditions(&mut self, site: SiteId) -> Result<(), LabError> {
        let mut reader = self.sites.reader(site)?;
        for check in self.size.checks() {
            let told = reader.read(&check, PATIENCE).map_err(failed("a check"))?;
            let lines = String::from_utf8_lossy(&told).into_owned();
            self.figures.broken.extend(lines.lines().map(|line| format!("{site}: {line}")));
        }
        Ok(())
    }
}

fn between(before: &Used, after: &Used) -> Used {
    // A process of a database server may have ended meanwhile, with what it had used.
    let used =
        |site: &SiteId, after: &Duration| after.saturating_sub(before.get(site).copied().unwrap_or_default());
    after.iter().map(|(site, after)| (*site, used(site, after))).collect()
}

fn sum(used: &Used) -> Duration {
    used.values().sum()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
