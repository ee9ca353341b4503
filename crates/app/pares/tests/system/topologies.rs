//! Systems of other shapes than the usual.

use pares_config::{DurabilitySetting, LaneConfig};
use pares_node::{NodeId, SystemConfig};
use serde_json::Value;

use crate::common::exchange::{Exchange, PROGRAM, gateway, small, venue};
use crate::common::trader::Trader;
use crate::common::{eventually, load, record};
use crate::kills::{any_of, trade_while_killing};

#[test]
fn trades_are_told_without_a_sequencer_and_with_three_of_each() {
    let shapes = [
        (SystemConfig { sequencer: false, ..small(1) }, 4, 1_000),
        (SystemConfig { venues: 3, ..small(3) }, 6, 3_000),
    ];
    for (config, members, requests) in shapes {
        let mut exchange = Exchange::start(&config);
        let mut traders = load::traders(&exchange, members);
        load::trade(&mut exchange, &mut traders, requests);
        let records = load::finish_and_check(&mut exchange, &mut traders);
        traders.iter_mut().for_each(|trader| record::check_trades(&records, trader));
        assert_eq!(exchange.supervisor().restarts(), 0);
    }
}

#[test]
fn a_venue_or_the_gateway_dies_without_a_sequencer() {
    let doomed = [venue(0), venue(1), gateway(0)];
    let mut next = doomed.iter().cycle();
    let config = SystemConfig { sequencer: false, ..small(1) };
    trade_while_killing(&config, 14, |_| vec![*next.next().expect("it has no end")]);
}

#[test]
fn anything_dies_with_three_of_each() {
    let config = SystemConfig { venues: 3, recorders: 3, quorum: 2, ..small(3) };
    trade_while_killing(&config, 15, any_of(&config, 1));
}

#[test]
fn a_single_venue_and_recorder_die_on_disk() {
    let durability = DurabilitySetting::Disk;
    let config = SystemConfig { venues: 1, recorders: 1, durability, ..small(1) };
    let mut all = NodeId::all(&config).into_iter();
    trade_while_killing(&config, all.len() as u64, |_| all.by_ref().take(1).collect());
}

/// Two lanes of two venues each, one shard in each.
fn lanes(venues: [[u16; 2]; 2]) -> Vec<LaneConfig> {
    let lane = |(shard, venues): (u16, [u16; 2])| LaneConfig { shards: vec![shard], venues: venues.into() };
    (0..).zip(venues).map(lane).collect()
}

/// Which venues have a position in each shard.
fn executing(exchange: &Exchange) -> Vec<Vec<String>> {
    let told = exchange.pares("stat --json").json();
    let of = |shard: &Value| shard["positions"].as_object().unwrap().keys().cloned().collect();
    told["shards"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn each_lane_loses_a_venue_and_the_next_start_has_others() {
    let mut exchange =
        Exchange::start(&SystemConfig { venues: 4, lanes: lanes([[0, 1], [2, 3]]), ..small(2) });
    let mut traders = load::traders(&exchange, 4);
    load::trade(&mut exchange, &mut traders, 500);
    assert_eq!(executing(&exchange), [["venue-0", "venue-1"], ["venue-2", "venue-3"]]);
    for doomed in [[0, 2], [1, 3]].map(|doomed| doomed.map(venue)) {
        for role in doomed {
            exchange.supervisor().hold(role, true);
            exchange.kill(role);
        }
        load::trade(&mut exchange, &mut traders, 500);
        doomed.into_iter().for_each(|role| exchange.supervisor().hold(role, false));
        exchange.wait_until_up();
        eventually("both are back in step", || {
            doomed.iter().all(|&role| exchange.counter(role, "resynced") == 1)
        });
    }
    assert!(traders.iter().all(|trader| trader.reconnects == 0), "the members notice nothing");

    // Each venue gets what it did not have, and loses what it had.
    load::finish(&mut exchange, &mut traders);
    exchange.stop();
    let file = exchange.layout().config();
    let config = pares_node::config::load(&file).unwrap();
    let lanes = lanes([[2, 1], [0, 3]]);
    pares_node::config::save(&SystemConfig { lanes, ..config }, &file).unwrap();
    exchange.start_again();
    load::trade(&mut exchange, &mut traders, 500);
    assert_eq!(executing(&exchange), [["venue-1", "venue-2"], ["venue-0", "venue-3"]]);
    exchange.kill(venue(1));
    exchange.kill(venue(3));
    load::trade(&mut exchange, &mut traders, 500);
    load::finish_and_check(&mut exchange, &mut traders);
}

/// Moves the first shard while the members trade.
fn move_first_shard(exchange: &mut Exchange, traders: &mut [Trader], venues: &[&str]) {
    let mut command = std::process::Command::new(PROGRAM);
    command.args(["admin", "lanes", "0"]).args(venues).arg("--dir").arg(exchange.layout().root());
    let mut moving = command.spawn().unwrap();
    let ended = loop {
        load::trade(exchange, traders, 50);
        if let Some(ended) = moving.try_wait().unwrap() {
            break ended;
        }
    };
    assert!(ended.success(), "{}", exchange.complaints());
}

#[test]
fn a_shard_moves_while_members_trade_and_the_old_venues_die() {
    let lane = |shard, venues: &[u16]| LaneConfig { shards: vec![shard], venues: venues.into() };
    let lanes = vec![lane(0, &[0, 1]), lane(1, &[0, 1, 2])];
    let mut exchange = Exchange::start(&SystemConfig { venues: 3, lanes, ..small(2) });
    let mut traders = load::traders(&exchange, 4);
    load::trade(&mut exchange, &mut traders, 2_000);
    for (to, executes, doomed) in
        [(&["2"][..], &["venue-2"][..], &[0, 1][..]), (&["0", "1"], &["venue-0", "venue-1"], &[2])]
    {
        move_first_shard(&mut exchange, &mut traders, to);
        for role in doomed.iter().copied().map(venue) {
            exchange.supervisor().hold(role, true);
            exchange.kill(role);
        }
        assert_eq!(executing(&exchange)[0], executes);
        load::trade(&mut exchange, &mut traders, 500);
        doomed.iter().for_each(|&role| exchange.supervisor().hold(venue(role), false));
        exchange.wait_until_up();
    }
    assert!(traders.iter().all(|trader| trader.reconnects == 0), "the members notice nothing");
    load::finish_and_check(&mut exchange, &mut traders);

    let file = exchange.layout().config();
    let config = pares_node::config::load(&file).unwrap();
    let lanes = vec![lane(0, &[0]), lane(1, &[0, 1, 2])];
    pares_node::config::save(&SystemConfig { lanes, ..config }, &file).unwrap();
    let refused = exchange.pares("admin lanes 0 2");
    assert!(!refused.is_ok() && refused.complaint.contains("put 0, 1 back"), "{refused:?}");
}
