//! The book of the crate `nanobook`.
//!
//! It numbers orders itself, also those that an amend makes of others, so tables lead from our order ids to its own and back. It takes an
//! amended quantity as what shall be left, so a table keeps what was executed. It keeps all trades until it is told to
//! forget them, which is done after each message: they come back in the result as well.

use nanobook::{Exchange, OrderId, Price, Side, TimeInForce, Trade};
use pares_books::{Engine, Output, Report, ReportKind};
use pares_flow::{BookMessage, MessageKind, SCENARIO_ORDERS};

/// What the adapter knows of an order.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Its present number in the book.
    number: u64,
    /// Shares executed.
    executed: u64,
}

/// The book and the names of its orders.
pub struct Nanobook {
    exchange: Exchange,
    /// By our order id.
    known: Vec<Known>,
    /// Our order id, by number.
    names: Vec<u64>,
    /// Messages taken so far.
    taken: u64,
}

impl Engine for Nanobook {
    fn new() -> Self {
        let orders = SCENARIO_ORDERS as usize + 1;
        // Written once, so that no page is missing while it is measured.
        let known = vec![Known { number: 1, executed: 0 }; orders];
        let mut names = vec![1; orders * 2 + orders / 8];
        names.truncate(1);
        Self { exchange: Exchange::new(), known, names, taken: 0 }
    }

    fn apply(&mut self, messages: &[BookMessage], out: &mut impl Output, after: &mut impl FnMut()) {
        for message in messages {
            self.take(message, out);
            after();
        }
    }

    fn resting(&self) -> usize {
        self.exchange.book().active_order_count()
    }
}

impl Nanobook {
    fn take(&mut self, message: &BookMessage, out: &mut impl Output) {
        let report =
            Report { kind: ReportKind::Outcome, message: self.taken, order: message.id, ..Report::default() };
        self.taken += 1;
        let known = self.known[message.id as usize];
        let left = u64::from(message.quantity).saturating_sub(known.executed);
        match message.kind {
            MessageKind::New => self.enter(message, report, out),
            MessageKind::Amend if left > 0 => self.amend(message, left, report, out),
            MessageKind::Cancel | MessageKind::Amend => {
                let result = self.exchange.cancel(OrderId(known.number));
                if result.success {
                    let quantity = result.cancelled_quantity;
                    out.report(Report { kind: ReportKind::Cancelled, quantity, ..report });
                }
                out.report(Report { status: if result.success { 3 } else { 4 }, ..report });
            }
        }
    }

    fn enter(&mut self, message: &BookMessage, report: Report, out: &mut impl Output) {
        let side = match message.side {
            pares_types::Side::Buy => Side::Buy,
            pares_types::Side::Sell => Side::Sell,
        };
        let time_in_force = if message.ioc { TimeInForce::IOC } else { TimeInForce::GTC };
        let (price, quantity) = (Price(message.price_ticks), u64::from(message.quantity));
        let result = self.exchange.submit_limit(side, price, quantity, time_in_force);
        self.named(message.id, result.order_id);
        self.known[message.id as usize].executed = 0;
        self.traded(&result.trades, message, report, out);
        if result.cancelled_quantity > 0 {
            let quantity = result.cancelled_quantity;
            out.report(Report { kind: ReportKind::Cancelled, quantity, ..report });
        }
        let (executed, remaining) = (result.filled_quantity, result.resting_quantity);
        out.report(Report { status: 1, executed, remaining, ..report });
    }

    fn amend(&mut self, message: &BookMessage, left: u64, report: Report, out: &mut impl Output) {
        let number = OrderId(self.known[message.id as usize].number);
        let result = self.exchange.modify(number, Price(message.price_ticks), left);
        let Some(number) = result.new_order_id else {
            return out.report(Report { status: 4, ..report });
        };
        self.named(message.id, number);
        self.traded(&result.trades, message, report, out);
        let executed = self.known[message.id as usize].executed;
        let remaining = u64::from(message.quantity) - executed;
        out.report(Report { status: 1, executed, remaining, ..report });
    }

    fn named(&mut self, order: u64, number: OrderId) {
        debug_assert_eq!(number.0, self.names.len() as u64, "the book counts orders from 1");
        self.names.push(order);
        self.known[order as usize].number = number.0;
    }

    fn traded(
        &mut self,
        trades: &[Trade],
        message: &BookMessage,
        report: Report,
        out: &mut impl Output,
    ) {
        for trade in trades {
            let (other, quantity) = (self.names[trade.passive_order_id.0 as usize], trade.quantity);
            self.known[other as usize].executed += quantity;
            self.known[message.id as usize].executed += quantity;
            let price_ticks = trade.price.0;
            out.report(Report { kind: ReportKind::Trade, other, price_ticks, quantity, ..report });
        }
        if !trades.is_empty() {
            self.exchange.clear_trades();
        }
    }
}
