//! Seeded flow that looks like a trading day: prices wander, orders crowd near the touch, most of them are
//! cancelled before they trade, some instruments are busier than others.
//!
//! The obvious generators fail a long run: without cancels the book grows without bound, and with cancels
//! of answered orders only, the flow waits for the exchange and a slow exchange is asked less. Here the flow
//! is *open loop*: it remembers what it sent, not what became of it. A cancel of an order that has traded
//! meanwhile is refused, as happens to real members all day. What it remembers is bounded, so the book is.
//!
//! ```text
//!                    enter (day) ------> remembered, at most `live_orders_max` per instrument
//!   next() --mix-->  enter (IOC, market)       |        |
//!                    amend  <------------------+        |
//!                    cancel <---------------------------+   the farther from the middle of two picked
//! ```
//! No allocation after construction.

use pares_types::{ClientOrderId, InstrumentId, MemberId, NewOrder, Price, Quantity, Side, TimeInForce};

use crate::command::{FlowAction, FlowCommand, limit};
use pares_random::Random;

/// Percent of commands that enter an order; of the rest [`AMEND_PERCENT`] amend and the others cancel.
const ENTER_PERCENT: u64 = 45;
const AMEND_PERCENT: u64 = 10;
/// Percent of entered orders that are immediate-or-cancel, and that are market orders.
const IOC_PERCENT: u64 = 10;
const MARKET_PERCENT: u64 = 1;
/// Percent of commands after which an instrument's middle moves by a tick.
const MOVE_PERCENT: u64 = 2;
/// How far the middle may wander from its start, in ticks.
const WANDER_TICKS: i64 = 500;
/// The largest order, in lots.
const LOTS_MAX: u64 = 10;
/// A price's distance from the touch: the sum of this many geometric draws.
const DISTANCE_DRAWS: u32 = 3;

/// One instrument of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowInstrument {
    /// Its id.
    pub id: InstrumentId,
    /// Its price step, in price units; above zero.
    pub tick: Price,
    /// Its quantity step, in shares; above zero.
    pub lot: Quantity,
    /// Where its price starts: a multiple of the tick, at least 1,000 ticks. Prices sent stay within
    /// 800 ticks of it.
    pub start: Price,
}

/// What to generate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticConfig {
    /// The same seed gives the same flow.
    pub seed: u64,
    /// The busiest first: the k-th gets 1/k of the first one's commands (Zipf). At least one.
    pub instruments: Vec<FlowInstrument>,
    /// Who sends; each order is one member's, picked at random. At least one.
    pub members: Vec<MemberId>,
    /// The first client order id; each command takes the next one.
    pub first_client_order_id: ClientOrderId,
    /// Orders remembered per instrument, hence about the most that rest. At least 2.
    pub live_orders_max: usize,
}

/// An order sent and not cancelled since.
#[derive(Clone, Copy, Debug)]
struct LiveOrder {
    client_order_id: ClientOrderId,
    member: MemberId,
    side: Side,
    price_ticks: i64,
    /// As sent last.
    lots: u64,
}

#[derive(Debug)]
struct InstrumentFlow {
    instrument: FlowInstrument,
    start_ticks: i64,
    middle_ticks: i64,
    live: Vec<LiveOrder>,
}

/// The flow. Never ends.
#[derive(Debug)]
pub struct SyntheticFlow {
    random: Random,
    instruments: Vec<InstrumentFlow>,
    /// Running sums of the instruments' weights.
    weights: Vec<u64>,
    members: Vec<MemberId>,
    next_client_order_id: u64,
    live_orders_max: usize,
}

impl SyntheticFlow {
    /// The flow of `config`.
    ///
    /// # Panics
    /// If `config` breaks a bound stated there.
    #[must_use]
    pub fn new(config: &SyntheticConfig) -> Self {
        assert!(!config.instruments.is_empty() && !config.members.is_empty(), "nobody to trade, or nothing");
        assert!(config.live_orders_max >= 2, "at least two live orders");
        let new_flow = |&instrument| InstrumentFlow::new(instrument, config.live_orders_max);
        Self {
            random: Random::new(config.seed),
            instruments: config.instruments.iter().map(new_flow).collect(),
            weights: zipf(config.instruments.len()),
            members: config.members.clone(),
            next_client_order_id: config.first_client_order_id.0,
            live_orders_max: config.live_orders_max,
        }
    }

    /// The next command.
    pub fn next_command(&mut self) -> FlowCommand {
        let client_order_id = ClientOrderId(self.next_client_order_id);
        self.next_client_order_id += 1;
        let flow = &mut self.instruments[pick(&self.weights, &mut self.random)];
        flow.wander(&mut self.random);
        let newcomer = self.members[self.random.below(self.members.len() as u64) as usize];
        let (member, action) = match choose(&mut self.random, flow.live.len(), self.live_orders_max) {
            Choice::Enter => (newcomer, flow.enter(client_order_id, newcomer, &mut self.random)),
            Choice::Amend => flow.amend(&mut self.random),
            Choice::Cancel => flow.cancel(&mut self.random),
        };
        FlowCommand { member, client_order_id, instrument: flow.instrument.id, action }
    }

    /// Forgets an order known to be gone (filled, or refused), so that it is not cancelled again. Optional.
    pub fn forget(&mut self, instrument: InstrumentId, client_order_id: ClientOrderId) {
        let Some(flow) = self.instruments.iter_mut().find(|flow| flow.instrument.id == instrument) else {
            return;
        };
        if let Some(place) = flow.live.iter().position(|order| order.client_order_id == client_order_id) {
            flow.live.swap_remove(place);
        }
    }

    /// Orders remembered over all instruments.
    #[must_use]
    pub fn live_orders(&self) -> usize {
        self.instruments.iter().map(|flow| flow.live.len()).sum()
    }
}

#[derive(Clone, Copy)]
enum Choice {
    Enter,
    Amend,
    Cancel,
}

/// Keeps the number of live orders between half full and full; in between the mix rules.
fn choose(random: &mut Random, live: usize, live_max: usize) -> Choice {
    let drawn = random.below(100);
    if live < live_max / 2 || live < 2 {
        return if drawn < AMEND_PERCENT && live > 1 { Choice::Amend } else { Choice::Enter };
    }
    match drawn {
        _ if live >= live_max => Choice::Cancel,
        _ if drawn < ENTER_PERCENT => Choice::Enter,
        _ if drawn < ENTER_PERCENT + AMEND_PERCENT => Choice::Amend,
        _ => Choice::Cancel,
    }
}

/// Running sums of 1, 1/2, 1/3, ... in millionths.
fn zipf(count: usize) -> Vec<u64> {
    let mut sum = 0;
    (1..=count as u64)
        .map(|rank| {
            sum += 1_000_000 / rank.min(1_000_000);
            sum
        })
        .collect()
}

fn pick(weights: &[u64], random: &mut Random) -> usize {
    let total = weights.last().expect("there is an instrument");
    let drawn = random.below(*total);
    weights.partition_point(|&sum| sum <= drawn)
}

impl InstrumentFlow {
    fn new(instrument: FlowInstrument, live_orders_max: usize) -> Self {
        let (tick, start) = (instrument.tick.0, instrument.start.0);
        assert!(tick > 0 && start % tick == 0 && start / tick >= 1000, "start at 1,000 whole ticks or more");
        assert!(!instrument.lot.is_zero(), "a lot has shares");
        let start_ticks = start / tick;
        Self { instrument, start_ticks, middle_ticks: start_ticks, live: Vec::with_capacity(live_orders_max) }
    }

    /// A random walk that turns back at its bounds.
    fn wander(&mut self, random: &mut Random) {
        if random.percent(MOVE_PERCENT) {
            let away = self.middle_ticks - self.start_ticks;
            let up = if away.abs() >= WANDER_TICKS { away < 0 } else { random.percent(50) };
            self.middle_ticks += if up { 1 } else { -1 };
        }
    }

    fn enter(&mut self, name: ClientOrderId, member: MemberId, random: &mut Random) -> FlowAction {
        let side = if random.percent(50) { Side::Buy } else { Side::Sell };
        let lots = 1 + random.below(LOTS_MAX);
        let quantity = self.shares(lots);
        let drawn = random.below(100);
        if drawn < MARKET_PERCENT {
            return market(side, quantity);
        }
        if drawn < MARKET_PERCENT + IOC_PERCENT {
            // Into the other side by a few ticks: takes the touch and sometimes the level behind it.
            let price = self.price(self.middle_ticks + toward(side, 1 + distance(random)));
            return limit(side, price, quantity, TimeInForce::Ioc);
        }
        let price_ticks = self.middle_ticks - toward(side, 1 + distance(random));
        self.live.push(LiveOrder { client_order_id: name, member, side, price_ticks, lots });
        limit(side, self.price(price_ticks), quantity, TimeInForce::Day)
    }

    /// Half of the amends shrink the order and keep its priority; the others quote it again.
    fn amend(&mut self, random: &mut Random) -> (MemberId, FlowAction) {
        let place = random.below(self.live.len() as u64) as usize;
        let shrinks = random.percent(50);
        let middle_ticks = self.middle_ticks;
        let order = &mut self.live[place];
        if shrinks && order.lots > 1 {
            order.lots -= 1;
        } else {
            order.price_ticks = middle_ticks - toward(order.side, 1 + distance(random));
            order.lots = order.lots.max(2);
        }
        let order = *order;
        let (price, quantity) = (self.price(order.price_ticks), self.shares(order.lots));
        (order.member, FlowAction::Amend { original: order.client_order_id, price, quantity })
    }

    /// Members give up first what the market has left behind.
    fn cancel(&mut self, random: &mut Random) -> (MemberId, FlowAction) {
        let count = self.live.len() as u64;
        let (a, b) = (random.below(count) as usize, random.below(count) as usize);
        let away = |place: usize| (self.live[place].price_ticks - self.middle_ticks).abs();
        let order = self.live.swap_remove(if away(a) >= away(b) { a } else { b });
        (order.member, FlowAction::Cancel { original: order.client_order_id })
    }

    fn price(&self, ticks: i64) -> Price {
        Price(ticks * self.instrument.tick.0)
    }

    fn shares(&self, lots: u64) -> Quantity {
        Quantity(lots * self.instrument.lot.0)
    }
}

fn market(side: Side, quantity: Quantity) -> FlowAction {
    FlowAction::Enter(NewOrder::market(side, quantity))
}

/// `ticks` toward the prices a more eager order of `side` would bid or ask.
fn toward(side: Side, ticks: i64) -> i64 {
    match side {
        Side::Buy => ticks,
        Side::Sell => -ticks,
    }
}

/// Ticks behind the touch: 0 to 189, mostly few.
fn distance(random: &mut Random) -> i64 {
    (0..DISTANCE_DRAWS).map(|_| random.geometric() as i64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(seed: u64) -> SyntheticFlow {
        let instrument = |id| FlowInstrument {
            id: InstrumentId(id),
            tick: Price(100),
            lot: Quantity(100),
            start: Price(1_000_000),
        };
        SyntheticFlow::new(&SyntheticConfig {
            seed,
            instruments: (1..=10).map(instrument).collect(),
            members: vec![MemberId(1), MemberId(2), MemberId(3)],
            first_client_order_id: ClientOrderId(1),
            live_orders_max: 100,
        })
    }

    #[test]
    fn one_seed_gives_one_flow() {
        let (mut a, mut b, mut c) = (flow(7), flow(7), flow(8));
        let first: Vec<_> = (0..1000).map(|_| a.next_command()).collect();
        assert!(first.iter().all(|command| *command == b.next_command()));
        assert!(first.iter().any(|command| *command != c.next_command()));
    }

    #[test]
    fn the_mix_is_that_of_a_trading_day() {
        let mut flow = flow(1);
        let (mut enters, mut cancels) = (0, 0);
        for _ in 0..100_000 {
            match flow.next_command().action {
                FlowAction::Enter(_) => enters += 1,
                FlowAction::Cancel { .. } => cancels += 1,
                FlowAction::Amend { .. } => {}
            }
        }
        assert!((44_000..54_000).contains(&enters), "{enters}");
        assert!((36_000..48_000).contains(&cancels), "{cancels}");
    }

    #[test]
    fn memory_is_bounded() {
        let mut flow = flow(2);
        for _ in 0..100_000 {
            flow.next_command();
            assert!(flow.live_orders() <= 1000);
        }
        assert!(flow.live_orders() >= 400);
    }

    #[test]
    fn the_first_instrument_is_the_busiest() {
        let mut flow = flow(3);
        let mut counts = [0; 11];
        for _ in 0..100_000 {
            counts[flow.next_command().instrument.0 as usize] += 1;
        }
        // 1 / (1 + 1/2 + ... + 1/10) is 34 %; the last gets a tenth of it.
        assert!((33_000..35_500).contains(&counts[1]), "{counts:?}");
        assert!((3_000..3_900).contains(&counts[10]), "{counts:?}");
    }

    #[test]
    fn a_forgotten_order_is_neither_amended_nor_cancelled() {
        let mut flow = flow(4);
        let first = flow.next_command();
        flow.forget(first.instrument, first.client_order_id);
        let names_it = |command: FlowCommand| match command.action {
            FlowAction::Amend { original, .. } | FlowAction::Cancel { original } => {
                original == first.client_order_id
            }
            FlowAction::Enter(_) => false,
        };
        assert!((0..100_000).all(|_| !names_it(flow.next_command())));
    }
}
