//! A stopped (SIGSTOP) node: the rest continues, and the sleeper wakes late into a world that has moved on.

use std::time::Duration;

use pares_node::{NodeId, SystemConfig};

use crate::common::exchange::{gateway, recorder, small, venue};
use crate::common::load;

const WHILE: Duration = Duration::from_secs(1);

/// Freezes a node for a second under load; the others must continue meanwhile.
fn trade_while_stopped(config: &SystemConfig, role: NodeId) {
    let (mut exchange, mut traders) = load::busy(config, 200);
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
