//! kill -9 at random instants under load, of each role, of several, of all. Afterwards every request has
//! exactly one outcome, the recorders agree record by record, and the matching is that of the naive book.

use pares_flow::Random;
use pares_node::{NodeId, SystemConfig};

use crate::common::exchange::{Exchange, gateway, recorder, small, venue};
use crate::common::load;
use crate::common::{random, record};

/// Kills what `pick` says, again and again, while four members trade; then checks the promise.
pub(crate) fn trade_while_killing(
    config: &SystemConfig,
    kills: u64,
    mut pick: impl FnMut(&mut Random) -> Vec<NodeId>,
) {
    let mut exchange = Exchange::start(config);
    let mut traders = load::traders(&exchange, 4);
    let mut random = random(1_000 + kills);
    for _ in 0..kills {
        load::trade(&mut exchange, &mut traders, 50 + random.below(300));
        for role in pick(&mut random) {
            exchange.kill(role);
        }
    }
    load::trade(&mut exchange, &mut traders, 200);
    load::finish_and_check(&mut exchange, &mut traders);
    assert!(exchange.supervisor().restarts() > 0, "something was killed");
}

/// Up to so many nodes of all, whichever.
pub(crate) fn any_of(config: &SystemConfig, most: u64) -> impl Fn(&mut Random) -> Vec<NodeId> + use<> {
    let all = NodeId::all(config);
    move |random| {
        let doomed = 1 + random.below(most);
        (0..doomed).map(|_| all[random.below(all.len() as u64) as usize]).collect()
    }
}

#[test]
fn venue_dies_between_match_and_record() {
    let config = small(1);
    let mut exchange = Exchange::start(&config);
    let mut traders = load::traders(&exchange, 4);
    let mut random = random(1_000);
    for _ in 0..12 {
        load::trade(&mut exchange, &mut traders, 50 + random.below(300));
        exchange.kill(venue(random.below(2) as u16));
    }
    let records = load::finish_and_check(&mut exchange, &mut traders);
    for trader in &mut traders {
        assert_eq!(trader.reconnects, 0, "the members notice nothing");
        record::check_trades(&records, trader);
    }
}

#[test]
fn both_venues_die_at_once() {
    trade_while_killing(&small(1), 8, |_| vec![venue(0), venue(1)]);
}

#[test]
fn one_venue_dies_while_the_other_is_being_restored() {
    let mut next = 0;
    trade_while_killing(&SystemConfig { checkpoint_every: 64, ..small(1) }, 12, |_| {
        next = 1 - next;
        vec![venue(next), venue(1 - next), venue(next)]
    });
}

#[test]
fn recorder_dies_between_record_and_answer() {
    trade_while_killing(&small(1), 12, |random| vec![recorder(random.below(2) as u16)]);
}

#[test]
fn the_only_recorder_dies_between_record_and_answer() {
    trade_while_killing(&SystemConfig { recorders: 1, ..small(1) }, 8, |_| vec![recorder(0)]);
}

#[test]
fn gateway_dies_between_journal_and_answer() {
    trade_while_killing(&small(2), 12, |random| vec![gateway(random.below(2) as u16)]);
}

#[test]
fn everything_dies_at_once() {
    let config = small(2);
    let all = NodeId::all(&config);
    trade_while_killing(&config, 6, |_| all.clone());
}

#[test]
fn anything_dies_at_any_time() {
    let config = small(2);
    trade_while_killing(&config, 20, any_of(&config, 3));
}
