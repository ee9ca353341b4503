//! How long a front waits for a loader, and ends its connection then: there are only so many.

use std::time::{Duration, Instant};

use super::Loaders;
use crate::floor::Floor;

/// Between two looks who has to go.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// So many make room at a look.
const MADE_ROOM_MAX: usize = 64;

/// See the [module](self).
pub(super) struct Patience {
    /// Who takes no answer for so long is cut off.
    pub(super) unread: Duration,
    /// Who has nothing under way, and does not end a line within this.
    pub(super) line: Duration,
    /// Who has nothing under way, and says nothing for so long, makes room when places are short.
    pub(super) idle: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { unread: Duration::from_secs(30), line: minute, idle: minute }
    }
}

impl Loaders {
    /// Ends who takes no answers, ends no line, or is idle while others wait for a place.
    pub(super) fn end_who_wait_too_long(&mut self, floor: &mut Floor) {
        let Patience { unread, line, idle } = self.patience;
        if self.looked.elapsed() < LOOK_EVERY.min(unread).min(line).min(idle) {
            return;
        }
        self.looked = Instant::now();
        self.end_deaf(floor);
        self.end_halves(floor);
        if self.port.is_short() {
            self.end_idle(floor);
        }
    }

    /// Cuts off who takes no answers. Its socket takes no reason either: that is said here.
    fn end_deaf(&mut self, floor: &mut Floor) {
        let deaf = self.port.stuck(self.patience.unread);
        if !deaf.is_empty() {
            pares_text::tell!(
                "closing {} connections of loaders that have read nothing for {} s",
                deaf.len(),
                self.patience.unread.as_secs()
            );
        }
        deaf.into_iter().for_each(|number| self.end(number, floor));
    }

    /// Cuts off who has begun a line and does not end it. One that has something under way may not have been read for a while.
    fn end_halves(&mut self, floor: &mut Floor) {
        let patience = self.patience.line;
        let is_over = |half: Instant| half.elapsed() >= patience;
        let halves =
            self.loaders.iter().filter(|(_, loader)| !loader.is_busy() && loader.half.is_some_and(is_over));
        for number in halves.map(|(number, _)| *number).collect::<Vec<_>>() {
            if self.port.conn(number).is_some_and(|conn| conn.backlog() == 0) {
                self.dismiss(number, "a line is not terminated");
                self.end(number, floor);
            }
        }
    }

    /// Who has been idle longest makes room.
    fn end_idle(&mut self, floor: &mut Floor) {
        let patience = self.patience.idle;
        let idle = self.loaders.iter().filter(|(_, loader)| {
            !loader.is_busy() && !loader.wants_note && loader.latest_word.elapsed() >= patience
        });
        let mut idle: Vec<_> = idle.map(|(number, loader)| (loader.latest_word, *number)).collect();
        idle.sort_unstable();
        for (_, number) in idle.into_iter().take(MADE_ROOM_MAX) {
            self.dismiss(number, "it was idle, and other loaders are waiting");
            self.end(number, floor);
        }
    }
}
