//! What a front still takes, what it drops, and what it has noted.

use pares_broker::{UserCommand, Verb};

use super::{Floor, now_ms};

impl Floor {
    /// Whether it is no dump, or there is room for one.
    pub(crate) fn has_room_for(&self, command: &UserCommand) -> bool {
        command.verb != Verb::Dumplog || self.dumps < self.dumps_max
    }

    /// Whether there is room for another command.
    pub(crate) fn has_room(&self) -> bool {
        self.front.open() < self.open_max
    }

    /// Who brought these commands is gone: those are dropped that are not at the sites yet. The next turn says so, and whatever else comes of it.
    pub(crate) fn forget(&mut self, arrivals: &[u64]) {
        let mut effects = Vec::new();
        self.front.forget(arrivals, now_ms(), &mut effects);
        self.carry_out(effects);
    }

    /// Has hits noted that no command used.
    pub(crate) fn note_unclaimed(&mut self) {
        let mut effects = Vec::new();
        self.front.settle_hits(now_ms(), &mut effects);
        self.carry_out(effects);
    }

    /// Whether all of them are.
    pub(crate) fn has_noted(&self) -> bool {
        self.front.has_noted()
    }
}
