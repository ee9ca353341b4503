//! Orders follow what happens to them.

use super::*;

#[test]
fn an_order_follows_its_fills_amends_and_cancel() {
    let mut day = Day::new();
    let offer = day.limit(1, 1, Side::Sell, 100, 10_000);
    assert_eq!(standing(&day.order(offer)), ("resting", 0, 100));
    day.limit(2, 1, Side::Buy, 60, 10_000);
    assert_eq!(standing(&day.order(offer)), ("resting", 60, 40));
    day.amend(1, offer, 80, 10_100);
    let amended = day.order(offer);
    assert_eq!(
        (standing(&amended), amended.price, amended.quantity.0),
        (("resting", 60, 20), Some(Price(10_100)), 80)
    );
    day.ask(1, 1, Command::Cancel { target: offer });
    let story = day.index().story(offer).unwrap().unwrap();
    assert_eq!(standing(&story.order), ("cancelled", 60, 0));
    assert_eq!((story.order.position, story.order.changed_position), (Position(0), Position(3)));
    let commands: Vec<_> = story.steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!((commands, story.trades.len()), (vec!["enter", "amend", "cancel"], 1));
}

#[test]
fn a_filled_order_is_filled_on_both_sides() {
    let mut day = Day::new();
    let offer = day.limit(1, 1, Side::Sell, 100, 10_000);
    let bid = day.limit(2, 1, Side::Buy, 100, 10_500);
    assert_eq!(standing(&day.order(offer)), ("filled", 100, 0));
    assert_eq!(standing(&day.order(bid)), ("filled", 100, 0));
    let (_, trades) = content(&day.index());
    let [trade] = trades.as_slice() else { panic!("one trade, not {trades:?}") };
    assert_eq!((trade.buy, trade.sell), ((bid, MemberId(2)), (offer, MemberId(1))));
    assert_eq!((trade.price, trade.quantity.0, trade.aggressor.as_str()), (Price(10_000), 100, "buy"));
}

#[test]
fn an_amend_that_matches_trades_under_the_amended_orders_id() {
    let mut day = Day::new();
    let offer = day.limit(1, 1, Side::Sell, 30, 10_000);
    let bid = day.limit(2, 1, Side::Buy, 50, 9_000);
    day.amend(2, bid, 50, 10_000);
    assert_eq!(standing(&day.order(bid)), ("resting", 30, 20));
    assert_eq!(trades(&day.index(), Filter { order: Some(bid), ..Filter::default() }), [(2, 1)]);
    assert_eq!(standing(&day.order(offer)), ("filled", 30, 0));
}

#[test]
fn mass_cancel_ends_orders_and_shows_in_history() {
    let mut day = Day::new();
    let (mine, theirs) = (day.limit(1, 1, Side::Buy, 5, 9_000), day.limit(2, 1, Side::Buy, 5, 9_000));
    day.ask(1, 1, Command::MassCancel { side: None });
    assert_eq!(standing(&day.order(theirs)), ("resting", 0, 5));
    let story = day.index().story(mine).unwrap().unwrap();
    assert_eq!((standing(&story.order), story.order.reason.as_str()), (("cancelled", 0, 0), "requested"));
    assert_eq!(story.steps.last().unwrap().command, "mass_cancel");
}

#[test]
fn a_refused_order_is_kept_and_a_refused_cancel_changes_nothing() {
    let mut day = Day::new();
    let refused = day.limit(1, 1, Side::Buy, 5, 9_001);
    let bid = day.limit(1, 1, Side::Buy, 5, 9_000);
    day.ask(2, 1, Command::Cancel { target: bid });
    day.amend(1, bid, 0, 9_000);
    let order = day.order(refused);
    assert_eq!((order.status.as_str(), order.reason.as_str()), ("refused", "off_tick"));
    assert_eq!(standing(&day.order(bid)), ("resting", 0, 5));
    assert_eq!((day.order(bid).quantity.0, day.index().story(bid).unwrap().unwrap().steps.len()), (5, 3));
}

/// A day on which instrument 1 trades with icebergs, stops, pegs, self-trade prevention and auctions.
fn random_request(day: &mut Day, random: &mut u64) {
    let mut below = |n: u64| {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 33) % n
    };
    let member = 1 + below(3) as u32;
    let side = if below(2) == 0 { Side::Buy } else { Side::Sell };
    let (price, quantity) = (Price(10_000 + 100 * below(9) as i64), Quantity(1 + below(30)));
    let target = OrderId(RequestId::new(GatewayId(0), 1 + below(day.sequence.max(1))));
    let limit = NewOrder::limit(side, price, quantity);
    let enter = |order| (member, Command::Enter(order));
    let (member, command) = match below(24) {
        0 => (member, Command::MassCancel { side: Some(side) }),
        1..=2 => (member, Command::Cancel { target }),
        3..=5 => (member, Command::Amend(Amendment::new(target, price, quantity))),
        6 => {
            let phases = [Phase::OpeningCall, Phase::Continuous, Phase::Continuous, Phase::ClosingCall];
            (0, Command::SetPhase(phases[below(4) as usize]))
        }
        7 if below(2) == 0 => (0, Command::TIME),
        7 => enter(NewOrder { kind: OrderKind::Market, quantity: Quantity(40), ..limit }),
        8..=10 => enter(NewOrder { trigger: Some(Price(10_000 + 100 * below(9) as i64)), ..limit }),
        11 => enter(NewOrder { trigger: Some(price), kind: OrderKind::Market, ..limit }),
        12..=13 => enter(NewOrder { kind: OrderKind::Pegged { to: Peg::Best, limit: price }, ..limit }),
        14 => enter(NewOrder { kind: OrderKind::Pegged { to: Peg::Mid, limit: price }, ..limit }),
        15..=16 => enter(NewOrder { display: Quantity(1 + below(5)), ..limit }),
        17 => enter(NewOrder { minimum: Quantity(1 + below(5)), ..limit }),
        18 => enter(NewOrder { time_in_force: TimeInForce::AtClose, ..limit }),
        19 => {
            let until = Timestamp((day.sequence + below(60)) * 1_000_000_000);
            enter(NewOrder { time_in_force: TimeInForce::Gtd { until }, ..limit })
        }
        20 => enter(NewOrder { self_trade: SelfTrade::Decrement, ..limit }),
        21 => enter(NewOrder { self_trade: SelfTrade::CancelBoth, ..limit }),
        _ => enter(limit),
    };
    day.ask(member, 1, command);
}

#[test]
fn orders_of_a_rich_random_history_are_those_of_the_book() {
    let mut auctioned = 0;
    for seed in 1..=20 {
        // An auction's record is longer than a small segment takes.
        let (mut day, mut random) = (Day::with(Config::default().segment_bytes(1 << 20)), seed);
        day.ask(0, 1, Command::SetRule(Rule::IcebergRefill { fresh: seed % 2 == 0 }));
        day.ask(0, 1, Command::SetRule(Rule::MarketRemainder { rests: true }));
        for _ in 0..400 {
            random_request(&mut day, &mut random);
        }
        let all = Filter { limit: usize::MAX, ..Filter::default() };
        let index = day.index();
        let (orders, traded) = content(&index);
        let there = orders.iter().filter(|order| ["resting", "held"].contains(&order.status.as_str()));
        let terms = |order: &OrderRow| (order.id, order.status == "held", order.executed, order.remaining);
        let mut indexed: Vec<_> = there.map(terms).collect();
        indexed.sort();
        let booked = day.books[0].snapshot().orders;
        let has_limit = |o: &&RestingOrder| !o.is_held() && matches!(o.kind, OrderKind::Limit { .. });
        for booked in booked.iter().filter(has_limit) {
            let row = orders.iter().find(|row| row.id == booked.order).unwrap();
            assert_eq!(row.price, Some(booked.price), "seed {seed} order {}", row.id);
        }
        let mut booked: Vec<_> =
            booked.iter().map(|o| (o.order, o.is_held(), o.executed, o.remaining)).collect();
        booked.sort();
        assert_eq!(indexed, booked, "seed {seed}");
        for order in index.orders(&all).unwrap().rows {
            let own = |trade: &&TradeRow| trade.buy.0 == order.id || trade.sell.0 == order.id;
            let executed: u64 = traded.iter().filter(own).map(|trade| trade.quantity.0).sum();
            assert_eq!(executed, order.executed.0, "seed {seed} order {}", order.id);
            let story = index.story(order.id).unwrap().unwrap();
            assert_eq!(
                story.trades.len(),
                traded.iter().filter(own).count(),
                "seed {seed} order {}",
                order.id
            );
            let ended = order.remaining.is_zero() || order.status == "refused";
            let there = order.status == "resting" || order.status == "held";
            assert!(ended != there, "seed {seed} order {}: {order:?}", order.id);
        }
        assert!(traded.iter().all(|trade| sides(&orders, trade) == ("buy", "sell")), "seed {seed}");
        auctioned += traded.iter().filter(|trade| trade.aggressor == "none").count();
    }
    assert!(auctioned > 0, "there were auctions");
}

fn sides<'a>(orders: &'a [OrderRow], trade: &TradeRow) -> (&'a str, &'a str) {
    let side = |id| orders.iter().find(|order| order.id == id).expect("entered here").side.as_str();
    (side(trade.buy.0), side(trade.sell.0))
}

#[test]
fn triggered_stop_trades_by_name_with_reason() {
    let mut day = Day::new();
    let stop =
        NewOrder { trigger: Some(Price(10_000)), ..NewOrder::limit(Side::Buy, Price(10_500), Quantity(8)) };
    let stop = day.ask(1, 1, Command::Enter(stop));
    assert_eq!(standing(&day.order(stop)), ("held", 0, 8));
    day.limit(2, 1, Side::Sell, 5, 10_000);
    let far = day.limit(2, 1, Side::Sell, 6, 10_200);
    day.limit(3, 1, Side::Buy, 5, 10_000);
    let story = day.index().story(stop).unwrap().unwrap();
    assert_eq!(standing(&story.order), ("resting", 6, 2));
    let commands: Vec<_> = story.steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(commands, ["enter", "triggered"]);
    let [trade] = story.trades.as_slice() else { panic!("one trade, not {:?}", story.trades) };
    assert_eq!((trade.buy.0, trade.sell.0, trade.aggressor.as_str()), (stop, far, "buy"));
}

#[test]
fn a_market_order_that_rests_has_a_limit_from_then_on() {
    let mut day = Day::new();
    day.ask(0, 1, Command::SetRule(Rule::MarketRemainder { rests: true }));
    day.limit(1, 1, Side::Sell, 5, 10_000);
    let market = day.ask(
        2,
        1,
        Command::Enter(NewOrder {
            kind: OrderKind::Market,
            ..NewOrder::limit(Side::Buy, Price(0), Quantity(12))
        }),
    );
    let story = day.index().story(market).unwrap().unwrap();
    let OrderRow { kind, price, .. } = &story.order;
    assert_eq!(
        (standing(&story.order), kind.as_str(), *price),
        (("resting", 5, 7), "limit", Some(Price(10_000)))
    );
    let commands: Vec<_> = story.steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(commands, ["enter", "priced"]);
}

#[test]
fn an_auction_has_no_aggressor_and_a_busted_trade_is_marked() {
    let mut day = Day::new();
    day.ask(0, 1, Command::SetPhase(Phase::OpeningCall));
    let offer = day.limit(1, 1, Side::Sell, 5, 10_000);
    let bid = day.limit(2, 1, Side::Buy, 9, 10_200);
    day.ask(0, 1, Command::SetPhase(Phase::Continuous));
    let (_, traded) = content(&day.index());
    let [trade] = traded.as_slice() else { panic!("one trade, not {traded:?}") };
    assert_eq!((trade.buy.0, trade.sell.0, trade.aggressor.as_str()), (bid, offer, "none"));
    assert_eq!((standing(&day.order(bid)), trade.busted), (("resting", 5, 4), false));
    let busted = BustedTrade {
        position: trade.position,
        index: u16::try_from(trade.number).unwrap(),
        resting: offer,
        incoming: bid,
        price: trade.price,
        quantity: trade.quantity,
        resting_side: Side::Sell,
        resting_owner: (MemberId(1), ClientOrderId(11)),
        incoming_owner: (MemberId(2), ClientOrderId(21)),
    };
    day.ask(0, 1, Command::Bust(busted));
    assert!(content(&day.index()).1[0].busted);
}
