//! A stopped (SIGSTOP) node: the rest goes on, and the sleeper wakes late into a world that has moved on.

use std::time::Duration;

use pares_client::{Client, Options, Update};
use pares_node::{NodeId, SystemConfig};
use pares_types::{MemberId, Side};

use crate::common::exchange::{Exchange, gateway, recorder, small, venue};
use crate::common::load;
use crate::common::{PATIENCE, limit, record};

const WHILE: Duration = Duration::from_secs(1);

/// Freezes a node for a second under load; the others must go on meanwhile.
fn trade_while_stopped(config: &SystemConfig, role: NodeId) {
    let mut exchange = Exchange::start(config);
    let mut traders = load::traders(&exchange, 4);
    load::trade(&mut exchange, &mut traders, 200);
    exchange.freeze(role);
    load::trade(&mut exchange, &mut traders, 200);
    load::trade_for(&mut exchange, &mut traders, WHILE);
    exchange.thaw(role);
    load::trade(&mut exchange, &mut traders, 200);
    load::finish_and_check(&mut exchange, &mut traders);
    assert_eq!(exchange.supervisor().restarts(), 0, "nobody was mistaken for dead");
}

#[test]
fn a_venue_is_stopped_and_wakes_late() {
    trade_while_stopped(&small(1), venue(0));
}

#[test]
fn a_venue_wakes_after_the_window_has_gone_round() {
    // A window of 16 positions is gone round many times in a second.
    trade_while_stopped(&SystemConfig { window: 16, ..small(1) }, venue(1));
}

#[test]
fn one_of_two_recorders_is_stopped_and_wakes_late() {
    trade_while_stopped(&small(1), recorder(0));
}

#[test]
fn one_of_two_gateways_is_stopped_and_wakes_late() {
    trade_while_stopped(&small(2), gateway(1));
}

#[test]
fn nothing_is_answered_while_the_only_recorder_is_stopped() {
    let mut exchange = Exchange::start(&SystemConfig { recorders: 1, ..small(1) });
    let mut traders = load::traders(&exchange, 4);
    load::trade(&mut exchange, &mut traders, 200);
    exchange.freeze(recorder(0));
    load::nothing_is_answered(&mut exchange, &mut traders, "never acknowledge what is not recorded");
    exchange.thaw(recorder(0));
    load::trade(&mut exchange, &mut traders, 200);
    load::finish_and_check(&mut exchange, &mut traders);
}

#[test]
fn a_stopped_reader_never_blocks_its_writer() {
    let config = SystemConfig { session_in_flight_max: 32_768, in_flight_max: 65_536, ..small(1) };
    let mut exchange = Exchange::start(&config);
    let options = Options { journalled: true, ..Options::default() };
    let mut client = Client::connect_with(exchange.addresses()[0], MemberId(7), options).unwrap();
    let readers = [venue(0), venue(1), recorder(0), recorder(1)];
    readers.iter().for_each(|&reader| exchange.freeze(reader));

    // Of 72 bytes each: more than one segment of the gateway's log, and more than a window.
    const REQUESTS: u64 = 30_000;
    let mut sent = 0;
    let mut journalled = 0;
    while journalled < REQUESTS {
        while sent < REQUESTS && sent - journalled < 1_000 {
            sent += 1;
            client.send(&limit(sent, 3, Side::Buy, 1, 1_000_000)).unwrap();
        }
        client.flush().unwrap();
        assert!(client.wait(PATIENCE).unwrap(), "the gateway takes requests in");
        client
            .poll(|update| match update {
                Update::Journalled { .. } => journalled += 1,
                other => panic!("{other:?}"),
            })
            .unwrap();
    }
    readers.iter().for_each(|&reader| exchange.thaw(reader));
    let mut answers = 0;
    while answers < sent {
        assert!(client.wait(PATIENCE).unwrap(), "{answers} of {sent} are answered");
        client.poll(|update| answers += u64::from(matches!(update, Update::Answer(_)))).unwrap();
    }
    let records = record::agreed(&mut exchange);
    record::check_matching(exchange.config(), &records);
}
