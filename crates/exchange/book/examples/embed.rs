//! The book in a program of your own: enter, cancel, amend, drain events, look at the depth.
//!
//! `cargo run -p pares-book --example embed`. The crate needs nothing of the rest of Pares but
//! `pares-types`; it has no threads, no clock and no I/O, so it runs wherever you call it.

#![allow(clippy::print_stdout)] // an example may talk

use pares_book::{Book, FastBook, Instrument, Symbol};
use pares_types::{
    Amendment, ClientOrderId, Command, Event, GatewayId, InstrumentId, MemberId, NewOrder, OrderId, Outcome,
    Price, Quantity, Request, RequestId, ShardId, Side, Timestamp,
};

/// A program around a book: it numbers requests, keeps the time and takes the events.
struct Program {
    book: FastBook,
    requests: u64,
    events: Vec<Event>,
}

impl Program {
    fn new() -> Self {
        let symbol = Symbol::new("ACME").expect("a legal name");
        // Ticks of a cent, prices from 0.01 to 100,000.00; change what you like before the book is made.
        let instrument = Instrument::listed(InstrumentId(1), symbol);
        // A listed instrument is in continuous trading unless it has a timetable.
        Self { book: FastBook::new(instrument), requests: 0, events: Vec::new() }
    }

    /// Applies a command of a member and prints what came of it. The order's id is the request's.
    fn ask(&mut self, member: u32, command: Command) -> OrderId {
        self.requests += 1;
        let request = Request {
            id: RequestId::new(GatewayId(1), self.requests),
            stamp: Timestamp(self.requests),
            member: MemberId(member),
            client_order_id: ClientOrderId(self.requests),
            instrument: InstrumentId(1),
            shard: ShardId(0),
            command,
        };
        let Outcome { status, reason, executed, remaining, .. } = self.book.apply(&request, &mut self.events);
        println!("member {member}: {status:?} {reason:?}, {executed} executed, {remaining} left");
        for event in self.events.drain(..) {
            match event {
                Event::Fill { price, quantity, resting_member, .. } => {
                    println!("    {quantity} at {price} with member {resting_member}");
                }
                other => println!("    {other:?}"),
            }
        }
        OrderId(request.id)
    }

    fn show(&self) {
        for side in [Side::Buy, Side::Sell] {
            self.book.depth(side, 5, &mut |level| {
                println!(
                    "{side:?} {:>9} x {} ({} orders)",
                    level.price.to_string(),
                    level.quantity,
                    level.orders
                );
            });
        }
    }
}

fn limit(side: Side, price: i64, quantity: u64) -> NewOrder {
    // Prices are in ten-thousandths of the currency.
    NewOrder::limit(side, Price(price * 10_000), Quantity(quantity))
}

fn main() {
    let mut program = Program::new();
    let bid = program.ask(1, Command::Enter(limit(Side::Buy, 99, 300)));
    program.ask(2, Command::Enter(limit(Side::Sell, 101, 200)));
    // An iceberg of 500 that shows 100 at a time.
    let iceberg = NewOrder { display: Quantity(100), ..limit(Side::Sell, 102, 500) };
    program.ask(3, Command::Enter(iceberg));
    program.ask(1, Command::Amend(Amendment::new(bid, Price(1_000_000), Quantity(250))));
    program.show();
    program.ask(4, Command::Enter(NewOrder::market(Side::Buy, Quantity(350))));
    program.ask(1, Command::Cancel { target: bid });
    program.show();
    println!("state hash {:016x}", program.book.state_hash());
}
