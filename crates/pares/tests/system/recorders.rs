//! Several recorders: one that dies disturbs nobody, finds what it missed, and counts for the quorum only
//! when it has the record.

use std::time::Duration;

use pares_node::SystemConfig;
use pares_types::RecorderId;

use crate::common::exchange::{Exchange, recorder, small};
use crate::common::load;
use crate::common::record;

fn recorded(exchange: &Exchange, id: u16) -> usize {
    record::of_recorder(exchange, RecorderId(id)).values().map(Vec::len).sum()
}

#[test]
fn a_recorder_that_stays_away_finds_what_it_missed() {
    let mut exchange = Exchange::start(&small(1));
    let mut traders = load::traders(&exchange, 4);
    load::trade(&mut exchange, &mut traders, 200);
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
    let mut exchange = Exchange::start(&SystemConfig { recorders: 3, quorum: 2, ..small(1) });
    let mut traders = load::traders(&exchange, 4);
    load::trade(&mut exchange, &mut traders, 200);
    exchange.freeze(recorder(0));
    load::trade(&mut exchange, &mut traders, 200);
    exchange.freeze(recorder(2));
    load::trade_for(&mut exchange, &mut traders, Duration::from_millis(500));
    let before = load::answered(&traders);
    load::trade_for(&mut exchange, &mut traders, Duration::from_secs(1));
    assert_eq!(load::answered(&traders), before, "one recorder is no quorum of two");
    exchange.thaw(recorder(0));
    load::trade(&mut exchange, &mut traders, 200);
    exchange.thaw(recorder(2));
    load::finish_and_check(&mut exchange, &mut traders);
}

#[test]
fn any_recorder_of_a_quorum_dies_at_any_time() {
    let mut exchange = Exchange::start(&SystemConfig { recorders: 3, quorum: 2, ..small(1) });
    let mut traders = load::traders(&exchange, 4);
    for kill in 0..9 {
        load::trade(&mut exchange, &mut traders, 150);
        exchange.kill(recorder(kill % 3));
    }
    load::finish_and_check(&mut exchange, &mut traders);
}
