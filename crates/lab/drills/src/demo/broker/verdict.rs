//! What it came to.

use pares_load::{LabResult, none_of};
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
    /// How many routers were active, one after the other.
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
        none_of([
            (self.holds_off, "holds that the exchange has otherwise"),
            (self.trades_off, "orders with other trades than there"),
            (self.unknown, "orders that nobody placed"),
            (self.held_after_cents, "cents held after the day"),
            (self.money_off_cents, "cents off"),
            (self.open.abs_diff(self.open_there), "orders open here or there alone"),
            (u64::from(!self.log_verified), "log that gives other accounts"),
            (u64::from(self.orders == 0), "demonstration without an order"),
        ])
    }
}
