//! How much a member may buy or sell on a business day.

use pares_types::{
    BusinessDay, BustedTrade, ClientOrderId, Command, Entry, InstrumentId, MemberId, OrderId, Position,
    Price, Quantity, Reason, Reply, Side,
};

use super::permits::{FIRST, Floor, OPERATOR, OTHER, TRADER};
use super::world::{GATEWAYS, World, amend, cancel, config, enter};
use crate::GatewayConfig;

/// A member that trades with all who come.
const MAKER: u64 = 30;

/// Member 7 may go 100 shares either way; member 8 has no limit.
fn limited() -> Floor {
    let mut floor = Floor::new();
    floor.register(8, 0, Entry::AddMember);
    floor.register(8, 1, Entry::SetKey(super::permits::key(4)));
    assert_eq!(floor.sign_on(MAKER, 8, 1), Ok(()));
    floor.register(7, 0, Entry::SetPositionMax(100));
    floor
}

fn buy(floor: &mut Floor, session: u64, name: u64, quantity: u64) -> Option<Reason> {
    floor.ask(session, enter(name, 1, Side::Buy, quantity, 100))
}

fn sell(floor: &mut Floor, session: u64, name: u64, quantity: u64) -> Option<Reason> {
    floor.ask(session, enter(name, 1, Side::Sell, quantity, 100))
}

const BEYOND: Option<Reason> = Some(Reason::PositionLimit);

#[test]
fn potential_trades_count_across_sessions_per_side() {
    let mut floor = limited();
    assert_eq!((buy(&mut floor, TRADER, 500, 60), buy(&mut floor, OTHER, 501, 41)), (None, BEYOND));
    assert_eq!(buy(&mut floor, OTHER, 501, 40), None, "its name stayed free");
    assert_eq!(floor.ask(TRADER, enter(502, 2, Side::Buy, 100, 100)), None, "another instrument");
    assert_eq!(floor.ask(TRADER, enter(503, 1, Side::Sell, 101, 200)), BEYOND);
    assert_eq!(floor.ask(TRADER, enter(503, 1, Side::Sell, 100, 200)), None);
    assert_eq!(floor.ask(TRADER, cancel(504, 500)), None);
    assert_eq!((buy(&mut floor, TRADER, 505, 61), buy(&mut floor, TRADER, 505, 60)), (BEYOND, None));
    assert_eq!(buy(&mut floor, MAKER, 500, 1_000_000), None, "no limit");
}

#[test]
fn what_traded_counts_until_it_is_traded_back() {
    let mut floor = limited();
    assert_eq!(sell(&mut floor, MAKER, 500, 70), None);
    assert_eq!(buy(&mut floor, TRADER, 500, 90), None, "70 trade at once, 20 rest");
    assert_eq!((buy(&mut floor, TRADER, 501, 11), buy(&mut floor, TRADER, 501, 10)), (BEYOND, None));
    assert_eq!(sell(&mut floor, MAKER, 501, 30), None, "all is bought: 100");
    assert_eq!(buy(&mut floor, TRADER, 502, 1), BEYOND);
    assert_eq!((sell(&mut floor, TRADER, 503, 201), sell(&mut floor, TRADER, 503, 200)), (BEYOND, None));
    assert_eq!(buy(&mut floor, MAKER, 502, 150), None, "100 bought, 150 sold, 50 to sell");
    assert_eq!((buy(&mut floor, TRADER, 504, 151), buy(&mut floor, TRADER, 504, 150)), (BEYOND, None));
}

#[test]
fn an_amend_counts_by_what_it_adds() {
    let mut floor = limited();
    assert_eq!(sell(&mut floor, MAKER, 500, 30), None);
    assert_eq!(buy(&mut floor, TRADER, 500, 80), None, "30 trade, 50 rest");
    assert_eq!(floor.ask(TRADER, amend(501, 500, 80, 99)), None, "another price adds nothing");
    assert_eq!(floor.ask(TRADER, amend(502, 500, 101, 99)), BEYOND);
    assert_eq!(floor.ask(TRADER, amend(502, 500, 100, 99)), None);
    assert_eq!(buy(&mut floor, TRADER, 503, 1), BEYOND);
    assert_eq!(floor.ask(TRADER, amend(504, 500, 60, 99)), None);
    assert_eq!((buy(&mut floor, TRADER, 505, 41), buy(&mut floor, TRADER, 505, 40)), (BEYOND, None));
}

#[test]
fn what_is_in_flight_counts_amends_too() {
    let mut floor = limited();
    assert_eq!(buy(&mut floor, TRADER, 500, 50), None);
    let told = |floor: &Floor| floor.world.gates[0].sink.replies.len();
    floor.world.gates[0].sink.replies.clear();
    floor.world.ask(0, TRADER, amend(501, 500, 80, 100));
    floor.world.ask(0, TRADER, enter(502, 1, Side::Buy, 20, 100));
    assert_eq!(told(&floor), 0, "both are taken in, and in flight");
    floor.world.ask(0, TRADER, enter(503, 1, Side::Buy, 1, 100));
    floor.world.ask(0, TRADER, amend(504, 500, 51, 100));
    assert_eq!(told(&floor), 2, "100 are in flight; an amend is held against the order as it was answered");
    floor.world.settle();
    assert_eq!(buy(&mut floor, TRADER, 505, 1), BEYOND);
}

#[test]
fn an_order_made_small_for_a_moment_makes_no_room() {
    let mut floor = limited();
    assert_eq!(buy(&mut floor, TRADER, 500, 100), None);
    floor.world.gates[0].sink.replies.clear();
    floor.world.ask(0, TRADER, amend(501, 500, 10, 100));
    floor.world.ask(0, TRADER, amend(502, 500, 100, 100));
    assert!(floor.world.gates[0].sink.replies.is_empty(), "both are taken in");
    floor.world.commit(0, 0);
    floor.world.follow(0, 0);
    floor.world.gates[0].sink.replies.clear();
    floor.world.ask(0, TRADER, enter(503, 1, Side::Buy, 1, 100));
    let refused = floor.world.gates[0].sink.replies.last().map(|(_, reply)| *reply);
    let reason = Reason::PositionLimit;
    assert_eq!(refused, Some(Reply::Rejected { client_order_id: ClientOrderId(503), reason }));
    floor.world.settle();
    assert_eq!(floor.ask(TRADER, amend(504, 500, 90, 100)), None);
    assert_eq!((buy(&mut floor, TRADER, 505, 11), buy(&mut floor, TRADER, 505, 10)), (BEYOND, None));
}

#[test]
fn unlimited_session_counts_for_limited_one() {
    let mut floor = limited();
    floor.register(7, 0, Entry::SetPositionMax(0));
    floor.register(7, 2, Entry::SetPositionMax(100));
    assert_eq!(buy(&mut floor, TRADER, 500, 50), None);
    floor.world.ask(0, TRADER, amend(501, 500, 90, 100));
    floor.world.gates[0].sink.replies.clear();
    floor.world.ask(0, OTHER, enter(502, 1, Side::Buy, 11, 100));
    assert_eq!(floor.world.gates[0].sink.replies.len(), 1, "refused");
    let open = |floor: &Floor, gate: usize| {
        floor.world.gates[gate].gateway.names.open(MemberId(7), InstrumentId(1), Side::Buy)
    };
    while open(&floor, 1) < 90 && floor.world.read_peer(1) {}
    assert_eq!(open(&floor, 1), 90, "at the other gateway too");
    floor.world.restart_from(0, GatewayConfig { sign_on_required: true, ..config(0) }, [0; 2]);
    assert_eq!(open(&floor, 0), 90, "and after a restart");
}

#[test]
fn stricter_of_member_and_session_limit_applies() {
    let mut floor = limited();
    floor.register(7, 2, Entry::SetPositionMax(10));
    assert_eq!(buy(&mut floor, TRADER, 500, 50), None);
    assert_eq!(buy(&mut floor, OTHER, 501, 1), BEYOND, "it would take the member beyond 10");
    assert_eq!(sell(&mut floor, OTHER, 502, 10), None);
    floor.register(7, 0, Entry::SetPositionMax(20));
    assert_eq!(buy(&mut floor, TRADER, 503, 1), BEYOND);
    floor.register(7, 0, Entry::SetPositionMax(0));
    assert_eq!(buy(&mut floor, TRADER, 503, 1_000), None);
    assert_eq!(buy(&mut floor, OTHER, 504, 1), BEYOND);
}

/// The trade of member 7's order, which came in first, with that of member 8.
fn bust(floor: &mut Floor, position: Position) -> Option<Reason> {
    let trade = BustedTrade {
        position,
        index: 0,
        resting: OrderId(floor.world.gates[0].sink.log[0].id),
        incoming: OrderId(floor.world.gates[0].sink.log[0].id),
        price: Price(100),
        quantity: Quantity(100),
        resting_side: Side::Buy,
        resting_owner: (MemberId(7), ClientOrderId(500)),
        incoming_owner: (MemberId(8), ClientOrderId(500)),
    };
    floor.operate(OPERATOR, FIRST, 1, Command::Bust(trade))
}

#[test]
fn void_and_earlier_day_trades_do_not_count() {
    let mut floor = limited();
    assert_eq!((buy(&mut floor, TRADER, 500, 100), sell(&mut floor, MAKER, 500, 100)), (None, None));
    let traded_at = floor.world.shards[0].committed.last().unwrap().position;
    assert_eq!(buy(&mut floor, TRADER, 501, 1), BEYOND);
    assert_eq!(bust(&mut floor, traded_at), None);
    assert_eq!((buy(&mut floor, TRADER, 501, 101), buy(&mut floor, TRADER, 501, 100)), (BEYOND, None));
    assert_eq!(floor.ask(TRADER, cancel(502, 501)), None);
    assert_eq!(floor.operate(OPERATOR, FIRST, 0, Command::BeginDay { day: BusinessDay(1) }), None);
    assert_eq!(bust(&mut floor, traded_at), None);
    assert_eq!(buy(&mut floor, TRADER, 503, 101), BEYOND, "the day began without a position");
    assert_eq!((buy(&mut floor, TRADER, 503, 100), sell(&mut floor, MAKER, 501, 100)), (None, None));
    assert_eq!(floor.operate(OPERATOR, FIRST, 0, Command::BeginDay { day: BusinessDay(1) }), None);
    assert_eq!(buy(&mut floor, TRADER, 504, 1), BEYOND, "a day that is begun in steps begins once");
}

#[test]
fn a_day_begins_without_positions_but_orders_that_stay_count() {
    let mut floor = limited();
    assert_eq!((buy(&mut floor, TRADER, 500, 90), sell(&mut floor, MAKER, 500, 50)), (None, None));
    assert_eq!(floor.operate(OPERATOR, FIRST, 0, Command::BeginDay { day: BusinessDay(1) }), None);
    assert_eq!((buy(&mut floor, TRADER, 501, 61), buy(&mut floor, TRADER, 501, 60)), (BEYOND, None));
}

#[test]
fn two_orders_that_were_taken_in_under_one_name_count_both() {
    let mut world = World::new();
    world.sign_on(0, 1, 7);
    world.sign_on(1, 2, 7);
    world.ask(0, 1, enter(500, 1, Side::Buy, 10, 100));
    world.ask(1, 2, enter(500, 2, Side::Buy, 20, 100));
    let open = |world: &World, gate: usize| {
        let names = &world.gates[gate].gateway.names;
        [1, 2].map(|id| names.open(MemberId(7), InstrumentId(id), Side::Buy))
    };
    while world.read_peer(1) {}
    assert_eq!(open(&world, 1), [10, 20], "both are in flight");
    world.commit(0, 0);
    world.follow(1, 0);
    assert_eq!(open(&world, 1), [10, 20], "the first is recorded under the name, the other is in flight");
    world.restart_from(1, config(1), [0, 0]);
    assert_eq!(open(&world, 1), [10, 20], "and after a restart");
    world.sign_on(1, 2, 7);
    world.settle();
    let check = |world: &World, gate: usize| {
        let names = &world.gates[gate].gateway.names;
        let open = [1, 2].map(|id| names.open(MemberId(7), InstrumentId(id), Side::Buy));
        assert_eq!((open, names.orders_of(MemberId(7))), ([10, 20], 2), "gateway {gate}");
        assert_eq!(names.orders_in(MemberId(7), 0..names.places()).count(), 2);
    };
    (0..GATEWAYS).for_each(|gate| check(&world, gate));
    for taken in [[1, 1], [1, 0], [0, 1], [0, 0]] {
        world.restart_from(0, config(0), taken);
        check(&world, 0);
    }
    world.sign_on(1, 3, 7);
    world.ask(1, 3, super::world::mass_cancel(501, 0));
    world.settle();
    (0..GATEWAYS).for_each(|gate| assert!(world.gates[gate].gateway.names.is_at_rest()));
}
