//! A request asked twice: one execution, one answer, however and wherever it is repeated.

use pares_client::{Answer, Client, Update};
use pares_types::{RecorderId, Side, Status};

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
fn a_repeat_gets_the_first_answer_anywhere_after_every_death() {
    let mut exchange = Exchange::start(&small(2));
    let request = limit(1, 1, Side::Sell, 100, 1_000_000);
    let mut first = exchange.client(0, 7);
    let answer = first.submit_and_wait(&request).unwrap();
    assert!(!answer.repeat);
    assert_eq!(first.submit_and_wait(&request).unwrap(), again(answer));
    let check = |exchange: &Exchange, when: &str| {
        for gateway in [1, 0] {
            let repeated = exchange.client(gateway, 7).submit_and_wait(&request).unwrap();
            assert_eq!(repeated, again(answer), "gateway {gateway}, {when}");
        }
    };
    check(&exchange, "on other sessions");
    exchange.kill(gateway(0));
    eventually("the gateway is dead", || !exchange.supervisor().tick().is_empty());
    exchange.wait_until_up();
    check(&exchange, "after the gateway died");
    exchange.stop();
    exchange.start_again();
    check(&exchange, "after everything was stopped");
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
