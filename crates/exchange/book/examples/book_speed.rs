//! How long a request takes in each book: `cargo run --release -p pares-book --example book_speed`.
//!
//! About half of the requests enter an order near the touch, the others cancel or amend a random live
//! one. The best of five runs over the same requests, one thread, events counted and dropped.

#![allow(clippy::print_stdout, clippy::disallowed_methods)] // an example may talk and time itself

use pares_book::{Book, FastBook, Instrument, NaiveBook, Symbol};
use pares_types::{
    Amendment, ClientOrderId, Command, Event, EventSink, GatewayId, InstrumentId, MemberId, NewOrder,
    OrderId, Price, Quantity, Request, RequestId, ShardId, Side, Timestamp,
};
use std::time::Instant;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Counts events, so that making them cannot be optimised away.
#[derive(Default)]
struct Count(u64);

impl EventSink for Count {
    fn event(&mut self, event: Event) {
        self.0 += u64::from(matches!(event, Event::Fill { .. }));
    }
}

fn instrument() -> Instrument {
    let symbol = Symbol::new("SPEED").expect("a legal name");
    let listed = Instrument::listed(InstrumentId(1), symbol);
    Instrument { price_max: Price(10_000_000), orders_max: 1_000_000, ..listed }
}

/// A flow that keeps about `depth` orders on the book: those it entered and did not cancel since.
struct Flow {
    random: Random,
    live: Vec<OrderId>,
    depth: usize,
}

impl Flow {
    fn request(&mut self, sequence: u64) -> Request {
        let id = RequestId::new(GatewayId(1), sequence);
        Request {
            id,
            stamp: Timestamp(sequence),
            member: MemberId(1),
            client_order_id: ClientOrderId(sequence),
            instrument: InstrumentId(1),
            shard: ShardId(0),
            command: self.command(OrderId(id)),
        }
    }

    fn command(&mut self, order: OrderId) -> Command {
        let roll = self.random.below(100);
        if self.live.len() < self.depth && roll < 90 || self.live.is_empty() {
            self.live.push(order);
            return Command::Enter(self.order());
        }
        let victim = self.random.below(self.live.len() as u64) as usize;
        if !(20..90).contains(&roll) {
            let (side, quantity) = (self.side(), self.quantity());
            return Command::Amend(Amendment::new(self.live[victim], self.price(side), quantity));
        }
        Command::Cancel { target: self.live.swap_remove(victim) }
    }

    fn order(&mut self) -> NewOrder {
        let (side, quantity) = (self.side(), self.quantity());
        NewOrder::limit(side, self.price(side), quantity)
    }

    fn side(&mut self) -> Side {
        if self.random.below(2) == 0 { Side::Buy } else { Side::Sell }
    }

    fn quantity(&mut self) -> Quantity {
        Quantity(1 + self.random.below(200))
    }

    /// Within a hundred ticks of the touch, most of them near, a few through it.
    fn price(&mut self, side: Side) -> Price {
        let away = (self.random.below(40) * self.random.below(40) / 16) as i64 - 1;
        Price(if side == Side::Buy { 500_000 - away * 100 } else { 500_100 + away * 100 })
    }
}

fn requests(count: u64, depth: usize) -> Vec<Request> {
    let mut flow = Flow { random: Random(23), live: Vec::new(), depth };
    (1..=count).map(|sequence| flow.request(sequence)).collect()
}

fn measure<B: Book>(name: &str, requests: &[Request]) {
    let mut ns_best = f64::MAX;
    let (mut fills, mut resting) = (0, 0);
    for _ in 0..5 {
        let (mut book, mut sink) = (B::new(instrument()), Count::default());
        let start = Instant::now();
        for request in requests {
            book.apply(request, &mut sink);
        }
        ns_best = ns_best.min(start.elapsed().as_nanos() as f64 / requests.len() as f64);
        (fills, resting) = (sink.0, book.orders_len());
    }
    println!("{name:5}  {ns_best:8.1} ns/request  {resting:6} resting  {fills:7} fills");
}

fn main() {
    for depth in [1_000, 20_000, 200_000] {
        println!("{depth} orders entered and not cancelled");
        measure::<FastBook>("fast", &requests(2_000_000, depth));
        if depth == 1_000 {
            measure::<NaiveBook>("naive", &requests(50_000, depth));
        }
    }
}
