//! How long one request may take.

use std::time::Duration;

use crate::SystemConfig;

impl SystemConfig {
    /// How long one request may keep a venue's processor in the matching engine. The table of a large book's ids grows by much at once.
    #[must_use]
    pub fn engine_budget(&self) -> Duration {
        let orders_max = self.instruments.iter().map(|instrument| instrument.orders_max).max().unwrap_or(0);
        Duration::from_millis(self.engine_budget_ms) + Duration::from_nanos(30 * u64::from(orders_max))
    }
}
