//! The book of the crate `matchcore`.
//!
//! It names an order by the number of the command that entered it and wants those without gaps from 0, so a table leads from
//! our order ids to its own, as in the survey's adapters; the table is read at random, which is what any engine pays to look
//! an order up by a name given from outside. It takes an amended quantity as what shall be *left*, so the table also keeps
//! what was executed. Both are the adapter's cost, not the book's: 16 bytes per order, one line of memory per message. Trades
//! come back in a vector of each command's outcome, from which they are copied to the reports.

use matchcore::{
    AmendCmd, AmendPatch, CancelCmd, Command, CommandKind, CommandMeta, CommandOutcome, CommandReport,
    LimitOrder, LimitOrderPatch, NewOrder, OrderBook, OrderFlags, OrderId, OrderKind, OrderOutcome, Price,
    Quantity, QuantityPolicy, SequenceNumber, Side, SubmitCmd, TimeInForce, Timestamp,
};
use pares_books::{Engine, Output, Report, ReportKind};
use pares_flow::{BookMessage, MessageKind, SCENARIO_ORDERS};

/// What the adapter knows of an order.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The command that entered it.
    entered: u64,
    /// Shares executed.
    executed: u64,
}

/// The book and the names of its orders.
pub struct Matchcore {
    book: OrderBook,
    /// By our order id.
    known: Vec<Known>,
    /// Our order id, by command.
    names: Vec<u64>,
}

impl Engine for Matchcore {
    fn new() -> Self {
        let orders = SCENARIO_ORDERS as usize + 1;
        // Written once, so that no page is missing while it is measured.
        let known = vec![Known { entered: 1, executed: 0 }; orders];
        let mut names = vec![1; orders * 2 + orders / 8];
        names.clear();
        Self { book: OrderBook::new("PEER"), known, names }
    }

    fn apply(&mut self, messages: &[BookMessage], out: &mut impl Output, after: &mut impl FnMut()) {
        for message in messages {
            self.take(message, out);
            after();
        }
    }

    fn resting(&self) -> usize {
        self.book.limit().orders().len()
    }
}

impl Matchcore {
    fn take(&mut self, message: &BookMessage, out: &mut impl Output) {
        let sequence = self.names.len() as u64;
        self.names.push(message.id);
        let meta = CommandMeta { sequence_number: SequenceNumber(sequence), timestamp: Timestamp(sequence) };
        let kind = self.command(message, sequence);
        let outcome = self.book.execute(&Command { meta, kind });
        let report =
            Report { kind: ReportKind::Outcome, message: sequence, order: message.id, ..Report::default() };
        match &outcome {
            CommandOutcome::Applied(CommandReport::Submit(effects) | CommandReport::Amend(effects)) => {
                self.traded(message, report, effects.target_order(), out);
            }
            CommandOutcome::Applied(CommandReport::Cancel) => {
                out.report(Report { kind: ReportKind::Cancelled, ..report });
                out.report(Report { status: 3, ..report });
            }
            CommandOutcome::Rejected(_) => out.report(Report { status: 4, ..report }),
        }
    }

    fn command(&mut self, message: &BookMessage, sequence: u64) -> CommandKind {
        let known = &mut self.known[message.id as usize];
        let total = u64::from(message.quantity);
        match message.kind {
            MessageKind::New => {
                *known = Known { entered: sequence, executed: 0 };
                let quantity = QuantityPolicy::Standard { quantity: Quantity(total) };
                let side = match message.side {
                    pares_types::Side::Buy => Side::Buy,
                    pares_types::Side::Sell => Side::Sell,
                };
                let time_in_force = if message.ioc { TimeInForce::Ioc } else { TimeInForce::Gtc };
                let flags = OrderFlags::new(side, false, time_in_force);
                let order = LimitOrder::new(price(message), quantity, flags);
                CommandKind::Submit(SubmitCmd { order: NewOrder::Limit(order) })
            }
            MessageKind::Amend if total > known.executed => {
                let patch = LimitOrderPatch::new().with_price(price(message)).with_quantity_policy(
                    QuantityPolicy::Standard { quantity: Quantity(total - known.executed) },
                );
                CommandKind::Amend(AmendCmd {
                    order_id: OrderId(known.entered),
                    patch: AmendPatch::Limit(patch),
                })
            }
            // A total that is executed already asks for no more shares.
            MessageKind::Cancel | MessageKind::Amend => CommandKind::Cancel(CancelCmd {
                order_id: OrderId(known.entered),
                order_kind: OrderKind::Limit,
            }),
        }
    }

    /// Reports the trades of an order, and what became of it.
    fn traded(
        &mut self,
        message: &BookMessage,
        report: Report,
        outcome: &OrderOutcome,
        out: &mut impl Output,
    ) {
        let mut executed = self.known[message.id as usize].executed;
        if let Some(result) = outcome.match_result() {
            for trade in result.trades() {
                let other = self.names[trade.maker_order_id().0 as usize];
                let quantity = trade.quantity().0;
                let maker = &mut self.known[other as usize];
                maker.executed += quantity;
                executed += quantity;
                let price_ticks = trade.price().0.cast_signed();
                out.report(Report { kind: ReportKind::Trade, other, price_ticks, quantity, ..report });
            }
            self.known[message.id as usize].executed = executed;
        }
        let remaining = u64::from(message.quantity) - executed;
        if remaining > 0 && outcome.cancel_reason().is_some() {
            out.report(Report { kind: ReportKind::Cancelled, quantity: remaining, ..report });
        }
        out.report(Report { status: 1, executed, remaining, ..report });
    }
}

fn price(message: &BookMessage) -> Price {
    Price(message.price_ticks.cast_unsigned())
}
