//! Bits rot under a recorder: it rebuilds its log from its own and the others', and nobody notices.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pares_log::{Offset, Reader};
use pares_node::{NodeError, Supervisor, SystemConfig};
use pares_types::{Position, RecorderId, ShardId};
use pares_wire::record::{RESULT, ResultRecord, schema};

use crate::common::eventually;
use crate::common::exchange::{Exchange, PROGRAM, recorder, small};
use crate::common::load;

/// Where each position lies in a recorder's log.
type Places = BTreeMap<(ShardId, Position), Offset>;

fn places(log: &Path) -> Places {
    let mut reader = Reader::at_start(log).unwrap();
    let mut places = Places::new();
    while let Some(entry) = reader.next().unwrap() {
        if schema(entry.payload) == Some(RESULT) {
            let record = ResultRecord::read(entry.payload).unwrap();
            places.insert((record.shard(), record.position()), entry.offset);
        }
    }
    places
}

/// Flips a bit of the record at `offset`.
fn rot(log: &Path, offset: Offset) {
    let base = offset.0 - offset.0 % SEGMENT_BYTES;
    let file = log.join(format!("{base:020}.seg"));
    let file = std::fs::File::options().read(true).write(true).open(file).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset.0 % SEGMENT_BYTES + 40).unwrap();
    file.write_all_at(&[byte[0] ^ 4], offset.0 % SEGMENT_BYTES + 40).unwrap();
}

const SEGMENT_BYTES: u64 = 2 << 20;

fn log_of(exchange: &Exchange, id: u16) -> std::path::PathBuf {
    exchange.layout().recorder_log(RecorderId(id))
}

/// The log is whole, and the damaged one is where an operator finds it.
fn check_repaired(exchange: &Exchange, id: u16) {
    let log = log_of(exchange, id);
    let verify = |log: &Path| {
        let mut verify = std::process::Command::new(PROGRAM);
        verify.args(["journal", "verify"]).arg(log).output().unwrap().status.success()
    };
    assert!(verify(&log), "recorder-{id} is whole\n{}", exchange.complaints());
    assert!(log.join("damaged-1/marks").exists(), "recorder-{id}: the damaged log is kept");
}

/// The last position of each shard.
fn lasts(places: &Places) -> Vec<(ShardId, Position)> {
    let last: BTreeMap<_, _> = places.keys().copied().collect();
    last.into_iter().collect()
}

#[test]
fn recorder_with_bit_rot_rebuilds_log_unnoticed() {
    let (mut exchange, mut traders) = load::busy(&small(1), 24_000);
    for (round, id) in [1, 0].into_iter().enumerate() {
        let log = log_of(&exchange, id);
        let places = places(&log);
        assert!(places.values().any(|offset| offset.0 > SEGMENT_BYTES), "more than one segment");
        for offset in places.values().step_by(101 + round) {
            rot(&log, *offset);
        }
        load::trade(&mut exchange, &mut traders, 100);
        exchange.kill(recorder(id));
        load::trade(&mut exchange, &mut traders, 2_000);
        eventually("the killed one is gone", || {
            exchange.tick();
            log.join("damaged-1/marks").exists()
        });
        exchange.wait_until_up();
        check_repaired(&exchange, id);
    }
    load::finish_and_check(&mut exchange, &mut traders);
    assert!(traders.iter().all(|trader| trader.reconnects == 0), "the members notice nothing");
    // What a venue restores from, and repeats are answered from, is whole too.
    exchange.kill(crate::common::exchange::venue(0));
    exchange.kill(crate::common::exchange::venue(1));
    exchange.kill(crate::common::exchange::gateway(0));
    load::trade(&mut exchange, &mut traders, 1_000);
    load::finish_and_check(&mut exchange, &mut traders);
}

#[test]
fn two_damaged_logs_repair_each_other_at_start() {
    let (mut exchange, mut traders) = load::busy(&small(1), 3_000);
    load::finish_and_check(&mut exchange, &mut traders);
    exchange.stop();
    for id in [0, 1] {
        let log = log_of(&exchange, id);
        let hit = places(&log).into_iter().filter(|((_, position), _)| position.0 % 50 == u64::from(id));
        hit.for_each(|(_, offset)| rot(&log, offset));
        // Nor is what only this one has, or a venue, any help.
        let logs = exchange.layout().venue_log(pares_types::VenueId(id));
        std::fs::remove_dir_all(logs).unwrap();
    }
    exchange.start_again();
    [0, 1].into_iter().for_each(|id| check_repaired(&exchange, id));
    traders.iter_mut().for_each(|trader| trader.moved(&exchange.addresses()));
    load::trade(&mut exchange, &mut traders, 500);
    load::finish_and_check(&mut exchange, &mut traders);
}

#[test]
fn records_lost_by_recorders_come_from_venues_or_are_named() {
    let (mut exchange, mut traders) = load::busy(&small(1), 1_000);
    load::finish_and_check(&mut exchange, &mut traders);
    exchange.stop();
    let rot_the_last = |exchange: &Exchange| {
        for id in [0, 1] {
            let log = log_of(exchange, id);
            let places = places(&log);
            lasts(&places).iter().for_each(|last| rot(&log, places[last]));
        }
    };
    rot_the_last(&exchange);
    exchange.start_again();
    [0, 1].into_iter().for_each(|id| check_repaired(&exchange, id));
    traders.iter_mut().for_each(|trader| trader.moved(&exchange.addresses()));
    load::trade(&mut exchange, &mut traders, 500);
    load::finish_and_check(&mut exchange, &mut traders);
    exchange.stop();

    let last = lasts(&places(&log_of(&exchange, 0)));
    rot_the_last(&exchange);
    for venue in exchange.config().venue_ids() {
        std::fs::remove_dir_all(exchange.layout().venue_log(venue)).unwrap();
    }
    let config: SystemConfig = exchange.config().clone();
    let refused =
        Supervisor::start_armed(Path::new(PROGRAM), exchange.layout().clone(), &config, &[]).map(drop);
    let Err(NodeError::Irreparable { missing, .. }) = refused else { panic!("{refused:?}") };
    let named: Vec<_> = last.iter().map(|(shard, at)| format!("shard {shard}: position {at}")).collect();
    assert_eq!(missing, named.join(", "));
    assert!(!log_of(&exchange, 0).join("damaged-2").exists(), "nothing is changed");
}
