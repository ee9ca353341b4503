//! Business days: begun and ended by hand and by the timetable, and reported.

use std::process::Command as Process;

use pares_node::SystemConfig;
use pares_node::config::DayConfig;
use pares_types::{
    ClientOrderId, ClientRequest, InstrumentId, NewOrder, Price, Quantity, Reason, Side, Status, TimeInForce,
};
use serde_json::Value;

use crate::common::exchange::{Exchange, PROGRAM, small};
use crate::common::{eventually, limit, record};

/// Runs `pares`. Its exit status, and what it printed.
fn pares(exchange: &Exchange, arguments: &str) -> (Option<i32>, String) {
    let mut process = Process::new(PROGRAM);
    process.args(arguments.split_whitespace()).arg("--dir").arg(exchange.layout().root());
    let output = process.output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn json(exchange: &Exchange, arguments: &str) -> (Option<i32>, Value) {
    let (status, text) = pares(exchange, &format!("{arguments} --json"));
    (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments}: {error}: {text}")))
}

fn good_till_cancelled(name: u64, price: i64) -> ClientRequest {
    let order =
        NewOrder { time_in_force: TimeInForce::Gtc, ..NewOrder::limit(Side::Buy, Price(price), Quantity(5)) };
    ClientRequest::Enter { client_order_id: ClientOrderId(name), instrument: InstrumentId(1), order }
}

#[test]
fn a_day_is_ended_by_hand_reported_alike_by_all_recorders_and_followed_by_another() {
    let mut exchange = Exchange::start(&small(1));
    assert_eq!(json(&exchange, "admin day begin 2026-11-23").0, Some(0));
    let (mut seller, mut buyer) = (exchange.client(0, 7), exchange.client(0, 8));
    let stays = buyer.submit_and_wait(&good_till_cancelled(1, 2_230_000)).unwrap();
    assert_eq!(stays.status, Status::Resting);
    seller.submit_and_wait(&limit(1, 1, Side::Sell, 5, 2_238_200)).unwrap();
    buyer.submit_and_wait(&limit(2, 1, Side::Buy, 3, 2_238_200)).unwrap();

    assert_eq!(json(&exchange, "admin day end").0, Some(0));
    let refused = seller.submit_and_wait(&limit(2, 1, Side::Sell, 5, 2_238_200)).unwrap();
    assert_eq!(refused.reason, Reason::DayOver);
    eventually("all recorders have the day", || {
        exchange.tick();
        json(&exchange, "day report").0 == Some(0)
    });
    let (_, report) = json(&exchange, "day report 2026-11-23");
    assert_eq!((&report["agreed"], report["recorders"].as_array().unwrap().len()), (&true.into(), 2));
    let traded = &report["instruments"][0];
    assert_eq!((&traded["closing"], &traded["quantity"]), (&"223.8200".into(), &3.into()));
    assert_eq!(report["members"][1]["orders"], 2);
    assert!(pares(&exchange, "day report --html").1.contains("Business day 2026-11-23"));

    assert_eq!(json(&exchange, "admin day begin 2026-11-23").0, Some(1), "not twice");
    assert_eq!(json(&exchange, "admin day begin 2026-11-24").0, Some(0));
    let filled = seller.submit_and_wait(&limit(3, 1, Side::Sell, 5, 2_230_000)).unwrap();
    assert_eq!(filled.status, Status::Filled, "the order that was good till cancelled");
    let records = record::agreed(&mut exchange);
    record::check_matching(exchange.config(), &records);
}

#[test]
fn two_gateways_begin_one_day_by_the_timetable() {
    let day = Some(DayConfig { begin: "00:00".into(), end: "00:00".into(), weekends: true });
    let mut exchange = Exchange::start(&SystemConfig { day, ..small(2) });
    eventually("the day has begun", || {
        exchange.tick();
        let records = record::of_recorder(&exchange, pares_types::RecorderId(0));
        records.values().all(|shard| {
            let accepted = shard.iter().filter(|one| one.outcome.status == Status::Accepted);
            accepted
                .filter(|one| matches!(one.request.command, pares_types::Command::BeginDay { .. }))
                .count()
                == 1
        })
    });
    let mut member = exchange.client(1, 7);
    assert_eq!(member.submit_and_wait(&good_till_cancelled(1, 2_230_000)).unwrap().status, Status::Resting);
}
