//! One user who floods a front costs the others nothing to speak of: only so many of his commands are under way, and theirs do not wait behind the rest.
//!
//! Time is counted in turns, in each of which the accounts execute so many requests in the order in which they came. So the figures are the same each time.

use pares_random::Random;

use super::*;

/// Requests that the accounts execute in a turn.
const EXECUTED: usize = 100;
/// A reply arrives so many turns after its request was executed.
const WAY: usize = 3;
const TURNS: usize = 3_000;
/// Who does not flood; each begins a command in one of so many turns.
const USERS: u64 = 400;
const EVERY: u64 = 8;
/// Commands of those who flood that have no reply: as many as the port takes of one.
const FLOOD: usize = 4_096;

struct Stage {
    at: At,
    on_the_way: VecDeque<Vec<(TransactionId, BrokerRequest)>>,
    /// Commands without a reply: when each arrived, and of whom.
    open: BTreeMap<u64, (usize, bool)>,
    flooding: usize,
    took: Vec<usize>,
}

impl Stage {
    fn new() -> Self {
        let on_the_way = (0..WAY).map(|_| Vec::new()).collect();
        let (open, flooding, took) = <_>::default();
        Self { at: At::new(), on_the_way, open, flooding, took }
    }

    fn says(&mut self, turn: usize, user: &str, is_flood: bool) {
        let (line, order) = (format!("ADD,{user},1.00"), CommandOrder::Arrival { name: None });
        let arrived = self.at.brings(u64::from(is_flood), &line, order).unwrap();
        self.flooding += usize::from(is_flood);
        self.open.insert(arrived, (turn, is_flood));
    }

    fn turn(&mut self, turn: usize) {
        self.at.now_ms += 1;
        let executed = self.at.submitted.len().min(EXECUTED);
        self.on_the_way.push_back(self.at.submitted.drain(..executed).collect());
        for came in self.on_the_way.pop_front().unwrap_or_default() {
            self.at.submitted.push_front(came);
            self.at.answer(BrokerReply::Done);
        }
        for arrival in self.at.told.drain(..) {
            match self.open.remove(&arrival).unwrap() {
                (_, true) => self.flooding -= 1,
                (since, false) => self.took.push(turn - since),
            }
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
