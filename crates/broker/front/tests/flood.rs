//! One user who floods a front costs the others nothing to speak of: only so many of his commands are under way, and theirs do not wait behind the rest.
//!
//! Time is counted in turns, in each of which the accounts execute so many requests in the order in which they came. So the figures are the same each time.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use std::collections::{BTreeMap, VecDeque};

use pares_broker::{Asked, BrokerReply, UserName, WorkloadLine};
use pares_front::{Arrival, BrokerFront, CommandOrder, FrontEffect};
use pares_random::Random;
use pares_wice::TransactionId;

const NOON_MS: u64 = 1_680_000_000_000;
/// Requests that the accounts execute in a turn.
const EXECUTED: usize = 100;
/// A reply is heard of so many turns after its request was executed.
const WAY: usize = 3;
const TURNS: usize = 3_000;
/// Who does not flood; each begins a command in one of so many turns.
const USERS: u64 = 400;
const EVERY: u64 = 8;
/// Commands of those who flood that have no reply: as many as the port takes of one.
const FLOOD: usize = 4_096;

struct Stage {
    front: BrokerFront,
    now_ms: u64,
    queue: VecDeque<TransactionId>,
    on_the_way: VecDeque<Vec<TransactionId>>,
    /// Commands without a reply: when each arrived, and of whom.
    open: BTreeMap<u64, (usize, bool)>,
    flooding: usize,
    took: Vec<usize>,
}

impl Stage {
    fn new() -> Self {
        let on_the_way = (0..WAY).map(|_| Vec::new()).collect();
        let (front, queue) = (BrokerFront::new(3), VecDeque::new());
        let mut stage = Self {
            front,
            now_ms: NOON_MS,
            queue,
            on_the_way,
            open: BTreeMap::new(),
            flooding: 0,
            took: Vec::new(),
        };
        let mut effects = Vec::new();
        stage.front.tick(stage.now_ms, &mut effects);
        stage.heard(0, effects);
        let id = stage.queue.pop_front().expect("it asks for its number");
        stage.answer(0, id, BrokerReply::FrontNumber { front: 5 });
        stage
    }

    fn says(&mut self, turn: usize, user: &str, is_flood: bool) {
        let line = WorkloadLine::parse(format!("[1] ADD,{user},1.00").as_bytes()).unwrap();
        let asked = Asked::Command { command: line.command, fault: line.fault };
        let (user, order) = (UserName::new(user), CommandOrder::Arrival { name: None });
        let mut effects = Vec::new();
        let arrived = self
            .front
            .arrives(Arrival { sender: u64::from(is_flood), user, order, asked }, self.now_ms, &mut effects)
            .unwrap();
        self.flooding += usize::from(is_flood);
        self.open.insert(arrived, (turn, is_flood));
        self.heard(turn, effects);
    }

    fn heard(&mut self, turn: usize, effects: Vec<FrontEffect>) {
        for effect in effects {
            match effect {
                FrontEffect::Submit { id, .. } => self.queue.push_back(id),
                FrontEffect::Told { arrival, .. } => match self.open.remove(&arrival).unwrap() {
                    (_, true) => self.flooding -= 1,
                    (since, false) => self.took.push(turn - since),
                },
                _ => {}
            }
        }
    }

    fn answer(&mut self, turn: usize, id: TransactionId, reply: BrokerReply) {
        let mut effects = Vec::new();
        self.front.answered(id, reply, self.now_ms, &mut effects);
        self.heard(turn, effects);
    }

    fn turn(&mut self, turn: usize) {
        self.now_ms += 1;
        let executed = self.queue.len().min(EXECUTED);
        self.on_the_way.push_back(self.queue.drain(..executed).collect());
        for id in self.on_the_way.pop_front().unwrap_or_default() {
            self.answer(turn, id, BrokerReply::Done);
        }
    }
}

/// The turns within which 99 of a hundred commands of the others had their reply, and on average, while so many users flood.
fn others(floods: usize) -> (usize, f64) {
    let (mut stage, mut draw) = (Stage::new(), Random::new(7));
    for turn in 0..TURNS {
        // Those who flood come first in each turn: nothing helps the others but the front.
        for flood in (0..floods).cycle().take(floods.min(1) * FLOOD.saturating_sub(stage.flooding)) {
            stage.says(turn, &format!("flood{flood}"), true);
        }
        for user in 0..USERS {
            if draw.below(EVERY) == 0 {
                stage.says(turn, &format!("user{user}"), false);
            }
        }
        stage.turn(turn);
    }
    stage.took.sort_unstable();
    let all = stage.took.len();
    assert!(all > TURNS * 40, "{all} of the others had a reply");
    (stage.took[all * 99 / 100], stage.took.iter().sum::<usize>() as f64 / all as f64)
}

#[test]
fn a_user_who_floods_a_front_does_not_slow_the_others() {
    let (quiet, flooded) = (others(0), others(1));
    println!("p99 and average, turns: {quiet:?} without a flood, {flooded:?} with one");
    assert!(flooded.0 * 10 <= quiet.0 * 11, "{flooded:?} turns instead of {quiet:?}");
    assert!(flooded.1 <= quiet.1 * 1.1, "{flooded:?} turns instead of {quiet:?}");
}

/// That it would be seen if he did.
#[test]
fn a_hundred_users_who_flood_do_slow_the_others() {
    assert!(others(100).0 > 2 * others(0).0);
}
