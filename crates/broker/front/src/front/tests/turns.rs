//! Floods of many users over few connections: counted in answers of the sites, and in times that a command is asked for.

use std::collections::BTreeSet;

use pares_broker::COMMANDS_OF_SESSION;

use super::*;
use crate::{EACH_USER, EARLY_MAX, EARLY_OF_SENDER_MAX};

impl At {
    /// A user's second command of a session of another front, over a connection.
    fn says(&mut self, sender: u64, user: &str, after: u64) -> u64 {
        self.numbers(sender, user, 2, after)
    }

    /// Any command of it.
    fn numbers(&mut self, sender: u64, user: &str, count: u64, after: u64) -> u64 {
        let [number, after] = [count, after].map(|count| number_in_session(session_of_front(1, 1), count));
        let order = CommandOrder::Session { number, after };
        self.brings(sender, &format!("ADD,{user},1.00"), order).unwrap()
    }

    fn forget(&mut self, arrivals: &[u64]) {
        self.front.forget(arrivals, self.now_ms);
        self.take();
    }

    /// So many users, each with a command, over one connection.
    fn floods(&mut self, sender: u64, users: usize, after: u64) -> Vec<u64> {
        (0..users).map(|user| self.says(sender, &format!("u{sender}x{user}"), after)).collect()
    }

    /// The answers after which the command that arrived last is at the sites.
    fn answers_until_asked(&mut self, user: &str) -> usize {
        let user = UserName::new(user);
        let is_his = |(_, request): &(TransactionId, BrokerRequest)| matches!(&request.asked, Asked::Command { command, .. } if command.user == user);
        let mut answers = 0;
        while !self.submitted.iter().any(is_his) {
            self.answer(BrokerReply::Done);
            answers += 1;
        }
        answers
    }

    fn answer_all(&mut self, reply: &BrokerReply) {
        while !self.submitted.is_empty() {
            self.answer(reply.clone());
        }
    }
}

#[test]
fn a_connection_with_many_users_costs_another_one_a_turn() {
    let mut at = At::new();
    for flood in 1..=5 {
        at.floods(flood, 4_000, 0);
        assert!(at.front.at_sites() <= AT_SITES_MAX);
    }
    assert_eq!((at.front.open(), at.submitted.len()), (20_000, AT_SITES_MAX));
    at.says(9, "al", 0);
    assert_eq!(at.answers_until_asked("al"), 5, "a turn of each flood that waits, and his");
    (0..1_000).for_each(|_| drop(at.answer(BrokerReply::Done)));
    at.says(9, "bo", 0);
    assert!(at.answers_until_asked("bo") <= 6);
    at.answer_all(&BrokerReply::Done);
    assert_eq!((at.front.open(), at.told.len(), at.handed_on), (0, 20_002, 20_002), "each once");
}

#[test]
fn flood_at_slow_sites_leaves_short_queue() {
    let mut at = At::new();
    at.floods(1, 20_000, 0);
    for _ in 0..15_000 {
        at.tick(1);
        at.answer(BrokerReply::Done);
    }
    at.says(2, "al", 0);
    let ahead = at.submitted.len();
    assert!(ahead <= 300, "al waits {ahead} ms behind it");
    assert!(ahead >= 200, "the sites have something to do");
    assert!(at.answers_until_asked("al") <= 8, "a turn of two, and what the window may shrink by");
}

#[test]
fn unsent_requests_of_ended_connection_are_never_sent() {
    let mut at = At::new();
    let flood = at.floods(1, 9_000, 0);
    let other = at.says(2, "al", 0);
    at.forget(&flood);
    assert_eq!(at.front.open(), AT_SITES_MAX + 1);
    assert_eq!((at.told.len(), at.given_up.len()), (0, 9_000 - AT_SITES_MAX));
    assert_eq!(at.answers_until_asked("al"), 1);
    at.answer_all(&BrokerReply::Done);
    assert_eq!((at.front.open(), at.handed_on), (0, AT_SITES_MAX + 1));
    assert_eq!(at.replies.get(&other), Some(&BrokerReply::Done));
}

/// Their one before never comes: the sites say so each time.
fn early(at: &mut At) {
    at.answer_all(&BrokerReply::Early);
}

#[test]
fn orphaned_commands_are_limited_per_connection_and_total() {
    let mut at = At::new();
    at.floods(1, 200, 1);
    early(&mut at);
    assert_eq!(at.front.open(), EARLY_OF_SENDER_MAX);
    let refused = at.replies.values().filter(|reply| **reply == BrokerReply::Early);
    assert_eq!(refused.count(), 200 - EARLY_OF_SENDER_MAX);
    for sender in 2..40 {
        at.floods(sender, 100, 1);
        early(&mut at);
    }
    assert_eq!(at.front.open(), EARLY_MAX);
    at.handed_on = 0;
    while at.front.open() > 0 {
        at.tick(1);
        early(&mut at);
    }
    assert!(at.handed_on <= 25 * EARLY_MAX, "asked {} times, for {EARLY_MAX} commands", at.handed_on);
    at.floods(1, 10, 1);
    early(&mut at);
    assert_eq!(at.front.open(), 10, "there is room again");
}

#[test]
fn those_of_a_connection_that_ends_wait_no_longer() {
    let mut at = At::new();
    let flood = at.floods(1, 60, 1);
    early(&mut at);
    at.forget(&flood);
    // What was asked for again at once comes back, and then waits.
    early(&mut at);
    at.forget(&flood);
    assert_eq!(at.front.open(), 0);
    at.floods(1, EARLY_OF_SENDER_MAX, 1);
    early(&mut at);
    assert_eq!(at.front.open(), EARLY_OF_SENDER_MAX);
}

#[test]
fn users_with_known_predecessor_may_all_wait() {
    let mut at = At::new();
    for user in 0..200 {
        for count in 1..=2 {
            at.numbers(1, &format!("u{user}"), count, count - 1);
        }
    }
    let is_first = |(_, request): &(_, BrokerRequest)| request.number % COMMANDS_OF_SESSION == 1;
    let (first, second) = at.submitted.drain(..).partition(is_first);
    at.submitted = second;
    early(&mut at);
    assert_eq!(at.front.open(), 400);
    at.submitted = first;
    (0..200).for_each(|_| drop(at.answer(BrokerReply::Done)));
    // Another site certifies, and does not know of the first ones yet.
    early(&mut at);
    assert_eq!((at.front.open(), at.told.len()), (200, 200));
    at.tick(1);
    at.answer_all(&BrokerReply::Done);
    assert!(at.told.len() == 400 && at.replies.values().all(|reply| *reply == BrokerReply::Done));
}

#[test]
fn session_requests_survive_end_of_one_connection() {
    let mut at = At::new();
    let gone = ["al", "jo"].map(|user| at.says(1, user, 1));
    early(&mut at);
    let again = at.says(2, "jo", 1);
    let behind = ["al", "jo"].map(|user| at.numbers(2, user, 3, 2));
    early(&mut at);
    at.forget(&gone);
    assert_eq!((at.told.len(), at.given_up.as_slice()), (0, &gone[..]));
    let late = at.says(2, "al", 1);
    at.tick(1);
    let mut asked = 0;
    while at.front.open() > 0 {
        if at.submitted.is_empty() {
            at.tick(1);
        }
        // Of al the third is asked for before his second has come.
        let is_late = at.submitted[0].1.number % COMMANDS_OF_SESSION == 3 && asked < 2;
        asked += 1;
        at.answer(if is_late { BrokerReply::Early } else { BrokerReply::Done });
    }
    let done = [again, behind[0], behind[1], late].map(|arrival| (arrival, BrokerReply::Done));
    assert_eq!(at.replies, BTreeMap::from(done));
    assert_eq!((at.told.len(), at.given_up.len()), (4, 2));
}

#[test]
fn single_users_get_as_many_turns_as_big_connections() {
    let mut at = At::new();
    at.floods(1, 2 * AT_SITES_MAX, 0);
    for user in 0..100 {
        at.brings(EACH_USER, &format!("ADD,p{user},1.00"), CommandOrder::Arrival { name: None }).unwrap();
    }
    let is_person = |(_, request): &(TransactionId, BrokerRequest)| matches!(&request.asked, Asked::Command { command, .. } if command.user.as_ref().is_some_and(|user| user.as_str().starts_with('p')));
    for _ in 0..101 {
        at.answer(BrokerReply::Done);
    }
    let people = at.submitted.iter().filter(|one| is_person(one)).count();
    assert_eq!(people, 100, "each of them after one of the flood's");
}

/// Of those that were asked for, the users whose triggers are to fire, each once.
fn fires(at: &mut At, count: usize, fired: &mut BTreeSet<UserName>) {
    for _ in 0..count {
        let symbol = StockSymbol::new("S").unwrap();
        let request = at.answer(BrokerReply::Settled { symbol, shares: 1, cents: 100 });
        if let Asked::Fire { user, .. } = request.asked {
            assert!(fired.insert(user), "asked for twice");
        }
        assert!(at.front.at_sites() <= AT_SITES_MAX);
    }
}

#[test]
fn hundred_thousand_triggers_fire_in_turn_once_each() {
    let (mut at, mut fired) = (At::new(), BTreeSet::new());
    for user in 0..100_000 {
        let line = format!("SET_BUY_TRIGGER,u{user},S,2.00");
        at.brings(1, &line, CommandOrder::Arrival { name: None }).unwrap();
        at.answer(BrokerReply::Armed { shares: 0 });
    }
    at.tick(0);
    at.quote(1, "S", 100);
    assert_eq!((at.front.at_sites(), at.submitted.len()), (AT_SITES_MAX, AT_SITES_MAX));
    at.says(9, "al", 0);
    fires(&mut at, 2, &mut fired);
    let is_als = |(_, request): &(_, BrokerRequest)| matches!(request.asked, Asked::Command { .. });
    assert!(at.submitted.iter().any(is_als), "he has his turn");
    at.tick(60_000);
    at.quote(2, "S", 90);
    while !at.submitted.is_empty() {
        fires(&mut at, 1, &mut fired);
    }
    assert_eq!((fired.len(), at.front.open()), (100_000, 0));
}
