//! Synthetic flow through the book: bounded, trading, and refused only as real flow is.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are tests too

mod support;

use pares_book::FastBook;
use pares_flow::{FlowCommand, FlowInstrument, PaperFlow, SyntheticConfig, SyntheticFlow};
use pares_types::{ClientOrderId, Event, InstrumentId, MemberId, Price, Quantity, Reason, Status};
use support::Exchange;

fn stocks(count: u32) -> Vec<FlowInstrument> {
    let (tick, lot, start) = (Price(100), Quantity(100), Price(1_000_000));
    (1..=count).map(|id| FlowInstrument { id: InstrumentId(id), tick, lot, start }).collect()
}

#[derive(Debug, Default)]
struct Seen {
    fills: u64,
    unknown: u64,
    refused_otherwise: u64,
    resting_max: usize,
}

fn run(count: u64, mut next: impl FnMut() -> FlowCommand) -> (Seen, Exchange<FastBook>) {
    let (mut seen, mut exchange) = (Seen::default(), Exchange::<FastBook>::new());
    for _ in 0..count {
        let (outcome, events) = exchange.apply(&next());
        seen.fills += events.iter().filter(|event| matches!(event, Event::Fill { .. })).count() as u64;
        match (outcome.status, outcome.reason) {
            (Status::Refused, Reason::UnknownOrder) => seen.unknown += 1,
            (Status::Refused, Reason::NothingChanged) => {}
            (Status::Refused, _) => seen.refused_otherwise += 1,
            _ => {}
        }
        seen.resting_max = seen.resting_max.max(exchange.resting_orders());
    }
    exchange.audit();
    println!("{seen:?}");
    (seen, exchange)
}

#[test]
fn a_synthetic_day_trades_and_stays_bounded() {
    let mut flow = SyntheticFlow::new(&SyntheticConfig {
        seed: 1,
        instruments: stocks(10),
        members: (1..=5).map(MemberId).collect(),
        first_client_order_id: ClientOrderId(1),
        live_orders_max: 200,
    });
    let (seen, exchange) = run(200_000, || flow.next_command());
    assert_eq!(seen.refused_otherwise, 0);
    assert!(seen.resting_max <= 2000, "{seen:?}");
    assert!(exchange.resting_orders() >= 300, "a book to trade with: {}", exchange.resting_orders());
    assert!((6_000..60_000).contains(&seen.fills), "3 to 30 trades per 100 commands: {seen:?}");
    assert!(seen.unknown < 40_000, "most cancels find their order: {seen:?}");
}

#[test]
fn the_papers_flow_trades_out_in_every_block() {
    let mut flow = PaperFlow::new(1, &stocks(1), MemberId(1), ClientOrderId(1));
    let (seen, exchange) = run(64 * 1000, || flow.next_command());
    assert_eq!(exchange.resting_orders(), 0);
    assert_eq!((seen.refused_otherwise, seen.unknown), (0, 0));
    assert!(seen.resting_max <= 32, "{seen:?}");
}
