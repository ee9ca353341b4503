//! Seeded storms over several hosts: messages lost, repeated, late and overtaken; orderers killed, stopped and started again; disks lost; hosts that do not
//! hear each other, or see a gateway's log late; windows that are full.
//!
//! Checked all the time: no position has two requests, no request two positions, and a gateway's requests are in order in each shard. In the
//! end, once it is calm: everything that was asked is ordered everywhere.

mod world;

use crate::orderer::Defect;
use pares_types::{
    ClientOrderId, Command, GatewayId, InstrumentId, MemberId, Request, RequestId, ShardId, Timestamp,
};
use world::{GATEWAYS, MS, STEP_NS, World};

/// The record of a request that tells a shard the time.
pub(crate) fn request_body(gateway: u16, sequence: u64, shard: u16) -> Vec<u8> {
    let request = Request {
        id: RequestId::new(GatewayId(gateway), sequence),
        stamp: Timestamp(0),
        member: MemberId(1),
        client_order_id: ClientOrderId(sequence),
        instrument: InstrumentId(1),
        shard: ShardId(shard),
        command: Command::TIME,
    };
    let mut bytes = vec![0; pares_wire::record::request_bytes(&request)];
    pares_wire::record::write_request(&mut bytes, &request);
    bytes
}

fn storm(hosts: u8, seed: u64, defect: Option<Defect>) -> Result<World, String> {
    let mut world = World::new(hosts, seed, defect);
    for _ in 0..3_000 {
        let host = world.random.below(hosts.into()) as usize;
        strike(&mut world, host);
        if world.random.percent(15) {
            world.ask();
        }
        world.step()?;
    }
    world.calm();
    let steps = 3_000 * MS / STEP_NS;
    world.run_until(steps, World::has_all)?.then_some(()).ok_or_else(|| world.describe())?;
    world.check_order()?;
    Ok(world)
}

/// Something happens to a host, or nothing.
fn strike(world: &mut World, host: usize) {
    let (dice, detail) = (world.random.below(1_000), world.random.below(100));
    match dice {
        0..40 if !world.is_up(host) => world.start(host),
        0..7 => world.kill(host, detail < 50),
        7..13 => world.stop(host, detail * MS / 10),
        13..20 => world.cut(host, detail < 50),
        20..40 => world.heal(),
        40..60 => world.save(host),
        63..70 => world.lose_disk(host),
        60..63 => world.slow_gateway(host, detail * MS / 5),
        _ => {}
    }
}

fn all_pass(hosts: u8, seeds: std::ops::Range<u64>) {
    let (mut ordered, mut repeats, mut terms, mut copies, mut losses) = (0, 0, 0, 0, 0);
    for seed in seeds {
        let world = storm(hosts, seed, None).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        let counts = world.counts();
        ordered += world.truth_len() as u64;
        repeats += counts.iter().map(|counts| counts.repeats).sum::<u64>();
        terms += world.term();
        copies += world.copies;
        losses += world.losses;
    }
    // A storm in which nothing happens proves nothing.
    let told =
        format!("{ordered} ordered, {repeats} repeats, {terms} terms, {copies} copies, {losses} disks lost");
    assert!(ordered > 5_000 && repeats > 100 && terms > 100 && copies > 20 && losses > 20, "{told}");
}

#[test]
fn three_hosts_order_everything_once_and_alike() {
    all_pass(3, 0..40);
}

#[test]
fn five_hosts_order_everything_once_and_alike() {
    all_pass(5, 100..125);
}

fn check_found(defect: Defect, at_least: usize) {
    let found = (0..20).filter(|&seed| storm(3, seed, Some(defect)).is_err()).count();
    assert!(found >= at_least, "in {found} storms of 20");
}

#[test]
fn what_gives_a_request_two_positions_is_found() {
    check_found(Defect::NoSequences, 10);
}

#[test]
fn what_executes_before_it_is_committed_is_found() {
    check_found(Defect::BeforeCommit, 4);
}

#[test]
fn who_keeps_its_name_over_a_lost_journal_is_found() {
    check_found(Defect::KeepsName, 10);
}

/// A world in which all three are up, one leads, and requests are decided.
fn running(seed: u64) -> (World, usize) {
    let mut world = World::new(3, seed, None);
    world.calm();
    world.delay_ns = MS / 10;
    world.ask();
    assert!(world.run_until(10_000, World::has_all).unwrap(), "seed {seed}: nobody was elected");
    let leader = world.leader().unwrap();
    (world, leader)
}

#[test]
fn a_dead_leader_is_missed_for_a_few_milliseconds_only() {
    let mut gaps: Vec<u64> = (0..40)
        .map(|seed| {
            let (mut world, leader) = running(seed);
            (0..20).for_each(|_| {
                world.ask();
                (0..4).for_each(|_| world.step().unwrap());
            });
            world.kill(leader, false);
            let killed_ns = world.now_ns;
            let before = world.truth_len();
            while world.truth_len() == before || world.leader().is_none() {
                world.ask();
                (0..4).for_each(|_| world.step().unwrap());
            }
            world.now_ns - killed_ns
        })
        .collect();
    gaps.sort_unstable();
    assert!(gaps[20] <= 4 * MS && gaps[39] <= 8 * MS, "{gaps:?}");
}

/// Elections in five seconds of a network that is slower than the shortest patience.
fn elections(seed: u64, defect: Option<Defect>) -> u64 {
    let mut world = World::new(3, seed, defect);
    world.calm();
    world.delay_ns = 3 * MS;
    for _ in 0..5_000 * MS / STEP_NS {
        if world.random.percent(5) {
            world.ask();
        }
        world.step().unwrap();
    }
    world.elections()
}

#[test]
fn who_does_not_back_off_is_found_by_its_elections() {
    let (usual, stubborn) = (elections(1, None), elections(1, Some(Defect::NoBackOff)));
    assert!(usual < 20 && stubborn > 10 * usual, "{usual} elections, {stubborn} without back-off");
}

#[test]
fn a_full_window_stops_its_own_shard_only() {
    let (mut world, leader) = running(3);
    world.hold_recorded(ShardId(0));
    let full = |world: &World| world.next(leader, ShardId(0)) == world::WINDOW;
    for _ in 0..20_000 {
        world.ask();
        world.step().unwrap();
    }
    assert!(full(&world), "no more is ordered than the window holds");
    assert!(world.next(leader, ShardId(1)) > 4 * world::WINDOW, "another shard continues");
    assert_eq!(world.leader(), Some(leader), "nobody is impatient for what has no room");
    world.release_recorded();
    assert!(world.run_until(60_000, World::has_all).unwrap());
}

#[test]
fn an_orderer_takes_no_more_of_a_gateway_than_may_wait() {
    let (mut world, leader) = running(4);
    (0..3).filter(|&host| host != leader).for_each(|host| world.kill(host, false));
    while world.orderer(leader).role().leads {
        world.ask();
        world.step().unwrap();
    }
    let orderer = world.orderer(leader);
    assert!((0..GATEWAYS).any(|gateway| orderer.room(GatewayId(gateway)) == 0));
    assert!(orderer.pending_len() <= world::PENDING_MAX * usize::from(GATEWAYS));
}
