//! What it came to.

use std::fmt;

use pares_broker::dollars;
use pares_load::{LabError, LabResult};
use pares_text::grouped;
use serde::Serialize;

/// How often what was killed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Kills {
    pub(super) routers: usize,
    pub(super) venues: usize,
    pub(super) sites: usize,
    pub(super) gateways: usize,
}

impl Kills {
    pub(super) fn all(&self) -> usize {
        self.routers + self.venues + self.sites + self.gateways
    }
}

/// What a demonstration came to.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Verdict {
    /// For how long customers traded.
    pub(super) seconds: f64,
    pub(super) kills: Kills,
    /// How many routers were at work, one after the other.
    pub(super) terms: u64,
    /// Orders that were placed, and those that were refused.
    pub(super) orders: u64,
    pub(super) refused: u64,
    /// The longest that a customer waited for a reply.
    pub(super) slowest_reply_ms: u64,
    /// Orders by how they ended.
    pub(super) filled: u64,
    pub(super) cancelled: u64,
    pub(super) expired: u64,
    pub(super) turned_away: u64,
    /// The broker's trades, by the exchange's stream, and what they come to.
    pub(super) trades: u64,
    pub(super) value: String,
    /// Orders that were open when the customers stopped, by the accounts and by the exchange.
    pub(super) open: u64,
    pub(super) open_there: u64,
    /// Orders whose hold was not what the exchange had of them.
    pub(super) holds_off: u64,
    /// Orders whose trades were not what the exchange's stream says.
    pub(super) trades_off: u64,
    /// Orders that the exchange has, and nobody placed.
    pub(super) unknown: u64,
    /// What is held after the exchange's day, cents.
    pub(super) held_after_cents: u64,
    /// Cents that are missing or too many, over all customers.
    pub(super) money_off_cents: u64,
    /// The log alone gives the same accounts.
    pub(super) log_verified: bool,
}

impl Verdict {
    /// # Errors
    /// If anything was lost or done twice.
    pub(super) fn check(&self) -> LabResult {
        let wrong =
            [self.holds_off, self.trades_off, self.unknown, self.held_after_cents, self.money_off_cents];
        let is_whole = self.log_verified && self.open == self.open_there && self.orders > 0;
        if is_whole && wrong.iter().all(|count| *count == 0) {
            return Ok(());
        }
        Err(LabError::Failed(
            "the broker's orders and the exchange's do not agree, or money is missing".into(),
        ))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kills { routers, venues, sites, gateways } = self.kills;
        let lines = [
            (
                "orders",
                format!("{} placed in {:.1} s, {} refused", grouped(self.orders), self.seconds, self.refused),
            ),
            (
                "ended",
                format!(
                    "{} filled, {} cancelled, {} expired, {} turned away",
                    self.filled, self.cancelled, self.expired, self.turned_away
                ),
            ),
            ("trades", format!("{} on the exchange, for ${}", grouped(self.trades), self.value)),
            (
                "kills",
                format!(
                    "{routers} of the router at work, {venues} of the leading venue, {sites} of sites, {gateways} of gateways"
                ),
            ),
            ("routers", format!("{} at work, one after the other", self.terms)),
            ("replies", format!("the slowest after {} ms", grouped(self.slowest_reply_ms))),
            (
                "open",
                format!(
                    "{} by the accounts, {} there; holds that differ: {}",
                    self.open, self.open_there, self.holds_off
                ),
            ),
            (
                "agreement",
                format!(
                    "orders with other trades than there: {}; orders that nobody placed: {}",
                    self.trades_off, self.unknown
                ),
            ),
            ("day's end", format!("${} held", dollars(self.held_after_cents))),
            (
                "money",
                format!(
                    "${} missing; the log alone gives the same accounts: {}",
                    dollars(self.money_off_cents),
                    self.log_verified
                ),
            ),
        ];
        let text = lines.map(|(what, figure)| format!("{what:>10}  {figure}"));
        f.write_str(&text.join("\n"))
    }
}
