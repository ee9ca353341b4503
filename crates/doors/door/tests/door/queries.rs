//! Questions for orders, and cancels of all of them.

use pares_exercise::replies::{instrument_status, order_status};
use pares_fix::dictionary::FIX44;
use pares_types::{
    Answer, ClientOrderId, ClientRequest, InstrumentId, InstrumentStatus, ListEnd, OrderId, OrderKey,
    OrderState, OrderStatus, Phase, Price, Quantity, Reason, Reply, Side, Status, Symbol,
};
use pares_wire::frame::{ClientFrame, GatewayFrame};

use crate::rig::{ACME, Rig, answer, mass, request_id};

fn status(name: u64, state: OrderState, remaining: u64) -> OrderStatus {
    OrderStatus { state, remaining: Quantity(remaining), executed: Quantity(30), ..order_status(name) }
}

fn told(rig: &mut Rig, status: OrderStatus) {
    rig.hears(GatewayFrame::OrderStatus(OrderKey::Name(status.client_order_id), Some(status)));
}

#[test]
fn an_order_is_asked_for_by_name_or_by_id() {
    let mut rig = Rig::logged_on();
    rig.says("H", "11=5|55=ACME|54=1|790=q1|");
    rig.says("H", "11=5|37=1:5|55=ACME|54=1|790=q2|");
    rig.says("H", "11=x|55=ACME|54=1|");
    let keys = [OrderKey::Name(ClientOrderId(5)), OrderKey::Id(OrderId(request_id(5)))];
    assert_eq!(rig.asked, keys.map(ClientFrame::OrderStatusRequest));
    told(&mut rig, status(5, OrderState::Working, 70));
    told(&mut rig, status(5, OrderState::Ended, 0));
    rig.hears(GatewayFrame::OrderStatus(keys[0], None));
    // Nobody asked for the last one.
    rig.sends(&[
        "11=x .. 150=I 39=8 103=5",
        "790=q1 17=0 150=I 39=1 55=ACME 54=1 38=100 .. 151=70",
        "790=q2 17=0 150=I 39=3",
    ]);
}

#[test]
fn fix_4_2_tells_a_status_by_its_transaction_type() {
    let mut rig = Rig::logged_on_with_42();
    rig.says("H", "11=5|55=ACME|54=1|");
    told(&mut rig, status(5, OrderState::InFlight, 70));
    rig.says("H", "11=6|55=ACME|54=1|");
    rig.hears(GatewayFrame::OrderStatus(OrderKey::Name(ClientOrderId(6)), None));
    rig.sends(&["17=0 20=3 150=A 39=A", "17=0 20=3 150=8 39=8"]);
}

/// Ends the list that is under way.
fn ends(rig: &mut Rig, count: u32) {
    let Some(ClientFrame::ListRequest(request)) = rig.asked.pop() else { panic!("a list") };
    rig.hears(GatewayFrame::ListEnd(ListEnd { request, count, reason: Reason::None }));
}

#[test]
fn all_orders_are_listed_and_the_last_one_says_so() {
    let mut rig = Rig::logged_on();
    rig.says("AF", "584=all|585=7|");
    rig.says("AF", "584=more|585=7|");
    assert_eq!(rig.asked.len(), 1, "one after the other");
    told(&mut rig, status(1, OrderState::Working, 70));
    told(&mut rig, status(2, OrderState::Working, 80));
    ends(&mut rig, 2);
    rig.sends(&["11=1 584=all 912=N", "11=2 584=all 912=Y"]);
    ends(&mut rig, 0);
    rig.sends(&["584=more 912=Y 17=0 150=I 39=8"]);
    assert!(rig.asked.is_empty());
}

fn instrument(number: u32, symbol: &str, phase: Phase) -> GatewayFrame {
    let (last, lot) = (Some(Price(1_012_500)), Quantity(10));
    let status = instrument_status(symbol, InstrumentId(number));
    GatewayFrame::InstrumentStatus(InstrumentStatus { phase, last, lot, ..status })
}

#[test]
fn instruments_listed_in_parts_include_new_ones() {
    let mut rig = Rig::logged_on();
    rig.asks("D", "11=1|55=BETA|54=1|38=10|40=2|44=10|");
    assert!(rig.sent()[0].contains("103=1"), "nobody knows it yet");
    rig.says("x", "320=all|559=4|");
    for number in 0..150 {
        let symbol = if number == 0 { "BETA".to_owned() } else { format!("S{number}") };
        rig.hears(instrument(100 + number, &symbol, Phase::Continuous));
    }
    ends(&mut rig, 150);
    let first = "^y 320=all 322=all 560=0 393=150 893=N 146=100 55=BETA 48=100 22=8 561=10 55=S1 ";
    rig.sends(&[first, "893=Y 146=50 55=S100 "]);
    rig.asks("D", "11=2|55=BETA|54=1|38=10|40=2|44=10|");
    assert!(matches!(rig.asked.pop(), Some(ClientFrame::Request(ClientRequest::Enter { .. }))));
    rig.says("x", "320=no|559=1|");
    rig.says("x", "320=none|559=0|55=GONE|");
    rig.sends(&["320=no 322=no 560=1 393=0 893=Y", "560=2"]);
    // An answer is never longer than a message may be.
    rig.says("x", &format!("320={}|559=4|", "i".repeat(7_900)));
    let sent = rig.sent();
    assert!(sent[0].contains("560=1") && sent[0].len() < 8_192, "{}", sent[0].len());
}

#[test]
fn how_instruments_trade_is_told_one_after_the_other() {
    let mut rig = Rig::logged_on();
    rig.says("e", "324=a|55=ACME|263=0|");
    rig.says("e", "324=b|55=GONE|263=0|");
    rig.hears(instrument(17, "ACME", Phase::VolatilityCall));
    ends(&mut rig, 1);
    assert_eq!(
        (rig.asked.len(), &rig.finds[..]),
        (0, &[Symbol::new("GONE").unwrap()][..]),
        "no list is walked"
    );
    rig.found(None);
    rig.sends(&[
        "^f 324=a 55=ACME 325=N 326=5 31=101.25 .. 58=volatility_call$",
        "^f 324=b 55=GONE 325=N 326=20",
    ]);
    rig.says("e", "324=d|55=ACME|48=99|22=8|263=0|");
    // A number that is none is none.
    rig.sends(&["^f 324=d 55=ACME 325=N 326=20"]);
    rig.says("e", "324=c|55=LATE|263=0|");
    rig.found(Some(InstrumentId(99)));
    assert!(
        matches!(rig.asked[..], [ClientFrame::ListRequest(asked)] if asked.instrument == Some(InstrumentId(99)))
    );
    rig.hears(instrument(99, "LATE", Phase::Halted));
    ends(&mut rig, 1);
    assert!(rig.sent()[0].starts_with("f 324=c 55=LATE 325=N 326=2"), "listed since");
    let mut rig = Rig::logged_on_with_42();
    rig.says("e", "324=a|55=ACME|263=0|");
    rig.hears(instrument(17, "ACME", Phase::OpeningCall));
    rig.sends(&["^f 324=a 55=ACME 325=N 326=1 31=101.25 .. !58="]);
}

#[test]
fn questions_that_wait_are_bounded() {
    let mut rig = Rig::logged_on();
    for _ in 0..1_025 {
        rig.says("e", "324=a|55=ACME|263=0|");
    }
    let sent = rig.sent();
    assert_eq!((rig.asked.len(), sent.len()), (1, 1), "{:?}", sent.first());
    assert!(sent[0].ends_with("326=20 58=already_asked"), "not that there is none: {sent:?}");
}

#[test]
fn a_mass_cancel_is_answered_when_all_shards_have() {
    let mut rig = Rig::logged_on();
    rig.asks("q", "11=9|530=7|54=2|");
    let (client_order_id, side) = (ClientOrderId(9), Some(Side::Sell));
    assert_eq!(
        rig.request(),
        ClientRequest::MassCancel { client_order_id, instrument: InstrumentId(0), side }
    );
    let all = InstrumentId(0);
    let part = Answer { instrument: all, ..mass(9, 1, 3) };
    rig.told(Reply::Answer(part));
    assert!(rig.sent().is_empty());
    rig.told(Reply::Answer(Answer { number: 0, ..part }));
    assert_eq!(rig.sent(), ["r 37=1:9 11=9 530=7 531=7 533=3 54=2"]);
    rig.asks("q", "11=10|530=1|55=ACME|");
    let client_order_id = ClientOrderId(10);
    assert_eq!(rig.request(), ClientRequest::MassCancel { client_order_id, instrument: ACME, side: None });
    rig.told(Reply::Answer(mass(10, 2, 1)));
    assert_eq!(rig.sent(), ["r 37=1:10 11=10 530=1 531=1 533=1 55=ACME"]);
    rig.asks("q", "11=11|530=1|55=NONE|");
    rig.asks("q", "11=12|530=3|");
    rig.sends(&["531=0 532=1", "531=0 532=0"]);
    rig.asks("q", "11=13|530=7|");
    rig.told(Reply::Rejected { client_order_id: ClientOrderId(13), reason: Reason::StorageUnavailable });
    assert!(rig.sent()[0].contains("11=13 530=7 531=0 532=99"));
}

#[test]
fn instruments_are_asked_for_if_none_are_configured() {
    let mut config = (*crate::rig::config()).clone();
    config.instruments.clear();
    let mut rig = Rig::with(&FIX44, config.into());
    rig.says("A", "98=0|108=30|");
    rig.signs_on(None);
    rig.ends_list();
    rig.ends_list();
    rig.resumed(1);
    rig.sent();
    rig.asked.clear();
    rig.asks("D", "11=1|55=ACME|54=1|38=1|40=1|");
    assert!(rig.sent()[0].contains("103=1"), "the list was empty");
}

/// It is the button for a panic: it must not say done when nothing was.
#[test]
fn a_name_that_stands_for_something_else_is_told_so() {
    let mut rig = Rig::logged_on();
    let order = Answer { repeat: true, number: 0, ..answer(7, 3, Status::Resting, 0, 100) };
    rig.asks("q", "11=7|530=7|");
    rig.told(Reply::Answer(order));
    assert!(rig.sent()[0].contains("11=7 530=7 531=0 532=99 58=duplicate_request"));
    let mass = Answer { instrument: InstrumentId(0), ..answer(8, 3, Status::MassCancelled, 0, 0) };
    let mass = Answer { repeat: true, number: 0, ..mass };
    rig.asks("D", "11=8|55=ACME|54=1|38=100|40=2|44=223.82|");
    rig.told(Reply::Answer(mass));
    rig.sends(&["11=8 .. 150=8 39=8 .. 103=6"]);
    rig.asks("F", "41=7|11=8|55=ACME|54=1|");
    rig.told(Reply::Answer(mass));
    assert!(rig.sent()[0].contains("11=8 41=7"));
}

#[test]
fn two_questions_of_one_name_at_once_are_answered_apart() {
    let mut rig = Rig::logged_on();
    rig.asks("D", "11=5|55=ACME|54=1|38=100|40=2|44=223.82|");
    rig.asks("q", "11=5|530=7|");
    assert!(rig.sent()[0].contains("11=5 530=7 531=0 532=99"));
    rig.told(Reply::Answer(answer(5, 1, Status::Resting, 0, 100)));
    assert!(rig.sent()[0].contains("11=5 17=0-101-A 150=0"));
}

#[test]
fn repeat_reports_shares_of_first_answer() {
    let mut rig = Rig::logged_on();
    rig.asks("D", "11=1|55=ACME|54=2|38=77|40=2|44=3|");
    rig.told(Reply::Answer(Answer { repeat: true, number: 0, ..answer(1, 1, Status::Resting, 0, 10) }));
    rig.sends(&["54=2 38=10 151=10 .. !44=3"]);
}
