//! What the traders have come to since the last line, and where they believe prices to be.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pares_types::Price;

/// What is traded, and at about which price it begins, in cents.
pub const INSTRUMENTS: [(&str, i64); 4] =
    [("ALFA", 18_250), ("BRAVO", 4_210), ("CHARLIE", 9_975), ("DELTA", 31_640)];
/// A cent, the price step of these instruments.
const CENT: i64 = 100;

/// Shared by all traders.
#[derive(Default)]
pub struct Board {
    /// Requests answered.
    answered: AtomicU64,
    /// Trades, each of them once.
    trades: AtomicU64,
    /// The longest time from a request to its answer, repeats through another gateway included, us.
    wait_us_max: AtomicU64,
    /// How far each instrument's value has moved from where it began, cents.
    moved: [AtomicI64; INSTRUMENTS.len()],
    /// The last trade's price, ten-thousandths; 0 before the first.
    last: [AtomicI64; INSTRUMENTS.len()],
    news: Mutex<Vec<String>>,
}

impl Board {
    /// What traders hold an instrument to be worth just now, in cents: `step` cents more than before, within a tenth of where it
    /// began.
    pub fn value(&self, instrument: usize, step: i64) -> i64 {
        let (_, start) = INSTRUMENTS[instrument];
        let moved = self.moved[instrument].fetch_add(step, Ordering::Relaxed) + step;
        if moved.abs() > start / 10 {
            self.moved[instrument].fetch_sub(step, Ordering::Relaxed);
        }
        start + moved.clamp(-start / 10, start / 10)
    }

    /// Counts an answer that came after that time.
    pub fn answered(&self, wait: Duration) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.wait_us_max.fetch_max(wait.as_micros().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Counts a trade.
    pub fn traded(&self, instrument: usize, price: Price) {
        self.trades.fetch_add(1, Ordering::Relaxed);
        self.last[instrument].store(price.0, Ordering::Relaxed);
    }

    /// Something to be told beside the figures.
    pub fn tell(&self, what: String) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// What has been told since.
    pub fn take_news(&self) -> Vec<String> {
        std::mem::take(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The figures of the `period` since the last line.
    pub fn line(&self, period: Duration) -> String {
        let per_second = |count: &AtomicU64| count.swap(0, Ordering::Relaxed) / period.as_secs().max(1);
        let (answered, trades) = (per_second(&self.answered), per_second(&self.trades));
        let wait_us = self.wait_us_max.swap(0, Ordering::Relaxed);
        let prices: Vec<String> = std::iter::zip(INSTRUMENTS, &self.last).map(price_of).collect();
        format!(
            "{answered:>4} orders/s  {trades:>3} trades/s  longest wait {:>6.1} ms  {}",
            wait_us as f64 / 1e3,
            prices.join("  ")
        )
    }
}

/// Such as `ALFA 182.50`.
fn price_of(((symbol, _), last): ((&str, i64), &AtomicI64)) -> String {
    match last.load(Ordering::Relaxed) / CENT {
        0 => format!("{symbol} -"),
        cents => format!("{symbol} {}.{:02}", cents / 100, cents % 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_of_its_own_time_alone() {
        let board = Board::default();
        (0..6).for_each(|_| board.answered(Duration::from_micros(1_500)));
        (0..4).for_each(|_| board.traded(0, Price(1_825_000)));
        let second = Duration::from_secs(2);
        let line = board.line(second);
        assert!(
            line.contains(" 3 orders/s    2 trades/s  longest wait    1.5 ms  ALFA 182.50  BRAVO -"),
            "{line}"
        );
        assert!(board.line(second).contains(" 0 orders/s    0 trades/s  longest wait    0.0 ms"));
    }

    #[test]
    fn a_value_stays_near_where_it_began() {
        let board = Board::default();
        let values: Vec<i64> = (0..1_000).map(|_| board.value(1, 3)).collect();
        assert!(values.iter().all(|value| (3_789..=4_631).contains(value)), "{values:?}");
        assert!(board.value(1, -3) < *values.last().unwrap());
    }
}
