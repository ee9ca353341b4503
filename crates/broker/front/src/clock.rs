//! Whether a front's clock is right, as far as the quote server's stamps say.
//!
//! A front whose clock is ahead takes its users along: until that moment comes quotes are too old for them, and what is pending lapses. Any stamp could be held against the clock, but a shared quote is
//! up to a minute old, and one odd stamp would stop every front. So only a quote counts whose hit this front was given: it was stamped while this front waited for it, which is [`QUOTE_LIMIT_MS`] at
//! most. And three such stamps in a row have to agree.
//!
//! To be right again takes less. A clock that was ahead is right if any stamp, also of a shared quote, lies within the six seconds before it: a clock that is ahead is further from the server's. A clock that was behind learns
//! nothing from a shared quote, which may be as old as the clock is behind. And a stock is asked for of which this front has no quote: of another one a desk that others ask may have one, and ask nobody.
//!
//! ```text
//!   asked ......... stamp ......... answered          stamp in [answered - 6 s, answered]: the clock may be right
//! ```
//! Times in entries of the log say nothing here: they are those of fronts, of which this may be the only right one.
//!
//! The odd clock may also be the server's. Then all fronts would stop, and with them what has to continue: the cancel of an order on the exchange, a customer's limits and the kill switch. None of these needs a quote or a minute of its own. So they are
//! taken all the same, with the earlier of the two clocks' times: the accounts take the user's latest if that is later.

use std::collections::VecDeque;

use pares_broker::{
    Asked, BrokerReply, OrderAsked, PersonAsked, QuoteBrought, Refusal, StockSymbol, UserName,
};

use crate::desk::QUOTE_LIMIT_MS;
use crate::effect::{FrontEffect, NotTaken};
use crate::front::BrokerFront;
use crate::line::QuoteFault;
use crate::user::Moment;

/// A clock that is off by more, ms, is spoken of.
pub const CLOCK_SAID_MS: u64 = 5_000;
/// A front whose clock is off by more, ms, takes no commands.
pub const CLOCK_OFF_MAX_MS: u64 = 30_000;
/// So many stamps in a row have to agree.
const AGREEING: usize = 3;
/// So often a front whose clock is off asks for a stamp, ms, if a command comes.
const ASK_EVERY_MS: u64 = 10_000;

/// What the latest stamps say of the clock.
#[derive(Debug, Default)]
pub(crate) struct ClockWatch {
    /// By how much it is ahead at least, ms; behind, if below zero; 0 if it may be right.
    ahead_ms: VecDeque<i64>,
    /// The stock that was asked for last, to see a stamp.
    stock: Option<StockSymbol>,
    asked_ms: u64,
    /// The operator trusts the clock, and not the server's.
    pub(crate) is_trusted: bool,
}

impl ClockWatch {
    /// A quote has come whose hit is this front's.
    pub(crate) fn stamped(&mut self, server_ms: u64, now_ms: u64) {
        let [ahead_ms, behind_ms] = [
            now_ms.saturating_sub(server_ms.saturating_add(QUOTE_LIMIT_MS)),
            server_ms.saturating_sub(now_ms),
        ]
        .map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        self.ahead_ms.push_back(ahead_ms.saturating_sub(behind_ms));
        if self.ahead_ms.len() > AGREEING {
            self.ahead_ms.pop_front();
        }
        assert!(self.ahead_ms.len() <= AGREEING, "so many stamps are kept as have to agree");
    }

    /// By how much the clock is ahead at least, ms, as the latest stamps agree; behind, if below zero; 0 if it may be right.
    pub(crate) fn ahead_ms(&self) -> i64 {
        if self.ahead_ms.len() < AGREEING {
            return 0;
        }
        let least = self.ahead_ms.iter().copied().min().unwrap_or_default().max(0);
        let most = self.ahead_ms.iter().copied().max().unwrap_or_default().min(0);
        assert!(least == 0 || most == 0, "a clock is not ahead and behind");
        least + most
    }

    /// Whether it is so far off that no command is taken.
    pub(crate) fn is_off(&self) -> bool {
        !self.is_trusted && self.ahead_ms().unsigned_abs() > CLOCK_OFF_MAX_MS
    }

    /// Any quote has come, whichever front was given its hit: it ends that the clock is ahead, if its stamp fits.
    pub(crate) fn shared(&mut self, server_ms: u64, now_ms: u64) {
        let fits = (server_ms..=server_ms.saturating_add(QUOTE_LIMIT_MS)).contains(&now_ms);
        if fits && self.ahead_ms() > 0 {
            self.ahead_ms.clear();
        }
    }

    /// Whether to ask for a stock, to see whether the clock is right again: not too often, since it costs.
    fn may_ask(&self, now_ms: u64) -> bool {
        now_ms.abs_diff(self.asked_ms) >= ASK_EVERY_MS
    }
}

impl BrokerFront {
    /// The clock that its times are taken from is right, whatever the quote server's stamps say.
    pub fn trust_clock(&mut self) {
        self.clock.is_trusted = true;
    }

    /// By how much its clock is ahead of the quote server's at least, ms; behind, if below zero; 0 if it may be right.
    #[must_use]
    pub fn clock_ahead_ms(&self) -> i64 {
        self.clock.ahead_ms()
    }

    /// The time of a request that is made now, ms: of what is taken whatever the clock says, that of the earlier clock, this or the quote server's.
    pub(crate) fn time_of(&self, asked: &Asked, now_ms: u64) -> u64 {
        let is_odd = self.clock.is_off() && goes_on(asked);
        let ahead_ms = u64::try_from(self.clock.ahead_ms()).unwrap_or_default();
        if is_odd { now_ms.saturating_sub(ahead_ms) } else { now_ms }
    }

    /// Whether this is taken, as far as the clock says. If it is off it may be right again, and the next stamp tells.
    pub(crate) fn look_at_clock(
        &mut self,
        user: Option<&UserName>,
        asked: &Asked,
        now_ms: u64,
    ) -> Result<(), NotTaken> {
        if !self.clock.is_off() {
            return Ok(());
        }
        self.ask_for_stamp(user, now_ms);
        if goes_on(asked) { Ok(()) } else { Err(NotTaken::Clock) }
    }

    /// Whether a request about a person would be misled by the clock, and is to be refused: a try to sign in that is made an hour ahead has all of that name wait for an hour at all fronts, and a session lasts that much longer. A stamp is
    /// asked for then, as for a command.
    pub fn misleads(&mut self, asked: &PersonAsked, now_ms: u64) -> bool {
        let is_off = self.clock.is_off();
        match asked {
            PersonAsked::Try { name } | PersonAsked::SignIn { name, .. } if is_off => {
                self.ask_for_stamp(Some(name), now_ms);
                true
            }
            PersonAsked::Seen { .. } => is_off,
            _ => false,
        }
    }

    fn ask_for_stamp(&mut self, user: Option<&UserName>, now_ms: u64) {
        let Some(user) = user.filter(|_| self.clock.may_ask(now_ms)) else { return };
        if let Some(symbol) = self.desk.for_stamp(self.clock.stock, now_ms) {
            (self.clock.stock, self.clock.asked_ms) = (Some(symbol), now_ms);
            self.desk.ask(symbol, user, now_ms);
            self.follow(now_ms);
        }
    }

    /// A quote has come, or none: what it says of the clock, if this front waits for it and its hit is its own, or if it shows that the clock is not ahead.
    pub(crate) fn look_at_stamp(&mut self, hit: u64, answer: &Result<QuoteBrought, QuoteFault>, now_ms: u64) {
        let was_off = self.clock.is_off();
        if let Ok(QuoteBrought { quote, hit: own }) = answer {
            if own.is_some() && self.desk.awaits(hit) {
                self.clock.stamped(quote.server_ms, now_ms);
            }
            self.clock.shared(quote.server_ms, now_ms);
        }
        if self.clock.is_off() && !was_off {
            self.refuse_what_waits(now_ms);
        }
    }

    /// The clock has turned out to be off: commands that are not handed on never are, but for those that continue. Of each user the latest command is reported first, so that his sender knows at each what it came after.
    fn refuse_what_waits(&mut self, now_ms: u64) {
        for at in 0..self.parts.len() {
            let part = &mut self.parts[at];
            part.waits_for = None;
            part.moments.retain(|moment| matches!(moment, Moment::Hit(_)));
            let (left, refused) = part.commands.drain(..).partition(|waiting| goes_on(&waiting.asked));
            part.commands = left;
            for waiting in VecDeque::into_iter(refused).rev() {
                let was_open = self.open.remove(&waiting.arrival).is_some();
                assert!(was_open, "a command is answered once");
                let reply = Some(BrokerReply::Refused { refusal: Refusal::ClockOff });
                let (arrival, asked) = (waiting.arrival, waiting.asked);
                self.effects.push(FrontEffect::Told { arrival, number: 0, asked, reply });
            }
            self.advance(at, now_ms);
        }
    }
}

/// Whether it is taken whatever the clock says: it needs no quote, and must wait for no clock.
pub(crate) fn goes_on(asked: &Asked) -> bool {
    let Asked::Order { asked } = asked else { return false };
    matches!(asked, OrderAsked::Cancel { .. } | OrderAsked::Limit { .. } | OrderAsked::Block { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_MS: u64 = 1_680_000_000_000;

    fn ahead(stamps: &[u64]) -> (i64, bool) {
        let mut clock = ClockWatch::default();
        for server_ms in stamps {
            clock.stamped(*server_ms, NOON_MS);
        }
        (clock.ahead_ms(), clock.is_off())
    }

    #[test]
    fn clock_is_off_when_three_stamps_agree() {
        assert_eq!(ahead(&[NOON_MS, NOON_MS - 4_100, NOON_MS - 6_000]), (0, false), "a slow server");
        assert_eq!(ahead(&[NOON_MS - 50_000, NOON_MS - 50_000]), (0, false), "two are not enough");
        assert_eq!(ahead(&[NOON_MS - 50_000, NOON_MS - 40_000, NOON_MS - 36_001]), (30_001, true));
        assert_eq!(ahead(&[NOON_MS - 50_000, NOON_MS - 40_000, NOON_MS - 36_000]), (30_000, false));
        assert_eq!(ahead(&[NOON_MS + 50_000, NOON_MS + 30_001, NOON_MS + 40_000]), (-30_001, true));
        assert_eq!(ahead(&[NOON_MS + 50_000, NOON_MS - 60_000, NOON_MS + 40_000]), (0, false), "they differ");
        assert!(ahead(&[0, u64::MAX, u64::MAX, u64::MAX]).1, "whatever they are");
        let right_again = [NOON_MS - 90_000, NOON_MS - 90_000, NOON_MS - 90_000, NOON_MS - 9];
        assert_eq!(ahead(&right_again), (0, false), "one is enough to be right again");
    }
}
