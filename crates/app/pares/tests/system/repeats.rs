//! A request asked twice: one execution, one answer, however and wherever it is repeated.

use pares_client::{Answer, Client, Update};
use pares_types::{Quantity, RecorderId, Side, Status};

use crate::common::exchange::{Exchange, gateway, recorder, small};
use crate::common::trader::Trader;
use crate::common::{PATIENCE, eventually, limit, load, record};

/// The same answer, marked as a repeat.
fn again(answer: Answer) -> Answer {
    Answer { repeat: true, ..answer.content() }
}

/// The answers that come to `client` until there are `count`.
fn answers(client: &mut Client, count: usize) -> Vec<Answer> {
    let mut answers = Vec::new();
    while answers.len() < count {
        client.flush().unwrap();
        assert!(client.wait(PATIENCE).unwrap(), "{} of {count} answers came", answers.len());
        client
            .poll(|update| match update {
                Update::Answer(answer) => answers.push(answer),
                Update::Trade(_) | Update::Cancelled(_) => {}
                other => panic!("{other:?}"),
            })
            .unwrap();
    }
    answers
}

#[test]
fn a_repeat_gets_the_first_answer_on_every_session_and_gateway() {
    let exchange = Exchange::start(&small(2));
    let mut first = exchange.client(0, 7);
    let request = limit(1, 1, Side::Sell, 100, 1_000_000);
    let answer = first.submit_and_wait(&request).unwrap();
    assert!(!answer.repeat);
    assert_eq!(first.submit_and_wait(&request).unwrap(), again(answer));
    for gateway in [0, 1] {
        let mut other = exchange.client(gateway, 7);
        assert_eq!(other.submit_and_wait(&request).unwrap(), again(answer), "gateway {gateway}");
    }
}

#[test]
fn a_repeat_tells_what_was_answered_then_not_what_is_now() {
    let exchange = Exchange::start(&small(1));
    let (mut seller, mut buyer) = (exchange.client(0, 7), exchange.client(0, 8));
    let rests = seller.submit_and_wait(&limit(1, 1, Side::Sell, 100, 1_000_000)).unwrap();
    let filled = buyer.submit_and_wait(&limit(1, 1, Side::Buy, 100, 1_000_000)).unwrap();
    assert_eq!((filled.status, filled.executed), (Status::Filled, Quantity(100)));
    // Whatever else the repeat says: the name is what counts.
    assert_eq!(seller.submit_and_wait(&limit(1, 2, Side::Buy, 1, 900_000)).unwrap(), again(rests));
    assert_eq!(buyer.submit_and_wait(&limit(1, 1, Side::Buy, 100, 1_000_000)).unwrap(), again(filled));
}

#[test]
fn a_repeat_gets_the_first_answer_after_the_gateway_died() {
    let mut exchange = Exchange::start(&small(1));
    let request = limit(1, 1, Side::Sell, 100, 1_000_000);
    let answer = exchange.client(0, 7).submit_and_wait(&request).unwrap();
    exchange.kill(gateway(0));
    eventually("the gateway is dead", || !exchange.supervisor().tick().is_empty());
    exchange.wait_until_up();
    assert_eq!(exchange.client(0, 7).submit_and_wait(&request).unwrap(), again(answer));
}

#[test]
fn a_repeat_gets_the_first_answer_after_everything_was_stopped() {
    let mut exchange = Exchange::start(&small(2));
    let request = limit(1, 1, Side::Sell, 100, 1_000_000);
    let answer = exchange.client(0, 7).submit_and_wait(&request).unwrap();
    exchange.stop();
    exchange.start_again();
    for gateway in [1, 0] {
        assert_eq!(exchange.client(gateway, 7).submit_and_wait(&request).unwrap(), again(answer));
    }
}

/// Takes a recorder's disk away while everything runs; its peer fills the new one.
fn wipe(exchange: &mut Exchange, traders: &mut [Trader], id: u16) {
    exchange.supervisor().hold(recorder(id), true);
    exchange.kill(recorder(id));
    eventually("the recorder is dead", || {
        exchange.tick();
        !exchange.supervisor().is_up(recorder(id))
    });
    std::fs::remove_dir_all(exchange.layout().recorder_log(RecorderId(id))).unwrap();
    load::trade(exchange, traders, 50);
    let recorded = |exchange: &Exchange, id| {
        let marks = exchange.layout().recorder_log(RecorderId(id)).join("marks");
        let records = |id| record::of_recorder(exchange, RecorderId(id));
        if marks.exists() { records(id).values().map(Vec::len).sum::<usize>() } else { 0 }
    };
    let wanted = recorded(exchange, 1 - id);
    exchange.supervisor().hold(recorder(id), false);
    eventually("the recorder is filled", || {
        load::trade(exchange, traders, 20);
        recorded(exchange, id) >= wanted
    });
}

#[test]
fn repeat_gets_first_answer_after_all_recorders_lost_disks() {
    let mut exchange = Exchange::start(&small(1));
    let mut traders = load::traders(&exchange, 4);
    let mut member = exchange.client(0, 70);
    let requests: Vec<_> = (1..=40).map(|name| limit(name, 1, Side::Sell, 100, 5_000_000)).collect();
    let first: Vec<_> = requests.iter().map(|request| member.submit_and_wait(request).unwrap()).collect();
    for id in [0, 1, 0] {
        wipe(&mut exchange, &mut traders, id);
        for (request, answer) in requests.iter().zip(&first) {
            assert_eq!(
                member.submit_and_wait(request).unwrap(),
                again(*answer),
                "recorder {id} lost its disk"
            );
        }
    }
    load::finish(&mut exchange, &mut traders);
    record::agreed(&mut exchange);
}

#[test]
fn a_repeat_in_flight_joins_it_and_the_last_to_ask_is_answered() {
    let mut exchange = Exchange::start(&small(1));
    let (mut first, mut second) = (exchange.client(0, 7), exchange.client(0, 7));
    exchange.freeze(recorder(0));
    exchange.freeze(recorder(1));
    for client in [&mut first, &mut second] {
        client.send(&limit(1, 1, Side::Sell, 100, 1_000_000)).unwrap();
        client.ping(5).unwrap();
        // Behind the pong the request was taken in.
        let mut pong = false;
        while !pong {
            client.flush().unwrap();
            assert!(client.wait(PATIENCE).unwrap());
            client.poll(|update| pong |= update == Update::Pong { token: 5 }).unwrap();
        }
    }
    exchange.thaw(recorder(0));
    exchange.thaw(recorder(1));
    let answer = answers(&mut second, 1)[0];
    assert_eq!((answer.status, answer.repeat), (Status::Resting, false));
    let mut to_first = Vec::new();
    first.ping(6).unwrap();
    while !to_first.contains(&Update::Pong { token: 6 }) {
        first.flush().unwrap();
        assert!(first.wait(PATIENCE).unwrap());
        first.poll(|update| to_first.push(update)).unwrap();
    }
    assert_eq!(to_first.len(), 1, "the pong alone: {to_first:?}");
    assert_eq!(record::agreed(&mut exchange).values().map(Vec::len).sum::<usize>(), 1);
}

#[test]
fn one_name_at_two_gateways_at_once_executes_once() {
    let mut exchange = Exchange::start(&small(2));
    let mut clients = [exchange.client(0, 7), exchange.client(1, 7)];
    const NAMES: u64 = 500;
    for name in 1..=NAMES {
        for client in &mut clients {
            client.send(&limit(name, 1 + (name % 3) as u32, Side::Buy, 1, 1_000_000)).unwrap();
            client.flush().unwrap();
        }
    }
    let [here, there] = clients.each_mut().map(|client| {
        let mut answers = answers(client, NAMES as usize);
        answers.sort_unstable_by_key(|answer| answer.client_order_id);
        answers.into_iter().map(again).collect::<Vec<_>>()
    });
    assert_eq!(here, there, "both are told the same");
    let records = record::agreed(&mut exchange);
    record::check_matching(exchange.config(), &records);
    let executed = records.values().flatten().filter(|one| one.outcome.status == Status::Resting);
    assert_eq!(executed.count() as u64, NAMES);
}
