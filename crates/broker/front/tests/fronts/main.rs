//! Any number of fronts on the same accounts, some of which die: whatever is lost, repeated and reordered, every command is executed once and in order, every trigger fires once, and the log adds up.
//!
//! Everything is drawn from a seed. That it would find a fault is seen by faults that are put in.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

mod accounts;
mod clients;
mod ledger;
mod world;

use accounts::Broken;
use world::World;

/// Runs a seed to its end, and looks at what the log says.
fn run(seed: u64, broken: Option<Broken>) -> Result<(), String> {
    let mut world = World::new(seed, broken);
    for _ in 0..20 {
        let until_ms = world.now_ms + 30_000;
        world.run_until(until_ms);
        if world.clients.iter().all(clients::Client::is_done) {
            break;
        }
    }
    let mut until_ms = world.now_ms + 130_000;
    world.run_until(until_ms);
    while world.fault.is_none() && world.has_young_quote() {
        until_ms += 1_000;
        world.run_until(until_ms);
    }
    world.settle();
    world.run_until(until_ms + 2_000);
    ledger::check(&mut world)
}

#[test]
fn every_command_is_executed_once_and_in_order_whatever_dies_and_is_lost() {
    for seed in 0..SEEDS {
        if let Err(fault) = run(seed, None) {
            panic!("seed {seed}: {fault}");
        }
    }
}

/// A few seconds alone.
const SEEDS: u64 = 1_000;

#[test]
fn the_same_seed_is_the_same_run() {
    let end = |seed| {
        let mut world = World::new(seed, None);
        let until_ms = world.now_ms + 90_000;
        world.run_until(until_ms);
        (world.accounts.version, world.noted)
    };
    assert_eq!(end(7), end(7));
    assert_ne!(end(7), end(8));
}

#[test]
fn a_fault_that_is_put_in_is_found() {
    use Broken::{Fronts, Hits, Looks, Names, Numbers, Order};
    for broken in [Numbers, Order, Hits, Names, Looks, Fronts] {
        let found = (0..200).find_map(|seed| run(seed, Some(broken)).err().map(|fault| (seed, fault)));
        let (seed, fault) = found.unwrap_or_else(|| panic!("{broken:?} is not found"));
        println!("{broken:?} is found by seed {seed}: {fault}");
    }
}
