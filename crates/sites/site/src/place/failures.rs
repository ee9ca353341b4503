//! Copies that a site's store did not take, one after the other.
//!
//! What made one fail is mostly still so a moment later: a full disk, a server that is away, an item that this store refuses. A site that ends for it and is
//! started again takes one copy after the other, each from its beginning, and keeps those busy that give them. So it stays, says why, and pauses longer each time.

use std::fmt::Display;

use pares_wice::SiteId;

/// Ticks before the next copy is asked for, behind the first that failed, and at most.
const PAUSE_TICKS: u32 = 100;
const PAUSE_TICKS_MAX: u32 = 30_000;
const _: () = assert!(PAUSE_TICKS <= PAUSE_TICKS_MAX, "pauses grow");
/// Ticks of a second.
const SECOND_TICKS: u32 = 100;

/// Copies that could not be written since the process began.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    pub(crate) times: u32,
    /// Of the last.
    why: String,
    pause_ticks: u32,
    left_ticks: u32,
}

impl Failures {
    /// Another one, of a copy that came from there.
    pub(crate) fn note(&mut self, from: Option<SiteId>, error: &impl Display) {
        self.times = self.times.saturating_add(1);
        let of = from.map_or(String::new(), |from| format!(" from {}.{}", from.cluster.0, from.number));
        self.why = format!("the last{of}: {error}");
        self.pause_ticks = (2 * self.pause_ticks).clamp(PAUSE_TICKS, PAUSE_TICKS_MAX);
        self.left_ticks = self.pause_ticks;
        assert!(self.pauses_now(), "behind a copy that failed there is a pause");
    }

    /// A tick has passed: whether nothing is asked for in it.
    pub(crate) fn pauses(&mut self) -> bool {
        assert!(self.left_ticks <= self.pause_ticks, "a pause ends after its time");
        let pauses = self.pauses_now();
        self.left_ticks = self.left_ticks.saturating_sub(1);
        pauses
    }

    /// Whether nothing is asked for now.
    pub(crate) fn pauses_now(&self) -> bool {
        self.left_ticks > 0
    }

    /// How often, why, and when it is tried again, for people.
    pub(crate) fn told(&self) -> String {
        let (times, why) = (self.times, &self.why);
        let copies = if times == 1 { "1 copy".to_owned() } else { format!("{times} copies") };
        let again = match self.pauses_now() {
            true => format!("; it asks for another copy in {} s", self.pause_ticks / SECOND_TICKS),
            false => String::new(),
        };
        format!("could not be filled: its store rejected {copies}, {why}{again}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_some_minutes_and_the_last_reason_is_told() {
        let mut failures = Failures::default();
        assert!(!failures.pauses() && failures.times == 0);
        let mut pauses = Vec::new();
        for time in 1..=12 {
            failures.note(Some(SiteId::new(0, 2)), &format!("reason {time}"));
            let told = failures.told();
            assert!(told.contains(&format!("the last from 0.2: reason {time}")), "{told}");
            pauses.push((0..).take_while(|_: &u32| failures.pauses()).count());
        }
        assert!(failures.told().contains("12 copies"), "{}", failures.told());
        assert_eq!(pauses[..4], [100, 200, 400, 800]);
        assert_eq!(pauses[10..], [PAUSE_TICKS_MAX as usize; 2]);
    }
}
