//! Floods of many users over few connections: counted in answers of the sites, and in times that a command is asked for.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use std::collections::VecDeque;

use pares_broker::{
    Asked, BrokerReply, BrokerRequest, UserName, WorkloadLine, number_in_session, session_of_front,
};
use pares_front::{
    AT_SITES_MAX, Arrival, BrokerFront, CommandOrder, EARLY_MAX, EARLY_OF_SENDER_MAX, FrontEffect,
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
}

impl Stage {
    fn new() -> Self {
        let (front, told) = (BrokerFront::new(3), Vec::new());
        let mut stage = Self { front, now_ms: NOON_MS, at_sites: VecDeque::new(), asked: 0, told };
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
                _ => {}
            }
        }
    }

    /// A user's second command of a session of another front, over a connection.
    fn says(&mut self, sender: u64, user: &str, after: u64) -> u64 {
        let line = WorkloadLine::parse(format!("[2] ADD,{user},1.00").as_bytes()).unwrap();
        let asked = Asked::Command { command: line.command, fault: line.fault };
        let [number, after] = [2, after].map(|count| number_in_session(session_of_front(1, 1), count));
        let order = CommandOrder::Session { number, after };
        let (user, mut effects) = (UserName::new(user), Vec::new());
        let arrival = Arrival { sender, user, order, asked };
        let arrived = self.front.arrives(arrival, self.now_ms, &mut effects).unwrap();
        self.heard(effects);
        arrived
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
fn what_a_connection_that_ends_has_not_at_the_sites_is_never_asked_for() {
    let mut stage = Stage::new();
    let flood = stage.floods(1, 9_000, 0);
    let other = stage.says(2, "al", 0);
    let mut effects = Vec::new();
    stage.front.forget(&flood, stage.now_ms, &mut effects);
    stage.heard(effects);
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
fn of_commands_without_the_one_before_them_only_a_few_of_a_connection_and_of_all_wait() {
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
    let mut effects = Vec::new();
    stage.front.forget(&flood, stage.now_ms, &mut effects);
    stage.heard(effects);
    // What was asked for again at once comes back, and then waits.
    early(&mut stage);
    stage.front.forget(&flood, stage.now_ms, &mut Vec::new());
    assert_eq!(stage.front.open(), 0);
    stage.floods(1, EARLY_OF_SENDER_MAX, 1);
    early(&mut stage);
    assert_eq!(stage.front.open(), EARLY_OF_SENDER_MAX);
}
