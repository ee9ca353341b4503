//! Whole stories and what every session receives, line by line.

use std::fmt::Write;

use expect_test::expect;
use pares_types::{
    Answer, ClientOrderId, ClientRequest, InstrumentId, MemberId, OrderId, OrderNews, Position, Price, Reply,
    RequestDigest, ShardId, Side, Trade, TradeBusted,
};

use super::world::{World, amend, cancel, enter, mass_cancel};

/// What the gateways said since the last call, one line each.
fn told(world: &mut World) -> String {
    let mut lines = String::new();
    for gate in 0..2 {
        for (session, reply) in world.replies(gate) {
            writeln!(lines, "g{} s{session} {}", gate + 1, line(&reply)).unwrap();
        }
    }
    lines
}

pub(super) fn line(reply: &Reply) -> String {
    // Whose order, where, and in what.
    let about =
        |name: ClientOrderId, order: OrderId, shard: ShardId, position: Position, of: InstrumentId| {
            format!("c{name} ({order} at {shard}/{position}) i{of}")
        };
    match *reply {
        Reply::Journalled { client_order_id, request } => {
            format!("journalled c{client_order_id} as {request}")
        }
        Reply::Answer(of) => {
            let Answer { client_order_id, request, shard, position, status, reason, .. } = of;
            let Answer { order, executed, remaining, events, repeat, .. } = of;
            let repeat = if repeat { " (repeat)" } else { "" };
            format!(
                "answer c{client_order_id} ({request} at {shard}/{position}) {status:?} {reason:?}: \
                 order {order} executed {executed} remaining {remaining} events {events}{repeat}"
            )
        }
        Reply::Trade(of) => {
            let about = about(of.client_order_id, of.order, of.shard, of.position, of.instrument);
            let Trade { role, side, quantity, price: Price(price), remaining, .. } = of;
            format!("trade {about} {role:?} {side:?} {quantity} at {price}, remaining {remaining}")
        }
        Reply::Cancelled(of) => {
            let about = about(of.client_order_id, of.order, of.shard, of.position, of.instrument);
            format!("cancelled {about} {} {:?}", of.quantity, of.cause)
        }
        Reply::News(of) => {
            let about = about(of.client_order_id, of.order, of.shard, of.position, of.instrument);
            let OrderNews { side, change, price: Price(price), remaining, shown, .. } = of;
            format!("news {about} {side:?} {change:?} at {price}, remaining {remaining}, shown {shown}")
        }
        Reply::Busted(of) => {
            let about = about(of.client_order_id, of.order, of.shard, of.position, of.instrument);
            let TradeBusted { quantity, price: Price(price), traded_at, index, .. } = of;
            format!("busted {about} {quantity} at {price}, traded at {traded_at}.{index}")
        }
        Reply::Rejected { client_order_id, reason } => format!("rejected c{client_order_id} {reason}"),
    }
}

/// Member 7 has sessions 1 (first gateway) and 2 (second); member 8 has session 3 (second).
fn market() -> World {
    let mut world = World::new();
    world.sign_on(0, 1, 7);
    world.sign_on(1, 2, 7);
    world.sign_on(1, 3, 8);
    world
}

/// Sessions 1 and 4 at one gateway, 2 at another, all of member 7.
#[test]
fn another_request_under_an_unanswered_name_is_refused() {
    let mut world = market();
    world.sign_on(0, 4, 7);
    world.ask(0, 1, enter(1, 1, Side::Sell, 100, 50));
    world.ask(0, 4, enter(1, 1, Side::Buy, 7, 45));
    world.ask(0, 4, mass_cancel(1, 1));
    world.ask(1, 2, enter(1, 1, Side::Sell, 99, 50));
    expect![[r#"
        g1 s4 rejected c1 duplicate_request
        g1 s4 rejected c1 duplicate_request
    "#]]
    .assert_eq(&told(&mut world));
    world.settle();
    expect![[r#"
        g1 s1 answer c1 (1:1 at 0/0) Resting None: order 1:1 executed 0 remaining 100 events 0
        g2 s2 rejected c1 duplicate_request
    "#]]
    .assert_eq(&told(&mut world));
    // The same request is a repeat wherever it comes from.
    world.ask(0, 1, enter(2, 1, Side::Sell, 5, 50));
    world.ask(0, 4, enter(2, 1, Side::Sell, 5, 50));
    world.ask(1, 2, enter(2, 1, Side::Sell, 5, 50));
    world.settle();
    expect![[r#"
        g1 s4 answer c2 (1:2 at 0/2) Resting None: order 1:2 executed 0 remaining 5 events 0
        g2 s2 answer c2 (1:2 at 0/2) Resting None: order 1:2 executed 0 remaining 5 events 0
    "#]]
    .assert_eq(&told(&mut world));
}

/// What another gateway took in is known before it is committed, and so is what this one took in before it was started again.
#[test]
fn another_request_under_a_name_in_flight_elsewhere_is_refused() {
    let mut world = market();
    world.ask(0, 1, enter(1, 1, Side::Sell, 100, 50));
    world.ask(0, 1, amend(3, 1, 50, 40));
    world.ask(0, 1, cancel(4, 1));
    while world.read_peer(1) {}
    let others =
        [enter(1, 1, Side::Buy, 100, 50), cancel(1, 9), amend(3, 9, 50, 40), cancel(3, 1), cancel(4, 9)];
    others.into_iter().for_each(|other| world.ask(1, 2, other));
    world.ask(1, 2, enter(1, 1, Side::Sell, 100, 50));
    world.restart(0, super::world::config(0));
    world.sign_on(0, 4, 7);
    world.ask(0, 4, enter(1, 1, Side::Buy, 100, 50));
    world.settle();
    expect![[r#"
        g1 s4 rejected c1 duplicate_request
        g1 s4 answer c1 (1:1 at 0/0) Resting None: order 1:1 executed 0 remaining 100 events 0
        g1 s4 answer c3 (1:2 at 0/1) Resting None: order 1:1 executed 0 remaining 50 events 0
        g1 s4 cancelled c1 (1:1 at 0/2) i1 50 Requested
        g1 s4 answer c4 (1:3 at 0/2) Cancelled Requested: order 1:1 executed 0 remaining 0 events 1
        g2 s2 rejected c1 duplicate_request
        g2 s2 rejected c1 duplicate_request
        g2 s2 rejected c3 duplicate_request
        g2 s2 rejected c3 duplicate_request
        g2 s2 rejected c4 duplicate_request
        g2 s2 answer c1 (1:1 at 0/0) Resting None: order 1:1 executed 0 remaining 100 events 0
        g2 s2 cancelled c1 (1:1 at 0/2) i1 50 Requested
    "#]]
    .assert_eq(&told(&mut world));
}

/// Two gateways that took the order in know it by different ids until it is committed.
#[test]
fn changes_repeated_where_the_order_has_another_id_are_joined() {
    for reads_first in [true, false] {
        let mut world = market();
        let requests = [enter(1, 1, Side::Sell, 100, 50), amend(4, 1, 50, 50), cancel(3, 1)];
        requests.into_iter().for_each(|request| world.ask(0, 1, request));
        world.ask(1, 2, requests[0]);
        while reads_first && world.read_peer(1) {}
        requests.into_iter().for_each(|request| world.ask(1, 2, request));
        if reads_first {
            let others = [amend(3, 1, 50, 50), cancel(4, 1), amend(4, 2, 50, 50)];
            others.into_iter().for_each(|other| world.ask(1, 2, other));
            assert_eq!(told(&mut world).matches("duplicate_request").count(), 3);
        }
        world.settle();
        assert_eq!(
            world.replies(1).iter().map(|(_, reply)| line(reply)).collect::<Vec<_>>(),
            [
                "answer c1 (1:1 at 0/0) Resting None: order 1:1 executed 0 remaining 100 events 0",
                "answer c4 (1:2 at 0/1) Resting None: order 1:1 executed 0 remaining 50 events 0",
                "cancelled c1 (1:1 at 0/2) i1 50 Requested",
                "answer c3 (1:3 at 0/2) Cancelled Requested: order 1:1 executed 0 remaining 0 events 1",
            ],
            "reads first: {reads_first}"
        );
    }
}

/// A repeat is one of the same order; of an order that is not known here a gateway cannot tell.
#[test]
fn cancel_under_name_of_another_order_s_cancel_is_refused() {
    let mut world = market();
    for request in [enter(1, 1, Side::Sell, 100, 50), enter(2, 1, Side::Sell, 100, 50), cancel(3, 1)] {
        world.ask(0, 1, request);
        world.settle();
    }
    let first = told(&mut world);
    for (gateway, session) in [(0, 1), (1, 2)] {
        world.ask(gateway, session, cancel(3, 2));
        assert!(told(&mut world).contains("rejected c3 duplicate_request"));
        world.ask(gateway, session, cancel(3, 1));
        let again = told(&mut world);
        assert!(again.contains("answer c3 (1:3 at 0/2) Cancelled Requested: order 1:1"), "{first}{again}");
    }
}

/// The order's gateway is slower than the cancel's.
#[test]
fn a_cancel_of_an_order_not_read_yet_is_joined_by_its_kind() {
    let mut world = market();
    world.ask(0, 1, enter(1, 1, Side::Sell, 100, 50));
    world.ask(0, 1, cancel(3, 1));
    let cancels = world.gates[0].sink.log[1];
    world.gates[1].gateway.on_peer_request(&cancels);
    world.ask(1, 2, cancel(3, 1));
    world.ask(1, 2, amend(3, 1, 50, 50));
    world.ask(1, 2, mass_cancel(3, 1));
    world.settle();
    expect![[r#"
        g1 s1 answer c1 (1:1 at 0/0) Resting None: order 1:1 executed 0 remaining 100 events 0
        g1 s1 cancelled c1 (1:1 at 0/1) i1 100 Requested
        g1 s1 answer c3 (1:2 at 0/1) Cancelled Requested: order 1:1 executed 0 remaining 0 events 1
        g2 s2 rejected c3 duplicate_request
        g2 s2 rejected c3 duplicate_request
        g2 s2 cancelled c1 (1:1 at 0/1) i1 100 Requested
        g2 s2 answer c3 (1:2 at 0/1) Cancelled Requested: order 1:1 executed 0 remaining 0 events 1
    "#]]
    .assert_eq(&told(&mut world));
}

/// Both are executed, each in its shard.
#[test]
fn requests_of_two_shards_under_one_name_have_their_own_answers() {
    let others = [enter(1, 2, Side::Buy, 7, 45), mass_cancel(1, 2), cancel(1, 5), amend(1, 5, 30, 45)];
    for other in others {
        let mut world = market();
        world.ask(1, 2, enter(5, 2, Side::Buy, 10, 45));
        world.settle();
        told(&mut world);
        world.ask(0, 1, enter(1, 1, Side::Sell, 100, 50));
        world.ask(1, 2, other);
        world.settle();
        let answers = [0, 1].map(|gate| answers(&mut world, gate));
        let first = enter(1, 1, Side::Sell, 100, 50).asked();
        assert_eq!(answers, [vec![(ShardId(0), first)], vec![(ShardId(1), other.asked())]]);
    }
}

fn answers(world: &mut World, gate: usize) -> Vec<(ShardId, RequestDigest)> {
    let answer = |(_, reply)| match reply {
        Reply::Answer(answer) => Some((answer.shard, answer.asked)),
        _ => None,
    };
    world.replies(gate).into_iter().filter_map(answer).collect()
}

/// The shares that an amend may add count until its own record says what it did.
#[test]
fn an_amend_without_its_name_counts_for_limits() {
    let mut world = market();
    world.ask(1, 2, enter(5, 2, Side::Buy, 10, 45));
    world.settle();
    world.ask(1, 2, amend(1, 5, 30, 45));
    world.ask(0, 1, enter(1, 1, Side::Sell, 100, 50));
    let open = |world: &World| world.gates[1].gateway.names.open(MemberId(7), InstrumentId(2), Side::Buy);
    assert!(world.commit(0, 0) && world.follow(1, 0));
    assert_eq!(open(&world), 30, "10 of the order and 20 of the amend");
    world.settle();
    assert_eq!(open(&world), 30, "all of the order");
    [cancel(6, 5), cancel(7, 1)].into_iter().for_each(|last| world.ask(1, 2, last));
    world.settle();
    assert!(world.gates[1].gateway.names.is_at_rest());
}

/// Nothing of it is done, and a repeat gets the answer of the request that has the name.
#[test]
fn a_lost_request_whose_name_another_shard_took_is_refused() {
    let others = [enter(1, 2, Side::Buy, 7, 45), mass_cancel(1, 2), cancel(1, 5), amend(1, 5, 30, 45)];
    for (other, is_lost_first) in others.into_iter().flat_map(|other| [(other, false), (other, true)]) {
        let mut world = market();
        world.ask(1, 2, enter(5, 2, Side::Buy, 10, 45));
        world.settle();
        world.ask(1, 2, other);
        world.ask(1, 2, enter(2, 2, Side::Buy, 8, 45));
        world.ask(0, 1, enter(1, 1, Side::Sell, 100, 50));
        told(&mut world);
        world.lose(1, 1);
        assert!(world.commit(1, 1) && world.commit(0, 0));
        let shards = if is_lost_first { [1, 0] } else { [0, 1] };
        assert!(shards.into_iter().all(|shard| world.follow(1, shard)));
        let mut replies: Vec<_> = world.replies(1).iter().map(|(_, reply)| line(reply)).collect();
        replies.sort();
        let second = "answer c2 (2:3 at 1/1) Resting None: order 2:3 executed 0 remaining 8 events 0";
        assert_eq!(replies, [second, "rejected c1 duplicate_request"], "{other:?}, {is_lost_first}");
        assert_eq!(world.gates[1].gateway.names_needed(), 3, "three orders live");
    }
}

/// It is an order of another gateway, taken in under a name that another shard's order has.
#[test]
fn an_order_without_its_name_that_is_lost_counts_no_more() {
    let mut world = market();
    world.ask(0, 1, enter(1, 1, Side::Sell, 100, 50));
    world.ask(1, 2, enter(1, 2, Side::Buy, 7, 45));
    while world.read_peer(0) {}
    let orders = |world: &World| world.gates[0].gateway.names.orders_of(MemberId(7));
    assert_eq!(orders(&world), 2);
    world.ask(1, 2, enter(2, 2, Side::Buy, 8, 45));
    world.lose(1, 1);
    world.settle();
    assert_eq!(orders(&world), 2, "1 in shard 0, and 2");
}

/// Two requests to all shards under one name, each first in one shard: neither session gets the other's answer.
#[test]
fn parts_of_another_request_are_no_answer() {
    let mut world = market();
    let of_side = |side| ClientRequest::MassCancel {
        client_order_id: ClientOrderId(1),
        instrument: InstrumentId(0),
        side: Some(side),
    };
    world.ask(0, 1, of_side(Side::Sell));
    world.ask(1, 2, of_side(Side::Buy));
    [0, 1].into_iter().for_each(|one| _ = world.commit(one, one));
    world.settle();
    expect![[r#"
        g1 s1 rejected c1 duplicate_request
        g2 s2 rejected c1 duplicate_request
    "#]]
    .assert_eq(&told(&mut world));
}

#[test]
fn a_sell_rests_and_is_bought_in_two_pieces() {
    let mut world = market();
    world.ask(0, 1, enter(1, 1, Side::Sell, 100, 50));
    world.settle();
    world.ask(1, 3, enter(1, 1, Side::Buy, 60, 55));
    world.settle();
    world.ask(1, 3, enter(2, 1, Side::Buy, 60, 50));
    world.settle();
    expect![[r#"
        g1 s1 answer c1 (1:1 at 0/0) Resting None: order 1:1 executed 0 remaining 100 events 0
        g1 s1 trade c1 (1:1 at 0/1) i1 Resting Sell 60 at 50, remaining 40
        g1 s1 trade c1 (1:1 at 0/2) i1 Resting Sell 40 at 50, remaining 0
        g2 s3 trade c1 (2:1 at 0/1) i1 Incoming Buy 60 at 50, remaining 0
        g2 s2 trade c1 (1:1 at 0/1) i1 Resting Sell 60 at 50, remaining 40
        g2 s3 answer c1 (2:1 at 0/1) Filled None: order 2:1 executed 60 remaining 0 events 1
        g2 s3 trade c2 (2:2 at 0/2) i1 Incoming Buy 40 at 50, remaining 20
        g2 s2 trade c1 (1:1 at 0/2) i1 Resting Sell 40 at 50, remaining 0
        g2 s3 answer c2 (2:2 at 0/2) Resting None: order 2:2 executed 40 remaining 20 events 1
    "#]]
    .assert_eq(&told(&mut world));
}

#[test]
fn an_amended_order_trades_under_its_own_name() {
    let mut world = market();
    world.ask(1, 3, enter(1, 1, Side::Buy, 30, 50));
    world.ask(0, 1, enter(1, 1, Side::Sell, 100, 60));
    world.settle();
    told(&mut world);
    world.ask(0, 1, amend(2, 1, 80, 50));
    world.ask(0, 1, cancel(3, 1));
    world.settle();
    expect![[r#"
        g1 s1 trade c1 (1:1 at 0/2) i1 Incoming Sell 30 at 50, remaining 50
        g1 s1 answer c2 (1:2 at 0/2) Resting None: order 1:1 executed 30 remaining 50 events 1
        g1 s1 cancelled c1 (1:1 at 0/3) i1 50 Requested
        g1 s1 answer c3 (1:3 at 0/3) Cancelled Requested: order 1:1 executed 30 remaining 0 events 1
        g2 s2 trade c1 (1:1 at 0/2) i1 Incoming Sell 30 at 50, remaining 50
        g2 s3 trade c1 (2:1 at 0/2) i1 Resting Buy 30 at 50, remaining 0
        g2 s2 cancelled c1 (1:1 at 0/3) i1 50 Requested
    "#]]
    .assert_eq(&told(&mut world));
}
