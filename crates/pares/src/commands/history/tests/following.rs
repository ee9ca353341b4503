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
fn a_mass_cancel_ends_the_members_orders_and_stands_in_their_stories() {
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

#[test]
fn resting_orders_of_a_random_history_are_those_of_the_book() {
    for seed in 1..=20 {
        let mut day = Day::new();
        let mut random = seed;
        for _ in 0..300 {
            random_request(&mut day, &mut random);
        }
        let resting = Filter { status: Some("resting".into()), limit: usize::MAX, ..Filter::default() };
        let index = day.index();
        let mut indexed = index.orders(&resting).unwrap().rows;
        indexed.sort_by_key(|order| order.id);
        let mut booked: Vec<_> = day.books.iter().flat_map(|book| book.snapshot().orders).collect();
        booked.sort_by_key(|order| order.order);
        let terms = |order: &Order| (order.id, order.price.unwrap(), order.executed, order.remaining);
        assert_eq!(
            indexed.iter().map(terms).collect::<Vec<_>>(),
            booked.iter().map(|o| (o.order, o.price, o.executed, o.remaining)).collect::<Vec<_>>(),
            "seed {seed}"
        );
        let all = Filter { limit: usize::MAX, ..Filter::default() };
        for order in index.orders(&all).unwrap().rows {
            let story = index.story(order.id).unwrap().unwrap();
            let traded: u64 = story.trades.iter().map(|trade| trade.quantity.0).sum();
            assert_eq!(traded, order.executed.0, "seed {seed} order {}", order.id);
        }
    }
}

fn random_request(day: &mut Day, random: &mut u64) {
    let mut below = |n: u64| {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 33) % n
    };
    let (member, instrument) = (1 + below(3) as u32, 1 + below(2) as u32);
    let side = if below(2) == 0 { Side::Buy } else { Side::Sell };
    let price = 10_000 + 100 * below(6) as i64;
    let target = OrderId(RequestId::new(GatewayId(0), 1 + below(day.sequence.max(1))));
    match below(20) {
        0 => day.ask(member, instrument, Command::MassCancel { side: None }),
        1..=3 => day.ask(member, instrument, Command::Cancel { target }),
        4..=7 => {
            let quantity = Quantity(below(30));
            day.ask(member, instrument, Command::Amend(Amendment::new(target, Price(price), quantity)))
        }
        8 => {
            let order = NewOrder::market(side, Quantity(1 + below(20)));
            day.ask(member, instrument, Command::Enter(order))
        }
        _ => day.limit(member, instrument, side, 1 + below(20), price),
    };
}
