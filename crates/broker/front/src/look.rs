//! What is armed and pending, found again.
//!
//! A front that only remembers what it armed itself forgets it when it dies, and knows nothing of what others armed. So every front reads all of it from the accounts, over and over. It watches the
//! stocks that it finds, and asks for what those who armed or placed it should have asked for a second before the page was read, and have not.
//!
//! However much there is, a page at a time is under way, and nothing of it is kept but its stocks: a million triggers are a thousand pages, and a look that takes as long as these. A page may be slow: to begin again
//! for that would come to no end where all are. So a look waits for as long as a read can take, and each page has a number, so that one that comes later still is not taken for the answer to another question.

use pares_broker::{ArmedPage, ArmedTrigger, BrokerRead, LapsingPage, PendingExpiry, WINDOW_MS};
use pares_wice::Key;
use pares_wice::codec::Coded as _;

use crate::effect::FrontEffect;
use crate::front::BrokerFront;
use crate::moments::{LATE_MS, Shown, is_good};
use crate::user::Moment;

/// From the end of one look to the next, ms.
pub const LOOK_EVERY_MS: u64 = 2_000;
/// A page that has not come after this, ms, will not: a read waits for 10 s and takes as long.
pub const LOOK_PATIENCE_MS: u64 = 25_000;

/// How it stands with looking.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// When to begin.
    due_ms: u64,
    /// Looks that came to their end.
    pub(crate) done: u64,
    /// Pages that were asked for.
    asked: u64,
    under_way: Option<PageAsked>,
    is_closed: bool,
}

/// A page that was asked for.
#[derive(Debug)]
struct PageAsked {
    number: u64,
    read: BrokerRead,
    /// When, ms.
    at_ms: u64,
}

impl Looks {
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let patient = self.under_way.as_ref().map(|page| page.at_ms + LOOK_PATIENCE_MS);
        (!self.is_closed).then_some(patient.unwrap_or(self.due_ms))
    }

    /// Whether to begin, or to begin again. A clock that was ahead and was set back makes nobody wait until it is there again.
    fn is_due(&self, now_ms: u64) -> bool {
        let is_over = self.next_deadline().is_some_and(|due_ms| due_ms <= now_ms);
        let is_set_back = !self.is_closed && self.due_ms > now_ms + LOOK_EVERY_MS;
        is_over || is_set_back
    }

    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }
}

impl BrokerFront {
    /// Begins a look, if it is time.
    pub(crate) fn look(&mut self, now_ms: u64) {
        if self.number().is_some() && self.looks.is_due(now_ms) {
            self.look_at(BrokerRead::Armed { from: None }, now_ms);
        }
    }

    fn look_at(&mut self, read: BrokerRead, now_ms: u64) {
        assert!(!self.looks.is_closed, "a front that is closed looks at nothing");
        self.looks.asked += 1;
        self.looks.due_ms = now_ms + LOOK_EVERY_MS;
        let number = self.looks.asked;
        self.looks.under_way = Some(PageAsked { number, read: read.clone(), at_ms: now_ms });
        self.effects.push(FrontEffect::Look { number, read });
    }

    /// What was read for the question of this number; none if it could not be.
    pub fn looked(&mut self, number: u64, answer: Option<&[u8]>, now_ms: u64) {
        let is_it = |page: &mut PageAsked| page.number == number;
        let page = self.looks.under_way.take_if(is_it).filter(|_| !self.looks.is_closed);
        let Some(PageAsked { read, at_ms, .. }) = page else { return };
        let late_ms = at_ms.saturating_sub(LATE_MS);
        let next = match (read, answer) {
            (BrokerRead::Armed { .. }, Some(bytes)) => self.looked_at_armed(bytes, late_ms, now_ms),
            (BrokerRead::Lapsing { .. }, Some(bytes)) => self.looked_at_lapsing(bytes, late_ms, now_ms),
            _ => None,
        };
        if let Some(read) = next {
            self.look_at(read, now_ms);
        }
    }

    /// What others could have fired at `late_ms`, and have not.
    fn looked_at_armed(&mut self, bytes: &[u8], late_ms: u64, now_ms: u64) -> Option<BrokerRead> {
        let ArmedPage { triggers, next } = ArmedPage::from_bytes(bytes).ok()?;
        for ArmedTrigger { symbol, way, user, price_cents } in triggers {
            let whose = (way, user);
            match self.ahead.shown(symbol, &whose, price_cents, (self.looks.done, now_ms)) {
                Shown::First => self.desk.watch(symbol, &whose.1, now_ms),
                Shown::Others(since_ms) if since_ms <= late_ms => {
                    if self.desk.price(symbol, now_ms).is_some_and(|price| is_good(way, price, price_cents)) {
                        self.happens_after_all(&whose.1, Moment::Fire(way, symbol), now_ms);
                    }
                }
                Shown::Own | Shown::Others(_) => {}
            }
        }
        let more = |from: Key| BrokerRead::Armed { from: Some(from) };
        Some(next.map_or(BrokerRead::Lapsing { from: None }, more))
    }

    /// What others could have released at `late_ms`, and have not. The last page ends the look.
    fn looked_at_lapsing(&mut self, bytes: &[u8], late_ms: u64, now_ms: u64) -> Option<BrokerRead> {
        let LapsingPage { stacks, next } = LapsingPage::from_bytes(bytes).ok()?;
        for PendingExpiry { user, way, placed_ms } in stacks {
            if placed_ms + WINDOW_MS < late_ms {
                self.happens_after_all(&user, Moment::Lapse(way), now_ms);
            }
        }
        if next.is_none() {
            for symbol in self.ahead.forget_unseen(self.looks.done) {
                self.desk.unwatch(symbol);
            }
            self.looks.done += 1;
            assert!(self.looks.done <= self.looks.asked, "a look that has ended was begun");
        }
        next.map(|from| BrokerRead::Lapsing { from: Some(from) })
    }
}
