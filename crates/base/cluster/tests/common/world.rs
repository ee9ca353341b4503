//! Replicas, their disks, and a network that loses, delays, repeats and separates.

use std::collections::BTreeMap;

use pares_cluster::memory::Disk;
use pares_cluster::{
    Beginning, ClusterLog, Incarnation, JournalError, MemberId, MessageError, Replica, ReplicaConfig,
    ReplicaError,
};
use pares_random::Random;

use super::Rig;
use super::site::{Given, Site};

/// What the network does, in percent of messages, and ticks.
#[derive(Clone, Copy, Default)]
pub(crate) struct Weather {
    pub(crate) loss_percent: u64,
    pub(crate) repeat_percent: u64,
    pub(crate) delay_ticks_max: u64,
}

pub(crate) struct Member {
    pub(crate) log: Option<Replica<Disk>>,
    pub(crate) disk: Disk,
    pub(crate) site: Site,
    /// The site's state as its own disk has it.
    pub(crate) saved: Site,
    lives: u64,
    /// Which disk it has: another after one was lost.
    pub(crate) id: MemberId,
    /// It asks to be let in.
    pub(crate) joins: bool,
    /// It has a copy, and its log has not begun again behind it yet.
    anew: Option<Beginning>,
}

pub(crate) struct World {
    pub(crate) members: Vec<Member>,
    pub(crate) weather: Weather,
    pub(crate) random: Random,
    pub(crate) now: u64,
    /// By time of arrival and number: from, to, message.
    underway: BTreeMap<(u64, u64), (u8, u8, Vec<u8>)>,
    sent: u64,
    /// Members in different groups do not hear each other.
    pub(crate) groups: Vec<u8>,
    /// All that was ever handed out anywhere.
    pub(crate) truth: BTreeMap<u64, Given>,
    /// Term of the entry at each place, the log's own entries included.
    terms: BTreeMap<u64, u64>,
    pub(crate) delegates: BTreeMap<u64, u8>,
    pub(crate) seed: u64,
    pub(crate) disks_lost: u64,
    /// Bytes of every message sent, mixed: two runs with one seed agree.
    pub(crate) trace: u64,
}

impl Rig for World {
    type Log = Replica<Disk>;

    fn log(&mut self, member: u8) -> &mut Replica<Disk> {
        self.members[usize::from(member)].log.as_mut().expect("it is up")
    }

    fn site(&self, member: u8) -> &Site {
        &self.members[usize::from(member)].site
    }

    fn save(&mut self, member: u8) {
        let state = &mut self.members[usize::from(member)];
        state.saved = state.site.saved();
    }

    fn start(&mut self, member: u8) {
        let config = self.config(member);
        let anew = self.members[usize::from(member)].anew.clone();
        let config = match &anew {
            Some(beginning) => ReplicaConfig { anew: true, beginning: beginning.clone(), ..config },
            None => config,
        };
        let state = &mut self.members[usize::from(member)];
        assert!(state.log.is_none());
        state.lives += 1;
        state.site = state.saved.saved();
        match Replica::open(state.disk.clone(), &config) {
            Ok(log) => (state.log, state.anew) = (Some(log), None),
            Err(ReplicaError::Journal(JournalError::Simulated)) if anew.is_some() => state.disk.crash(0),
            Err(error) => panic!("a log opens after a crash: {error}"),
        }
    }

    fn cut_off(&mut self, member: u8) {
        self.groups[usize::from(member)] = member + 1;
    }

    fn heal(&mut self) {
        self.groups.fill(0);
    }
}

impl World {
    pub(crate) fn new(members: u8, seed: u64) -> World {
        let member = |number| Member {
            id: MemberId { number, incarnation: Incarnation(0) },
            joins: false,
            anew: None,
            log: None,
            disk: Disk::new(),
            site: Site::default(),
            saved: Site::default(),
            lives: 0,
        };
        let mut world = World {
            members: (0..members).map(member).collect(),
            weather: Weather::default(),
            random: Random::new(seed),
            now: 0,
            underway: BTreeMap::new(),
            sent: 0,
            groups: vec![0; members.into()],
            truth: BTreeMap::new(),
            terms: BTreeMap::new(),
            delegates: BTreeMap::new(),
            seed,
            disks_lost: 0,
            trace: 0,
        };
        (0..members).for_each(|member| world.start(member));
        world
    }

    pub(crate) fn config(&self, member: u8) -> ReplicaConfig {
        let state = &self.members[usize::from(member)];
        ReplicaConfig {
            seed: self.seed ^ (u64::from(member) << 32) ^ (state.lives << 40),
            applied: state.saved.applied,
            id: state.id,
            copy_ticks: 10,
            ..ReplicaConfig::new(member, self.members.len() as u8)
        }
    }

    /// Kills a member; its disk keeps what was synced and the first `keep` records of the rest.
    pub(crate) fn crash(&mut self, member: u8, keep: u64) {
        let state = &mut self.members[usize::from(member)];
        state.log = None;
        state.disk.crash(keep);
    }

    /// Reports to the others that the connection to a member has ended, whether that is down or not.
    pub(crate) fn hang_up(&mut self, member: u8) {
        for other in (0..self.members.len() as u8).filter(|other| *other != member) {
            if self.is_up(other) {
                self.log(other).lost(member);
            }
        }
    }

    /// A member's disk is lost, and it has an empty one: it takes a copy of another's state, and asks to be let in.
    pub(crate) fn lose_disk(&mut self, member: u8) {
        self.crash(member, 0);
        let incarnation = Incarnation(self.random.below(1 << 40) + 1);
        let state = &mut self.members[usize::from(member)];
        (state.disk, state.site, state.saved) = (Disk::new(), Site::default(), Site::default());
        (state.id, state.joins) = (MemberId { number: member, incarnation }, true);
        self.copy(member, 0);
    }

    /// A site that has it gives a member the state of place `at_least` or later; the log continues from there. False if none has it now.
    fn copy(&mut self, member: u8, at_least: u64) -> bool {
        let has =
            |other: &u8| self.is_up(*other) && self.site(*other).applied >= at_least && *other != member;
        let all = (0..self.members.len() as u8).filter(has);
        let Some(other) = all.max_by_key(|other| self.site(*other).applied) else { return false };
        let (from, beginning) = (self.site(other).clone(), self.beginning(other));
        let state = &mut self.members[usize::from(member)];
        state.log = None;
        state.site.copy(&from);
        (state.saved, state.anew) = (state.site.clone(), Some(beginning));
        self.start(member);
        true
    }

    fn beginning(&mut self, member: u8) -> Beginning {
        let applied = self.site(member).applied;
        self.log(member).beginning(applied).expect("it was handed out here")
    }

    /// A member without its log's vote says so to all.
    fn ask_to_be_let_in(&mut self, member: u8) {
        let id = self.members[usize::from(member)].id;
        for other in (0..self.members.len() as u8).filter(|other| *other != member) {
            if self.is_up(other) && self.groups[usize::from(other)] == self.groups[usize::from(member)] {
                self.log(other).admit(id);
            }
        }
        self.members[usize::from(member)].joins = !self.log(member).members().voters.contains(&id);
    }

    pub(crate) fn is_up(&self, member: u8) -> bool {
        self.members[usize::from(member)].log.is_some()
    }

    /// Who leads, if it is one and the others that can hear it agree.
    pub(crate) fn leader(&self) -> Option<u8> {
        let leads = |member: &u8| self.is_up(*member) && self.site(*member).role.leads;
        (0..self.members.len() as u8).filter(leads).max_by_key(|member| self.site(*member).role.term)
    }

    /// One tick for all: what arrives, then time, then a cycle.
    pub(crate) fn step(&mut self) {
        self.now += 1;
        self.deliver();
        for member in 0..self.members.len() as u8 {
            if self.is_up(member) {
                self.log(member).tick();
                self.cycle(member);
            }
            if self.is_up(member) && self.members[usize::from(member)].joins {
                self.ask_to_be_let_in(member);
            }
        }
    }

    /// Until nobody has anything to do and nothing is under way; no time passes.
    pub(crate) fn settle(&mut self) {
        loop {
            for member in 0..self.members.len() as u8 {
                while self.is_up(member) && self.log(member).pending() {
                    self.cycle(member);
                }
            }
            if self.underway.is_empty() {
                return;
            }
            self.now = self.now.max(self.underway.keys().next_back().expect("not empty").0);
            self.deliver();
        }
    }

    /// Steps until `done`, at most `ticks` times; false if it is not then.
    pub(crate) fn run_until(&mut self, ticks: u64, mut done: impl FnMut(&World) -> bool) -> bool {
        for _ in 0..ticks {
            if done(self) {
                return true;
            }
            self.step();
        }
        done(self)
    }

    pub(crate) fn elect(&mut self) -> u8 {
        assert!(self.run_until(400, |world| world.leader().is_some()), "nobody was elected");
        self.leader().expect("just seen")
    }

    /// Whether a member is on its way to learn that what it lacks is gone: message kind 5.
    pub(crate) fn a_lack_is_under_way(&self) -> bool {
        self.underway.values().any(|(_, _, message)| message[1] == 5)
    }

    /// Loses everything under way.
    pub(crate) fn lose_all(&mut self) {
        self.underway.clear();
    }

    fn deliver(&mut self) {
        let later = self.underway.split_off(&(self.now + 1, 0));
        for (_, (from, to, message)) in std::mem::replace(&mut self.underway, later) {
            let apart = self.groups[usize::from(from)] != self.groups[usize::from(to)];
            if !apart && self.is_up(to) {
                let received = self.log(to).receive(from, &message);
                // What was meant for a disk that is lost reaches nobody.
                let strange = matches!(received, Err(MessageError::Misdirected { .. }));
                assert!(received.is_ok() || strange, "members understand each other: {received:?}");
            }
        }
    }

    /// One cycle of a member, which dies if its disk fails.
    pub(crate) fn cycle(&mut self, member: u8) {
        let state = &mut self.members[usize::from(member)];
        let before = state.site.entries.len();
        let result = state.log.as_mut().expect("it is up").cycle(&mut state.site);
        let lacks = state.site.lacks.take();
        let outbox = std::mem::take(&mut state.site.outbox);
        for (to, message) in outbox {
            self.send(member, to, message);
        }
        self.check(member, before);
        if result.is_err() {
            let keep = self.random.below(4);
            self.crash(member, keep);
        } else if let Some(at_least) = lacks {
            self.copy(member, at_least);
        }
    }

    fn send(&mut self, from: u8, to: u8, message: Vec<u8>) {
        let mixed = message.iter().fold(self.trace, |sum, byte| sum.rotate_left(5) ^ u64::from(*byte));
        self.trace = mixed.wrapping_mul(31).wrapping_add(u64::from(to));
        let copies = 1 + u64::from(self.random.percent(self.weather.repeat_percent));
        for _ in 0..copies {
            let delay = self.random.below(self.weather.delay_ticks_max + 1);
            if !self.random.percent(self.weather.loss_percent) {
                self.sent += 1;
                self.underway.insert((self.now + delay, self.sent), (from, to, message.clone()));
            }
        }
    }

    /// All sites get the same entry at the same place, and a term has one delegate.
    fn check(&mut self, member: u8, before: usize) {
        let (index, term) = self.log(member).handed_out();
        let first = *self.terms.entry(index).or_insert(term);
        assert_eq!(first, term, "seed {}: entries of two terms at place {index}", self.seed);
        let site = &self.members[usize::from(member)].site;
        for given in site.entries.iter().skip(before) {
            let first = self.truth.entry(given.0).or_insert_with(|| given.clone());
            assert_eq!(first, given, "seed {}: two entries at place {}", self.seed, given.0);
        }
        if site.role.delegate == Some(member) {
            let delegate = *self.delegates.entry(site.role.term).or_insert(member);
            assert_eq!(delegate, member, "seed {}: two delegates in term {}", self.seed, site.role.term);
        }
        if site.role.leads {
            let earlier = self.truth.values().filter(|(_, term, _)| *term < site.role.term);
            let known = site.entries.iter().filter(|(_, term, _)| *term < site.role.term);
            assert!(earlier.eq(known), "seed {}: a delegate leads and does not know all", self.seed);
        }
    }
}
