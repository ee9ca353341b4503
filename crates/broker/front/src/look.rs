//! What is armed and pending, found again.
//!
//! A front that only remembers what it armed itself forgets it when it dies, and knows nothing of what others armed. So every front reads all of it from the accounts, over and over, and
//! watches what it finds. It lets those go first that armed or placed it themselves; if they live, there is nothing left to do a moment later.

use pares_broker::{ArmedPage, ArmedTrigger, BrokerRead, LapsingPage, LapsingStack, WINDOW_MS};
use pares_wice::Key;
use pares_wice::codec::Coded as _;

use crate::effect::FrontEffect;
use crate::front::BrokerFront;
use crate::moments::LATE_MS;

/// From the end of one look to the next, ms.
pub const LOOK_EVERY_MS: u64 = 2_000;

/// How it stands with looking.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// When to begin, or to begin anew because a page does not come.
    due_ms: u64,
    /// Looks that came to their end.
    pub(crate) done: u64,
    under_way: Option<BrokerRead>,
    is_closed: bool,
}

impl Looks {
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        (!self.is_closed).then_some(self.due_ms)
    }

    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }
}

impl BrokerFront {
    /// Begins a look, if it is time.
    pub(crate) fn look(&mut self, now_ms: u64, effects: &mut Vec<FrontEffect>) {
        if self.number().is_some() && self.looks.next_deadline().is_some_and(|due_ms| due_ms <= now_ms) {
            self.look_at(BrokerRead::Armed { from: None }, now_ms, effects);
        }
    }

    fn look_at(&mut self, read: BrokerRead, now_ms: u64, effects: &mut Vec<FrontEffect>) {
        self.looks.due_ms = now_ms + LOOK_EVERY_MS;
        self.looks.under_way = Some(read.clone());
        effects.push(FrontEffect::Look { read });
    }

    /// What was read; none if it could not be.
    pub fn looked(
        &mut self,
        read: &BrokerRead,
        answer: Option<&[u8]>,
        now_ms: u64,
        effects: &mut Vec<FrontEffect>,
    ) {
        if self.looks.is_closed || self.looks.under_way.take_if(|under_way| under_way == read).is_none() {
            return;
        }
        let next = match (read, answer) {
            (BrokerRead::Armed { .. }, Some(bytes)) => self.looked_at_armed(bytes, now_ms),
            (BrokerRead::Lapsing { .. }, Some(bytes)) => self.looked_at_lapsing(bytes),
            _ => None,
        };
        if let Some(read) = next {
            self.look_at(read, now_ms, effects);
        }
        self.happen_what_is_due(now_ms, effects);
    }

    fn looked_at_armed(&mut self, bytes: &[u8], now_ms: u64) -> Option<BrokerRead> {
        let ArmedPage { triggers, next } = ArmedPage::from_bytes(bytes).ok()?;
        for ArmedTrigger { symbol, way, user, price_cents } in triggers {
            if self.ahead.learn(symbol, (way, user.clone()), price_cents, self.looks.done) {
                self.desk.watch(symbol, &user, now_ms);
                self.ahead.look_later(symbol, now_ms);
            }
        }
        let more = |from: Key| BrokerRead::Armed { from: Some(from) };
        Some(next.map_or(BrokerRead::Lapsing { from: None }, more))
    }

    /// The last of it ends the look.
    fn looked_at_lapsing(&mut self, bytes: &[u8]) -> Option<BrokerRead> {
        let LapsingPage { stacks, next } = LapsingPage::from_bytes(bytes).ok()?;
        for LapsingStack { user, way, placed_ms } in stacks {
            self.ahead.ends_at(placed_ms + WINDOW_MS + 1 + LATE_MS, user, way);
        }
        if next.is_none() {
            for symbol in self.ahead.forget_unseen(self.looks.done) {
                self.desk.unwatch(symbol);
            }
            self.looks.done += 1;
        }
        next.map(|from| BrokerRead::Lapsing { from: Some(from) })
    }
}
