//! Orders that die with their session: closed, silent, out of time, or gone with its gateway.

use std::collections::BTreeMap;
use std::time::Duration;

use pares_client::{Client, Options, Update};
use pares_types::{CancelCause, ClientOrderId, Event, MemberId, Side, Status};

use crate::common::exchange::{Exchange, gateway, small};
use crate::common::record::{self, Records};
use crate::common::{PATIENCE, eventually, limit};

const PRICE: i64 = 2_238_200;

/// The name of that number in the guarded series of session 0, which everybody is where sign-on is open.
fn guarded(number: u64) -> u64 {
    ClientOrderId::guarded(0, number).0
}

/// Enters an order of an instrument of each shard, under that name and the next one.
fn enter(client: &mut Client, name: u64) {
    for (name, instrument) in [(name, 1), (name + 1, 3)] {
        let answer = client.submit_and_wait(&limit(name, instrument, Side::Buy, 5, PRICE)).unwrap();
        assert_eq!(answer.status, Status::Resting);
    }
}

/// How often each order of the member was cancelled because its session ended, by name.
fn ended(records: &Records, member: u32) -> BTreeMap<u64, u32> {
    let mut ended = BTreeMap::new();
    for event in records.values().flatten().flat_map(|one| &one.events) {
        if let Event::Cancelled {
            member: MemberId(of),
            client_order_id,
            cause: CancelCause::SessionEnded,
            ..
        } = *event
            && of == member
        {
            *ended.entry(client_order_id.0).or_default() += 1;
        }
    }
    ended
}

/// Waits until another session of the member is told that these are cancelled, and looks whether the record says so, once each.
fn check(exchange: &mut Exchange, observer: &mut Client, names: &[u64]) {
    let mut left = names.to_vec();
    eventually("what was guarded is cancelled", || {
        exchange.tick();
        observer.flush().unwrap();
        observer.wait(Duration::from_millis(10)).unwrap();
        let take = |update| {
            if let Update::Cancelled(cancelled) = update {
                let at = left.iter().position(|name| *name == cancelled.client_order_id.0);
                left.remove(at.unwrap_or_else(|| panic!("{cancelled:?} of {names:?}")));
            }
        };
        observer.poll(take).unwrap();
        left.is_empty()
    });
    let records = record::agreed(exchange);
    record::check_matching(exchange.config(), &records);
    let ended = ended(&records, observer.member().0);
    assert!(names.iter().all(|name| ended[name] == 1), "{ended:?}");
}

fn with(exchange: &Exchange, options: Options) -> Client {
    Client::connect_with(exchange.addresses()[0], MemberId(7), options).unwrap()
}

#[test]
fn killed_gateway_cancels_guarded_orders_only() {
    let mut exchange = Exchange::start(&small(2));
    let mut observer = exchange.client(1, 7);
    let mut client = exchange.client(0, 7);
    enter(&mut client, guarded(1));
    enter(&mut client, 1);
    enter(&mut observer, guarded(11));
    assert!(exchange.kill(gateway(0)));
    // It is back elsewhere before its gateway is.
    enter(&mut observer, guarded(21));
    exchange.wait_until_up();
    check(&mut exchange, &mut observer, &[guarded(1), guarded(2)]);
    let mut client = exchange.client(0, 7);
    enter(&mut client, guarded(31));
    for _ in 0..2 {
        exchange.kill(gateway(0));
        exchange.wait_until_up();
    }
    check(&mut exchange, &mut observer, &[guarded(31), guarded(32)]);
    let records = record::agreed(&mut exchange);
    assert_eq!(ended(&records, 7).len(), 4, "what lives or was not guarded is there");
}

#[test]
fn a_session_that_ends_leaves_nothing_that_it_guarded() {
    let mut exchange = Exchange::start(&small(1));
    let mut observer = with(&exchange, Options::default());
    let mut other = Client::connect(exchange.addresses()[0], MemberId(8)).unwrap();
    enter(&mut other, guarded(1));
    let mut client = Client::connect(exchange.addresses()[0], MemberId(8)).unwrap();
    enter(&mut client, guarded(11));
    drop(other);
    // The last connection of the session ends it.
    let mut watching = exchange.client(0, 8);
    drop(client);
    enter(&mut watching, guarded(21));
    drop(watching);
    enter(&mut observer, guarded(1));
    let told = |exchange: &mut Exchange| ended(&record::agreed(exchange), 8);
    eventually("all of it is cancelled", || told(&mut exchange).len() == 6);
    assert!(told(&mut exchange).values().all(|times| *times == 1));
    assert_eq!(ended(&record::agreed(&mut exchange), 7), BTreeMap::new());
}

#[test]
fn silent_session_ends_after_three_heartbeats() {
    let mut exchange = Exchange::start(&small(2));
    let mut observer = exchange.client(1, 7);
    let mut beats = Client::connect_with(
        exchange.addresses()[0],
        MemberId(8),
        Options { heartbeat: Some(Duration::from_secs(60)), ..Options::default() },
    )
    .unwrap();
    enter(&mut beats, guarded(1));
    // It has three of these to enter what it does, however slow the machine is.
    let heartbeat = Some(Duration::from_secs(2));
    let mut silent = with(&exchange, Options { heartbeat, ..Options::default() });
    enter(&mut silent, guarded(1));
    check(&mut exchange, &mut observer, &[guarded(1), guarded(2)]);
    let end = loop {
        assert!(silent.wait(PATIENCE).is_ok());
        if let Err(error) = silent.poll(|_| ()) {
            break error;
        }
    };
    assert!(matches!(end, pares_client::ClientError::Closed | pares_client::ClientError::Silent), "{end}");
    beats.poll(|_| ()).unwrap();
    enter(&mut beats, guarded(11));
    assert_eq!(ended(&record::agreed(&mut exchange), 8), BTreeMap::new());
}

#[test]
fn expired_timer_cancels_guarded_orders_session_lives() {
    let mut exchange = Exchange::start(&small(2));
    let mut observer = exchange.client(1, 7);
    let mut client = exchange.client(0, 7);
    enter(&mut client, guarded(1));
    client.cancel_after(Some(Duration::from_secs(3_600))).unwrap();
    client.cancel_after(Some(Duration::from_millis(50))).unwrap();
    client.flush().unwrap();
    check(&mut exchange, &mut observer, &[guarded(1), guarded(2)]);
    enter(&mut client, guarded(11));
    client.cancel_after(Some(Duration::from_millis(50))).unwrap();
    client.cancel_after(None).unwrap();
    enter(&mut client, guarded(21));
    assert_eq!(ended(&record::agreed(&mut exchange), 7).len(), 2, "it was stopped");
    exchange.kill(gateway(0));
    exchange.wait_until_up();
    check(&mut exchange, &mut observer, &[11, 12, 21, 22].map(guarded));
}
