//! Routers, accounts and an exchange, with faults at every step, all from a seed.
//!
//! What is asserted is what a customer and the operator can see in the end: each order is on the exchange as often, and traded as much, as the accounts say, and every cent is there.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too

mod accounts;
mod exchange;
mod world;

use world::{Broken, World};

/// So many steps, with faults; then it is healed, and what is left is finished.
const STEPS: u64 = 3_000;

fn run(seed: u64, broken: Broken) -> Result<world::Figures, String> {
    let mut world = World::new(seed, broken);
    for _ in 0..STEPS {
        world.step()?;
    }
    world.heal()?;
    world.check()
}

#[test]
fn a_router_that_dies_at_any_step_loses_nothing_and_does_nothing_twice() {
    let mut sum = world::Figures::default();
    for seed in 1..=100 {
        let figures = run(seed, Broken::Nothing).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        sum.add(&figures);
    }
    // The faults and the cases that matter did happen.
    let Figures { orders, trades, deaths, repeats, voids, plugs, never, cancelled } = sum;
    for (what, count) in [
        ("orders", orders),
        ("trades", trades),
        ("deaths of routers", deaths),
        ("repeats", repeats),
        ("void trades", voids),
        ("names used up", plugs),
        ("names that were too old", never),
        ("cancelled", cancelled),
    ] {
        assert!(count > 50, "{count} {what}");
    }
}

use world::Figures;

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
fn a_hold_that_is_released_when_a_gateway_turns_its_order_away_is_found_out() {
    assert!(found(Broken::ReleasesAtOnce) > 0);
}
