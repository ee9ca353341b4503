//! What is repeated, early, named, or brought twice.

use std::collections::BTreeMap;

use pares_broker::{
    Asked, AuditPage, BrokerError, BrokerRead, BrokerReply, BrokerRequest, CommandName, NamedCommand,
    QuoteBrought, Refusal, StockSymbol, UserName, WorkloadLine, answer, number_in_session,
};
use pares_wice::codec::Coded as _;

use crate::support::{Both, NOON_MS, attempt, hit};

fn asks(line: &str) -> Asked {
    let line = WorkloadLine::parse(format!("[1] {line}").as_bytes()).unwrap();
    Asked::Command { command: line.command, fault: line.fault }
}

/// The `count`-th command of a session, which comes after another of it.
fn request(session: u64, count: u64, after: u64, line: &str) -> BrokerRequest {
    let [number, after] = [count, after].map(|count| number_in_session(session, count));
    BrokerRequest { number, after, name: None, time_ms: NOON_MS, quote: None, asked: asks(line) }
}

fn named(name: &str, request: BrokerRequest) -> BrokerRequest {
    BrokerRequest { name: CommandName::new(name), ..request }
}

const fn cash(cents: u64) -> BrokerReply {
    BrokerReply::Cash { cash_cents: cents }
}

#[test]
fn a_time_that_is_none_freezes_no_account() {
    let mut both = Both::default();
    both.run(&add(1));
    let late = BrokerRequest { time_ms: u64::MAX - 1, ..add(2) };
    assert!(matches!(attempt(&both.shelves, &late), Err(BrokerError::Time(_))));
    both.run(&add(3));
    both.check();
}

fn add(count: u64) -> BrokerRequest {
    request(1, count, count - 1, "ADD,jo,5.00")
}

#[test]
fn number_executes_once_and_repeats_get_first_reply() {
    let mut both = Both::default();
    assert_eq!(both.run(&add(1)), cash(500));
    assert_eq!(both.run(&add(2)), cash(1_000));
    let refused = request(1, 3, 2, "COMMIT_BUY,jo");
    assert_eq!(both.run(&refused), BrokerReply::Refused { refusal: Refusal::NothingPending });
    for (again, reply) in [(add(1), cash(500)), (add(2), cash(1_000)), (refused.clone(), both.run(&refused))]
    {
        assert_eq!(both.run(&again), reply);
        assert!(attempt(&both.shelves, &again).unwrap().1.is_empty(), "it leaves no trace");
    }
    for number in [0, number_in_session(1, 3)] {
        let odd = BrokerRequest { number, after: number_in_session(1, 3), ..add(9) };
        assert!(matches!(attempt(&both.shelves, &odd), Err(BrokerError::Order(..))), "{number}");
    }
    both.check();
}

#[test]
fn command_before_its_predecessor_waits_without_trace() {
    let mut both = Both::default();
    assert_eq!(both.run(&add(2)), BrokerReply::Early);
    assert!(attempt(&both.shelves, &add(2)).unwrap().1.is_empty());
    both.run(&add(1));
    assert_eq!(both.run(&add(2)), cash(1_000));
    let overtaken = request(1, 3, 1, "ADD,jo,5.00");
    let found = both.run(&overtaken);
    assert_eq!(found, BrokerReply::Overtaken, "the second is executed behind the first already");
    both.check();
}

#[test]
fn number_in_passed_gap_is_overtaken_not_executed() {
    let mut both = Both::default();
    both.run(&request(1, 5, 0, "ADD,jo,5.00"));
    assert_eq!(both.run(&request(1, 3, 0, "ADD,jo,5.00")), BrokerReply::Overtaken);
    assert_eq!(both.run(&request(1, 5, 0, "ADD,jo,5.00")), cash(500));
    assert_eq!(both.run(&request(1, 6, 5, "ADD,jo,5.00")), cash(1_000));
    both.check();
}

#[test]
fn different_command_under_known_number_gets_no_reply() {
    let mut both = Both::default();
    both.run(&add(1));
    both.run(&request(1, 2, 1, "BUY,jo,S,1.00"));
    for (count, other) in
        [(1, "ADD,jo,999.00"), (1, "DISPLAY_SUMMARY,jo"), (2, "BUY,jo,T,1.00"), (2, "ADD,jo,5.00")]
    {
        let again = request(1, count, count - 1, other);
        assert_eq!(both.run(&again), BrokerReply::NameTaken, "{other}");
        assert!(attempt(&both.shelves, &again).unwrap().1.is_empty(), "it leaves no trace");
    }
    assert_eq!(both.run(&add(1)), cash(500), "the first is known still");
    let dump = |file: &str| request(1, 7, 0, &format!("DUMPLOG,{file}"));
    assert_eq!(
        [dump("a"), dump("b"), dump("a")].map(|dump| both.run(&dump)),
        [BrokerReply::Done, BrokerReply::NameTaken, BrokerReply::Done]
    );
    both.check();
}

#[test]
fn a_session_is_known_however_many_others_were_used_since() {
    let mut both = Both::default();
    both.run(&request(1, 1, 0, "ADD,jo,5.00"));
    for session in 2..40 {
        both.run(&request(session, 7, 0, "ADD,jo,5.00"));
    }
    assert_eq!(both.run(&request(1, 1, 0, "ADD,jo,5.00")), cash(500));
    assert_eq!(both.run(&request(1, 2, 1, "ADD,jo,5.00")), cash(500 * 40));
    assert_eq!(both.run(&request(2, 7, 0, "ADD,jo,5.00")), cash(1_000));
    both.check();
}

#[test]
fn a_reply_that_lies_too_far_back_is_not_looked_for() {
    let mut both = Both::default();
    for count in 1..=4_097 {
        both.run(&add(count));
    }
    assert_eq!(attempt(&both.shelves, &add(1)).unwrap(), (BrokerReply::Repeated, BTreeMap::new()));
    assert_eq!(both.run(&add(2)), cash(1_000));
}

#[test]
fn a_name_stands_for_one_command_in_whatever_session_it_comes() {
    let mut both = Both::default();
    let first = named("k", request(1, 1, 0, "ADD,jo,5.00"));
    assert_eq!(both.run(&first), cash(500));
    assert_eq!(both.run(&named("k", request(2, 1, 0, "ADD,jo,5.00"))), cash(500));
    assert_eq!(both.run(&named("k", request(2, 2, 1, "ADD,jo,6.00"))), BrokerReply::NameTaken);
    assert_eq!(both.run(&named("k", request(3, 1, 0, "ADD,al,7.00"))), cash(700), "another user's");
    assert_eq!(both.run(&request(2, 3, 2, "ADD,jo,1.00")), cash(600), "the session goes on behind them");
    for session in [4, 5] {
        let dump = named("k", request(session, 1, 0, "DUMPLOG,log"));
        assert_eq!(both.run(&dump), BrokerReply::Done);
    }
    assert_eq!(both.log().iter().filter(|entry| entry.user.is_empty()).count(), 1);
    both.check();
    both.replay();
}

#[test]
fn quote_from_two_fronts_is_logged_once() {
    let mut both = Both::default();
    let stock = StockSymbol::new("S").unwrap();
    let with = |server_ms, request| BrokerRequest { quote: Some(hit(stock, 100, server_ms)), ..request };
    both.run(&with(NOON_MS, request(1, 1, 0, "QUOTE,jo,S")));
    both.run(&with(NOON_MS, request(2, 1, 0, "QUOTE,al,S")));
    let noted = |both: &Both| both.replay().quotes.len();
    assert_eq!(noted(&both), 1);
    // The first front died, and its command is repeated through another that has asked again.
    let again = both.run(&with(NOON_MS + 1, request(1, 1, 0, "QUOTE,jo,S")));
    assert_eq!(again, BrokerReply::Price { price_cents: 100, server_ms: NOON_MS });
    assert_eq!(noted(&both), 2);
    let asked = Asked::Hit;
    for count in [3, 4] {
        both.run(&BrokerRequest {
            asked: asked.clone(),
            ..with(NOON_MS + 2, request(1, count, 0, "QUOTE,jo,S"))
        });
    }
    assert_eq!(noted(&both), 3);
    let unnamed = BrokerRequest {
        quote: Some(QuoteBrought { hit: None, ..hit(stock, 100, NOON_MS) }),
        ..request(2, 5, 1, "QUOTE,al,S")
    };
    both.run(&unnamed);
    assert_eq!(noted(&both), 3);
    both.check();
}

#[test]
fn every_front_has_a_number_of_its_own() {
    let mut both = Both::default();
    for front in 1..4 {
        let begin = BrokerRequest { number: 0, after: 0, asked: Asked::BeginFront, ..add(1) };
        assert_eq!(both.run(&begin), BrokerReply::FrontNumber { front });
    }
    both.check();
}

#[test]
fn the_newest_entries_are_read_page_by_page() {
    let mut both = Both::default();
    for count in 1..=250 {
        both.run(&add(count));
    }
    let user = UserName::new("jo").unwrap();
    let (mut places, mut before) = (Vec::new(), None);
    while before != Some(0) {
        let read = BrokerRead::Newest { user: user.clone(), before };
        let read = BrokerRead::from_bytes(&read.to_bytes()).unwrap();
        let page = AuditPage::from_bytes(&answer(&read, &both.shelves).unwrap()).unwrap();
        places.extend(page.entries.iter().map(|entry| entry.place));
        before = places.last().copied();
    }
    assert_eq!(places, (0..250).rev().collect::<Vec<_>>());
    let nobody = BrokerRead::Newest { user: UserName::new("al").unwrap(), before: Some(9) };
    assert_eq!(AuditPage::from_bytes(&answer(&nobody, &both.shelves).unwrap()).unwrap().entries, []);
}

#[test]
fn what_was_done_under_a_name_is_read() {
    let mut both = Both::default();
    let buy = named("k", request(1, 1, 0, "BUY,jo,S,5.00"));
    let reply = both.run(&buy);
    assert_eq!(reply, BrokerReply::Refused { refusal: Refusal::NoAccount }, "a refusal is done too");
    let read = |user: &str, name: &str| {
        let (user, name) = (UserName::new(user).unwrap(), CommandName::new(name).unwrap());
        let read = BrokerRead::Named { user, name };
        let read = BrokerRead::from_bytes(&read.to_bytes()).unwrap();
        Option::<NamedCommand>::from_bytes(&answer(&read, &both.shelves).unwrap()).unwrap()
    };
    assert_eq!(read("jo", "k"), Some(NamedCommand { asked: buy.asked, reply }));
    assert_eq!([read("jo", "l"), read("al", "k")], [None, None]);
}

#[test]
fn what_was_seen_is_settled_or_nothing_is() {
    let mut both = Both::default();
    both.run(&request(1, 1, 0, "ADD,jo,500.00"));
    let brought = || Some(hit(StockSymbol::new("A").unwrap(), 1_000, NOON_MS));
    for count in [2, 3] {
        both.run(&BrokerRequest { quote: brought(), ..request(1, count, count - 1, "BUY,jo,A,20.00") });
    }
    let settle = |count: u64, line: &str, seen: u64| {
        let of = request(1, count, count - 1, line);
        let Asked::Command { command, .. } = of.asked else { panic!("a command") };
        let number = number_in_session(1, seen);
        BrokerRequest { asked: Asked::Settle { command, number }, ..of }
    };
    let refused = |refusal| BrokerReply::Refused { refusal };
    assert_eq!(both.run(&settle(4, "COMMIT_BUY,jo", 2)), refused(Refusal::OtherPending));
    assert_eq!(both.run(&settle(5, "CANCEL_BUY,jo", 2)), refused(Refusal::OtherPending));
    assert_eq!(both.run(&settle(6, "COMMIT_SELL,jo", 2)), refused(Refusal::NothingPending));
    assert_eq!(both.run(&settle(7, "ADD,jo,1.00", 2)), refused(Refusal::Arity));
    assert!(matches!(both.run(&settle(8, "COMMIT_BUY,jo", 3)), BrokerReply::Settled { shares: 2, .. }));
    assert!(matches!(both.run(&settle(9, "CANCEL_BUY,jo", 2)), BrokerReply::Settled { shares: 2, .. }));
    both.check();
}
