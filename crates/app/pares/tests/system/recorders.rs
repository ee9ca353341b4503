//! Several recorders: one that dies disturbs nobody, finds what it missed, and counts for the quorum only
//! when it has the record.

use pares_node::SystemConfig;
use pares_types::RecorderId;

use crate::common::exchange::{Exchange, recorder, small};
use crate::common::load;
use crate::common::record;
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
