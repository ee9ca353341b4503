//! Names found, changed and forgotten.

use super::*;
use crate::SessionId;
use pares_types::{Amendment, Command, GatewayId, NewOrder, Price, RecorderId, ShardId, Timestamp};

fn enter(sequence: u64, member: u32, name: u64) -> Request {
    let order = NewOrder::market(Side::Buy, Quantity(1));
    Request {
        id: RequestId::new(GatewayId(1), sequence),
        stamp: Timestamp(0),
        member: MemberId(member),
        client_order_id: ClientOrderId(name),
        instrument: InstrumentId(1),
        shard: ShardId(0),
        command: Command::Enter(order),
    }
}

#[test]
fn every_name_and_order_is_found_after_growth() {
    let mut names = Names::new(4, 7);
    for sequence in 1..=1_000 {
        names.insert(&enter(sequence, sequence as u32 % 3, sequence));
    }
    for sequence in 1..=1_000 {
        let request = enter(sequence, sequence as u32 % 3, sequence);
        let index = names.find(request.member, request.client_order_id).unwrap();
        assert_eq!(names.get(index).id, request.id);
        let order = names.find_order(OrderId(request.id)).unwrap();
        assert_eq!(names.get(order).client_order_id.0, sequence);
    }
}

#[test]
fn the_same_name_of_two_members_is_two_names() {
    let mut names = Names::new(4, 0);
    names.insert(&enter(1, 1, 5));
    assert_eq!(names.find(MemberId(2), ClientOrderId(5)), None);
}

#[test]
fn an_order_that_lost_the_race_for_its_name_is_no_longer_found() {
    let mut names = Names::new(4, 0);
    let index = names.insert(&enter(1, 1, 5));
    names.identify(index, &enter(2, 1, 5));
    assert!(names.find_order(OrderId(RequestId::new(GatewayId(1), 1))).is_none());
    assert!(names.find_order(OrderId(RequestId::new(GatewayId(1), 2))).is_some());
}

#[test]
fn a_state_comes_back_as_it_was_set() {
    let request = enter(1, 1, 1);
    let mut entry = Name::new(&request, Names::new(1, 0).asked(&request));
    let answered = State::Answered(Some(Place { recorder: RecorderId(2), offset: 99 }));
    for state in [State::Pending(Some(SessionId(u64::MAX))), State::Pending(None), answered] {
        entry.set_state(state);
        assert_eq!(entry.state(), state);
    }
}

fn answered(names: &mut Names, sequence: u64, remaining: u64) {
    let request = enter(sequence, 1, sequence);
    let index = names.find_or_insert(&request);
    names.answer(
        index,
        Some(Place { recorder: RecorderId(0), offset: sequence }),
        (Quantity(0), Quantity(remaining)),
    );
}

fn known(names: &Names, sequence: u64) -> bool {
    names.find(MemberId(1), ClientOrderId(sequence)).is_some()
}

#[test]
fn oldest_finished_name_makes_room_and_moves_floor() {
    let mut names = Names::new(3, 7);
    (1..=9).for_each(|sequence| answered(&mut names, sequence, 0));
    assert_eq!((names.len(), names.needed()), (3, 0));
    assert!(!known(&names, 6) && known(&names, 7));
    let is_below_floor = |number| names.is_below_floor(MemberId(1), ClientOrderId(number));
    assert!(is_below_floor(1) && is_below_floor(6) && !is_below_floor(7) && !is_below_floor(10));
    assert!(!names.is_below_floor(MemberId(2), ClientOrderId(1)), "another member");
    assert!(!is_below_floor(1 << 48 | 1), "another series");
}

#[test]
fn what_is_in_flight_or_lives_is_never_forgotten() {
    let mut names = Names::new(3, 7);
    answered(&mut names, 1, 100);
    names.insert(&enter(2, 1, 2));
    (3..=9).for_each(|sequence| answered(&mut names, sequence, 0));
    assert!(known(&names, 1) && known(&names, 2) && known(&names, 9));
    assert_eq!((names.len(), names.needed()), (3, 2));

    let order = OrderId(enter(1, 1, 1).id);
    names.set_remaining(order, Quantity(40));
    names.set_remaining(order, Quantity::ZERO);
    (10..=12).for_each(|sequence| answered(&mut names, sequence, 0));
    assert!(!known(&names, 1) && names.find_order(order).is_none(), "nothing of it remains");
    names.set_remaining(order, Quantity(5));
    assert_eq!(names.needed(), 1);
}

#[test]
fn an_order_that_is_finished_stays_so() {
    let mut names = Names::new(1, 7);
    answered(&mut names, 1, 0);
    names.set_remaining(OrderId(enter(1, 1, 1).id), Quantity(5));
    answered(&mut names, 2, 0);
    answered(&mut names, 3, 0);
    assert_eq!((names.len(), names.needed()), (1, 0));
}

fn amend(sequence: u64, name: u64, order: u64, total: u64) -> Request {
    let target = OrderId(enter(order, 1, order).id);
    let command = Command::Amend(Amendment::new(target, Price(0), Quantity(total)));
    Request { command, ..enter(sequence, 1, name) }
}

/// Orders of 100 of member 1, answered, each with the number of its name.
fn hundreds(orders: &[u64]) -> Names {
    let mut names = Names::new(9, 0);
    for order in orders {
        let name = names.insert(&enter(*order, 1, *order));
        names.answer(name, None, (Quantity::ZERO, Quantity(100)));
    }
    names
}

fn open(names: &Names) -> u128 {
    names.open(MemberId(1), InstrumentId(1), Side::Buy)
}

/// The amend of order 1 is recorded: so many shares are there then.
fn record(names: &mut Names, amend: NameIndex, remaining: u64) {
    names.answer(amend, None, (Quantity::ZERO, Quantity::ZERO));
    names.set_remaining(OrderId(enter(1, 1, 1).id), Quantity(remaining));
}

#[test]
fn what_an_amend_takes_counts_until_further_ones_are_recorded() {
    let mut names = hundreds(&[1]);
    let totals = [(2, 10), (3, 100), (4, 120), (5, 30)];
    let amends = totals.map(|(name, total)| names.insert(&amend(name, name, 1, total)));
    assert_eq!(open(&names), 100 + 20, "the third adds");
    record(&mut names, amends[0], 10);
    assert_eq!(open(&names), 10 + 90 + 20);
    record(&mut names, amends[1], 100);
    assert_eq!(open(&names), 100 + 20);
    record(&mut names, amends[2], 120);
    assert_eq!(open(&names), 120);
    record(&mut names, amends[3], 30);
    assert_eq!(open(&names), 30, "none is in flight");
    names.set_remaining(OrderId(enter(1, 1, 1).id), Quantity::ZERO);
    assert!(names.is_at_rest());
}

#[test]
fn what_is_kept_ends_with_the_order() {
    let mut names = hundreds(&[1]);
    let [down, up] = [(2, 10), (3, 100)].map(|(name, total)| names.insert(&amend(name, name, 1, total)));
    record(&mut names, down, 10);
    names.set_remaining(OrderId(enter(1, 1, 1).id), Quantity::ZERO);
    assert_eq!(open(&names), 0);
    names.answer(up, None, (Quantity::ZERO, Quantity::ZERO));
    assert!(names.is_at_rest());
}

#[test]
fn an_amend_that_another_gateway_sent_first_is_one() {
    let mut names = hundreds(&[1, 2]);
    let name = names.insert(&amend(3, 9, 1, 150));
    assert_eq!(open(&names), 250);
    names.identify(name, &amend(4, 9, 2, 130));
    assert_eq!(open(&names), 230, "another order even");
    names.answer(name, None, (Quantity::ZERO, Quantity::ZERO));
    assert_eq!(open(&names), 200);
    names.set_remaining(OrderId(enter(1, 1, 1).id), Quantity(40));
    assert_eq!(open(&names), 140, "nothing is kept of the first");
}

#[test]
fn what_is_lost_does_not_count_and_its_repeat_does() {
    let mut names = hundreds(&[1]);
    let (order, raise) = (names.insert(&enter(5, 1, 5)), names.insert(&amend(6, 6, 1, 130)));
    assert_eq!((open(&names), names.orders_of(MemberId(1))), (131, 2));
    names.set_lost(order);
    names.set_lost(raise);
    assert_eq!((open(&names), names.orders_of(MemberId(1))), (100, 1));
    names.identify(order, &enter(7, 1, 5));
    names.identify(raise, &amend(8, 6, 1, 130));
    assert_eq!((open(&names), names.orders_of(MemberId(1))), (131, 2));
}

#[test]
fn an_order_for_more_shares_than_there_can_be_hides_no_other() {
    let mut names = hundreds(&[1, 2]);
    let huge = [3, 4].map(|name| {
        let order = NewOrder::market(Side::Buy, Quantity(u64::MAX));
        names.insert(&Request { command: Command::Enter(order), ..enter(name, 1, name) })
    });
    assert_eq!(open(&names), 200 + 2 * u128::from(u64::MAX));
    huge.into_iter().for_each(|name| names.answer(name, None, (Quantity::ZERO, Quantity::ZERO)));
    assert_eq!(open(&names), 200);
}

#[test]
fn orders_that_are_refused_leave_nothing_behind() {
    let mut names = Names::new(9, 0);
    for id in 1..1_000 {
        let name = names.insert(&Request { instrument: InstrumentId(id), ..enter(id.into(), id, 1) });
        names.answer(name, None, (Quantity::ZERO, Quantity::ZERO));
    }
    assert!(names.is_at_rest());
}
