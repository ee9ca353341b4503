//! Systems of other shapes than the usual.

use pares_config::DurabilitySetting;
use pares_node::{NodeId, SystemConfig};

use crate::common::exchange::{Exchange, gateway, small, venue};
use crate::common::load;
use crate::common::{random, record};

#[test]
fn one_gateway_orders_by_arrival_without_a_sequencer() {
    let mut exchange = Exchange::start(&SystemConfig { sequencer: false, ..small(1) });
    let mut traders = load::traders(&exchange, 4);
    load::trade(&mut exchange, &mut traders, 1_000);
    let records = load::finish_and_check(&mut exchange, &mut traders);
    traders.iter_mut().for_each(|trader| record::check_trades(&records, trader));
}

#[test]
fn a_venue_dies_without_a_sequencer() {
    let mut exchange = Exchange::start(&SystemConfig { sequencer: false, ..small(1) });
    let mut traders = load::traders(&exchange, 4);
    for kill in 0..8 {
        load::trade(&mut exchange, &mut traders, 200);
        exchange.kill(venue(kill % 2));
    }
    load::finish_and_check(&mut exchange, &mut traders);
}

#[test]
fn the_gateway_dies_without_a_sequencer() {
    let mut exchange = Exchange::start(&SystemConfig { sequencer: false, ..small(1) });
    let mut traders = load::traders(&exchange, 4);
    for _ in 0..6 {
        load::trade(&mut exchange, &mut traders, 200);
        exchange.kill(gateway(0));
    }
    load::finish_and_check(&mut exchange, &mut traders);
}

#[test]
fn three_gateways_and_three_venues_agree_on_one_order() {
    let mut exchange = Exchange::start(&SystemConfig { venues: 3, ..small(3) });
    let mut traders = load::traders(&exchange, 6);
    load::trade(&mut exchange, &mut traders, 3_000);
    let records = load::finish_and_check(&mut exchange, &mut traders);
    traders.iter_mut().for_each(|trader| record::check_trades(&records, trader));
}

#[test]
fn anything_dies_with_three_of_each() {
    let config = SystemConfig { venues: 3, recorders: 3, quorum: 2, ..small(3) };
    let all = NodeId::all(&config);
    let mut exchange = Exchange::start(&config);
    let mut traders = load::traders(&exchange, 6);
    let mut random = random(1_000);
    for _ in 0..15 {
        load::trade(&mut exchange, &mut traders, 200);
        exchange.kill(all[random.below(all.len() as u64) as usize]);
    }
    load::finish_and_check(&mut exchange, &mut traders);
}

#[test]
fn a_single_venue_and_recorder_die_on_disk() {
    let durability = DurabilitySetting::Disk;
    let config = SystemConfig { venues: 1, recorders: 1, durability, ..small(1) };
    let mut exchange = Exchange::start(&config);
    let mut traders = load::traders(&exchange, 4);
    for role in NodeId::all(&config) {
        load::trade(&mut exchange, &mut traders, 200);
        exchange.kill(role);
    }
    load::trade(&mut exchange, &mut traders, 200);
    load::finish_and_check(&mut exchange, &mut traders);
}
