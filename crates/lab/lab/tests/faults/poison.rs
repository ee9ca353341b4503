//! Requests that bring the matching engine down at every venue: one instrument stalls, everything else continues.

use std::collections::BTreeMap;

use pares_client::Answer;
use pares_faults::poison::VARIABLE;
use pares_node::{NodeId, SystemConfig};
use pares_types::{ClientOrderId, ClientRequest, Command, InstrumentId, Reason, Side, Status};

use crate::common::exchange::{Exchange, small, venue};
use crate::common::{eventually, limit, record};

/// The member whose orders are poison; the quantity says which.
const POISONER: u32 = 666;
const PANIC: u64 = 1;
const LOOP: u64 = 2;
const MEMORY: u64 = 3;
const ABORT: u64 = 4;

fn start(config: &SystemConfig) -> Exchange {
    let budget = SystemConfig::default().engine_budget_ms;
    let config = SystemConfig { engine_budget_ms: budget, ..config.clone() };
    Exchange::start_armed(&config, &[(VARIABLE, POISONER.to_string())])
}

fn reasons(answer: &Answer) -> (Status, Reason) {
    (answer.status, answer.reason)
}

/// The process ids of the venues.
fn processes(exchange: &Exchange) -> BTreeMap<NodeId, String> {
    let venues = exchange.roles().into_iter().filter(|role| matches!(role, NodeId::Venue(_)));
    venues.map(|role| (role, std::fs::read_to_string(exchange.layout().pid(role)).unwrap())).collect()
}

/// As `pares admin release ALFA`.
fn release(exchange: &Exchange, round: u64) {
    let (client_order_id, instrument) = (ClientOrderId(round + 1), InstrumentId(1));
    let time = ClientRequest::Exchange { client_order_id, instrument, command: Command::TIME };
    exchange.client(0, 0).submit_and_wait(&time).unwrap();
}

/// Lets `poison` happen in ALFA, which shares a shard with BRAVO, and checks the answers to all members.
fn meet(exchange: &mut Exchange, poison: u64, round: u64) {
    let (name, price) = (100 * round, 2_238_200);
    let mut member = exchange.client(0, 7);
    let mut poisoner = exchange.client(0, POISONER);
    let rests = member.submit_and_wait(&limit(name + 1, 1, Side::Sell, 5, price)).unwrap();
    assert_eq!(reasons(&rests), (Status::Resting, Reason::None));

    let asked = poisoner.submit_and_wait(&limit(name + 1, 1, Side::Buy, poison, price));
    let answer = asked.unwrap_or_else(|error| panic!("{error}\n{}", exchange.complaints()));
    assert_eq!(reasons(&answer), (Status::Refused, Reason::Void));
    let again = poisoner.submit_and_wait(&limit(name + 1, 1, Side::Buy, poison, price)).unwrap();
    assert_eq!(reasons(&again), (Status::Refused, Reason::Void), "a repeat gets the first answer");

    let quarantined = member.submit_and_wait(&limit(name + 2, 1, Side::Sell, 5, price)).unwrap();
    assert_eq!(reasons(&quarantined), (Status::Refused, Reason::Quarantined));
    for (offset, instrument) in [(3, 2), (4, 3)] {
        let rests = member.submit_and_wait(&limit(name + offset, instrument, Side::Sell, 5, price)).unwrap();
        assert_eq!(reasons(&rests), (Status::Resting, Reason::None), "instrument {instrument} trades");
    }
    release(exchange, round);
    let rests = member.submit_and_wait(&limit(name + 5, 1, Side::Sell, 5, price)).unwrap();
    assert_eq!(reasons(&rests), (Status::Resting, Reason::None));
}

/// What is recorded is one history, in which the poison was never executed; all venues are whole.
fn agreed(exchange: &mut Exchange, poisons: usize) {
    let (config, venues) = (exchange.config().clone(), exchange.config().venues);
    eventually("all shards are whole", || {
        exchange.supervisor().tick();
        (0..venues).all(|id| exchange.counter(venue(id), "shards_away") == 0)
    });
    let records = record::agreed(exchange);
    record::check_matching(&config, &records);
    let void = records.values().flatten().filter(|recorded| recorded.outcome.reason == Reason::Void);
    assert_eq!(void.count(), poisons);
}

#[test]
fn panicking_request_is_void_and_no_process_dies() {
    let mut exchange = start(&small(1));
    let before = processes(&exchange);
    for round in 0..3 {
        meet(&mut exchange, PANIC, round);
    }
    agreed(&mut exchange, 3);
    assert_eq!(processes(&exchange), before);
}

#[test]
fn a_request_that_no_venue_comes_back_from_is_void() {
    let mut exchange = start(&small(1));
    exchange.look_away(true);
    meet(&mut exchange, LOOP, 0);
    agreed(&mut exchange, 1);
}

#[test]
fn a_request_that_takes_memory_without_end_is_void() {
    let mut exchange = start(&small(1));
    exchange.look_away(true);
    meet(&mut exchange, MEMORY, 0);
    agreed(&mut exchange, 1);
}

#[test]
fn process_killing_request_is_void_at_third_attempt() {
    let mut exchange = start(&small(1));
    let price = 2_238_200;
    let mut poisoner = exchange.client(0, POISONER);
    poisoner.send(&limit(1, 1, Side::Buy, ABORT, price)).unwrap();
    poisoner.flush().unwrap();
    let mut told = None;
    eventually("the request is void", || {
        exchange.supervisor().tick();
        let mut on_update = |update| {
            if let pares_client::Update::Answer(answer) = update {
                told = Some(reasons(&answer));
            }
        };
        poisoner.poll(&mut on_update).unwrap();
        told.is_some()
    });
    assert_eq!(told, Some((Status::Refused, Reason::Void)));
    let deaths = |exchange: &mut Exchange| exchange.supervisor().restarts();
    let by_then = deaths(&mut exchange);
    assert!(by_then >= 3, "two venues, one of them at least twice: {by_then}");
    agreed(&mut exchange, 1);
    assert!(deaths(&mut exchange) <= 4, "nobody dies of it more than twice");
}

#[test]
fn a_venue_alone_survives_its_engine() {
    let mut exchange = start(&SystemConfig { venues: 1, ..small(1) });
    meet(&mut exchange, PANIC, 0);
    agreed(&mut exchange, 1);
}

#[test]
fn what_was_void_stays_void_after_a_restart_of_everything() {
    let mut exchange = start(&small(1));
    meet(&mut exchange, PANIC, 0);
    exchange.stop();
    exchange.start_again();
    let mut poisoner = exchange.client(0, POISONER);
    let again = poisoner.submit_and_wait(&limit(1, 1, Side::Buy, PANIC, 2_238_200)).unwrap();
    assert_eq!(reasons(&again), (Status::Refused, Reason::Void));
    agreed(&mut exchange, 1);
}
