//! What a line asks of a gateway, and what it tells of what comes back.

use pares_exercise::replies::{self, order_status};
use pares_types::{InstrumentId, List, ListEnd, ListRequest, OrderKey, Quantity, Status};
use pares_wire::frame::{ClientFrame, RESUME_NOTHING, decode_client, split};

use super::*;

mod names;

type Effects = Vec<Effect<u32>>;

fn cancel(name: u64) -> ClientRequest {
    ClientRequest::Cancel { client_order_id: ClientOrderId(name), target: ClientOrderId(1) }
}

fn answer(name: u64, number: u64) -> Answer {
    let (status, reason, remaining) = (Status::Cancelled, Reason::Requested, Quantity(0));
    let order = replies::order_id(1);
    Answer { order, status, reason, remaining, events: 1, ..replies::answer(name, number) }
}

fn sent(line: &mut Line<u32>) -> Vec<ClientFrame> {
    let (mut out, mut frames) = (Vec::new(), Vec::new());
    line.take_out(&mut out);
    let mut rest = &out[..];
    while let Some((kind, body, behind)) = split(rest).unwrap() {
        frames.push(decode_client(kind, body).unwrap());
        rest = behind;
    }
    frames
}

fn hear(line: &mut Line<u32>, frame: GatewayFrame) -> Effects {
    let mut effects = Vec::new();
    line.on_frame(frame, |effect| effects.push(effect));
    effects
}

/// Who waits no more.
const GONE: u32 = 99;

fn up() -> Line<u32> {
    let mut line = Line::new(|waiter| *waiter == GONE);
    line.on_signed_on(4, None);
    line
}

/// Follows the shard, which stands at `next`.
fn live(next: u64) -> Line<u32> {
    let mut line = up();
    line.follow(ShardId(0), 0);
    hear(&mut line, resumed(next));
    line
}

fn resume(next: u64) -> ClientFrame {
    ClientFrame::Resume { shard: Some(ShardId(0)), next }
}

fn resumed(next: u64) -> GatewayFrame {
    GatewayFrame::Resumed { shard: ShardId(0), next, reason: Reason::None }
}

fn not_kept(next: u64) -> GatewayFrame {
    GatewayFrame::Resumed { shard: ShardId(0), next, reason: Reason::NotKept }
}

fn answered(name: u64, number: u64) -> GatewayFrame {
    GatewayFrame::Reply(Reply::Answer(answer(name, number)))
}

fn told(name: u64) -> GatewayFrame {
    GatewayFrame::OrderStatus(OrderKey::Name(ClientOrderId(name)), Some(order_status(name)))
}

#[test]
fn lost_connection_requests_repeat_by_name_in_order() {
    let mut line = up();
    for (waiter, name) in [(1, 30), (2, 10), (3, 20)] {
        line.ask(cancel(name), waiter).unwrap();
    }
    let first = sent(&mut line);
    hear(&mut line, answered(10, 0));
    line.on_lost();
    line.ask(cancel(5), 4).unwrap();
    assert_eq!(sent(&mut line), []);
    line.on_signed_on(4, None);
    assert_eq!(sent(&mut line), [first[0], first[2], ClientFrame::Request(cancel(5))]);
    assert_eq!(hear(&mut line, answered(30, 0)), [Effect::Told(1, LineTold::Answer(answer(30, 0)))]);
}

#[test]
fn a_name_in_flight_is_one_request_and_all_who_wait_are_told() {
    let mut line = up();
    line.ask(cancel(7), 1).unwrap();
    line.ask(cancel(7), 2).unwrap();
    assert_eq!(sent(&mut line).len(), 1);
    let rejected = Reply::Rejected { client_order_id: ClientOrderId(7), reason: Reason::Throttled };
    let effects = hear(&mut line, GatewayFrame::Reply(rejected));
    let told = LineTold::Rejected(Reason::Throttled);
    assert_eq!(effects, [Effect::Told(1, told.clone()), Effect::Told(2, told)]);
    assert_eq!(line.asked.len(), 0);
}

#[test]
fn no_more_are_in_flight_than_the_gateway_takes() {
    let mut line = up();
    (1..=4).for_each(|name| line.ask(cancel(name), 0).unwrap());
    assert_eq!(line.ask(cancel(5), 0), Err(Refused::Full));
    for _ in 1..WAITERS_MAX {
        line.ask(cancel(4), 0).unwrap();
    }
    assert_eq!(line.ask(cancel(4), 0), Err(Refused::Full));
}

#[test]
fn shard_part_of_answer_stays_in_stream_only() {
    let mut line = up();
    line.ask(cancel(7), 1).unwrap();
    let part = Answer { instrument: InstrumentId(0), ..answer(7, 3) };
    let effects = hear(&mut line, GatewayFrame::Reply(Reply::Answer(part)));
    assert_eq!(effects, [Effect::Stream(ShardId(0), 3, Reply::Answer(part))]);
    assert_eq!(line.asked.len(), 1);
}

#[test]
fn a_list_is_asked_for_alone() {
    let mut line = up();
    let key = |name| OrderKey::Name(ClientOrderId(name));
    line.question(Question::Order(key(1)), 1).unwrap();
    line.question(Question::Order(key(2)), 2).unwrap();
    line.question(Question::Orders(None), 3).unwrap();
    line.question(Question::Order(key(4)), 4).unwrap();
    let list = ListRequest { token: 0, list: List::Orders, instrument: None };
    let ask = |name| ClientFrame::OrderStatusRequest(key(name));
    assert_eq!(sent(&mut line), [ask(1), ask(2)]);
    assert_eq!(hear(&mut line, told(1)), [Effect::Told(1, LineTold::Order(Some(order_status(1))))]);
    assert_eq!(sent(&mut line), []);
    hear(&mut line, GatewayFrame::OrderStatus(key(2), None));
    assert_eq!(sent(&mut line), [ClientFrame::ListRequest(list)]);
    assert_eq!(hear(&mut line, told(8)), []);
    let end = GatewayFrame::ListEnd(ListEnd { request: list, count: 1, reason: Reason::None });
    assert_eq!(hear(&mut line, end), [Effect::Told(3, LineTold::Orders(vec![order_status(8)]))]);
    assert_eq!(sent(&mut line), [ask(4)]);
}

#[test]
fn stream_replays_from_lowest_wanted_number_once() {
    let mut line = up();
    line.follow(ShardId(0), 5);
    assert_eq!(sent(&mut line), [resume(0)], "whether 5 is used is not known");
    line.follow(ShardId(0), 3);
    assert_eq!(sent(&mut line), []);
    assert_eq!(hear(&mut line, resumed(10)), [Effect::Live(ShardId(0), 10)]);
    assert_eq!(sent(&mut line), [resume(3)]);
    hear(&mut line, resumed(10));
    assert_eq!(sent(&mut line), [], "5 was told with it");
}

#[test]
fn a_number_that_is_not_used_yet_is_not_waited_for() {
    let mut line = up();
    line.follow(ShardId(0), 1_000);
    assert_eq!(sent(&mut line), [resume(0)]);
    assert_eq!(hear(&mut line, resumed(4)), [Effect::Live(ShardId(0), 4)]);
    assert_eq!(sent(&mut line), []);
}

#[test]
fn at_another_gateway_a_stream_goes_on_where_it_stands() {
    let mut line = live(4);
    hear(&mut line, answered(9, 4));
    line.on_lost();
    line.on_signed_on(4, None);
    assert_eq!(sent(&mut line), [resume(5)]);
}

#[test]
fn what_is_wanted_while_it_is_down_is_asked_for_once_it_is_up() {
    let mut line: Line<u32> = Line::new(|_| false);
    line.follow(ShardId(0), 2);
    line.on_signed_on(4, None);
    assert_eq!(sent(&mut line), [resume(0)]);
    hear(&mut line, resumed(4));
    assert_eq!(sent(&mut line), [resume(2)]);
}

#[test]
fn all_who_wait_are_known_when_a_session_ends() {
    let mut line = up();
    line.ask(cancel(7), 1).unwrap();
    line.question(Question::Limits, 2).unwrap();
    assert_eq!(line.abandon(), [1, 2]);
    assert_eq!(line.asked.len(), 0);
}

#[test]
fn a_shard_that_is_none_is_asked_for_once() {
    let mut line = up();
    line.follow(ShardId(0), 1);
    assert_eq!(sent(&mut line), [resume(0)]);
    hear(&mut line, GatewayFrame::Resumed { shard: ShardId(0), next: 0, reason: Reason::UnknownShard });
    assert_eq!(sent(&mut line), []);
}

#[test]
fn what_was_dropped_while_it_was_down_is_asked_for_once() {
    let mut line = live(5);
    line.on_lost();
    line.on_signed_on(4, None);
    assert_eq!(sent(&mut line), [resume(5)]);
    hear(&mut line, not_kept(11));
    assert_eq!(sent(&mut line), []);
    line.follow(ShardId(0), 0);
    assert_eq!(sent(&mut line), [resume(0)], "who comes then is told what comes then");
}

#[test]
fn what_is_not_kept_for_one_is_told_to_others_who_stand_above() {
    let mut line = live(20);
    sent(&mut line);
    line.follow(ShardId(0), 3);
    line.follow(ShardId(0), 12);
    assert_eq!(sent(&mut line), [resume(3)]);
    hear(&mut line, not_kept(10));
    assert_eq!(sent(&mut line), [resume(12)]);
    hear(&mut line, not_kept(10));
    assert_eq!(sent(&mut line), [resume(20)], "those who were live go on");
}

#[test]
fn who_comes_while_it_is_told_is_told_what_had_passed() {
    let mut line = live(10);
    line.follow(ShardId(0), 3);
    sent(&mut line);
    tell(&mut line, 3..6);
    line.follow(ShardId(0), 4);
    line.follow(ShardId(0), 4);
    tell(&mut line, 6..10);
    hear(&mut line, resumed(10));
    assert_eq!(sent(&mut line), [resume(4)]);
    hear(&mut line, resumed(10));
    assert_eq!(sent(&mut line), []);
}

#[test]
fn who_waits_no_more_takes_no_room() {
    let mut line = up();
    (0..3 * WAITERS_MAX).for_each(|_| line.ask(cancel(7), GONE).unwrap());
    line.on_lost();
    (0..2 * QUESTIONS_MAX).for_each(|_| line.question(Question::Limits, GONE).unwrap());
    line.question(Question::Limits, 1).unwrap();
    line.on_signed_on(4, None);
    assert_eq!(sent(&mut line).len(), 2, "the request, which a gateway may have, and one question");
}

#[test]
fn what_no_gateway_can_have_and_nobody_waits_for_is_forgotten() {
    let mut line = up();
    line.on_lost();
    line.ask(cancel(1), GONE).unwrap();
    line.ask(cancel(2), 1).unwrap();
    line.on_signed_on(4, None);
    assert_eq!(sent(&mut line), [ClientFrame::Request(cancel(2))]);
    line.on_lost();
    line.on_signed_on(4, None);
    assert_eq!(sent(&mut line), [ClientFrame::Request(cancel(2))], "a gateway may have that one");
}

#[test]
fn timer_is_set_first_at_next_gateway() {
    let mut line = up();
    line.set_timer(2_000, 1).unwrap();
    let (timer, limits) =
        (ClientFrame::CancelAfter { after_ms: 2_000 }, ClientFrame::LimitsRequest { token: 0 });
    assert_eq!(sent(&mut line), [timer, limits]);
    line.on_lost();
    line.set_timer(3_000, 2).unwrap();
    line.ask(cancel(5), 4).unwrap();
    assert_eq!(sent(&mut line), []);
    line.on_signed_on(4, Some(700));
    let timer = ClientFrame::CancelAfter { after_ms: 700 };
    assert_eq!(sent(&mut line), [timer, ClientFrame::Request(cancel(5)), limits, limits]);
}

#[test]
fn a_timer_is_set_and_asked_about_or_neither() {
    let mut line = up();
    (0..QUESTIONS_MAX).for_each(|_| line.question(Question::Limits, 1).unwrap());
    sent(&mut line);
    assert_eq!(line.set_timer(2_000, 1), Err(Refused::Full));
    assert_eq!(sent(&mut line), []);
}

#[test]
fn what_was_given_up_while_it_was_down_makes_room_at_once() {
    let mut line = up();
    line.on_lost();
    (1..=4).for_each(|name| line.ask(cancel(name), GONE).unwrap());
    line.ask(cancel(5), 1).unwrap();
    line.on_signed_on(4, None);
    assert_eq!(sent(&mut line), [ClientFrame::Request(cancel(5))]);
    (6..=8).for_each(|name| line.ask(cancel(name), GONE).unwrap());
    assert_eq!(line.ask(cancel(9), 1), Err(Refused::Full), "a gateway may have those");
}

#[test]
fn lagging_gateway_withholds_nothing_from_later_ones() {
    let mut line = live(10);
    line.follow(ShardId(0), 3);
    line.on_lost();
    line.on_signed_on(4, None);
    assert_eq!(sent(&mut line), [resume(3)]);
    // It is one behind. Who asks for the number after that waits for it among what comes live.
    hear(&mut line, resumed(9));
    line.follow(ShardId(0), 10);
    assert_eq!(sent(&mut line), [resume(0)], "a gateway that is asked for 10 tells 9 to nobody");
    assert_eq!(hear(&mut line, resumed(9)), [Effect::Live(ShardId(0), 9)]);
    assert_eq!(sent(&mut line), []);
}

fn tell(line: &mut Line<u32>, numbers: std::ops::Range<u64>) {
    numbers.for_each(|at| _ = hear(line, answered(at, at)));
}

const ENDED: GatewayFrame = GatewayFrame::Resumed { shard: ShardId(0), next: 0, reason: Reason::Requested };

#[test]
fn unwanted_replay_ends_and_resumes_for_reader() {
    let mut line = live(10);
    line.follow(ShardId(0), 3);
    line.end_in_vain(|_, _| panic!("nothing of it is told yet"));
    tell(&mut line, 3..5);
    line.end_in_vain(|shard, number| {
        assert_eq!((shard, number), (ShardId(0), 5));
        None
    });
    assert_eq!(sent(&mut line), [resume(0), resume(3)]);
    line.end_in_vain(|_, _| Some(vec![10, 7]));
    assert_eq!(sent(&mut line), [resume(RESUME_NOTHING)]);
    tell(&mut line, 5..6);
    line.follow(ShardId(0), 6);
    line.end_in_vain(|_, _| panic!("it is ended already"));
    assert_eq!(sent(&mut line), [], "until the gateway says so");
    assert_eq!(hear(&mut line, ENDED), []);
    assert_eq!(sent(&mut line), [resume(6)]);
}

#[test]
fn replay_completed_while_ending_is_not_repeated() {
    let mut line = live(10);
    line.follow(ShardId(0), 3);
    tell(&mut line, 3..5);
    line.end_in_vain(|_, _| Some(vec![4, 10]));
    sent(&mut line);
    assert_eq!(hear(&mut line, resumed(10)), [Effect::Live(ShardId(0), 10)]);
    assert_eq!(sent(&mut line), []);
    hear(&mut line, ENDED);
    assert_eq!(sent(&mut line), [resume(4)]);
    tell(&mut line, 4..6);
    line.end_in_vain(|_, _| Some(vec![]));
    line.on_lost();
    line.on_signed_on(4, None);
    assert_eq!(sent(&mut line), [resume(0)], "of what was ended nothing is wanted");
}
