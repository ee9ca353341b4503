//! Tests: the streams have the shape they claim.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pares_types::Side;

use super::{BookMessage, BookScenario, MessageKind, SCENARIO_MEMBERS, SCENARIO_SEED};

/// A book of price-time priority in the fewest lines, to count what the streams do.
#[derive(Default)]
struct Counter {
    /// Prices as keys: bids negated, so that the first key is the best of either side.
    sides: [BTreeMap<i64, VecDeque<u64>>; 2],
    /// Side, key and shares left of what rests, and shares executed of what was entered.
    resting: BTreeMap<u64, (usize, i64, u32)>,
    executed: BTreeMap<u64, u32>,
    fills: u64,
    /// How often a side's best price went and the next one was more than 64 ticks behind it.
    lonely: u64,
    refused: u64,
    levels_max: usize,
}

impl Counter {
    fn apply(&mut self, message: &BookMessage) {
        let before = self.best();
        match message.kind {
            MessageKind::New => self.execute(message, message.quantity),
            MessageKind::Cancel => self.refused += u64::from(!self.remove(message.id)),
            MessageKind::Amend => match self.remove(message.id) {
                true => self.execute(message, message.quantity - self.executed(message.id)),
                false => self.refused += 1,
            },
        }
        let lonely = |(before, after): (Option<i64>, Option<i64>)| Some(after? - before? > 64);
        let sides = before.into_iter().zip(self.best());
        self.lonely += sides.filter(|&side| lonely(side) == Some(true)).count() as u64;
        self.levels_max = self.levels_max.max(self.sides[0].len() + self.sides[1].len());
    }

    fn best(&self) -> [Option<i64>; 2] {
        self.sides.each_ref().map(|side| side.first_key_value().map(|(&key, _)| key))
    }

    fn executed(&self, id: u64) -> u32 {
        self.executed.get(&id).copied().unwrap_or(0)
    }

    fn remove(&mut self, id: u64) -> bool {
        let Some((side, key, _)) = self.resting.remove(&id) else { return false };
        let queue = self.sides[side].get_mut(&key).expect("it rests there");
        queue.retain(|&other| other != id);
        if queue.is_empty() {
            self.sides[side].remove(&key);
        }
        true
    }

    fn execute(&mut self, message: &BookMessage, mut left: u32) {
        let (own, limit) = match message.side {
            Side::Buy => (0, message.price_ticks),
            Side::Sell => (1, -message.price_ticks),
        };
        while left > 0 {
            let Some((&key, queue)) = self.sides[1 - own].first_key_value() else { break };
            if key > limit {
                break;
            }
            let maker = queue[0];
            let shares = &mut self.resting.get_mut(&maker).expect("it rests").2;
            let traded = left.min(*shares);
            *shares -= traded;
            left -= traded;
            self.fills += 1;
            *self.executed.entry(maker).or_default() += traded;
            *self.executed.entry(message.id).or_default() += traded;
            if *shares == 0 {
                self.remove(maker);
            }
        }
        if left > 0 && !message.ioc {
            let key = -limit;
            self.sides[own].entry(key).or_default().push_back(message.id);
            self.resting.insert(message.id, (own, key, left));
        }
    }
}

fn count(messages: &[BookMessage]) -> Counter {
    let mut counter = Counter::default();
    messages.iter().for_each(|message| counter.apply(message));
    counter
}

#[test]
fn the_streams_have_the_public_shape() {
    // Orders resting at the end, levels at most, fills.
    let expected = [
        (42_108, 181, 565),
        (5_375, 140, 61_963),
        (2_060, 791, 67_958),
        (1_392, 715, 68_697),
        (744, 342, 70_365),
    ];
    for (scenario, (resting, levels, fills)) in BookScenario::ALL.into_iter().zip(expected) {
        let counter = count(&scenario.messages());
        let counted = (counter.resting.len() as u64, counter.levels_max as u64, counter.fills);
        assert_eq!(counted, (resting, levels, fills), "{}", scenario.name);
    }
}

#[test]
fn the_mix_is_the_public_one() {
    let messages = BookScenario::ALL[1].messages();
    let of = |kind| messages.iter().filter(|message| message.kind == kind).count();
    let ioc = messages.iter().filter(|message| message.ioc).count();
    assert_eq!(of(MessageKind::New), 1_000_000);
    assert!((149_000..151_000).contains(&ioc), "{ioc}");
    assert!((820_000..827_000).contains(&of(MessageKind::Cancel)), "{}", of(MessageKind::Cancel));
    assert!((171_000..175_000).contains(&of(MessageKind::Amend)), "{}", of(MessageKind::Amend));
}

#[test]
fn every_order_is_entered_once_and_before_all_else() {
    let mut entered = BTreeSet::new();
    for message in BookScenario::ALL[3].messages_of(7, 1_000) {
        assert_eq!(message.member, 1 + (message.id % u64::from(SCENARIO_MEMBERS)) as u32);
        assert!(message.price_ticks > 0 && message.quantity > 0);
        match message.kind {
            MessageKind::New => assert!(entered.insert(message.id)),
            _ => assert!(entered.contains(&message.id)),
        }
    }
    assert_eq!(entered, (1..=1_000).collect());
}

#[test]
fn one_seed_gives_one_stream() {
    let [a, b, c] = [7, 7, 8].map(|seed| BookScenario::ALL[2].messages_of(seed, 100));
    assert_eq!(a, b);
    assert_ne!(a, c);
}

#[test]
fn a_scenario_is_found_by_its_name() {
    for scenario in BookScenario::ALL {
        assert_eq!(BookScenario::named(scenario.name), Some(scenario));
    }
    assert_eq!(BookScenario::named("calm"), None);
}

#[test]
fn the_trying_streams_are_what_they_say() {
    let of = |name: &str| BookScenario::named(name).unwrap().messages_of(SCENARIO_SEED, 100_000);
    let ioc = |messages: &[BookMessage]| messages.iter().filter(|message| message.ioc).count() as u64;
    let lonely = ["normal", "flash-crash", "churn"].map(|name| count(&of(name)).lonely);
    assert!(lonely[2] > 80_000 && lonely[0].max(lonely[1]) * 3 < lonely[2], "{lonely:?}");
    let sweep = of("sweep");
    assert!(count(&sweep).fills / ioc(&sweep) > 5_000);
    assert!(count(&of("far")).levels_max > 3_900);
    let misses = of("misses");
    assert!(ioc(&misses) > 85_000 && count(&misses).fills == 0, "{}", ioc(&misses));
    let amends = of("amends");
    let all = amends.iter().filter(|message| message.kind == MessageKind::Amend).count();
    assert!(all > amends.len() / 2 && amends.len() > 150_000, "{all} of {}", amends.len());
}

#[test]
fn trying_stream_has_bounded_new_orders() {
    for scenario in &BookScenario::ALL[5..] {
        let messages = scenario.messages_of(7, 1_000);
        let entered = messages.iter().map(|message| message.id).max();
        assert!(entered <= Some(1_000) && messages.len() >= 1_000, "{} {entered:?}", scenario.name);
    }
}
