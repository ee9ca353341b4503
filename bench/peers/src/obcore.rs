//! The book of the crate `obcore`.
//!
//! It first evaluates an order against the book, which does not change, and says by instructions what shall happen; each is reported here and
//! then applied. Orders are the user's own type; ours also carries what was executed before an amend. It has no amend: an order is cancelled
//! and entered again under its id, as its users must do, and so loses its place also where shares are taken away.

use obcore::{Evaluator, Instruction, Msg, Op, OrderBook, OrderInterface, TIF};
use pares_books::{Engine, Output, Report, ReportKind};
use pares_flow::{BookMessage, MessageKind};

/// Resetting an evaluator costs what its longest table so far is long; beyond so many trades a new one is cheaper.
const TRADES_KEPT: u64 = 64;

/// An order, as small as the book allows.
#[derive(Clone, Copy)]
struct Order {
    id: u64,
    price: u64,
    /// Shares wanted when it was entered last, and those left of them.
    quantity: u64,
    remaining: u64,
    /// Shares executed before it was entered last.
    executed: u64,
    member: u32,
    is_buy: bool,
    ioc: bool,
}

impl OrderInterface for Order {
    type I = u64;
    type N = u64;
    type O = u32;

    fn id(&self) -> &u64 {
        &self.id
    }

    fn is_buy(&self) -> bool {
        self.is_buy
    }

    fn price(&self) -> u64 {
        self.price
    }

    fn quantity(&self) -> u64 {
        self.quantity
    }

    fn remaining(&self) -> u64 {
        self.remaining
    }

    fn fill(&mut self, quantity: u64) {
        self.remaining -= quantity;
    }

    fn owner(&self) -> &u32 {
        &self.member
    }

    fn tif(&self) -> TIF {
        if self.ioc { TIF::IOC } else { TIF::GTC }
    }
}

/// The book, and what evaluates orders against it.
pub struct Obcore {
    book: OrderBook<Order>,
    evaluator: Evaluator<Order>,
    /// Messages taken so far.
    taken: u64,
}

impl Engine for Obcore {
    fn new() -> Self {
        Self { book: OrderBook::default(), evaluator: Evaluator::default(), taken: 0 }
    }

    fn apply(&mut self, messages: &[BookMessage], out: &mut impl Output, after: &mut impl FnMut()) {
        for message in messages {
            self.take(message, out);
            after();
        }
    }

    fn resting(&self) -> usize {
        self.book.len()
    }
}

impl Obcore {
    fn take(&mut self, message: &BookMessage, out: &mut impl Output) {
        let report =
            Report { kind: ReportKind::Outcome, message: self.taken, order: message.id, ..Report::default() };
        self.taken += 1;
        match message.kind {
            MessageKind::New => self.enter(message, 0, report, out),
            MessageKind::Cancel => self.cancel(message, report, out),
            MessageKind::Amend => self.amend(message, report, out),
        }
    }

    fn cancel(&mut self, message: &BookMessage, report: Report, out: &mut impl Output) {
        let status = if self.remove(message.id) {
            out.report(Report { kind: ReportKind::Cancelled, ..report });
            3
        } else {
            4
        };
        out.report(Report { status, ..report });
    }

    fn amend(&mut self, message: &BookMessage, report: Report, out: &mut impl Output) {
        let Some(&Order { quantity, remaining, executed, .. }) = self.book.order(&message.id) else {
            return out.report(Report { status: 4, ..report });
        };
        let executed = executed + quantity - remaining;
        if u64::from(message.quantity) <= executed {
            return self.cancel(message, report, out);
        }
        self.remove(message.id);
        self.enter(message, executed, report, out);
    }

    /// Whether it was there.
    fn remove(&mut self, id: u64) -> bool {
        let mut found = false;
        for instruction in self.evaluator.eval(&self.book, Op::Delete(id)) {
            found |= matches!(instruction, Instruction::Delete(..));
            self.book.apply(instruction);
        }
        self.evaluator.reset();
        found
    }

    fn enter(&mut self, message: &BookMessage, executed: u64, report: Report, out: &mut impl Output) {
        let mut outcome = Report { status: 1, executed, ..report };
        let mut trades = 0;
        for instruction in self.evaluator.eval(&self.book, Op::Insert(order(message, executed))) {
            match instruction {
                // Of the incoming order: all that it got, at the mean price.
                Instruction::Fill(.., true) => {}
                Instruction::Fill(other, _, price, quantity, false) => {
                    trades += 1;
                    outcome.executed += quantity;
                    let price_ticks = price.cast_signed();
                    out.report(Report { kind: ReportKind::Trade, other, price_ticks, quantity, ..report });
                }
                Instruction::Insert(_, remaining) => outcome.remaining = remaining,
                Instruction::NoOp(_, Msg::IOCNoFill) | Instruction::Delete(_, Msg::IOCLeftover) => {
                    let quantity = u64::from(message.quantity) - outcome.executed;
                    out.report(Report { kind: ReportKind::Cancelled, quantity, ..report });
                }
                Instruction::NoOp(..) | Instruction::Delete(..) => outcome.status = 4,
            }
            self.book.apply(instruction);
        }
        match trades > TRADES_KEPT {
            true => self.evaluator = Evaluator::default(),
            false => self.evaluator.reset(),
        }
        out.report(outcome);
    }
}

fn order(message: &BookMessage, executed: u64) -> Order {
    let left = u64::from(message.quantity) - executed;
    Order {
        id: message.id,
        price: message.price_ticks.cast_unsigned(),
        quantity: left,
        remaining: left,
        executed,
        member: message.member,
        is_buy: message.side == pares_types::Side::Buy,
        ioc: message.ioc,
    }
}
