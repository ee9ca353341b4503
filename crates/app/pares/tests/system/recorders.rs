//! Several recorders: one that dies disturbs nobody, finds what it missed, and counts for the quorum only
//! when it has the record.

use std::time::Duration;

use pares_client::{Client, Update};
use pares_node::{NodeId, SystemConfig};
use pares_types::{MemberId, Reason, RecorderId, Side};

use crate::common::exchange::{Exchange, gateway, recorder, small, venue};
use crate::common::load;
use crate::common::record;
use crate::common::{eventually, limit};
use crate::kills::trade_while_killing;

fn recorded(exchange: &Exchange, id: u16) -> usize {
    record::of_recorder(exchange, RecorderId(id)).values().map(Vec::len).sum()
}

#[test]
fn a_recorder_that_stays_away_finds_what_it_missed() {
    let (mut exchange, mut traders) = load::busy(&small(1), 200);
    exchange.look_away(true);
    exchange.kill(recorder(1));
    // Its venues' logs may not be released before it has read them.
    load::trade(&mut exchange, &mut traders, 15_000);
    assert!(recorded(&exchange, 1) < recorded(&exchange, 0));
    exchange.look_away(false);
    let records = load::finish_and_check(&mut exchange, &mut traders);
    for trader in &mut traders {
        assert_eq!(trader.reconnects, 0, "the members notice nothing");
        record::check_trades(&records, trader);
    }
}

#[test]
fn a_recorder_with_an_empty_disk_is_filled_by_its_peer() {
    let mut exchange = Exchange::start(&small(1));
    let mut traders = load::traders(&exchange, 4);
    // Until the venue has given up the beginning of its log; how soon depends on how often it only follows.
    let log = exchange.layout().venue_log(pares_types::VenueId(0));
    let released = || pares_log::Reader::at_end(&log).unwrap().released() > pares_log::Offset::START;
    for _ in 0..20 {
        load::trade(&mut exchange, &mut traders, 10_000);
        if released() {
            break;
        }
    }
    load::finish(&mut exchange, &mut traders);
    record::agreed(&mut exchange);
    exchange.stop();
    assert!(released(), "the venue's log begins later than the record");
    std::fs::remove_dir_all(exchange.layout().recorder_log(RecorderId(1))).unwrap();
    exchange.start_again();
    traders.iter_mut().for_each(|trader| trader.moved(&exchange.addresses()));
    load::trade(&mut exchange, &mut traders, 200);
    load::finish_and_check(&mut exchange, &mut traders);
}

#[test]
fn nothing_is_answered_before_a_quorum_has_it() {
    let (mut exchange, mut traders) = load::busy(&SystemConfig { recorders: 3, quorum: 2, ..small(1) }, 200);
    exchange.freeze(recorder(0));
    load::trade(&mut exchange, &mut traders, 200);
    exchange.freeze(recorder(2));
    load::nothing_is_answered(&mut exchange, &mut traders, "one recorder is no quorum of two");
    exchange.thaw(recorder(0));
    load::trade(&mut exchange, &mut traders, 200);
    exchange.thaw(recorder(2));
    load::finish_and_check(&mut exchange, &mut traders);
}

#[test]
fn any_recorder_of_a_quorum_dies_at_any_time() {
    let mut next = (0..3).cycle().map(recorder);
    let config = SystemConfig { recorders: 3, quorum: 2, ..small(1) };
    trade_while_killing(&config, 9, |_| next.by_ref().take(1).collect());
}

/// Sends one order after the other until one is refused because nothing is recorded. The names, and which was refused first.
fn send_until_refused(client: &mut Client) -> (u64, u64) {
    let (mut name, mut refused) = (0, None);
    eventually("a refusal with the reason", || {
        name += 1;
        client.send(&limit(name, 1, Side::Buy, 1, 1_000_000)).unwrap();
        client.flush().unwrap();
        client.wait(Duration::from_millis(20)).unwrap();
        client
            .poll(|update| match update {
                Update::Rejected { client_order_id, reason: Reason::NotRecorded } => {
                    // Two may be refused at once: the first is asked for.
                    _ = refused.get_or_insert(client_order_id.0);
                }
                other => panic!("{other:?}"),
            })
            .unwrap();
        refused.is_some()
    });
    (name, refused.expect("waited for"))
}

/// Takes `nodes` away until new requests are refused, and brings them back.
fn refused_without(nodes: &[NodeId]) {
    let (mut exchange, mut traders) = load::busy(&SystemConfig { quorum_patience_ms: 500, ..small(1) }, 200);
    exchange.look_away(true);
    nodes.iter().for_each(|&node| assert!(exchange.kill(node)));
    let mut client = exchange.client(0, 99);
    let (sent, refused) = send_until_refused(&mut client);
    eventually("the counter", || exchange.counter(gateway(0), "shards_not_recorded") > 0);
    exchange.look_away(false);
    load::trade(&mut exchange, &mut traders, 1_000);
    let records = load::finish_and_check(&mut exchange, &mut traders);
    eventually("the counter", || exchange.counter(gateway(0), "shards_not_recorded") == 0);
    assert!(traders.iter().all(|trader| trader.reconnects == 0));
    // What was taken in is recorded, what was refused is nowhere.
    let ours = records.values().flatten().filter(|one| one.request.member == MemberId(99));
    let names: Vec<u64> = ours.map(|one| one.request.client_order_id.0).collect();
    let taken_in: Vec<u64> = (1..=sent).filter(|&name| name < refused).collect();
    assert_eq!(names, taken_in);
}

#[test]
fn without_recorder_requests_refused_then_served() {
    refused_without(&[recorder(0), recorder(1)]);
}

#[test]
fn without_venue_requests_refused_then_served() {
    refused_without(&[venue(0), venue(1)]);
}
