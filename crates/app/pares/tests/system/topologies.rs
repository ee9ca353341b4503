//! Systems of other shapes than the usual.

use pares_config::DurabilitySetting;
use pares_node::{NodeId, SystemConfig};

use crate::common::exchange::{Exchange, gateway, small, venue};
use crate::common::{load, record};
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
