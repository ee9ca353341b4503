//! Routers, accounts and an exchange, with faults at every step, all from a seed.
//!
//! What is asserted is what a customer and the operator can see in the end: each order is on the exchange as often, and traded as much, as the accounts say, and every cent is there.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too

mod accounts;
mod exchange;
mod world;

use std::collections::BTreeMap;

use world::{Broken, World};

/// So many steps, with faults; then it is healed, and what is left is finished.
const STEPS: u64 = 3_000;

fn run(seed: u64, broken: Broken) -> Result<BTreeMap<&'static str, u64>, String> {
    let mut world = World::new(seed, broken);
    for _ in 0..STEPS {
        world.step()?;
    }
    world.heal()?;
    world.check()
}

#[test]
fn router_death_at_any_step_loses_and_doubles_nothing() {
    let mut sum = BTreeMap::new();
    for seed in 1..=100 {
        let figures = run(seed, Broken::Nothing).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        figures.into_iter().for_each(|(what, count)| *sum.entry(what).or_insert(0) += count);
    }
    // The faults and the cases that matter did happen.
    assert!(sum.len() == 8 && sum.values().all(|count| *count > 50), "{sum:?}");
}

/// How many of so many seeds find a fault out.
fn found(broken: Broken) -> usize {
    (1..=20).filter(|seed| run(*seed, broken).is_err()).count()
}

#[test]
fn a_message_that_is_applied_twice_is_found_out() {
    assert!(found(Broken::AppliesTwice) > 5);
}

#[test]
fn a_trade_of_an_order_that_nobody_placed_halts_the_router() {
    for seed in 1..=20 {
        let halted = run(seed, Broken::IsTwo).err();
        assert_eq!(halted, Some(pares_broker::Refusal::OtherOrder.to_string()), "seed {seed}");
    }
}

#[test]
fn a_router_that_names_anew_what_it_repeats_is_found_out() {
    assert!(found(Broken::NamesAnew) > 10);
}

#[test]
fn hold_released_on_gateway_refusal_is_detected() {
    assert!(found(Broken::ReleasesAtOnce) > 0);
}
