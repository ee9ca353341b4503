//! What owners receive of records in which more happens than a request and its trades.

use std::fmt::Write;

use expect_test::expect;
use pares_types::{
    BustedTrade, CancelCause, ClientOrderId, Command, Event, GatewayId, IncomingCause, InstrumentId,
    MemberId, NewOrder, OrderId, Outcome, Phase, Position, Price, Quantity, Reason, RecorderId, Request,
    RequestId, RestCause, ShardId, Side, Status, Timestamp,
};

use super::scenarios::line;
use super::world::{Sink, config, instruments};
use crate::{Gateway, Place, SessionId};

/// Orders of these tests are numbered; order 10 * m + n is member m's, and so is its name.
fn order(number: u64) -> OrderId {
    OrderId(RequestId::new(GatewayId(9), number))
}

fn member(number: u64) -> MemberId {
    MemberId(number as u32 / 10)
}

fn fill(resting: u64, resting_side: Side, quantity: u64, left: u64) -> Event {
    Event::Fill {
        resting: order(resting),
        resting_member: member(resting),
        resting_client_order_id: ClientOrderId(resting),
        resting_side,
        price: Price(50),
        quantity: Quantity(quantity),
        resting_remaining: Quantity(left),
    }
}

fn incoming(number: u64, side: Side, quantity: u64, cause: IncomingCause) -> Event {
    let (member, client_order_id) = (member(number), ClientOrderId(number));
    let (order, price, quantity) = (order(number), Price(60), Quantity(quantity));
    Event::Incoming { order, member, client_order_id, side, price, quantity, cause }
}

fn rested(number: u64, side: Side, quantity: u64, shown: u64, cause: RestCause) -> Event {
    let (member, client_order_id) = (member(number), ClientOrderId(number));
    let (order, price, quantity, shown) = (order(number), Price(60), Quantity(quantity), Quantity(shown));
    Event::Rested { order, member, client_order_id, side, price, quantity, shown, cause }
}

fn cancelled(number: u64, quantity: u64, cause: CancelCause) -> Event {
    let (order, member, client_order_id) = (order(number), member(number), ClientOrderId(number));
    let (side, price, quantity) = (Side::Sell, Price(60), Quantity(quantity));
    Event::Cancelled { order, member, client_order_id, side, price, quantity, cause }
}

fn request(number: u64, instrument: u32, command: Command) -> Request {
    Request {
        id: order(number).0,
        stamp: Timestamp(number),
        member: member(number),
        client_order_id: ClientOrderId(number),
        instrument: InstrumentId(instrument),
        shard: ShardId(0),
        command,
    }
}

/// What sessions 1 to 4, of the members of their numbers, receive of a record; `before` are committed before.
fn told(before: &[Request], request: &Request, outcome: (Status, u64, u64), events: &[Event]) -> String {
    let mut gateway = Gateway::new(config(0), instruments());
    let mut sink = Sink::default();
    for id in 1..=4 {
        let who = (MemberId(id as u32), 0);
        gateway.on_sign_on(SessionId(id), who, false, &mut Sink::default()).unwrap();
    }
    let place = Place { recorder: RecorderId(0), offset: 0 };
    let (executed, remaining) = (Quantity(outcome.1), Quantity(outcome.2));
    let (order, reason) = (OrderId(request.id), Reason::None);
    let outcome = Outcome { status: outcome.0, reason, order, executed, remaining };
    let records = before.iter().map(|request| (request, &[][..])).chain([(request, events)]);
    for (position, (request, events)) in (0..).map(Position).zip(records) {
        sink.replies.clear();
        gateway.on_committed(position, request, &outcome, events, place, &mut sink);
    }
    sink.replies.iter().fold(String::new(), |mut lines, (session, reply)| {
        writeln!(lines, "s{} {}", session.0, line(reply)).unwrap();
        lines
    })
}

#[test]
fn trade_triggers_stop_and_peg_follows() {
    let buy = NewOrder::limit(Side::Buy, Price(60), Quantity(10));
    let events = [
        fill(21, Side::Sell, 4, 0),
        incoming(31, Side::Buy, 20, IncomingCause::Triggered),
        fill(22, Side::Sell, 5, 15),
        rested(22, Side::Sell, 15, 5, RestCause::Refilled),
        fill(23, Side::Sell, 7, 0),
        rested(31, Side::Buy, 8, 8, RestCause::Triggered),
        incoming(41, Side::Sell, 9, IncomingCause::Repriced),
        fill(31, Side::Buy, 8, 0),
        rested(41, Side::Sell, 1, 1, RestCause::Repriced),
    ];
    expect![[r#"
        s1 trade c11 (9:11 at 0/0) i1 Incoming Buy 4 at 50, remaining 6
        s2 trade c21 (9:21 at 0/0) i1 Resting Sell 4 at 50, remaining 0
        s3 news c31 (9:31 at 0/0) i1 Buy Triggered at 60, remaining 20, shown 0
        s3 trade c31 (9:31 at 0/0) i1 Incoming Buy 5 at 50, remaining 15
        s2 trade c22 (9:22 at 0/0) i1 Resting Sell 5 at 50, remaining 15
        s2 news c22 (9:22 at 0/0) i1 Sell Refilled at 60, remaining 15, shown 5
        s3 trade c31 (9:31 at 0/0) i1 Incoming Buy 7 at 50, remaining 8
        s2 trade c23 (9:23 at 0/0) i1 Resting Sell 7 at 50, remaining 0
        s3 news c31 (9:31 at 0/0) i1 Buy Rested at 60, remaining 8, shown 8
        s4 trade c41 (9:41 at 0/0) i1 Incoming Sell 8 at 50, remaining 1
        s3 trade c31 (9:31 at 0/0) i1 Resting Buy 8 at 50, remaining 0
        s4 news c41 (9:41 at 0/0) i1 Sell Repriced at 60, remaining 1, shown 1
    "#]]
    .assert_eq(&told(&[], &request(11, 1, Command::Enter(buy)), (Status::Resting, 4, 6), &events));
}

#[test]
fn a_market_order_that_rests_is_told_its_limit() {
    let buy = NewOrder::market(Side::Buy, Quantity(10));
    let events = [fill(21, Side::Sell, 4, 0), rested(11, Side::Buy, 6, 6, RestCause::Priced)];
    expect![[r#"
        s1 trade c11 (9:11 at 0/0) i1 Incoming Buy 4 at 50, remaining 6
        s2 trade c21 (9:21 at 0/0) i1 Resting Sell 4 at 50, remaining 0
        s1 news c11 (9:11 at 0/0) i1 Buy Rested at 60, remaining 6, shown 6
    "#]]
    .assert_eq(&told(&[], &request(11, 1, Command::Enter(buy)), (Status::Resting, 4, 6), &events));
}

#[test]
fn shares_lost_to_self_trade_prevention_are_not_left_to_match() {
    let buy = NewOrder::limit(Side::Buy, Price(60), Quantity(10));
    let events = [
        fill(21, Side::Sell, 4, 0),
        cancelled(12, 3, CancelCause::SelfTrade),
        cancelled(11, 3, CancelCause::SelfTrade),
        fill(22, Side::Sell, 2, 0),
    ];
    expect![[r#"
        s1 trade c11 (9:11 at 0/0) i1 Incoming Buy 4 at 50, remaining 6
        s2 trade c21 (9:21 at 0/0) i1 Resting Sell 4 at 50, remaining 0
        s1 cancelled c12 (9:12 at 0/0) i1 3 SelfTrade
        s1 cancelled c11 (9:11 at 0/0) i1 3 SelfTrade
        s1 trade c11 (9:11 at 0/0) i1 Incoming Buy 2 at 50, remaining 1
        s2 trade c22 (9:22 at 0/0) i1 Resting Sell 2 at 50, remaining 0
    "#]]
    .assert_eq(&told(&[], &request(11, 1, Command::Enter(buy)), (Status::Resting, 6, 1), &events));
}

#[test]
fn in_an_auction_the_seller_rested_and_the_buyer_came_in() {
    let events = [
        Event::Auction {
            price: Price(50),
            quantity: Quantity(9),
            surplus: Quantity(1),
            surplus_side: Side::Buy,
            firm: true,
        },
        incoming(21, Side::Buy, 6, IncomingCause::Auction),
        fill(31, Side::Sell, 6, 3),
        incoming(22, Side::Buy, 4, IncomingCause::Auction),
        fill(31, Side::Sell, 3, 0),
        Event::PhaseEntered { phase: Phase::Continuous, until: Timestamp::NEVER, reference: None },
    ];
    let set_phase = request(1, 1, Command::SetPhase(Phase::Continuous));
    expect![[r#"
        s2 trade c21 (9:21 at 0/0) i1 Incoming Buy 6 at 50, remaining 0
        s3 trade c31 (9:31 at 0/0) i1 Resting Sell 6 at 50, remaining 3
        s2 trade c22 (9:22 at 0/0) i1 Incoming Buy 3 at 50, remaining 1
        s3 trade c31 (9:31 at 0/0) i1 Resting Sell 3 at 50, remaining 0
    "#]]
    .assert_eq(&told(&[], &set_phase, (Status::Accepted, 0, 0), &events));
}

#[test]
fn each_event_is_told_with_the_instrument_it_happened_in() {
    let events = [
        Event::Instrument(InstrumentId(1)),
        cancelled(11, 5, CancelCause::Expired),
        Event::Instrument(InstrumentId(3)),
        rested(21, Side::Buy, 5, 5, RestCause::Released),
        rested(31, Side::Buy, 5, 0, RestCause::Withdrawn),
    ];
    expect![[r#"
        s1 cancelled c11 (9:11 at 0/0) i1 5 Expired
        s2 news c21 (9:21 at 0/0) i3 Buy Released at 60, remaining 5, shown 5
        s3 news c31 (9:31 at 0/0) i3 Buy Withdrawn at 60, remaining 5, shown 0
    "#]]
    .assert_eq(&told(&[], &request(1, 0, Command::TIME), (Status::Accepted, 0, 0), &events));
}

#[test]
fn both_owners_are_told_of_a_busted_trade() {
    let buy = NewOrder::limit(Side::Buy, Price(60), Quantity(10));
    let before = [11, 21].map(|number| request(number, 1, Command::Enter(buy)));
    let trade = BustedTrade {
        position: Position(7),
        index: 2,
        resting: order(11),
        incoming: order(21),
        price: Price(50),
        quantity: Quantity(3),
        resting_side: Side::Sell,
        resting_owner: (MemberId(1), ClientOrderId(11)),
        incoming_owner: (MemberId(2), ClientOrderId(21)),
    };
    let BustedTrade { position, index, resting, incoming, price, quantity, .. } = trade;
    let events = [Event::Busted { resting, incoming, position, index, price, quantity }];
    let bust = request(1, 1, Command::Bust(trade));
    expect![[r#"
        s1 busted c11 (9:11 at 0/2) i1 3 at 50, traded at 7.2
        s2 busted c21 (9:21 at 0/2) i1 3 at 50, traded at 7.2
    "#]]
    .assert_eq(&told(&before, &bust, (Status::Accepted, 0, 0), &events));
}
