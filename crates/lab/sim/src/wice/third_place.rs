//! A witness at a third place, and operators on the two sides of a cut, who do not hear each other: each declares the other side lost. Of three clusters two are on one
//! side, and one is alone.
//!
//! The witness is the shipped one, on notes in memory. It restarts with every question, dies before it has answered, and is down for a while; its word
//! is passed on at once, or much later; and it loses its disk, and gets another register by the operators' rules, of whom some say BEGIN much later too.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;

use pares_site::place::NEW;
use pares_site::protocol::{Ask, Code, database_of};
use pares_site::world::Notes;
use pares_site::{Rights, SiteReport, Witness, renewed};
use pares_wice::{ClusterId, ClusterSet, Command, Declaration, SiteId};

use super::machine::IDENTITY;
use super::sites::Sites;
use super::{Defect, Verdict};

/// Notes that survive whatever happens to the process that wrote them. Clones are the same.
#[derive(Clone, Debug, Default)]
struct Drawer(Rc<RefCell<BTreeMap<String, Vec<u8>>>>);

impl Notes for Drawer {
    fn read_note(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.borrow().get(name).cloned())
    }
    fn write_note(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }
    fn remove_note(&self, name: &str) -> io::Result<()> {
        self.0.borrow_mut().remove(name);
        Ok(())
    }
}

/// The witness, and what its operators know of it.
#[derive(Debug, Default)]
pub(super) struct ThirdPlace {
    notes: Drawer,
    /// What was granted, and nobody has told the cluster yet.
    held: Vec<(ClusterId, Command)>,
    is_lost: bool,
    /// The number under which it is opened: another when it has lost its disk.
    opening: u64,
    /// What would begin a register, and nobody has said yet.
    begins: Vec<Ask>,
    down_until_us: u64,
    /// Since when nobody certifies though all are heard.
    stuck_since_us: Option<u64>,
    /// When a cluster that received the command to continue receives it again, if it has not continued.
    tells_again_us: BTreeMap<ClusterId, u64>,
    /// The clusters that have received the command to renew since.
    told: BTreeMap<u8, Told>,
}

/// An operator who waits for a renewal.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// Takeovers before.
    before: u32,
    /// The number of the witness then.
    opening: u64,
    /// Then he tries again.
    until_us: u64,
}

/// How long an operator waits for an era that he has renewed.
const RENEWAL_PATIENCE_US: u64 = 600_000;

impl ThirdPlace {
    /// One as `pares site init` makes it.
    pub(super) fn made() -> Self {
        let place = Self::default();
        place.notes.write_note(NEW, IDENTITY.as_bytes()).expect("it is memory");
        place
    }

    /// Asks it, after a new start.
    fn ask(&self, ask: &Ask) -> Code {
        let mut witness =
            Witness::open(self.notes.clone(), IDENTITY, self.opening).expect("its notes are whole");
        witness.answer(Rights::Operate, ask).expect("it can write").code
    }
}

impl Sites {
    /// Both sides of a cut, in either order, ask the witness and continue if they may.
    pub(super) fn each_declares_the_others_lost(&mut self) -> Verdict {
        let mut sides = self.sides();
        if self.random.chance(500) {
            sides.reverse();
        }
        for side in sides {
            let Some(site) = self.who_goes_on(&side) else { continue };
            let now_us = self.now_us();
            if self.third_place.tells_again_us.get(&site.cluster).is_some_and(|again| now_us < *again) {
                continue;
            }
            if let Some(command) = self.granted(site)
                && self.command(site, command)?
            {
                self.summary.faults += 1;
                self.third_place.tells_again_us.insert(site.cluster, now_us + RENEWAL_PATIENCE_US);
            }
        }
        self.tell_what_was_held()
    }

    /// The delegate that can continue, as `pares site lost` chooses it: of a cluster that lives by its own word, and the certifier's first.
    fn who_goes_on(&mut self, side: &[SiteId]) -> Option<SiteId> {
        let clusters: BTreeSet<ClusterId> = side.iter().map(|site| site.cluster).collect();
        let delegates = clusters.into_iter().filter_map(|cluster| self.delegate_of(cluster));
        let lives = |site: &SiteId| Some(self.nodes[site].rules()?.configuration());
        let lives = delegates.filter_map(|site| Some((site, lives(&site)?)));
        let mut may: Vec<_> = lives.filter(|(site, known)| known.live.contains(site.cluster)).collect();
        let newest = may.iter().map(|(_, known)| known.era).max()?;
        may.retain(|(_, known)| known.era == newest);
        let certifier = may.iter().find(|(site, known)| known.certifier == site.cluster);
        Some(certifier.map_or_else(|| may[self.random.index(may.len())].0, |(site, _)| *site))
    }

    /// The command for this delegate, so that its cluster continues without those that it does not hear.
    fn granted(&mut self, site: SiteId) -> Option<Command> {
        let configuration = self.nodes[&site].rules()?.configuration();
        let is_cut = |cluster: &ClusterId| self.faults.cuts(site.cluster, *cluster);
        let lost: ClusterSet = configuration.live.iter().filter(is_cut).collect();
        if lost == ClusterSet::default() || self.now_us() < self.third_place.down_until_us {
            return None;
        }
        if self.plan.defect == Some(Defect::WitnessForgets) && self.random.chance(500) {
            self.third_place = ThirdPlace::made();
        }
        let declared = Declaration { takeovers: configuration.era.takeovers, by: site.cluster, lost };
        let code = self.third_place.ask(&Ask::Grant(1, database_of(IDENTITY), declared));
        self.note(|| format!("the witness is asked for {declared:?}: {code:?}"));
        if self.random.chance(100) {
            return None; // it has died before it could say so
        }
        if code != Code::Done {
            self.summary.refused += u64::from(!self.third_place.is_lost);
            let goes_on = self.plan.defect == Some(Defect::GoesOnRefused);
            return goes_on.then_some(Command::Unwitnessed(lost));
        }
        self.summary.granted += 1;
        let command = Command::Granted(declared);
        if self.random.chance(700) {
            return Some(command);
        }
        self.third_place.held.push((site.cluster, command));
        None
    }

    /// An operator who was granted something long ago tells it now.
    fn tell_what_was_held(&mut self) -> Verdict {
        if self.third_place.held.is_empty() || self.random.chance(500) {
            return Ok(());
        }
        let which = self.random.index(self.third_place.held.len());
        let (cluster, command) = self.third_place.held[which];
        if let Some(site) = self.delegate_of(cluster) {
            self.third_place.held.remove(which);
            self.command(site, command)?;
        }
        Ok(())
    }

    /// The witness loses its disk now and then, also during a cut; then the certifier receives the command to renew, on each side of the cut, and the operator
    /// whose live clusters all begin an era gives the witness its next register.
    pub(super) fn look_after_witness(&mut self) -> Verdict {
        if !self.third_place.begins.is_empty()
            && self.now_us() >= self.third_place.down_until_us
            && self.random.chance(100)
        {
            let which = self.random.index(self.third_place.begins.len());
            let late = self.third_place.begins.remove(which);
            self.begin_register(&late);
        }
        let all: Vec<SiteId> = self.nodes.keys().copied().collect();
        let reports = self.reports_of(&all);
        if self.waits_in_vain(&reports) {
            return self.go_on_without_its_word(&reports);
        }
        if self.third_place.is_lost {
            return self.sides().into_iter().try_for_each(|side| self.renew(&side));
        }
        if !self.faults.over && self.random.chance(50) {
            self.third_place.down_until_us = self.now_us() + self.random.between(50_000, 400_000);
            self.note(|| "the witness is down".into());
        } else if !self.faults.over && self.random.chance(50) {
            self.note(|| "the witness loses its disk".into());
            self.lose_register();
        }
        Ok(())
    }

    fn lose_register(&mut self) {
        self.third_place.notes = Drawer::default();
        self.third_place.is_lost = true;
        self.third_place.opening += 1;
    }

    fn begin_register(&mut self, begin: &Ask) {
        let code = self.third_place.ask(begin);
        self.note(|| format!("the witness is to begin a register by {begin:?}: {code:?}"));
        if code == Code::Done && std::mem::take(&mut self.third_place.is_lost) {
            self.summary.renewed += 1;
        }
    }

    /// What the operator of one side does, by what its sites say of themselves.
    fn renew(&mut self, side: &[SiteId]) -> Verdict {
        let reports = self.reports_of(side);
        let told = &self.third_place.told;
        let begun = told.iter().find_map(|(by, told)| {
            let takeovers = renewed(&reports, *by, told.before)?;
            Some(Ask::Begin(1, database_of(IDENTITY), takeovers, told.opening))
        });
        if self.now_us() < self.third_place.down_until_us {
            return Ok(());
        }
        if let Some(begin) = begun {
            self.third_place.told.clear();
            match self.random.chance(700) {
                true => self.begin_register(&begin),
                false => self.third_place.begins.push(begin),
            }
            return Ok(());
        }
        let certifies = reports.iter().filter(|(_, report)| report.certifies);
        let Some((site, report)) = certifies.max_by_key(|(_, report)| report.era) else { return Ok(()) };
        let (by, now_us) = (site.cluster.0, self.now_us());
        let waits = self.third_place.told.get(&by).is_some_and(|told| now_us < told.until_us);
        if !waits && self.command(*site, Command::Renew)? {
            let (before, opening) = (report.era.0, self.third_place.opening);
            let told = Told { before, opening, until_us: now_us + RENEWAL_PATIENCE_US };
            self.third_place.told.insert(by, told);
            self.summary.faults += 1;
        }
        Ok(())
    }

    /// Whether all clusters are heard and none has certified for so long that two must wait for each other: of three, one that was granted something and one that renews can each
    /// have the promise that the other needs.
    fn waits_in_vain(&mut self, reports: &[(SiteId, SiteReport)]) -> bool {
        // One that is not heard may have gone on by what it was granted.
        let is_heard = |cluster: ClusterId| {
            let speaks = |(site, report): &(SiteId, SiteReport)| {
                site.cluster == cluster && report.delegate && !report.recalling
            };
            reports.iter().any(speaks)
        };
        let certifies = reports.iter().any(|(_, report)| report.certifies);
        let all_are_heard = self.nodes.keys().all(|site| is_heard(site.cluster));
        if certifies || !all_are_heard || self.sides().len() > 1 {
            self.third_place.stuck_since_us = None;
            return false;
        }
        let now_us = self.now_us();
        now_us > *self.third_place.stuck_since_us.get_or_insert(now_us) + 2 * RENEWAL_PATIENCE_US
    }

    /// The operators agree: the witness is stopped and gets another register later, what was granted and not
    /// told is void, and the cluster that waits continues without one other, above every count.
    fn go_on_without_its_word(&mut self, reports: &[(SiteId, SiteReport)]) -> Verdict {
        self.third_place.held.clear();
        self.third_place.stuck_since_us = None;
        if !self.third_place.is_lost {
            self.lose_register();
        }
        let newest = reports.iter().map(|(_, report)| report.era).max();
        let waiting = |(site, report): &&(SiteId, SiteReport)| {
            let is_its = report.certifier == site.cluster.0 && report.live.contains(&site.cluster.0);
            is_its && report.delegate && Some(report.era) == newest
        };
        let Some((site, report)) = reports.iter().find(waiting) else { return Ok(()) };
        let others: Vec<u8> = report.live.iter().copied().filter(|live| *live != site.cluster.0).collect();
        if others.is_empty() {
            return Ok(());
        }
        let lost = ClusterSet::default().with(ClusterId(others[self.random.index(others.len())]));
        self.third_place.told.clear();
        self.command(*site, Command::Unwitnessed(lost)).map(drop)
    }

    pub(super) fn reports_of(&self, side: &[SiteId]) -> Vec<(SiteId, SiteReport)> {
        let report = |site: &SiteId| Some((*site, self.nodes[site].cycle.as_ref()?.report()));
        side.iter().filter(|site| !self.is_isolated(**site)).filter_map(report).collect()
    }
}
