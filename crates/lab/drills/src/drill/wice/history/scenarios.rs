//! The faults, and what is done with the history of each.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use pares_isolation::bank::{self, Imbalance};
use pares_isolation::history::{Ending, ListName, MicroOperation, Operation};
use pares_load::{DistantSites, LabError, LabResult, PATIENCE};
use pares_operator::sites;
use pares_wice::SiteId;

use super::figures::{Found, Scenario};
use super::lists::{ACCOUNTS, LISTS, Lists, MONEY, answered};
use super::sessions::{Notes, Session, Shared, Trade};
use super::{HistoryDrill, stage};

/// Lists read in one reply.
const PAGE: usize = 48;

/// Where sessions ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    /// Always at one site.
    Stay,
    /// At another of all sites each time.
    Move,
}

impl HistoryDrill {
    pub(super) fn scenarios(&mut self) -> LabResult {
        self.scenario("healthy", Where::Stay, Self::quiet)?;
        self.scenario("moving-sessions", Where::Move, Self::quiet)?;
        self.scenario("staggered-crashes", Where::Stay, Self::staggered)?;
        self.scenario("moving-while-sites-die", Where::Move, Self::staggered)?;
        self.scenario("crash-and-cut", Where::Stay, Self::crash_and_cut)?;
        self.scenario("lost-disk", Where::Stay, Self::lost_disk)
    }

    fn scenario(
        &mut self,
        name: &'static str,
        moves: Where,
        inject: impl FnOnce(&mut Self) -> LabResult,
    ) -> LabResult {
        let shared = Arc::new(Shared {
            lists: Lists::new(self.figures.scenarios.len()),
            clock: AtomicU64::new(1),
            stop: AtomicBool::new(false),
        });
        self.found(&shared.lists)?;
        let sessions = self.sessions(moves, &shared)?;
        let struck = inject(self);
        shared.stop.store(true, Ordering::Relaxed);
        let notes: Vec<Notes> = sessions.into_iter().filter_map(|session| session.join().ok()).collect();
        struck?;
        let found = self.check(name, &shared, notes)?;
        self.figures.scenarios.push(Scenario { scenario: name, found });
        Ok(())
    }

    /// Makes the scenario's lists and accounts.
    fn found(&mut self, lists: &Lists) -> LabResult {
        let mut client = self.stage.client.client(self.clients, 0, &self.stage.all())?;
        self.clients += 1;
        let made = client.execute(lists.founding().as_bytes(), PATIENCE);
        made.map_err(|error| LabError::Failed(format!("making the lists: {error}")))?;
        self.stage.until("all sites in step", DistantSites::in_step)
    }

    fn sessions(&mut self, moves: Where, shared: &Arc<Shared>) -> Result<Vec<JoinHandle<Notes>>, LabError> {
        let (all, mut sessions) = (self.stage.all(), Vec::new());
        for home in &all {
            let sites = if moves == Where::Move { all.clone() } else { vec![*home] };
            for place in 0..=self.sessions {
                let mut clients = Vec::new();
                for site in &sites {
                    clients.push(self.stage.client.client(self.clients, 0, &[*site])?);
                    self.clients += 1;
                }
                let trade = if place == 0 { Trade::Bank } else { Trade::Lists };
                let number = u32::try_from(sessions.len()).expect("few");
                sessions.push(Session::start(number, clients, trade, Arc::clone(shared))?);
            }
        }
        Ok(sessions)
    }

    fn quiet(&mut self) -> LabResult {
        std::thread::sleep(2 * self.part);
        Ok(())
    }

    /// Every site is killed and started, one after the other.
    fn staggered(&mut self) -> LabResult {
        for site in self.stage.all() {
            self.stage.processes.kill(site);
            std::thread::sleep(self.part / 2);
            stage::bring_back(&mut self.stage, &[site])?;
        }
        std::thread::sleep(self.part / 2);
        Ok(())
    }

    /// While nothing passes between the clusters the certifier dies, and the other cluster's delegate.
    fn crash_and_cut(&mut self) -> LabResult {
        let victims = [self.stage.certifier()?, self.stage.delegate(1)?];
        self.stage.link.black_hole();
        std::thread::sleep(self.part / 2);
        self.stage.processes.kill_all(&victims);
        std::thread::sleep(self.part / 2);
        self.stage.start_sites(&victims)?;
        std::thread::sleep(self.part / 2);
        self.stage.link.heal();
        stage::await_shown(&self.stage, &victims, stage::shown(&self.stage))?;
        std::thread::sleep(self.part / 2);
        Ok(())
    }

    /// Of three, one is away while the others commit; of those, one loses its disk, and the other dies. No site may continue without that one; when all are back,
    /// it dies again, and another leads.
    fn lost_disk(&mut self) -> LabResult {
        let keeps = self.stage.certifier()?;
        let others: Vec<SiteId> =
            self.stage.of(keeps.cluster.0).into_iter().filter(|site| *site != keeps).collect();
        let [away, loses] = others[..] else { unreachable!("three sites") };
        self.stage.processes.kill(away);
        std::thread::sleep(self.part);
        self.stage.processes.kill(loses);
        stage::wipe(&self.stage, loses)?;
        self.stage.processes.kill(keeps);
        self.stage.start_sites(&[away, loses])?;
        std::thread::sleep(self.part);
        self.stage.start_sites(&[keeps])?;
        stage::await_shown(&self.stage, &[away, loses, keeps], stage::shown(&self.stage))?;
        let votes = |site| sites::report(&self.stage.operator, site).is_some_and(|report| report.votes);
        self.stage.until("the wiped site's vote", |_| votes(loses))?;
        self.stage.processes.kill(keeps);
        std::thread::sleep(self.part);
        stage::bring_back(&mut self.stage, &[keeps])
    }

    /// Waits until all is quiet, reads every list, and checks.
    fn check(&self, name: &str, shared: &Shared, notes: Vec<Notes>) -> Result<Found, LabError> {
        self.stage.until("all sites in step", DistantSites::in_step)?;
        if let Some(strange) = notes.iter().find_map(|notes| notes.strange.as_ref()) {
            return Err(LabError::Failed(strange.clone()));
        }
        let mut found = Found { sites_differing: self.differing()?, ..Found::default() };
        let mut operations: Vec<Operation> =
            notes.iter().flat_map(|notes| notes.operations.iter().cloned()).collect();
        operations.sort_by_key(|operation| operation.invoked);
        count(&mut found, &operations, &notes);
        operations.push(self.last_read(shared)?);
        let snapshots = || notes.iter().flat_map(|notes| notes.snapshots.iter().map(Vec::as_slice));
        found.snapshots.snapshots = snapshots().count() as u64;
        let imbalance = bank::check(snapshots(), ACCOUNTS as usize, MONEY);
        let anomalies = pares_isolation::check(&operations);
        found.note(&anomalies, imbalance);
        if found.forbidden() > 0 || self.histories.is_some() {
            let told = anomalies.examples().iter().map(|(kind, _, text)| format!("{kind:?}: {text}"));
            let torn = snapshots()
                .filter(|all| bank::check([*all], ACCOUNTS as usize, MONEY) != Imbalance::default());
            let torn = torn.map(|all| format!("balances: {all:?}"));
            self.keep(name, &operations, told.chain(torn))?;
        }
        Ok(found)
    }

    fn differing(&self) -> Result<u64, LabError> {
        let digests = self.stage.all().into_iter().map(|site| self.stage.read_text(site, "digest"));
        let digests = digests.collect::<Result<Vec<_>, _>>()?;
        Ok(digests.iter().filter(|digest| **digest != digests[0]).count() as u64)
    }

    fn last_read(&self, shared: &Shared) -> Result<Operation, LabError> {
        let asked: Vec<MicroOperation> =
            (0..LISTS).map(|list| MicroOperation::Read(ListName(list), None)).collect();
        let mut parts = Vec::new();
        for page in asked.chunks(PAGE) {
            let reply = self.stage.read_text(self.stage.all()[0], &shared.lists.request(page))?;
            let read = answered(page, &reply);
            parts.extend(read.ok_or_else(|| LabError::Failed(format!("lists are read as {reply:?}")))?);
        }
        let [invoked, completed] = [0, 1].map(|_| shared.clock.fetch_add(1, Ordering::SeqCst));
        Ok(Operation { session: u32::MAX, invoked, completed, ending: Ending::Done, parts })
    }

    /// Writes a history, with what was found in it above.
    fn keep(&self, name: &str, operations: &[Operation], found: impl Iterator<Item = String>) -> LabResult {
        let dir: PathBuf = self
            .histories
            .clone()
            .unwrap_or_else(|| std::env::temp_dir().join(format!("pares-histories-{}", std::process::id())));
        let file = dir.join(format!("{name}.history"));
        let found = found.map(|text| format!("# {text}\n"));
        let text: String = found.chain(operations.iter().map(|operation| format!("{operation}\n"))).collect();
        let written = std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(&file, text));
        written.map_err(LabError::io(format!("writing {}", file.display())))?;
        pares_text::tell!("{name}: the history is in {}", file.display());
        Ok(())
    }
}

fn count(found: &mut Found, operations: &[Operation], notes: &[Notes]) {
    let mut endings = [0; 3];
    operations.iter().for_each(|operation| endings[operation.ending as usize] += 1);
    for notes in notes {
        endings.iter_mut().zip(notes.bank).for_each(|(all, bank)| *all += bank);
    }
    [found.ok, found.failed, found.unknown] = endings;
    found.transactions = endings.iter().sum();
}
