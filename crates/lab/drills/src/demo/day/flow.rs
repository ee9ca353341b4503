//! The orders of a trading day: the synthetic flow, dressed for the phase of its instrument.
//!
//! The synthetic flow knows limit, immediate and market orders and believes that everything always matches. Here some of
//! its limit orders become icebergs, stops, pegs, orders good till cancelled or for an auction only; in a call prices
//! overlap, because nothing stops them, and what is immediate becomes an order for the auction; after the close all ask
//! for the closing price. While an instrument is closed or halted members continue to send requests, which are refused.

use std::sync::Arc;

use pares_flow::{FlowAction, FlowCommand, Random, SyntheticFlow};
use pares_load::RequestSource;
use pares_types::{NewOrder, OrderKind, Peg, Phase, Price, Quantity, Side, TimeInForce};

use super::board::{Board, Quote};

/// An iceberg has so many times the shares it shows.
const ICEBERG_TIMES: u64 = 10;

/// The flow of a day.
pub struct DayFlow {
    flow: SyntheticFlow,
    board: Arc<Board>,
    random: Random,
}

impl DayFlow {
    /// The orders of `flow` as members would enter them who watch `board`.
    pub fn new(flow: SyntheticFlow, board: Arc<Board>, seed: u64) -> Self {
        // Another stream than the flow's own of the same seed.
        Self { flow, board, random: Random::new(!seed) }
    }
}

impl RequestSource for DayFlow {
    fn next_command(&mut self) -> FlowCommand {
        let mut command = self.flow.next_command();
        if let FlowAction::Enter(order) = &mut command.action {
            let (quote, random) = (self.board.quote(command.instrument), &mut self.random);
            match quote.phase() {
                Phase::OpeningCall => for_call(order, TimeInForce::AtOpen, quote, random),
                Phase::VolatilityCall | Phase::ClosingCall => {
                    for_call(order, TimeInForce::AtClose, quote, random);
                }
                Phase::Continuous => for_continuous(order, quote, random),
                Phase::PostClose => after_the_close(order, quote),
                Phase::Closed | Phase::Halted => {}
            }
        }
        command
    }
}

/// The limit of a plain order that may rest.
fn day_limit(order: &NewOrder) -> Option<Price> {
    match order.kind {
        OrderKind::Limit { price } if order.time_in_force == TimeInForce::Day => Some(price),
        _ => None,
    }
}

/// `ticks` toward the prices a more eager order of `side` would bid or ask.
fn toward(side: Side, price: Price, ticks: u64, quote: &Quote) -> Price {
    let ticks = i64::try_from(ticks).expect("a few ticks");
    match side {
        Side::Buy => Price(price.0 + ticks * quote.tick),
        Side::Sell => Price(price.0 - ticks * quote.tick),
    }
}

fn for_call(order: &mut NewOrder, only_then: TimeInForce, quote: &Quote, random: &mut Random) {
    let Some(price) = day_limit(order) else {
        order.time_in_force = match order.kind {
            OrderKind::Market => only_then,
            _ => TimeInForce::Day,
        };
        return;
    };
    if random.percent(50) {
        order.kind = OrderKind::Limit { price: toward(order.side, price, 2 + random.below(9), quote) };
    }
    match random.below(100) {
        0..15 if quote.phase() != Phase::VolatilityCall => order.time_in_force = only_then,
        15..30 => make_lasting(order, price, quote, random),
        30..38 => make_iceberg(order),
        38..41 => make_stop(order, price, quote, random),
        _ => {}
    }
}

fn for_continuous(order: &mut NewOrder, quote: &Quote, random: &mut Random) {
    let Some(price) = day_limit(order) else { return };
    match random.below(100) {
        0..15 => make_lasting(order, price, quote, random),
        15..23 => make_iceberg(order),
        23..27 => make_stop(order, price, quote, random),
        27..31 => make_peg(order, price, quote, random),
        31..36 => order.time_in_force = TimeInForce::AtClose,
        _ => {}
    }
}

/// Good till cancelled, and in no hurry: some ticks behind the others.
fn make_lasting(order: &mut NewOrder, price: Price, quote: &Quote, random: &mut Random) {
    order.time_in_force = TimeInForce::Gtc;
    order.kind = OrderKind::Limit { price: toward(order.side.opposite(), price, random.below(12), quote) };
}

fn make_iceberg(order: &mut NewOrder) {
    order.display = order.quantity;
    order.quantity = Quantity(order.quantity.0 * ICEBERG_TIMES);
}

/// Buys when the price has risen, or sells when it has fallen, within ten ticks of the trigger.
fn make_stop(order: &mut NewOrder, price: Price, quote: &Quote, random: &mut Random) {
    let trigger = toward(order.side, quote.last().unwrap_or(price), 4 + random.below(20), quote);
    order.trigger = Some(trigger);
    order.kind = OrderKind::Limit { price: toward(order.side, trigger, 10, quote) };
}

fn make_peg(order: &mut NewOrder, price: Price, quote: &Quote, random: &mut Random) {
    let to = if random.percent(50) { Peg::Best } else { Peg::Mid };
    order.kind = OrderKind::Pegged { to, limit: toward(order.side, price, 20, quote) };
}

fn after_the_close(order: &mut NewOrder, quote: &Quote) {
    if let Some(price) = quote.closing() {
        order.kind = OrderKind::Limit { price };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_book::{Book, FastBook, Instrument, Symbol};
    use pares_flow::{FlowInstrument, SyntheticConfig};
    use pares_types::{
        ClientOrderId, Command, GatewayId, InstrumentId, MemberId, Reason, Request, RequestId, ShardId,
        Timestamp,
    };

    const ONE: InstrumentId = InstrumentId(1);

    fn request(sequence: u64, member: MemberId, command: Command) -> Request {
        Request {
            id: RequestId::new(GatewayId(0), sequence),
            stamp: Timestamp(sequence),
            member,
            client_order_id: ClientOrderId(sequence),
            instrument: ONE,
            shard: ShardId(0),
            command,
        }
    }

    fn flow(board: &Arc<Board>) -> DayFlow {
        let instrument =
            FlowInstrument { id: ONE, tick: Price(100), lot: Quantity(100), start: Price(1_000_000) };
        let config = SyntheticConfig {
            seed: 3,
            instruments: vec![instrument],
            members: vec![MemberId(1), MemberId(2)],
            first_client_order_id: ClientOrderId(1),
            live_orders_max: 50,
        };
        DayFlow::new(SyntheticFlow::new(&config), Arc::clone(board), 3)
    }

    #[test]
    fn every_order_is_one_that_its_phase_takes() {
        let board = Arc::new(Board::new([(ONE, Price(100))]));
        let mut flow = flow(&board);
        let symbol = Symbol::new("ALFA").unwrap();
        let instrument = Instrument { lot: Quantity(100), ..Instrument::listed(ONE, symbol) };
        let mut book = FastBook::new(Instrument::new(instrument).unwrap());
        let mut sequence = 0;
        let phases =
            [Phase::OpeningCall, Phase::Continuous, Phase::ClosingCall, Phase::PostClose, Phase::Closed];
        let mut apply = |member, command| {
            sequence += 1;
            let outcome = book.apply(&request(sequence, member, command), &mut Vec::new());
            let trading = book.trading();
            board.quote(ONE).set(trading.phase, trading.last, trading.closing);
            outcome.reason
        };
        for phase in phases.into_iter().cycle().take(10) {
            apply(MemberId(0), Command::SetPhase(phase));
            for _ in 0..200 {
                let command = flow.next_command();
                let FlowAction::Enter(order) = command.action else { continue };
                let reason = apply(command.member, Command::Enter(order));
                let fine = [Reason::None, Reason::NothingToTrade, Reason::NotInThisPhase];
                let refused = reason == Reason::NotInThisPhase;
                assert!(fine.contains(&reason), "{phase:?}: {order:?}: {reason:?}");
                assert_eq!(refused, phase == Phase::Closed, "{phase:?}: {order:?}");
            }
        }
    }
}
