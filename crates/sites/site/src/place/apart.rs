//! The duty cycle of a site that does not participate: it has no past, or lacks what its cluster has let go of.
//!
//! It neither votes nor certifies nor executes. It says what it is, hears what the others are, and continues as its rules
//! decide ([`Forming`]) or as the copy comes ([`Filling`]); then it begins again, with a place.

use std::sync::Arc;
use std::time::Duration;

use pares_cluster::{Beginning, MemberId};
use pares_store::{Store, StoreError};
use pares_wice::{Base, SiteId, Version};

use super::filling::Filling;
use super::forming::{Decision, Forming};
use super::standing::{Form, Lack, Standing, WORD_TICKS, Word, list_of};
use super::{Behind, Part, Place};
use crate::checkpoint::Bases;
use crate::config::number_of;
use crate::cycle::{SHOWN_TICKS, TICK};
use crate::error::ProcessError;
use crate::inbox::{Arrived, Inbox};
use crate::protocol::{Ask, Code, Horizon, Reply};
use crate::report::SiteReport;
use crate::rights::{Rights, denied};
use crate::setup::Setup;
use crate::turned_away::RejectedConnections;
use crate::world::{Connections, World};

/// Whether the store holds what the database begins with: nothing, or the items of a backup.
fn has_first_store(world: &mut impl World, begins: Version) -> Result<bool, ProcessError> {
    match world.open_store() {
        Ok(store) => Ok(store.applied() == begins),
        Err(ProcessError::Store(StoreError::Unfinished)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What it is about.
enum Task<T> {
    Forming(Forming),
    Filling(Box<Filling<T>>),
}

/// A site that takes no part.
pub(crate) struct Apart<W: World> {
    pub(crate) world: W,
    pub(crate) links: W::Links,
    setup: Setup,
    place: Place,
    task: Task<W::Task>,
    inbox: Inbox,
    pub(crate) turned_away: RejectedConnections,
    ticked: Duration,
    ticks: u64,
}

impl<W: World> Apart<W> {
    /// A site without a past, or one that lacks something.
    ///
    /// # Errors
    /// If it cannot listen, or its notes cannot be read.
    pub(crate) fn begin(
        mut world: W,
        setup: Setup,
        place: Place,
        lack: Option<Lack>,
    ) -> Result<Self, ProcessError> {
        let own = setup.settings.site;
        let task = match lack {
            Some(lack) => Task::Filling(Box::new(Filling::new(own, lack))),
            None => {
                assert_eq!(place.part, Part::None, "a place that lacks nothing participates");
                // What was there before, and has lost its place, is no new directory.
                let is_new = super::is_new(world.notes(), &setup.identity)?
                    && has_first_store(&mut world, setup.begins)?;
                Task::Forming(Forming::new(&setup, place.incarnation, is_new))
            }
        };
        let links = world.open_links()?;
        let ticked = world.now();
        let (inbox, turned_away) = (Inbox::default(), RejectedConnections::default());
        Ok(Self { world, links, setup, place, task, inbox, turned_away, ticked, ticks: 0 })
    }

    /// Waits at most `patience`, and does what is to be done.
    ///
    /// # Errors
    /// [`ProcessError::Again`]: it has what it needs to begin. Any other: end the process.
    pub(crate) fn turn(&mut self, patience: Duration) -> Result<(), ProcessError> {
        let until_tick = TICK.saturating_sub(self.world.now().saturating_sub(self.ticked));
        self.links.poll(patience.min(until_tick), &mut self.inbox)?;
        for (who, why) in std::mem::take(&mut self.inbox.refused) {
            self.turned_away.note(who, why, self.world.now());
        }
        for arrived in std::mem::take(&mut self.inbox.arrived) {
            match arrived {
                Arrived::Connected(site) => {
                    self.turned_away.got_in(site);
                    self.say(site, &Word::Standing(self.standing(true)));
                }
                Arrived::Frame(from, bytes) => self.frame(from, &bytes)?,
                Arrived::Asked(client, rights, bytes) => self.asked(client, rights, &bytes),
                Arrived::Gone(_) | Arrived::Lost(_) => {}
            }
        }
        self.tick();
        self.decide()?;
        self.links.flush();
        Ok(())
    }

    fn tick(&mut self) {
        let now = self.world.now();
        if now.saturating_sub(self.ticked) < TICK {
            return;
        }
        self.ticked = now;
        self.ticks += 1;
        if self.ticks.is_multiple_of(SHOWN_TICKS) {
            self.world.show(&self.report());
        }
        let word = match &mut self.task {
            Task::Forming(forming) => {
                forming.tick();
                None
            }
            Task::Filling(filling) => filling.tick(),
        };
        if let Some((to, word)) = word {
            self.say(to, &word);
        }
        if self.ticks % WORD_TICKS == 1 {
            let standing = Word::Standing(self.standing(true));
            let others: Vec<SiteId> = self.others().collect();
            others.into_iter().for_each(|site| self.say(site, &standing));
        }
    }

    fn others(&self) -> impl Iterator<Item = SiteId> {
        let own = self.setup.settings.site;
        self.setup.settings.sites.iter().copied().filter(move |site| *site != own)
    }

    fn standing(&self, asks: bool) -> Standing {
        let role = match &self.task {
            Task::Forming(forming) => forming.role(),
            Task::Filling(filling) => filling.role(),
        };
        let list = list_of(&self.setup.settings.sites);
        let speaks = self.links.speaks();
        Standing { asks, incarnation: self.place.incarnation, list, speaks, role }
    }

    fn say(&mut self, to: SiteId, word: &Word) {
        // What does not arrive is said again.
        let number = number_of(to);
        let bytes = word.to_bytes(self.links.version(number));
        let _ = self.links.send(number, &bytes);
    }

    fn frame(&mut self, from: SiteId, bytes: &[u8]) -> Result<(), ProcessError> {
        let Ok(word) = Word::from_bytes(bytes) else { return Ok(()) };
        match (word, &mut self.task) {
            (Word::Standing(standing), task) => {
                match task {
                    Task::Forming(forming) => forming.heard(from, standing),
                    Task::Filling(filling) => filling.heard(from, standing),
                }
                if standing.asks {
                    self.say(from, &Word::Standing(self.standing(false)));
                }
            }
            (Word::Form(form), Task::Forming(forming)) if forming.is_in(from, &form) => {
                return self.form(form);
            }
            (Word::Head(head), Task::Filling(filling)) => {
                filling.begins(from, head, &mut self.world, &self.links)?;
            }
            (Word::Piece(piece), Task::Filling(filling)) => {
                if let Some((to, word)) = filling.piece(from, piece) {
                    self.say(to, &word);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn decide(&mut self) -> Result<(), ProcessError> {
        match &mut self.task {
            Task::Forming(forming) => match forming.decision() {
                None => Ok(()),
                Some(Decision::Join) => {
                    super::note_lack(self.world.notes(), &Lack::Log(0))?;
                    Err(ProcessError::Again)
                }
                Some(Decision::Form(form)) => {
                    let mates = self.others().filter(|site| site.cluster == self.setup.settings.site.cluster);
                    let word = Word::Form(form.clone());
                    mates.collect::<Vec<_>>().into_iter().for_each(|site| self.say(site, &word));
                    self.links.flush();
                    self.form(form)
                }
            },
            Task::Filling(filling) => {
                let wants = filling.go_on()?;
                if let Some((head, store)) = filling.done() {
                    return self.filled(head.log, store);
                }
                if let Some((to, word)) = wants {
                    self.say(to, &word);
                }
                Ok(())
            }
        }
    }

    /// Its cluster's log begins, and it is a member.
    fn form(&mut self, form: Form) -> Result<(), ProcessError> {
        assert_eq!(self.place.part, Part::None, "a log begins for a site without a past");
        let (number, incarnation) = (self.setup.settings.site.number, self.place.incarnation);
        let is_member = form.members.voters.contains(&MemberId { number, incarnation });
        assert!(is_member, "a log begins with this life of the disk among its members");
        let settings = &self.setup.settings;
        let founding =
            || Base { delivered: self.setup.begins, ..Base::founding(settings, self.setup.certifier) };
        let base = form.returns_to.map_or_else(founding, |era| Base::returning(settings, era));
        let promises = form.returns_to.is_none_or(|era| base.promised == era);
        assert!(promises, "a cluster that returns takes nothing from before the era of its return");
        Bases::replace(self.world.notes(), (0, base))?;
        if form.returns_to.is_some() || self.setup.begins == Version(0) {
            // It has no vote, so nobody waits for it meanwhile.
            let empty = (self.world.emptying())()?;
            self.world.keep_store(empty);
        }
        let beginning = Beginning { members: form.members.clone(), ..Beginning::default() };
        super::note_copied(self.world.notes(), beginning)?;
        Place { part: Part::Member, form: Some(form), ..self.place.clone() }.write(self.world.notes())?;
        Err(ProcessError::Again)
    }

    /// It has what it lacked. In this order: until the last note is gone, all of it is taken again.
    fn filled(&mut self, log: Option<(Behind, Base)>, store: Arc<dyn Store>) -> Result<(), ProcessError> {
        if let Some((Behind(beginning), base)) = log {
            Bases::replace(self.world.notes(), (beginning.index, base))?;
            super::note_copied(self.world.notes(), beginning)?;
        }
        if self.place.part == Part::None {
            Place { part: Part::Joins, ..self.place.clone() }.write(self.world.notes())?;
        }
        super::lacks_nothing(self.world.notes())?;
        self.world.keep_store(store);
        Err(ProcessError::Again)
    }

    fn asked(&mut self, client: pares_link::ClientId, rights: Rights, bytes: &[u8]) {
        let (to, code, body) = match Ask::from_bytes(bytes) {
            Ok(ask) if Rights::needed_for(&ask) > rights => {
                let denied = denied(Rights::needed_for(&ask));
                (ask.number(), denied.code, denied.body)
            }
            Ok(Ask::Report(tag)) => {
                (tag, Code::Done, serde_json::to_vec(&self.report()).expect("a report is JSON"))
            }
            Ok(ask) => (ask.number(), Code::Elsewhere, self.why_not()),
            Err(_) => return self.links.close_client(client),
        };
        // A client that is gone asks elsewhere.
        let _ =
            self.links.send_client(client, &Reply { to, code, horizon: Horizon::default(), body }.to_bytes());
    }

    fn why_not(&self) -> Vec<u8> {
        format!("this site does not participate: it {}", self.waits_for()).into_bytes()
    }

    pub(crate) fn waits_for(&self) -> String {
        match &self.task {
            Task::Forming(forming) => forming.waits_for(),
            Task::Filling(filling) => filling.progress(),
        }
    }

    pub(crate) fn into_world(self) -> W {
        self.world
    }

    /// How it is.
    pub(crate) fn report(&self) -> SiteReport {
        let id = self.setup.settings.site;
        SiteReport {
            site: format!("{}.{}", id.cluster.0, id.number),
            apart: Some(self.waits_for()),
            speaks: self.links.speaks(),
            is_filling: matches!(self.task, Task::Filling(_)),
            fills_failed: match &self.task {
                Task::Forming(_) => 0,
                Task::Filling(filling) => filling.failed_times(),
            },
            recalling: true,
            refused: self.turned_away.told(self.world.now()),
            ..SiteReport::default()
        }
    }
}
