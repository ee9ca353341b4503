//! The book of the crate `orderbook-rs`.
//!
//! It may be used from many threads at once and pays for that with every order: shared counters, maps that lock, trades in
//! vectors of their own. Measured here on one thread, that is all cost and no gain.
//!
//! The book reports trades made by an amend, and those of an order whose rest is cancelled, to a listener only, so all are taken from
//! it; the listener must be shareable, hence a mutex that is never contended (some ten nanoseconds per message). The clock it is
//! given counts instead of asking the system. It knows our order ids as they are. An amended quantity is what shall be left, so a
//! table keeps what was executed; and the price, as only an amend of the quantity alone lets an order keep its place.

use std::sync::{Arc, Mutex};

use orderbook_rs::{Id, OrderBook, OrderBookError, Side, StubClock, TimeInForce, TradeResult};
use pares_books::{Engine, Output, Report, ReportKind};
use pares_flow::{BookMessage, MessageKind, SCENARIO_ORDERS};
use pricelevel::{OrderUpdate, Price, Quantity};

/// A trade as the listener hears of it.
struct Heard {
    other: u64,
    price_ticks: i64,
    quantity: u64,
}

/// What the adapter knows of an order.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Its limit.
    price_ticks: i64,
    /// Shares executed.
    executed: u64,
}

/// The book, and what its listener has heard since it was asked last.
pub struct OrderbookRs {
    book: OrderBook,
    heard: Arc<Mutex<Vec<Heard>>>,
    /// By order id.
    known: Vec<Known>,
    /// Messages taken so far.
    taken: u64,
}

impl Engine for OrderbookRs {
    fn new() -> Self {
        let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
        let mut book = OrderBook::with_clock("PEER", Arc::new(StubClock::new()));
        let listener = Arc::clone(&heard);
        book.set_trade_listener(Arc::new(move |result: &TradeResult| {
            let mut heard = listener.lock().expect("nobody panics with it");
            heard.extend(result.match_result.trades().as_vec().iter().map(|trade| Heard {
                other: number(trade.maker_order_id()),
                price_ticks: i64::try_from(trade.price().as_u128()).expect("a price of the stream"),
                quantity: trade.quantity().as_u64(),
            }));
        }));
        // Written once, so that no page is missing while it is measured.
        let known = vec![Known { price_ticks: 1, executed: 0 }; SCENARIO_ORDERS as usize + 1];
        Self { book, heard, known, taken: 0 }
    }

    fn apply(&mut self, messages: &[BookMessage], out: &mut impl Output, after: &mut impl FnMut()) {
        for message in messages {
            self.take(message, out);
            after();
        }
    }

    fn resting(&self) -> usize {
        self.book.get_all_orders().len()
    }
}

impl OrderbookRs {
    fn take(&mut self, message: &BookMessage, out: &mut impl Output) {
        let report =
            Report { kind: ReportKind::Outcome, message: self.taken, order: message.id, ..Report::default() };
        self.taken += 1;
        let status = match message.kind {
            MessageKind::New => self.enter(message),
            MessageKind::Amend if self.left(message) > 0 => self.amend(message),
            // A total that is executed already asks for no more shares.
            MessageKind::Cancel | MessageKind::Amend => {
                match self.book.cancel_order(Id::Sequential(message.id)) {
                    Ok(Some(_)) => {
                        out.report(Report { kind: ReportKind::Cancelled, ..report });
                        3
                    }
                    Ok(None) | Err(_) => 4,
                }
            }
        };
        self.report_heard(message, &report, out);
        if message.kind == MessageKind::New && status == 3 {
            out.report(Report { kind: ReportKind::Cancelled, quantity: self.left(message), ..report });
        }
        out.report(Report { status, ..report });
    }

    fn enter(&mut self, message: &BookMessage) -> u8 {
        let side = match message.side {
            pares_types::Side::Buy => Side::Buy,
            pares_types::Side::Sell => Side::Sell,
        };
        let time_in_force = if message.ioc { TimeInForce::Ioc } else { TimeInForce::Gtc };
        let (id, quantity) = (Id::Sequential(message.id), u64::from(message.quantity));
        self.known[message.id as usize] = Known { price_ticks: message.price_ticks, executed: 0 };
        match self.book.add_limit_order(id, price(message), quantity, side, time_in_force, None) {
            Ok(_) => 1,
            Err(OrderBookError::InsufficientLiquidity { .. }) => 3,
            Err(_) => 4,
        }
    }

    fn amend(&mut self, message: &BookMessage) -> u8 {
        let (order_id, new_quantity) = (Id::Sequential(message.id), Quantity::new(self.left(message)));
        let update = match self.known[message.id as usize].price_ticks == message.price_ticks {
            true => OrderUpdate::UpdateQuantity { order_id, new_quantity },
            false => {
                let new_price = Price::new(price(message));
                OrderUpdate::UpdatePriceAndQuantity { order_id, new_price, new_quantity }
            }
        };
        match self.book.update_order(update) {
            Ok(Some(_)) => {
                self.known[message.id as usize].price_ticks = message.price_ticks;
                1
            }
            Ok(None) | Err(_) => 4,
        }
    }

    /// Shares that an amended order shall have left.
    fn left(&self, message: &BookMessage) -> u64 {
        u64::from(message.quantity).saturating_sub(self.known[message.id as usize].executed)
    }

    fn report_heard(&mut self, message: &BookMessage, report: &Report, out: &mut impl Output) {
        let mut heard = self.heard.lock().expect("nobody panics with it");
        for Heard { other, price_ticks, quantity } in heard.drain(..) {
            self.known[other as usize].executed += quantity;
            self.known[message.id as usize].executed += quantity;
            out.report(Report { kind: ReportKind::Trade, other, price_ticks, quantity, ..*report });
        }
    }
}

fn price(message: &BookMessage) -> u128 {
    u128::from(message.price_ticks.cast_unsigned())
}

fn number(id: Id) -> u64 {
    match id {
        Id::Sequential(number) => number,
        other => unreachable!("only numbers were given as ids, not {other}"),
    }
}
