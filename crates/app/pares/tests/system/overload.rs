//! More than the exchange, or a session, may ask for: each request is answered, and who asks within its pace notices nothing.

use std::collections::BTreeMap;
use std::time::Instant;

use pares_client::{Client, Update};
use pares_node::SystemConfig;
use pares_types::{MemberId, Reason, Side, Status};

use crate::common::exchange::{Exchange, gateway, small};
use crate::common::load::{answered, finish_and_check, trade, traders};
use crate::common::{PATIENCE, cancel, limit};

/// What a session received, by name.
#[derive(Default)]
struct Told {
    answers: BTreeMap<u64, Status>,
    rejections: BTreeMap<u64, Reason>,
}

impl Told {
    fn len(&self) -> usize {
        self.answers.len() + self.rejections.len()
    }

    /// Reads what there is, waiting for it.
    fn read(&mut self, client: &mut Client) {
        client.flush().unwrap();
        client.wait(PATIENCE).unwrap();
        client
            .poll(|update| {
                let before = match update {
                    Update::Answer(answer) => {
                        self.answers.insert(answer.client_order_id.0, answer.status).is_some()
                    }
                    Update::Rejected { client_order_id, reason } => {
                        self.rejections.insert(client_order_id.0, reason).is_some()
                    }
                    _ => false,
                };
                assert!(!before, "told twice: {update:?}");
            })
            .unwrap();
    }
}

/// Orders a session may send.
const PACE: u32 = 1_000;

/// An exchange on which a session may send so many orders, and then one a second: a session that sends fewer is within its pace, however
/// fast the machine is.
fn paced() -> Exchange {
    Exchange::start(&SystemConfig { session_rate_max: 1, session_burst_max: PACE, ..small(1) })
}

/// Buffers orders that trade with nobody; as many as there is room for, up to the name `last`.
fn flood(client: &mut Client, next: &mut u64, last: u64) {
    while *next <= last && client.send(&limit(*next, 1, Side::Buy, 1, 100)).is_ok() {
        *next += 1;
    }
}

#[test]
fn flooding_session_is_read_slower_others_are_not() {
    const FLOOD: u64 = 20_000;
    let mut exchange = paced();
    let mut traders = traders(&exchange, 2);
    let mut flooder = exchange.client(0, 99);
    let (mut told, mut next) = (Told::default(), 1);
    while told.len() < FLOOD as usize {
        flood(&mut flooder, &mut next, FLOOD);
        told.read(&mut flooder);
        if answered(&traders) < u64::from(PACE) / 2 {
            trade(&mut exchange, &mut traders, 5);
        }
    }
    assert_eq!(told.rejections.values().find(|&&reason| reason != Reason::Throttled), None);
    assert!(told.answers.len() >= PACE as usize, "what its pace allows is taken in: {}", told.answers.len());
    assert!(exchange.counter(gateway(0), "slowed_reads") > 0, "it is read more slowly");
    finish_and_check(&mut exchange, &mut traders);
}

#[test]
fn a_cancel_behind_a_flood_passes_and_is_answered() {
    const FLOOD: u64 = 10_000;
    let exchange = paced();
    let mut client = exchange.client(0, 7);
    let resting = client.submit_and_wait(&limit(1, 1, Side::Buy, 1, 1_000_000)).unwrap();
    assert_eq!(resting.status, Status::Resting);
    let (mut told, mut next) = (Told::default(), 2);
    while next <= FLOOD {
        flood(&mut client, &mut next, FLOOD);
        told.read(&mut client);
    }
    let begun = Instant::now();
    while client.cancel(pares_types::ClientOrderId(FLOOD + 1), pares_types::ClientOrderId(1)).is_err() {
        told.read(&mut client);
    }
    while !told.answers.contains_key(&(FLOOD + 1)) {
        assert!(begun.elapsed() < PATIENCE);
        told.read(&mut client);
    }
    assert_eq!(told.answers[&(FLOOD + 1)], Status::Cancelled);
    assert!(exchange.counter(gateway(0), "slowed_reads") > 0, "there was a flood");
    while told.len() < FLOOD as usize {
        told.read(&mut client);
    }
}

#[test]
fn a_cancel_through_another_session_overtakes_the_flood() {
    let exchange = paced();
    let mut flooder = exchange.client(0, 7);
    flooder.submit_and_wait(&limit(1, 1, Side::Buy, 1, 1_000_000)).unwrap();
    let (mut told, mut next) = (Told::default(), 2);
    while exchange.counter(gateway(0), "slowed_reads") == 0 {
        flood(&mut flooder, &mut next, u64::MAX);
        told.read(&mut flooder);
    }
    // Nothing more of the flood is read by its sender, and its connection is full.
    flood(&mut flooder, &mut next, u64::MAX);
    let _ = flooder.flush().unwrap();
    let answer = exchange.client(0, 7).submit_and_wait(&cancel(u64::MAX >> 8, 1)).unwrap();
    assert_eq!(answer.status, Status::Cancelled);
}

#[test]
fn a_storm_of_connections_takes_nothing_from_who_trades() {
    const STORM: u32 = 1_000;
    let mut exchange = Exchange::start(&small(1));
    let mut traders = traders(&exchange, 2);
    let address = exchange.addresses()[0];
    for round in 0..3_u64 {
        let mut storm = Vec::new();
        for member in 100..100 + STORM {
            storm.push(Client::connect(address, MemberId(member)).unwrap());
            if member % 100 == 0 {
                trade(&mut exchange, &mut traders, 10);
            }
        }
        for client in &mut storm {
            let name = round + 1;
            let answer = client.submit_and_wait(&limit(name, 2, Side::Buy, 1, 100)).unwrap();
            assert_eq!(answer.reason, Reason::None);
            client.submit_and_wait(&cancel(name + 10, name)).unwrap();
        }
    }
    finish_and_check(&mut exchange, &mut traders);
    let gone = || exchange.counter(gateway(0), "sessions") == 2;
    crate::common::eventually("the storm has left nothing behind", gone);
}
