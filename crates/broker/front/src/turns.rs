//! Who is next at the sites, when as many commands are there as may be.
//!
//! Each user's commands under way are few, but users are many: who brings thousands of them over one connection would fill the sites' queues, and all others would wait behind. So a front has a window at the sites
//! ([`crate::pace`]), and the rest waits here: those who bring commands are served in turn, of each his users in turn, one command at a time. A flood costs the others a turn. Over HTTP each user brings his own, and is a sender by himself: if all of them were one, a loader with thousands of users would have as many turns as all of them.
//!
//! ```text
//!   ready --> room at the sites, and nobody waits? --> handed on
//!               \--> [ sender: user, user .. ] [ sender: user ] ..  --an answer makes room: the next sender's next user--> handed on
//! ```
//! What happens without a command has turns as if one sender brought all of it: a quote may fire a hundred thousand triggers at once.
//!
//! Commands without the one before them wait as well, and are asked for again and again meanwhile: only so many do, of one sender and in all. One whose one before was here waits for nobody else, and is not counted.

use std::collections::{BTreeMap, VecDeque};

use crate::front::BrokerFront;
use crate::pace::SitePace;

/// Requests of a front that are at the sites, at most, but those once more that were early.
pub const AT_SITES_MAX: usize = 4_096;
/// Commands of one sender that wait for one before them which this front does not have.
pub const EARLY_OF_SENDER_MAX: usize = 64;
/// The same of all senders.
pub const EARLY_MAX: usize = 1_024;
/// From so many users on whose moments wait for their turn, what else a look shows is left to the next one.
const MOMENTS_WAIT_MAX: usize = 4_096;
/// The sender of what users bring one by one, as over HTTP: each of them is a sender, with turns of his own. No connection's number is above.
pub const EACH_USER: u64 = 1 << 63;
/// Who brings moments, among the senders: no connection has this number.
const MOMENTS: u64 = u64::MAX;

/// See the module.
#[derive(Debug)]
pub(crate) struct SiteTurns {
    /// From how many requests at the sites on commands wait for their turn.
    pace: SitePace,
    /// Requests that were handed on and have no answer.
    at_sites: usize,
    /// Whose turn it is.
    senders: VecDeque<u64>,
    /// Of each of them the users' parts whose next command is his.
    parts: BTreeMap<u64, VecDeque<usize>>,
    /// How many of a sender's commands are early.
    early: BTreeMap<u64, usize>,
    early_all: usize,
}

impl SiteTurns {
    pub(crate) fn new(window_max: usize) -> Self {
        let (senders, parts, early) = <_>::default();
        Self { pace: SitePace::new(window_max), at_sites: 0, senders, parts, early, early_all: 0 }
    }

    pub(crate) fn set_window(&mut self, window: usize) {
        self.pace.fix(window);
    }

    pub(crate) fn at_sites(&self) -> usize {
        self.at_sites
    }

    pub(crate) fn handed_on(&mut self) {
        self.at_sites += 1;
    }

    /// One has its answer; how long it was there, if that says something.
    pub(crate) fn came_back(&mut self, took_ms: Option<u64>, now_ms: u64) {
        assert!(self.at_sites > 0, "what comes back was handed on");
        self.at_sites = self.at_sites.saturating_sub(1);
        if let Some(took_ms) = took_ms {
            self.pace.came_back(took_ms, now_ms);
        }
    }

    /// Whose turns a command takes that this sender brings of this part's user.
    pub(crate) fn sender_of(sender: u64, at: usize) -> u64 {
        assert!(sender <= EACH_USER, "connections have numbers below those of single users");
        if sender == EACH_USER { EACH_USER + at as u64 } else { sender }
    }

    fn has_room(&self) -> bool {
        self.at_sites < self.pace.window()
    }

    /// Whether there is room, and nobody waits for it.
    fn is_free(&self) -> bool {
        self.has_room() && self.senders.is_empty()
    }

    /// Whether what a look shows may wait for its turn.
    pub(crate) fn has_room_for_moments(&self) -> bool {
        self.parts.get(&MOMENTS).is_none_or(|parts| parts.len() < MOMENTS_WAIT_MAX)
    }

    /// A part waits for its turn, with a command of this sender, or a moment.
    fn wait(&mut self, sender: u64, at: usize) {
        let parts = self.parts.entry(sender).or_default();
        if parts.is_empty() {
            self.senders.push_back(sender);
        }
        parts.push_back(at);
        assert_eq!(self.senders.len(), self.parts.len(), "a sender is in turn while parts of its wait");
    }

    /// Whose turn it is, and the part.
    fn next(&mut self) -> Option<(u64, usize)> {
        assert_eq!(self.senders.len(), self.parts.len(), "a sender is in turn while parts of its wait");
        let sender = self.senders.pop_front()?;
        let parts = self.parts.get_mut(&sender)?;
        assert!(!parts.is_empty(), "a sender who is in turn has a part that waits");
        let at = parts.pop_front()?;
        if parts.is_empty() {
            self.parts.remove(&sender);
        } else {
            self.senders.push_back(sender);
        }
        Some((sender, at))
    }

    /// A command of this sender is early; whether it may wait.
    pub(crate) fn admits_early(&mut self, sender: u64) -> bool {
        let own = self.early.get(&sender).copied().unwrap_or_default();
        let admits = own < EARLY_OF_SENDER_MAX && self.early_all < EARLY_MAX;
        if admits {
            self.early.insert(sender, own + 1);
            self.early_all += 1;
            assert!(self.early.len() <= self.early_all, "a sender is counted for what is early");
        }
        admits
    }

    /// One that was early is so no more.
    pub(crate) fn leaves_early(&mut self, sender: u64) {
        let Some(own) = self.early.get_mut(&sender) else { return };
        assert!(*own > 0 && *own <= self.early_all, "what is early of a sender is counted among all");
        (*own, self.early_all) = (*own - 1, self.early_all - 1);
        if *own == 0 {
            self.early.remove(&sender);
        }
        assert_eq!(self.early.is_empty(), self.early_all == 0, "all early commands are some sender's");
    }
}

impl BrokerFront {
    /// Whether the next command of this part may be handed on now; else it waits for its turn.
    pub(crate) fn is_its_turn(&mut self, at: usize) -> bool {
        if self.turns.is_free() {
            return true;
        }
        let part = &mut self.parts[at];
        if let Some(next) = part.commands.front().filter(|_| !part.has_turn) {
            self.turns.wait(next.sender, at);
            part.has_turn = true;
        }
        false
    }

    /// The same of its next moment.
    pub(crate) fn is_turn_of_moment(&mut self, at: usize) -> bool {
        let is_free = self.turns.is_free();
        let part = &mut self.parts[at];
        if !is_free && !part.moments.is_empty() && !part.has_turn_of_moment {
            self.turns.wait(MOMENTS, at);
            part.has_turn_of_moment = true;
        }
        is_free
    }

    /// Hands on what waited for room, in turn.
    pub(crate) fn serve_turns(&mut self, now_ms: u64) {
        while self.turns.has_room()
            && let Some((sender, at)) = self.turns.next()
        {
            if sender == MOMENTS {
                self.serve_moment(at, now_ms);
            } else {
                self.serve_command(at, now_ms);
            }
            self.advance(at, now_ms);
        }
    }

    fn serve_moment(&mut self, at: usize, now_ms: u64) {
        assert!(self.parts[at].has_turn_of_moment, "whose turn it is has waited for it");
        self.parts[at].has_turn_of_moment = false;
        if self.parts[at].has_room()
            && self.numbers.peek().is_some()
            && let Some(moment) = self.parts[at].moments.pop_front()
        {
            self.submit_moment(at, moment, now_ms);
        }
    }

    fn serve_command(&mut self, at: usize, now_ms: u64) {
        assert!(self.parts[at].has_turn, "whose turn it is has waited for it");
        self.parts[at].has_turn = false;
        if self.parts[at].has_room_for_command()
            && self.numbers.peek().is_some()
            && self.is_next_ready(at, now_ms)
            && let Some(next) = self.parts[at].commands.pop_front()
        {
            self.submit_command(at, next, now_ms);
        }
    }

    /// Who brought these commands is gone: those that are not at the sites are given up, and never executed through this front. Of the others the replies come all the same. What another client brought waits on, also
    /// behind these.
    pub fn forget(&mut self, arrivals: &[u64], now_ms: u64) {
        let mut gone: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for arrival in arrivals {
            if let Some(at) = self.open.get(arrival) {
                gone.entry(*at).or_default().push(*arrival);
            }
        }
        for (at, mut arrivals) in gone {
            arrivals.sort_unstable();
            for waiting in self.parts[at].drop_waiting(&arrivals) {
                self.tell_given_up(waiting, None, None);
            }
            for (waiting, request) in self.parts[at].drop_early(&arrivals) {
                self.tell_given_up(waiting, Some(request), None);
            }
            self.send_again(at, now_ms);
            self.advance(at, now_ms);
        }
        self.advance(0, now_ms);
        self.serve_turns(now_ms);
    }
}
