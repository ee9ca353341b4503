//! A sync fails under a recorder: it rebuilds its log from its own and the others', and no member notices.

use pares_config::DurabilitySetting;
use pares_faults::device::DeviceFault;
use pares_log::Reader;
use pares_node::SystemConfig;
use pares_types::RecorderId;

use crate::common::exchange::{Exchange, recorder, small};
use crate::common::{eventually, load};

/// The log is whole, and the damaged one is where an operator finds it.
fn check_repaired(exchange: &Exchange, id: u16) {
    let path = exchange.layout().recorder_log(RecorderId(id));
    let mut log = Reader::at_start(&path).unwrap();
    while log.next().unwrap().is_some() {}
    assert_eq!(log.offset(), log.written(), "recorder-{id} is whole\n{}", exchange.complaints());
    assert!(path.join("damaged-1/marks").exists(), "recorder-{id}: the damaged log is kept");
}

/// A recorder of a system with `disk` whose device refuses one sync under load: its log is poisoned, it ends, and what
/// replaces it rebuilds the log.
fn fail_a_sync(config: &SystemConfig, id: u16) {
    let mut exchange =
        Exchange::start(&SystemConfig { durability: DurabilitySetting::Disk, ..config.clone() });
    let mut traders = load::traders(&exchange, 4);
    load::trade(&mut exchange, &mut traders, 500);
    exchange.look_away(true);
    exchange.supervisor().arm(recorder(id), vec![DeviceFault::FailingSync(20).variable()]);
    exchange.kill(recorder(id));
    let mut deaths = Vec::new();
    eventually("it dies, is replaced and dies again", || {
        load::trade(&mut exchange, &mut traders, 10);
        deaths.extend(exchange.supervisor().tick());
        deaths.len() == 2
    });
    let complaint = deaths[1].complaint.as_deref().unwrap_or_default();
    assert!(complaint.contains("poisoned"), "{deaths:?}");
    load::trade(&mut exchange, &mut traders, 200);
    exchange.look_away(false);
    load::finish_and_check(&mut exchange, &mut traders);
    check_repaired(&exchange, id);
    assert!(traders.iter().all(|trader| trader.reconnects == 0), "the members notice nothing");
}

#[test]
fn failing_sync_of_one_recorder_needs_no_operator() {
    fail_a_sync(&small(1), 1);
}

#[test]
fn a_failing_sync_under_one_of_a_quorum_of_two_disturbs_nobody() {
    fail_a_sync(&SystemConfig { recorders: 3, quorum: 2, ..small(1) }, 0);
}
