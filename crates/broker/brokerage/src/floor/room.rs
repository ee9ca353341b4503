//! What a front still takes, what it drops, and what it has noted.

use pares_broker::{Asked, UserCommand, UserName, Verb};

use super::{Floor, now_ms};

/// This part of the room for commands is never loaders': what people command over HTTP finds room, however many loaders there are.
const PEOPLES_PART: usize = 4;

impl Floor {
    /// Whether it is no dump, or there is room for one: for all together, and for its user. One is written at a time, and who commands one after the other must not have all places.
    pub(crate) fn has_room_for(&self, command: &UserCommand) -> bool {
        if command.verb != Verb::Dumplog {
            return true;
        }
        let written = self.dumps_written.iter().filter(|user| **user == command.user).count();
        let of_user = self.dumps_of.get(&command.user).copied().unwrap_or_default();
        self.dumps < self.dumps_max && of_user + written < self.dumps_of_max
    }

    pub(super) fn dump_begins(&mut self, user: Option<UserName>) {
        self.dumps += 1;
        *self.dumps_of.entry(user).or_default() += 1;
    }

    pub(super) fn dump_is_told(&mut self, user: &Option<UserName>) {
        self.dumps -= 1;
        if let Some(of_user) = self.dumps_of.get_mut(user) {
            *of_user -= 1;
            if *of_user == 0 {
                self.dumps_of.remove(user);
            }
        }
    }

    /// Whether there is room for another command.
    pub(crate) fn has_room(&self) -> bool {
        self.front.open() < self.open_max
    }

    /// So many commands of loaders may be without a reply.
    pub(crate) fn room_of_loaders(&self) -> usize {
        self.open_max - self.open_max / PEOPLES_PART
    }

    /// Whether this is about a person and the front's clock, which is off, would mislead the sites.
    pub(crate) fn misleads(&mut self, asked: &Asked) -> bool {
        let Asked::Person { asked } = asked else { return false };
        let misleads = self.front.misleads(asked, now_ms());
        self.carry_out();
        misleads
    }

    /// Who brought these commands is gone: those are dropped that are not at the sites yet. The next turn says so, and whatever else comes of it.
    pub(crate) fn forget(&mut self, arrivals: &[u64]) {
        self.front.forget(arrivals, now_ms());
        self.carry_out();
    }

    /// Has hits noted that no command used.
    pub(crate) fn note_unclaimed(&mut self) {
        self.front.settle_hits(now_ms());
        self.carry_out();
    }

    /// Whether all of them are.
    pub(crate) fn has_noted(&self) -> bool {
        self.front.has_noted()
    }
}
