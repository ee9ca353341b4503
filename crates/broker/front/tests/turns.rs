//! Floods of many users over few connections: counted in answers of the sites, and in times that a command is asked for.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use std::collections::{BTreeSet, VecDeque};

use pares_broker::{
    Asked, BrokerReply, BrokerRequest, COMMANDS_OF_SESSION, HitName, QuoteBrought, StockQuote, StockSymbol,
    UserName, WorkloadLine, number_in_session, session_of_front,
};
use pares_front::{
    AT_SITES_MAX, Arrival, BrokerFront, CommandOrder, EACH_USER, EARLY_MAX, EARLY_OF_SENDER_MAX, FrontEffect,
};
use pares_wice::TransactionId;

const NOON_MS: u64 = 1_680_000_000_000;
const FRONT: u64 = 5;

struct Stage {
    front: BrokerFront,
    now_ms: u64,
    /// At the sites, without an answer.
    at_sites: VecDeque<(TransactionId, BrokerRequest)>,
    /// Requests that came there.
    asked: usize,
    told: Vec<(u64, Option<BrokerReply>)>,
    /// Questions to the quote server.
    hits: Vec<(u64, StockSymbol)>,
}

impl Stage {
    fn new() -> Self {
        let (front, told, hits) = (BrokerFront::new(3), Vec::new(), Vec::new());
        let mut stage = Self { front, now_ms: NOON_MS, at_sites: VecDeque::new(), asked: 0, told, hits };
        stage.tick(0);
        stage.answer(BrokerReply::FrontNumber { front: FRONT });
        stage.asked = 0;
        stage
    }

    fn tick(&mut self, ms: u64) {
        self.now_ms += ms;
        let mut effects = Vec::new();
        self.front.tick(self.now_ms, &mut effects);
        self.heard(effects);
    }

    fn heard(&mut self, effects: Vec<FrontEffect>) {
        for effect in effects {
            match effect {
                FrontEffect::Submit { id, request } => {
                    self.asked += 1;
                    self.at_sites.push_back((id, request));
                }
                FrontEffect::Told { arrival, reply, .. } => self.told.push((arrival, reply)),
                FrontEffect::Ask { hit, symbol, .. } => self.hits.push((hit, symbol)),
                _ => {}
            }
        }
    }

    /// A user's second command of a session of another front, over a connection.
    fn says(&mut self, sender: u64, user: &str, after: u64) -> u64 {
        self.numbers(sender, user, 2, after)
    }

    /// Any command of it.
    fn numbers(&mut self, sender: u64, user: &str, count: u64, after: u64) -> u64 {
        let [number, after] = [count, after].map(|count| number_in_session(session_of_front(1, 1), count));
        self.brings(sender, &format!("ADD,{user},1.00"), CommandOrder::Session { number, after })
    }

    fn brings(&mut self, sender: u64, line: &str, order: CommandOrder) -> u64 {
        let line = WorkloadLine::parse(format!("[1] {line}").as_bytes()).unwrap();
        let (user, mut effects) = (line.command.user.clone(), Vec::new());
        let asked = Asked::Command { command: line.command, fault: line.fault };
        let arrival = Arrival { sender, user, order, asked };
        let arrived = self.front.arrives(arrival, self.now_ms, &mut effects).unwrap();
        self.heard(effects);
        arrived
    }

    fn forget(&mut self, arrivals: &[u64]) {
        let mut effects = Vec::new();
        self.front.forget(arrivals, self.now_ms, &mut effects);
        self.heard(effects);
    }

    /// The quote server answers what was asked last.
    fn quote(&mut self, price_cents: u64) {
        let ((hit, symbol), server_ms) = (self.hits.pop().unwrap(), self.now_ms);
        let (user, key, mut effects) = ("jo".to_owned(), "k".to_owned(), Vec::new());
        let quote = StockQuote { price_cents, symbol, user, server_ms, key };
        let brought = QuoteBrought { quote, hit: Some(HitName { desk: 1, count: hit }) };
        self.front.quote(hit, Ok(brought), self.now_ms, &mut effects);
        self.heard(effects);
    }

    /// So many users, each with a command, over one connection.
    fn floods(&mut self, sender: u64, users: usize, after: u64) -> Vec<u64> {
        (0..users).map(|user| self.says(sender, &format!("u{sender}x{user}"), after)).collect()
    }

    /// The sites answer the first that came.
    fn answer(&mut self, reply: BrokerReply) -> BrokerRequest {
        let (id, request) = self.at_sites.pop_front().unwrap();
        let mut effects = Vec::new();
        self.front.answered(id, reply, self.now_ms, &mut effects);
        self.heard(effects);
        request
    }

    /// The answers after which the command that arrived last is at the sites.
    fn answers_until_asked(&mut self, user: &str) -> usize {
        let user = UserName::new(user);
        let is_his = |(_, request): &(TransactionId, BrokerRequest)| matches!(&request.asked, Asked::Command { command, .. } if command.user == user);
        let mut answers = 0;
        while !self.at_sites.iter().any(is_his) {
            self.answer(BrokerReply::Done);
            answers += 1;
        }
        answers
    }
}

#[test]
fn a_connection_with_many_users_costs_another_one_a_turn() {
    let mut stage = Stage::new();
    for flood in 1..=5 {
        stage.floods(flood, 4_000, 0);
        assert!(stage.front.at_sites() <= AT_SITES_MAX);
    }
    assert_eq!((stage.front.open(), stage.at_sites.len()), (20_000, AT_SITES_MAX));
    stage.says(9, "al", 0);
    assert_eq!(stage.answers_until_asked("al"), 5, "a turn of each flood that waits, and his");
    (0..1_000).for_each(|_| drop(stage.answer(BrokerReply::Done)));
    stage.says(9, "bo", 0);
    assert!(stage.answers_until_asked("bo") <= 6);
    while !stage.at_sites.is_empty() {
        stage.answer(BrokerReply::Done);
    }
    assert_eq!((stage.front.open(), stage.told.len(), stage.asked), (0, 20_002, 20_002), "each once");
}

#[test]
fn flood_at_slow_sites_leaves_short_queue() {
    let mut stage = Stage::new();
    stage.floods(1, 20_000, 0);
    for _ in 0..15_000 {
        stage.tick(1);
        stage.answer(BrokerReply::Done);
    }
    stage.says(2, "al", 0);
    let ahead = stage.at_sites.len();
    assert!(ahead <= 300, "al waits {ahead} ms behind it");
    assert!(ahead >= 200, "the sites have something to do");
    assert!(stage.answers_until_asked("al") <= 8, "a turn of two, and what the window may shrink by");
}

#[test]
fn unsent_requests_of_ended_connection_are_never_sent() {
    let mut stage = Stage::new();
    let flood = stage.floods(1, 9_000, 0);
    let other = stage.says(2, "al", 0);
    stage.forget(&flood);
    assert_eq!(stage.front.open(), AT_SITES_MAX + 1);
    assert_eq!(stage.told.len(), 9_000 - AT_SITES_MAX);
    assert_eq!(stage.answers_until_asked("al"), 1);
    while !stage.at_sites.is_empty() {
        stage.answer(BrokerReply::Done);
    }
    assert_eq!((stage.front.open(), stage.asked), (0, AT_SITES_MAX + 1));
    assert!(stage.told.contains(&(other, Some(BrokerReply::Done))));
}

/// Their one before never comes: the sites say so each time.
fn early(stage: &mut Stage) {
    while !stage.at_sites.is_empty() {
        stage.answer(BrokerReply::Early);
    }
}

#[test]
fn orphaned_commands_are_limited_per_connection_and_total() {
    let mut stage = Stage::new();
    stage.floods(1, 200, 1);
    early(&mut stage);
    assert_eq!(stage.front.open(), EARLY_OF_SENDER_MAX);
    let refused = stage.told.iter().filter(|(_, reply)| *reply == Some(BrokerReply::Early)).count();
    assert_eq!(refused, 200 - EARLY_OF_SENDER_MAX);
    for sender in 2..40 {
        stage.floods(sender, 100, 1);
        early(&mut stage);
    }
    assert_eq!(stage.front.open(), EARLY_MAX);
    stage.asked = 0;
    while stage.front.open() > 0 {
        stage.tick(1);
        early(&mut stage);
    }
    assert!(stage.asked <= 25 * EARLY_MAX, "asked {} times, for {EARLY_MAX} commands", stage.asked);
    stage.floods(1, 10, 1);
    early(&mut stage);
    assert_eq!(stage.front.open(), 10, "there is room again");
}

#[test]
fn those_of_a_connection_that_ends_wait_no_longer() {
    let mut stage = Stage::new();
    let flood = stage.floods(1, 60, 1);
    early(&mut stage);
    stage.forget(&flood);
    // What was asked for again at once comes back, and then waits.
    early(&mut stage);
    stage.forget(&flood);
    assert_eq!(stage.front.open(), 0);
    stage.floods(1, EARLY_OF_SENDER_MAX, 1);
    early(&mut stage);
    assert_eq!(stage.front.open(), EARLY_OF_SENDER_MAX);
}

#[test]
fn users_with_known_predecessor_may_all_wait() {
    let mut stage = Stage::new();
    for user in 0..200 {
        for count in 1..=2 {
            stage.numbers(1, &format!("u{user}"), count, count - 1);
        }
    }
    let is_first = |(_, request): &(_, BrokerRequest)| request.number % COMMANDS_OF_SESSION == 1;
    let (first, second) = stage.at_sites.drain(..).partition(is_first);
    stage.at_sites = second;
    early(&mut stage);
    assert_eq!(stage.front.open(), 400);
    stage.at_sites = first;
    (0..200).for_each(|_| drop(stage.answer(BrokerReply::Done)));
    // Another site certifies, and does not know of the first ones yet.
    early(&mut stage);
    assert_eq!((stage.front.open(), stage.told.len()), (200, 200));
    stage.tick(1);
    while !stage.at_sites.is_empty() {
        stage.answer(BrokerReply::Done);
    }
    assert!(stage.told.len() == 400 && stage.told.iter().all(|(_, reply)| *reply == Some(BrokerReply::Done)));
}

#[test]
fn session_requests_survive_end_of_one_connection() {
    let mut stage = Stage::new();
    let gone = ["al", "jo"].map(|user| stage.says(1, user, 1));
    early(&mut stage);
    let again = stage.says(2, "jo", 1);
    let behind = ["al", "jo"].map(|user| stage.numbers(2, user, 3, 2));
    early(&mut stage);
    stage.forget(&gone);
    assert_eq!(stage.told, gone.map(|arrival| (arrival, None)));
    let late = stage.says(2, "al", 1);
    stage.tick(1);
    let mut asked = 0;
    while stage.front.open() > 0 {
        if stage.at_sites.is_empty() {
            stage.tick(1);
        }
        // Of al the third is asked for before his second has come.
        let is_late = stage.at_sites[0].1.number % COMMANDS_OF_SESSION == 3 && asked < 2;
        asked += 1;
        stage.answer(if is_late { BrokerReply::Early } else { BrokerReply::Done });
    }
    let mut told: Vec<_> = stage.told.split_off(2);
    told.sort_by_key(|(arrival, _)| *arrival);
    let done = [again, behind[0], behind[1], late].map(|arrival| (arrival, Some(BrokerReply::Done)));
    assert_eq!((told.as_slice(), stage.front.open()), (&done[..], 0));
}

#[test]
fn single_users_get_as_many_turns_as_big_connections() {
    let mut stage = Stage::new();
    stage.floods(1, 2 * AT_SITES_MAX, 0);
    for user in 0..100 {
        stage.brings(EACH_USER, &format!("ADD,p{user},1.00"), CommandOrder::Arrival { name: None });
    }
    let is_person = |(_, request): &(TransactionId, BrokerRequest)| matches!(&request.asked, Asked::Command { command, .. } if command.user.as_ref().is_some_and(|user| user.as_str().starts_with('p')));
    for _ in 0..101 {
        stage.answer(BrokerReply::Done);
    }
    let people = stage.at_sites.iter().filter(|one| is_person(one)).count();
    assert_eq!(people, 100, "each of them after one of the flood's");
}

/// Of those that were asked for, the users whose triggers are to fire, each once.
fn fires(stage: &mut Stage, count: usize, fired: &mut BTreeSet<UserName>) {
    for _ in 0..count {
        let symbol = StockSymbol::new("S").unwrap();
        let request = stage.answer(BrokerReply::Settled { symbol, shares: 1, cents: 100 });
        if let Asked::Fire { user, .. } = request.asked {
            assert!(fired.insert(user), "asked for twice");
        }
        assert!(stage.front.at_sites() <= AT_SITES_MAX);
    }
}

#[test]
fn hundred_thousand_triggers_fire_in_turn_once_each() {
    let (mut stage, mut fired) = (Stage::new(), BTreeSet::new());
    for user in 0..100_000 {
        let line = format!("SET_BUY_TRIGGER,u{user},S,2.00");
        stage.brings(1, &line, CommandOrder::Arrival { name: None });
        stage.answer(BrokerReply::Armed { shares: 0 });
    }
    stage.tick(0);
    stage.quote(100);
    assert_eq!((stage.front.at_sites(), stage.at_sites.len()), (AT_SITES_MAX, AT_SITES_MAX));
    stage.says(9, "al", 0);
    fires(&mut stage, 2, &mut fired);
    let is_als = |(_, request): &(_, BrokerRequest)| matches!(request.asked, Asked::Command { .. });
    assert!(stage.at_sites.iter().any(is_als), "he has his turn");
    stage.tick(60_000);
    stage.quote(90);
    while !stage.at_sites.is_empty() {
        fires(&mut stage, 1, &mut fired);
    }
    assert_eq!((fired.len(), stage.front.open()), (100_000, 0));
}
