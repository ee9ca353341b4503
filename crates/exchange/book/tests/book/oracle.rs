//! Auctions held against an oracle that knows nothing of books: docs/rules.md, section 6, **auction price**, as a table of prices and
//! a queue of shares, with no ladder, no levels and no order by order matching.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pares_book::{Book, FastBook, Instrument, NaiveBook};
use pares_types::{
    Band, Command, Event, NewOrder, OrderId, OrderKind, Phase, Price, Quantity, Rule, Side, Status, TieBreak,
    TimeInForce,
};

use pares_exercise::checked::instrument;
use pares_exercise::script::request;
use pares_random::Random;

/// An order of a call. `limit` is `None` at market.
#[derive(Clone, Copy, Debug)]
struct Order {
    id: OrderId,
    side: Side,
    limit: Option<i64>,
    shares: u64,
    display: u64,
}

impl Order {
    fn takes(&self, price: i64) -> bool {
        match (self.limit, self.side) {
            (None, _) => true,
            (Some(limit), Side::Buy) => limit >= price,
            (Some(limit), Side::Sell) => limit <= price,
        }
    }
}

/// What an auction comes to.
#[derive(Debug, PartialEq, Eq)]
struct Expected {
    price: i64,
    volume: u64,
    /// Shares demanded less shares offered.
    surplus: i64,
    executed: BTreeMap<OrderId, u64>,
}

fn demanded(orders: &[Order], side: Side, price: i64) -> u64 {
    orders.iter().filter(|order| order.side == side && order.takes(price)).map(|order| order.shares).sum()
}

/// What the page says of these orders, which came in this order.
fn expected(
    orders: &[Order],
    latest: Option<i64>,
    range: (i64, i64),
    rules: &Instrument,
) -> Option<Expected> {
    let in_range = |price: &i64| (range.0..=range.1).contains(price);
    let volume_at = |price: i64| demanded(orders, Side::Buy, price).min(demanded(orders, Side::Sell, price));
    let surplus_at = |price: i64| {
        demanded(orders, Side::Buy, price).cast_signed() - demanded(orders, Side::Sell, price).cast_signed()
    };
    let limits: BTreeSet<i64> = orders.iter().filter_map(|order| order.limit).filter(in_range).collect();
    let volume = limits.iter().map(|price| volume_at(*price)).max().unwrap_or(0);
    let price = if volume == 0 {
        // No order that meets another names a price there, as market orders do not.
        latest.filter(|price| in_range(price) && volume_at(*price) > 0)?
    } else {
        let best: Vec<i64> = limits.into_iter().filter(|price| volume_at(*price) == volume).collect();
        let least = best.iter().map(|price| surplus_at(*price).abs()).min()?;
        let tied: Vec<i64> = best.into_iter().filter(|price| surplus_at(*price).abs() == least).collect();
        let (low, high) = (*tied.first()?, *tied.last()?);
        match () {
            () if tied.iter().all(|price| surplus_at(*price) > 0) => {
                pressed(1, latest, rules).map_or(high, |most| most.clamp(low, high))
            }
            () if tied.iter().all(|price| surplus_at(*price) < 0) => {
                pressed(-1, latest, rules).map_or(low, |least| least.clamp(low, high))
            }
            () if rules.tie_break == TieBreak::Latest => latest.map_or(low, |latest| latest.clamp(low, high)),
            () => latest.map_or(low, |latest| {
                let nearest = tied.iter().map(|price| (price - latest).abs()).min().unwrap();
                tied.into_iter().rfind(|price| (price - latest).abs() == nearest).unwrap()
            }),
        }
    };
    let volume = volume_at(price);
    let mut executed = shared(orders, Side::Buy, price, volume);
    executed.extend(shared(orders, Side::Sell, price, volume));
    Some(Expected { price, volume, surplus: surplus_at(price), executed })
}

/// The prices at which a call may end that cannot be extended.
fn range(reference: Option<i64>, width: u32) -> (i64, i64) {
    match reference.filter(|_| width > 0) {
        Some(price) => (price - price * i64::from(width) / 10_000, price + price * i64::from(width) / 10_000),
        None => (i64::MIN, i64::MAX),
    }
}

/// The price up to which what is left over moves an auction, if there is a limit; prices are in cents here.
fn pressed(sign: i64, latest: Option<i64>, rules: &Instrument) -> Option<i64> {
    let latest = latest.filter(|_| rules.pressure_limit > 0)?;
    let away = latest * i64::from(rules.pressure_limit) / 10_000;
    // On the tick of a cent, towards the latest price.
    Some(latest + sign * (away - away % 100))
}

/// How a side's orders share the volume: better limits first, at one limit in turns of what each shows.
fn shared(orders: &[Order], side: Side, price: i64, mut volume: u64) -> BTreeMap<OrderId, u64> {
    let mut executed = BTreeMap::new();
    let mut at: BTreeMap<i128, VecDeque<(OrderId, u64, u64)>> = BTreeMap::new();
    for order in orders.iter().filter(|order| order.side == side && order.takes(price)) {
        let rank = match (order.limit, side) {
            (None, _) => i128::MIN,
            (Some(limit), Side::Buy) => -i128::from(limit),
            (Some(limit), Side::Sell) => i128::from(limit),
        };
        let turn = if order.display == 0 { order.shares } else { order.display };
        at.entry(rank).or_default().push_back((order.id, order.shares, turn));
    }
    for mut queue in at.into_values() {
        while volume > 0
            && let Some((id, left, turn)) = queue.pop_front()
        {
            let taken = turn.min(left).min(volume);
            volume -= taken;
            *executed.entry(id).or_insert(0) += taken;
            if left > taken {
                queue.push_back((id, left - taken, turn));
            }
        }
    }
    executed
}

/// A few orders around ten, some of them far too large or at market.
fn orders(random: &mut Random) -> Vec<Order> {
    let (count, spread) = (random.below(14), random.pick(&[1, 3, 6, 12]));
    let order = |index: u64| {
        let side = random.pick(&[Side::Buy, Side::Sell]);
        let limit = if random.one_in(5) { None } else { Some(100_000 + 100 * random.below(spread) as i64) };
        let shares = 10 * (1 + random.below(random_lots(index)));
        let iceberg = limit.is_some() && shares > 10 && random.one_in(4);
        let display = if iceberg { 10 * (1 + random.below(shares / 10 - 1)) } else { 0 };
        Order { id: OrderId(request(2 + index, 1, Command::TIME).id), side, limit, shares, display }
    };
    (0..count).map(order).collect()
}

fn random_lots(index: u64) -> u64 {
    if index.is_multiple_of(5) { 40 } else { 6 }
}

fn new_order(order: &Order) -> NewOrder {
    let price = Price(order.limit.unwrap_or_default());
    let mut new = NewOrder::limit(order.side, price, Quantity(order.shares));
    new.display = Quantity(order.display);
    if order.limit.is_none() {
        (new.kind, new.time_in_force) = (OrderKind::Market, TimeInForce::AtOpen);
    }
    new
}

/// One call of a book, from its first order to its auction, in one step or in many.
fn call<B: Book>(random: &mut Random) {
    let mut price = || if random.one_in(3) { None } else { Some(99_800 + 100 * random.below(16) as i64) };
    let (reference, last) = (price(), price());
    let latest = last.or(reference);
    let mut rules = instrument(1_000);
    rules.step_max = random.pick(&[4_096, 4_096, 1, 3]);
    rules.tie_break = random.pick(&[TieBreak::Latest, TieBreak::NearestLimit]);
    rules.pressure_limit = random.pick(&[0, 0, 5, 20, 35]);
    // Before the call nothing is outside a band, so it is set with it.
    let width = random.pick(&[0, 0, 30, 60, 120]);
    rules.extensions_max = 0;
    let mut book = B::new(rules);
    let mut events = Vec::new();
    if let Some(price) = reference {
        let set = Command::SetRule(Rule::Reference(Price(price)));
        book.apply(&request(1_000, 0, set), &mut events);
    }
    for (side, price) in [Side::Buy, Side::Sell].into_iter().zip(last.into_iter().cycle()) {
        let order = NewOrder::limit(side, Price(price), Quantity(10));
        book.apply(&request(900 + side as u64, 20 + side as u32, Command::Enter(order)), &mut events);
    }
    let band = Command::SetRule(Rule::StaticBand(Band::of(width)));
    book.apply(&request(999, 0, band), &mut events);
    book.apply(&request(1_001, 0, Command::SetPhase(Phase::OpeningCall)), &mut events);
    let orders = orders(random);
    for (order, sequence) in orders.iter().zip(2..) {
        let member = 1 + random.below(9) as u32;
        let outcome = book.apply(&request(sequence, member, Command::Enter(new_order(order))), &mut events);
        assert_eq!(outcome.status, Status::Resting, "{order:?} {outcome:?}");
    }
    events.clear();
    let told = book.indication();
    book.apply(&request(1_002, 0, Command::SetPhase(Phase::Continuous)), &mut events);
    for sequence in 1_003.. {
        // What crosses outside the bands is halted, or gets a call of its own.
        if book.trading().phase != Phase::OpeningCall {
            break;
        }
        book.apply(&request(sequence, 0, Command::TIME), &mut events);
    }
    let expected = expected(&orders, latest, range(reference, width), &rules);
    let figures = expected.as_ref().map(|auction| (auction.price, auction.volume, auction.surplus));
    let told = told.map(|told| {
        let surplus = told.surplus.0.cast_signed();
        let surplus = if told.surplus_side == Side::Buy { surplus } else { -surplus };
        (told.price.0, told.quantity.0, surplus)
    });
    assert_eq!(told, figures, "indicated; orders {orders:?}, latest {latest:?}");
    assert_eq!(happened(&events), expected, "happened; orders {orders:?}, latest {latest:?}");
}

/// The auction that events tell of.
fn happened(events: &[Event]) -> Option<Expected> {
    let mut auction: Option<Expected> = None;
    let mut buyer = None;
    for event in events {
        match *event {
            Event::Auction { price, quantity, surplus, surplus_side, firm: true } => {
                assert!(auction.is_none(), "one call, one auction");
                let surplus = surplus.0.cast_signed();
                let surplus = if surplus_side == Side::Buy { surplus } else { -surplus };
                auction =
                    Some(Expected { price: price.0, volume: quantity.0, surplus, executed: BTreeMap::new() });
            }
            Event::Incoming { order, .. } => buyer = Some(order),
            Event::Fill { resting, price, quantity, .. } => {
                let auction = auction.as_mut().expect("an auction is told before it trades");
                assert_eq!(price.0, auction.price, "one price for all");
                for order in [resting, buyer.expect("somebody buys")] {
                    *auction.executed.entry(order).or_insert(0) += quantity.0;
                }
            }
            _ => {}
        }
    }
    auction
}

#[test]
fn auctions_are_what_the_page_says() {
    let mut random = Random::new(14);
    (0..100_000).for_each(|_| call::<FastBook>(&mut random));
    (0..20_000).for_each(|_| call::<NaiveBook>(&mut random));
}

#[test]
#[ignore = "all: the same of further auctions"]
fn a_million_auctions_are_what_the_page_says() {
    let mut random = Random::new(15);
    (0..1_000_000).for_each(|_| call::<FastBook>(&mut random));
}
