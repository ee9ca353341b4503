//! How long one request may take.

use std::time::Duration;

use super::SystemConfig;

/// Orders that a book has room for and can be copied well within the default budget.
const BUDGET_ORDERS: u32 = 20_000;

impl SystemConfig {
    /// How long one request may keep a venue's processor.
    #[must_use]
    pub fn engine_budget(&self) -> Duration {
        let orders_max = self.instruments.iter().map(|instrument| instrument.orders_max).max().unwrap_or(0);
        // While a checkpoint is taken, a request may have to wait for a copy of its book first.
        let copied = 120 * u64::from(orders_max.saturating_sub(BUDGET_ORDERS));
        Duration::from_millis(self.engine_budget_ms)
            + Duration::from_nanos(30 * u64::from(orders_max) + copied)
    }
}
