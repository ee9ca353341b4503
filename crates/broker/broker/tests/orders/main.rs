//! The rules of orders, one after the other; what routers do with them at every fault is `pares-router`'s simulation.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

mod position;
mod support;

use pares_broker::{
    BrokerReply, CustomerLimits, CustomerOrderId, ORDERS_PAGE_MAX, Order, OrderAsked, OrderEvent, OrderLife,
    OrderListed, OrderRead, OrderReply, OrderStage, OrderTerms, PersonRight, Refusal, Settlement,
    StockSymbol, TradeWay, UserName,
};
use support::{Broker, PAID_IN, SHARES, jo, max, refused, symbol};

#[test]
fn orders_keep_every_cent_and_every_share() {
    let mut broker = Broker::new();
    assert_eq!(broker.has(), (PAID_IN, SHARES));
    let buy = broker.place(TradeWay::Buy, 10, 1_001).unwrap();
    assert_eq!(broker.has(), (PAID_IN - 10_010, SHARES), "all of it is held at the limit");
    broker.name(&buy);
    // Three shares at 9.9933 are 29.9799: 29.98 is paid, and what the limit had held for them besides comes back.
    let order = broker.tell(&buy, OrderEvent::Traded { price: 99_933, shares: 3 });
    assert_eq!(order.state, OrderStage::Open);
    assert_eq!(broker.has(), (PAID_IN - 10_010 + (3_003 - 2_998), SHARES + 3));
    // Six at that price are 59.9598: with them 59.96 and not 2 x 29.98.
    broker.tell(&buy, OrderEvent::Traded { price: 99_933, shares: 3 });
    assert_eq!(broker.has(), (PAID_IN - 4_004 - 5_996, SHARES + 6));
    let order = broker.tell(&buy, OrderEvent::Cancelled { cause: 11, shares: 4 });
    assert_eq!((order.state, order.held_cents()), (OrderStage::Expired, 0));
    assert_eq!(broker.has(), (PAID_IN - 5_996, SHARES + 6));
    let sell = broker.place(TradeWay::Sell, 106, 1_000).unwrap();
    assert_eq!(broker.has(), (PAID_IN - 5_996, 0), "shares are held");
    broker.name(&sell);
    // 106 at 10.0001 are 1060.0106: received is 1060.01.
    let order = broker.tell(&sell, OrderEvent::Traded { price: 100_001, shares: 106 });
    assert_eq!(order.state, OrderStage::Filled);
    assert_eq!(broker.has(), (PAID_IN - 5_996 + 106_001, 0));
}

#[test]
fn a_void_trade_goes_back_and_what_is_missing_is_owed() {
    let mut broker = Broker::new();
    let sell = broker.routed(TradeWay::Sell, 100, 1_000);
    broker.tell(&sell, OrderEvent::Traded { price: 100_000, shares: 100 });
    let all = broker.place(TradeWay::Buy, 1_000, 1_100).unwrap();
    assert_eq!(broker.has(), (0, 0));
    broker.tell(&sell, OrderEvent::Void { price: 100_000, shares: 100 });
    assert_eq!(broker.has(), (0, 100), "the shares are back, the cash is held by an order");
    assert_eq!(broker.place(TradeWay::Buy, 1, 1), Err(Refusal::InsufficientCash));
    broker.ask(OrderAsked::Cancel { of: all });
    assert_eq!(broker.has(), (PAID_IN, 100), "what was owed is taken from what came");
}

#[test]
fn limits_count_what_is_open() {
    let mut broker = Broker::new();
    let limits =
        CustomerLimits { shares_max: 50, cents_max: 40_000, open_max: 2, position_max: 160, loss_max: 5_000 };
    broker.ask(OrderAsked::Limit { user: jo(), limits, by: max() });
    assert_eq!(broker.place(TradeWay::Buy, 0, 1_000), Err(Refusal::BadOrder));
    assert_eq!(broker.place(TradeWay::Buy, 51, 100), Err(Refusal::OrderTooLarge));
    assert_eq!(broker.place(TradeWay::Buy, 41, 1_000), Err(Refusal::OrderTooLarge));
    let first = broker.place(TradeWay::Buy, 40, 1_000).unwrap();
    assert_eq!(broker.place(TradeWay::Buy, 21, 1_000), Err(Refusal::PositionLimit));
    let second = broker.place(TradeWay::Sell, 40, 1_000).unwrap();
    assert_eq!(broker.place(TradeWay::Sell, 1, 1_000), Err(Refusal::TooManyOrders));
    broker.name(&first);
    broker.tell(&first, OrderEvent::Traded { price: 100_000, shares: 40 });
    broker.name(&second);
    // Bought at 10.00 what is worth 5.00 by the customer's own next trade: 200.00 are lost.
    broker.ask(OrderAsked::Cancel { of: second.clone() });
    broker.tell(&second, OrderEvent::Cancelled { cause: 1, shares: 40 });
    let cheap = broker.routed(TradeWay::Sell, 10, 500);
    broker.tell(&cheap, OrderEvent::Traded { price: 50_000, shares: 10 });
    assert_eq!(broker.place(TradeWay::Sell, 1, 1_000), Err(Refusal::LossLimit));
    broker.now_ms += 86_400_000;
    assert!(broker.place(TradeWay::Sell, 1, 1_000).is_ok(), "the next day begins anew");
}

#[test]
fn kill_switch_cancels_waiting_and_requests_other_cancels() {
    let mut broker = Broker::new();
    let routed = broker.routed(TradeWay::Buy, 10, 1_000);
    let waits = broker.place(TradeWay::Buy, 10, 1_000).unwrap();
    broker.ask(OrderAsked::Block { user: jo(), is_blocked: true, by: max() });
    assert_eq!(broker.has().0, PAID_IN - 10_000, "what may be there stays held");
    assert_eq!(broker.ask(OrderAsked::Cancel { of: waits }), refused(Refusal::OrderEnded));
    assert_eq!(broker.place(TradeWay::Buy, 1, 1), Err(Refusal::Blocked));
    let order = broker.tell(&routed, OrderEvent::Cancelled { cause: 1, shares: 10 });
    assert_eq!((order.state, broker.has().0), (OrderStage::Cancelled, PAID_IN));
    broker.ask(OrderAsked::Block { user: jo(), is_blocked: false, by: max() });
    assert!(broker.place(TradeWay::Buy, 1, 1).is_ok());
}

#[test]
fn an_earlier_router_is_not_heard_and_no_message_counts_twice() {
    let mut broker = Broker::new();
    let buy = broker.routed(TradeWay::Buy, 10, 1_000);
    let event = OrderEvent::Traded { price: 100_000, shares: 5 };
    broker.tell(&buy, event);
    let settle = |term, number| {
        let settlement = Settlement { term, shard: 0, number, of: buy.clone(), event };
        OrderAsked::Settle { settlement }
    };
    let before = broker.has();
    assert_eq!(broker.ask(settle(1, 1)), BrokerReply::Unchanged);
    assert_eq!(broker.ask(settle(1, 3)), BrokerReply::Early);
    let seen = broker.claims();
    broker.ask(OrderAsked::Claim { router: 1, member: 1, seen: 0 });
    let silent = |seen| OrderAsked::Claim { router: 2, member: 1, seen };
    assert_eq!(broker.ask(silent(seen)), refused(Refusal::RouterAlive), "it has claimed since");
    let claimed = BrokerReply::Order { reply: OrderReply::Claimed { term: 2 } };
    let other = OrderAsked::Claim { router: 2, member: 2, seen: seen + 1 };
    assert_eq!(broker.ask(other), refused(Refusal::OtherMember), "its orders have names already");
    assert_eq!(broker.ask(silent(seen + 1)), claimed);
    assert_eq!(broker.ask(settle(1, 2)), refused(Refusal::NotRouter));
    assert_eq!(broker.has(), before);
}

#[test]
fn router_with_fast_clock_affects_no_customer() {
    let mut broker = Broker::new();
    let buy = broker.place(TradeWay::Buy, 10, 1_000).unwrap();
    let waits = broker.place(TradeWay::Buy, 10, 1_000).unwrap();
    broker.command("SELL,jo,ABC,50.00");
    let now_ms = broker.now_ms;
    broker.now_ms += 3_600_000;
    broker.ask(OrderAsked::Claim { router: 1, member: 1, seen: 0 });
    broker.name(&buy);
    broker.tell(&buy, OrderEvent::Traded { price: 100_000, shares: 5 });
    broker.ask(OrderAsked::TurnAway { term: 1, of: waits, name: 0, reason: 1 });
    broker.now_ms = now_ms;
    assert_eq!(broker.summary().account.latest_ms, now_ms);
    let sold = broker.command("COMMIT_SELL,jo");
    assert!(matches!(sold, BrokerReply::Settled { .. }), "nothing has lapsed: {sold:?}");
    let bought = broker.command("BUY,jo,ABC,50.00");
    assert!(matches!(bought, BrokerReply::Held { .. }), "the quote is not too old: {bought:?}");
    let seen = broker.claims();
    let claimed = broker.ask(OrderAsked::Claim { router: 2, member: 1, seen });
    assert_eq!(claimed, BrokerReply::Order { reply: OrderReply::Claimed { term: 2 } });
}

#[test]
fn daily_loss_survives_clock_going_back_a_day() {
    let mut broker = Broker::new();
    let limits = CustomerLimits { loss_max: 1_000, ..CustomerLimits::default() };
    broker.ask(OrderAsked::Limit { user: jo(), limits, by: max() });
    for (way, limit, price) in [(TradeWay::Buy, 1_000, 100_000), (TradeWay::Sell, 500, 50_000)] {
        let of = broker.routed(way, 10, limit);
        broker.now_ms += 86_400_000;
        broker.tell(&of, OrderEvent::Traded { price, shares: 10 });
        broker.now_ms -= 86_400_000;
    }
    assert_eq!(broker.place(TradeWay::Buy, 1, 1), Err(Refusal::LossLimit));
}

#[test]
fn what_was_not_ordered_is_not_applied() {
    let mut broker = Broker::new();
    let buy = broker.place(TradeWay::Buy, 10, 1_000).unwrap();
    let next = |number, event| {
        let settlement = Settlement { term: 1, shard: 0, number, of: buy.clone(), event };
        OrderAsked::Settle { settlement }
    };
    let told = |event| next(1, event);
    let accepted = broker.ask(told(OrderEvent::Accepted));
    assert_eq!(accepted, refused(Refusal::OtherOrder), "it has no name yet");
    broker.name(&buy);
    let before = broker.items.clone();
    for event in [
        OrderEvent::Traded { price: 100_000, shares: 11 },
        OrderEvent::Traded { price: 100_001, shares: 1 },
        OrderEvent::Traded { price: u64::MAX, shares: 10 },
        OrderEvent::Cancelled { cause: 1, shares: 11 },
        OrderEvent::Void { price: 100_000, shares: 1 },
    ] {
        assert_eq!(broker.ask(told(event)), refused(Refusal::OtherOrder), "{event:?}");
    }
    assert!(broker.items == before, "nothing has changed");
    // What the exchange has, and what has ended, was not refused.
    for event in [OrderEvent::Accepted, OrderEvent::Cancelled { cause: 1, shares: 10 }] {
        broker.tell(&buy, event);
        let before = broker.items.clone();
        let reply = broker.ask(next(broker.told + 1, OrderEvent::Refused { reason: 1 }));
        assert_eq!(reply, refused(Refusal::OtherOrder), "behind {event:?}");
        assert!(broker.items == before, "nothing is released");
    }
}

#[test]
fn what_an_account_cannot_hold_is_refused_as_a_whole() {
    let mut broker = Broker::new();
    let buy = broker.place(TradeWay::Buy, 10, 1_000).unwrap();
    let sell = broker.place(TradeWay::Sell, 10, 1_000).unwrap();
    broker.fill();
    let cash = broker.has().0;
    // The first that waits could be cancelled, the second cannot.
    let found = broker.ask(OrderAsked::Block { user: jo(), is_blocked: true, by: max() });
    assert_eq!(found, refused(Refusal::TooMuch));
    assert_eq!(broker.has().0, cash, "nothing was cancelled");
    broker.name(&buy);
    broker.name(&sell);
    let before = broker.items.clone();
    let event = OrderEvent::Traded { price: 100_000, shares: 1 };
    let settlement = Settlement { term: 1, shard: 0, number: 1, of: buy, event };
    assert_eq!(broker.ask(OrderAsked::Settle { settlement }), refused(Refusal::TooMuch));
    assert!(broker.items == before, "nothing is noted of what was not done");
}

#[test]
fn what_orders_hold_is_in_the_summary_and_in_the_log() {
    let mut broker = Broker::new();
    broker.place(TradeWay::Buy, 10, 1_000).unwrap();
    let sell = broker.routed(TradeWay::Sell, 30, 1_000);
    broker.tell(&sell, OrderEvent::Traded { price: 100_000, shares: 10 });
    let has = broker.summary();
    assert_eq!((has.orders_held_cents, has.orders_held_shares), (10_000, vec![(symbol(), 20)]));
    broker.log();
    broker.ask(OrderAsked::Block { user: jo(), is_blocked: true, by: max() });
    broker.tell(&sell, OrderEvent::Cancelled { cause: 1, shares: 20 });
    let has = broker.summary();
    assert_eq!((has.orders_held_cents, has.orders_held_shares), (0, Vec::new()));
    assert!(broker.log().contains("supervised by max: blocked"));
}

#[test]
fn cash_that_a_void_sale_left_owed_is_paid_from_whatever_comes() {
    let mut broker = Broker::new();
    let sell = broker.routed(TradeWay::Sell, 100, 1_000);
    broker.tell(&sell, OrderEvent::Traded { price: 100_000, shares: 100 });
    // All of it is reserved at quotes.
    broker.command("SET_BUY_AMOUNT,jo,ABC,11000.00");
    broker.tell(&sell, OrderEvent::Void { price: 100_000, shares: 100 });
    assert_eq!(broker.has(), (0, 100), "1000.00 are owed");
    assert_eq!(broker.command("ADD,jo,400.00"), BrokerReply::Cash { cash_cents: 0 });
    for line in ["BUY,jo,ABC,10.00", "SET_BUY_AMOUNT,jo,ABC,11001.00"] {
        assert_eq!(broker.command(line), refused(Refusal::InDebt), "{line}");
    }
    broker.command("SELL,jo,ABC,500.00");
    broker.command("COMMIT_SELL,jo");
    assert_eq!(broker.has().0, 0, "100.00 are owed still");
    let reply = broker.command("SET_BUY_AMOUNT,jo,ABC,10000.00");
    assert_eq!(reply, BrokerReply::Cash { cash_cents: 90_000 }, "of 1000.00 that come back, 100.00 go");
    broker.log();
    assert!(!matches!(broker.command("BUY,jo,ABC,10.00"), BrokerReply::Refused { .. }));
}

#[test]
fn shares_owed_for_void_purchase_are_taken_from_income() {
    let mut broker = Broker::new();
    let buy = broker.routed(TradeWay::Buy, 100, 1_000);
    broker.tell(&buy, OrderEvent::Traded { price: 100_000, shares: 100 });
    broker.command("SELL,jo,ABC,2000.00");
    broker.tell(&buy, OrderEvent::Void { price: 100_000, shares: 100 });
    assert_eq!(broker.has(), (PAID_IN, 0), "100 shares are owed");
    assert_eq!(broker.command("BUY,jo,XYZ,100.00"), refused(Refusal::InDebt), "another stock");
    broker.command("BUY,jo,ABC,400.00");
    broker.command("COMMIT_BUY,jo");
    assert_eq!(broker.has(), (PAID_IN - 40_000, 0), "60 are owed still");
    broker.command("CANCEL_SELL,jo");
    assert_eq!(broker.has().1, 140);
    broker.log();
    assert!(!matches!(broker.command("BUY,jo,XYZ,100.00"), BrokerReply::Refused { .. }));
}

#[test]
fn what_is_repaid_stands_under_the_stock_of_the_void_trade() {
    let mut broker = Broker::new();
    let sell = broker.routed(TradeWay::Sell, 100, 1_000);
    broker.tell(&sell, OrderEvent::Traded { price: 100_000, shares: 100 });
    let other = StockSymbol::new("XYZ").unwrap();
    let terms = OrderTerms {
        symbol: other,
        way: TradeWay::Buy,
        shares: 1_000,
        limit_cents: 1_100,
        life: OrderLife::Day,
    };
    let placed = broker.ask(OrderAsked::Place { user: jo(), terms });
    let BrokerReply::Order { reply: OrderReply::Placed { order } } = placed else { panic!("{placed:?}") };
    broker.tell(&sell, OrderEvent::Void { price: 100_000, shares: 100 });
    // An order in another stock pays.
    broker.ask(OrderAsked::Cancel { of: CustomerOrderId { user: jo(), number: order } });
    assert_eq!(broker.repaid(), [(symbol(), 0, 100_000)]);
    let buy = broker.routed(TradeWay::Buy, 50, 1_000);
    broker.tell(&buy, OrderEvent::Traded { price: 100_000, shares: 50 });
    let sell = broker.place(TradeWay::Sell, 150, 1_000).unwrap();
    broker.tell(&buy, OrderEvent::Void { price: 100_000, shares: 50 });
    broker.ask(OrderAsked::Cancel { of: sell });
    assert_eq!(broker.repaid()[1..], [(symbol(), 50, 0)]);
    broker.log();
}

#[test]
fn limits_stand_in_the_log_with_who_set_them() {
    let mut broker = Broker::new();
    let limits = CustomerLimits { open_max: 3, ..CustomerLimits::default() };
    broker.ask(OrderAsked::Limit { user: jo(), limits, by: max() });
    assert!(broker.log().contains("supervised by max: limits 0 shares, 0.00, 3 open"));
}

#[test]
fn only_supervisor_at_execution_sets_others_limits() {
    let mut broker = Broker::new();
    broker.command("ADD,max,1.00");
    let limits = CustomerLimits { open_max: 3, ..CustomerLimits::default() };
    let both = |user: UserName, by: UserName, broker: &mut Broker| {
        let blocks = OrderAsked::Block { user: user.clone(), is_blocked: true, by: by.clone() };
        [broker.ask(OrderAsked::Limit { user, limits, by }), broker.ask(blocks)]
    };
    let nobody = UserName::new("nobody").unwrap();
    for (user, by, refusal) in [
        (jo(), nobody, Refusal::NoRight),
        (max(), jo(), Refusal::NoRight),
        (jo(), jo(), Refusal::OwnLimits),
        (max(), max(), Refusal::OwnLimits),
    ] {
        assert_eq!(both(user, by.clone(), &mut broker), [refused(refusal), refused(refusal)], "by {by}");
    }
    broker.gives_max(vec![]);
    assert_eq!(both(jo(), max(), &mut broker), [refused(Refusal::NoRight), refused(Refusal::NoRight)]);
    assert!(broker.place(TradeWay::Buy, 1, 1).is_ok(), "nobody is blocked");
    broker.gives_max(vec![PersonRight::Supervisor]);
    assert_eq!(both(jo(), max(), &mut broker), [BrokerReply::Done, BrokerReply::Done]);
    assert_eq!(broker.place(TradeWay::Buy, 1, 1), Err(Refusal::Blocked));
}

#[test]
fn what_is_refused_stands_in_the_log_with_its_reason() {
    let mut broker = Broker::new();
    assert_eq!(broker.place(TradeWay::Sell, 101, 1_000), Err(Refusal::InsufficientShares));
    let nobodys = pares_broker::CustomerOrderId { user: jo(), number: 7 };
    assert_eq!(broker.ask(OrderAsked::Cancel { of: nobodys }), refused(Refusal::NoOrder));
    broker.place(TradeWay::Sell, 10, 1_000).unwrap();
    broker.fill();
    let blocked = OrderAsked::Block { user: jo(), is_blocked: true, by: max() };
    assert_eq!(broker.ask(blocked), refused(Refusal::TooMuch));
    broker.items.insert(pares_wice::Key::new(b"bh\x02joABC"), pares_wice::Value::new(90_u64.to_le_bytes()));
    let log = broker.log();
    for said in [
        "order not placed: 101 ABC at 10.00: insufficient shares",
        "order not cancelled: 7: there is no such order",
        "not done: supervised by max: blocked: the amount exceeds the maximum of an account",
    ] {
        let element = format!("<errorMessage>{said}</errorMessage>");
        assert_eq!(log.matches(&element).count(), 1, "{said}, in {log}");
    }
    let moved = log.replacen("order not placed", "order placed: 101 at 10.00", 1);
    assert_ne!(moved, log);
}

#[test]
fn newest_orders_page_first_and_reads_nothing_else() {
    let mut broker = Broker::new();
    let mut placed = Vec::new();
    for count in 0..250 {
        // Every other one by a front whose numbers are higher.
        broker.asked += if count % 2 == 0 { 1 << 30 } else { 0 };
        let of = broker.place(TradeWay::Buy, 1, 1_000).unwrap();
        if count % 50 != 49 {
            broker.ask(OrderAsked::Cancel { of: of.clone() });
        }
        broker.asked -= if count % 2 == 0 { 1 << 30 } else { 0 };
        placed.push(of.number);
    }
    placed.reverse();
    let (mut found, mut before, mut pages) = (Vec::new(), None, 0);
    loop {
        broker.read.set(0);
        let page: Vec<OrderListed> = broker.listed(OrderRead::Mine { user: jo(), before });
        assert!(broker.read.get() <= 2 * ORDERS_PAGE_MAX + 1, "{} items", broker.read.get());
        let Some(last) = page.last() else { break };
        before = Some(last.place);
        pages += 1;
        found.extend(page.iter().map(|listed| listed.number));
    }
    assert_eq!((&found, pages), (&placed, 3));
    let working: Vec<(u64, Order)> = broker.listed(OrderRead::Working { user: jo() });
    let open: Vec<u64> = placed.iter().step_by(50).copied().collect();
    assert_eq!(working.iter().map(|(number, _)| *number).collect::<Vec<_>>(), open);
    let one: Option<Order> =
        broker.listed(OrderRead::One { of: CustomerOrderId { user: jo(), number: open[0] } });
    assert_eq!(one, Some(working[0].1));
    let none: Option<Order> = broker.listed(OrderRead::One { of: CustomerOrderId { user: jo(), number: 7 } });
    assert_eq!(none, None);
}

#[test]
fn that_the_exchange_has_an_order_stands_in_the_log_once() {
    let mut broker = Broker::new();
    let buy = broker.routed(TradeWay::Buy, 10, 1_001);
    assert!(!broker.log().contains("order accepted"));
    for _ in 0..2 {
        assert_eq!(broker.tell(&buy, OrderEvent::Accepted).state, OrderStage::Open);
    }
    assert_eq!(broker.log().matches("order accepted: 10 at 10.01").count(), 1);
}
