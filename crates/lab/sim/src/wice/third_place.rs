//! A witness at a third place, and two operators who do not hear each other: each declares the other's cluster lost.
//!
//! The witness is the shipped one, on notes in memory. It starts anew with every question; its word is told at once, or much later; and it loses its disk, and gets another
//! register by the operators' rules.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use pares_site::place::NEW;
use pares_site::protocol::{Ask, Code, Horizon};
use pares_site::world::Notes;
use pares_site::{Rights, Witness};
use pares_wice::{ClusterId, Command, Declaration, SiteId};

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
    /// It has lost its disk when the newest era had so many takeovers.
    lost_at: Option<u32>,
}

impl ThirdPlace {
    /// One as `pares site init` makes it.
    pub(super) fn made() -> Self {
        let place = Self::default();
        place.notes.write_note(NEW, IDENTITY.as_bytes()).expect("it is memory");
        place
    }

    /// Asks it, after a new start.
    fn ask(&self, ask: &Ask) -> Code {
        let mut witness = Witness::open(self.notes.clone(), IDENTITY).expect("its notes are whole");
        witness.answer(Rights::Operate, ask).expect("it can write").code
    }
}

impl Sites {
    /// Both sides of a cut, in either order, ask the witness and go on if they may.
    pub(super) fn each_declares_the_others_lost(&mut self) -> Verdict {
        let mut sides: Vec<ClusterId> = (0..self.plan.clusters).map(ClusterId).collect();
        if self.random.chance(500) {
            sides.reverse();
        }
        for side in sides {
            let Some(site) = self.delegate_of(side) else { continue };
            if let Some(command) = self.granted(site)
                && self.command(site, command)?
            {
                self.summary.faults += 1;
            }
        }
        self.tell_what_was_held()
    }

    /// What this delegate is to be told, so that its cluster goes on alone.
    fn granted(&mut self, site: SiteId) -> Option<Command> {
        let configuration = self.nodes[&site].rules()?.configuration();
        let lost = configuration.live.without(site.cluster);
        if self.plan.defect == Some(Defect::WitnessForgets) && self.random.chance(500) {
            self.third_place = ThirdPlace::made();
        }
        let declared = Declaration { takeovers: configuration.era.takeovers, by: site.cluster, lost };
        let code = self.third_place.ask(&Ask::Grant(1, database(), declared));
        self.note(|| format!("the witness is asked for {declared:?}: {code:?}"));
        if code != Code::Done {
            return None;
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

    /// While all clusters live: the witness loses its disk, or gets its next register.
    pub(super) fn look_after_witness(&mut self) -> Verdict {
        let newest = self.newest_configuration();
        let Some(lost_at) = self.third_place.lost_at else {
            if !self.faults.over && self.random.chance(100) {
                self.note(|| "the witness loses its disk".into());
                self.third_place.notes = Drawer::default();
                self.third_place.lost_at = Some(newest.era.takeovers);
            }
            return Ok(());
        };
        if newest.era.takeovers <= lost_at {
            return self.tell_certifier(Command::Renew);
        }
        let delegates = newest.live.iter().map(|cluster| self.delegate_of(cluster));
        let has_begun = |site: Option<SiteId>| {
            site.and_then(|site| self.nodes[&site].rules())
                .is_some_and(|rules| rules.configuration() == newest)
        };
        if delegates.collect::<Vec<_>>().into_iter().all(has_begun) {
            let code = self.third_place.ask(&Ask::Begin(1, database(), newest.era.takeovers));
            self.note(|| format!("the witness begins at {:?}: {code:?}", newest.era));
            self.third_place.lost_at = None;
            self.summary.renewed += 1;
        }
        Ok(())
    }
}

fn database() -> u32 {
    Horizon::of(IDENTITY, pares_wice::Version(0)).database
}
