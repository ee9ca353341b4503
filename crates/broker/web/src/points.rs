//! The prices that this front has seen: enough for a chart.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use pares_broker::{StockQuote, StockSymbol};

/// Most points of a stock.
const POINTS_MAX: usize = 1_000;
/// Most stocks with points: those beyond have none.
const STOCKS_MAX: usize = 4_096;

/// Prices of each stock, oldest first: the server's stamp in ms, cents.
#[derive(Default)]
pub(crate) struct Points(Mutex<BTreeMap<StockSymbol, VecDeque<(u64, u64)>>>);

impl Points {
    pub(crate) fn note(&self, quote: &StockQuote) {
        let mut points = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if points.len() >= STOCKS_MAX && !points.contains_key(&quote.symbol) {
            return;
        }
        let of_stock = points.entry(quote.symbol).or_default();
        if of_stock.back().is_some_and(|(server_ms, _)| *server_ms >= quote.server_ms) {
            return;
        }
        if of_stock.len() == POINTS_MAX {
            of_stock.pop_front();
        }
        of_stock.push_back((quote.server_ms, quote.price_cents));
    }

    pub(crate) fn of(&self, symbol: StockSymbol) -> Vec<(u64, u64)> {
        let points = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        points.get(&symbol).into_iter().flatten().copied().collect()
    }
}
