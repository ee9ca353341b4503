//! The front's promises: order, quotes shared, moments in their place, dumps last.

use pares_broker::{HitName, Refusal, StockQuote};

use super::*;

const NOON: u64 = 1_680_000_000_000;

/// A front, and what it has handed on.
struct At {
    front: BrokerFront,
    now_ms: u64,
    submitted: Vec<(TransactionId, BrokerRequest)>,
    asked: Vec<(u64, StockSymbol)>,
    told: Vec<u64>,
}

impl At {
    fn new() -> Self {
        let front = BrokerFront::new(100, 1);
        Self { front, now_ms: NOON, submitted: Vec::new(), asked: Vec::new(), told: Vec::new() }
    }

    fn take(&mut self, effects: Vec<FrontEffect>) {
        for effect in effects {
            match effect {
                FrontEffect::Ask { hit, symbol, .. } => self.asked.push((hit, symbol)),
                FrontEffect::Abandon { .. } => {}
                FrontEffect::Submit { id, request } => self.submitted.push((id, request)),
                FrontEffect::Told { arrival, .. } => self.told.push(arrival),
            }
        }
    }

    fn line(&mut self, line: &str) {
        let line = WorkloadLine::parse(format!("[1] {line}").as_bytes()).unwrap();
        let mut effects = Vec::new();
        self.front.arrives(line, self.now_ms, &mut effects);
        self.take(effects);
    }

    fn quote(&mut self, hit: u64, letters: &str, price_cents: u64) {
        let symbol = StockSymbol::new(letters).unwrap();
        let (user, key) = ("jo".to_owned(), "k".to_owned());
        let quote = StockQuote { price_cents, symbol, user, server_ms: self.now_ms, key };
        let mut effects = Vec::new();
        let brought = QuoteBrought { quote, hit: Some(HitName { desk: 1, count: hit }) };
        self.front.quote(hit, Ok(brought), self.now_ms, &mut effects);
        self.take(effects);
    }

    fn tick(&mut self, after_ms: u64) {
        self.now_ms += after_ms;
        let mut effects = Vec::new();
        self.front.tick(self.now_ms, &mut effects);
        self.take(effects);
    }

    /// The oldest request that was handed on and not looked at yet.
    fn next(&mut self) -> BrokerRequest {
        self.submitted.first().expect("a request").1.clone()
    }

    /// Answers it.
    fn answer(&mut self, reply: BrokerReply) -> BrokerRequest {
        let (id, request) = self.submitted.remove(0);
        let mut effects = Vec::new();
        self.front.answered(id, reply.clone(), self.now_ms, &mut effects);
        // The same once more is nothing.
        self.front.answered(id, reply, self.now_ms, &mut effects);
        self.take(effects);
        request
    }
}

fn verb(request: &BrokerRequest) -> Verb {
    match &request.asked {
        Asked::Command { command, .. } => command.verb,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_command_names_its_users_one_before_and_nobody_waits_for_another() {
    let mut at = At::new();
    for line in ["ADD,jo,5.00", "ADD,al,5.00", "DISPLAY_SUMMARY,jo", "DISPLAY_SUMMARY,al"] {
        at.line(line);
    }
    let chain = at.submitted.iter().map(|(id, request)| (id.client, request.number, request.after));
    assert_eq!(chain.collect::<Vec<_>>(), [(101, 1, 0), (102, 2, 0), (101, 3, 1), (102, 4, 2)]);
    (0..4).for_each(|_| drop(at.answer(BrokerReply::Done)));
    assert_eq!((at.told.as_slice(), at.front.open(), at.front.is_idle()), (&[0, 1, 2, 3][..], 0, true));
    (0..100).for_each(|_| at.line("ADD,jo,5.00"));
    assert_eq!(at.submitted.len(), 32, "a site remembers so many and as many again");
}

#[test]
fn a_command_that_came_too_early_is_sent_again_when_the_one_before_is_done() {
    let mut at = At::new();
    (0..4).for_each(|_| at.line("ADD,jo,5.00"));
    let first = at.submitted.remove(0);
    let later: Vec<_> = (0..3).map(|_| at.answer(BrokerReply::Early)).collect();
    assert!(at.submitted.is_empty() && at.told.is_empty());
    at.submitted.push(first);
    at.answer(BrokerReply::Done);
    for (index, request) in later.iter().enumerate() {
        let (id, again) = at.submitted[0].clone();
        assert_eq!((id.sequence, &again, at.submitted.len()), (5 + index as u64, request, 1));
        at.answer(BrokerReply::Done);
    }
    assert_eq!(at.told, [0, 1, 2, 3]);
    at.line("ADD,jo,5.00");
    at.line("ADD,jo,5.00");
    assert_eq!(at.submitted.len(), 1, "from now on one at a time");
}

#[test]
fn a_quote_is_asked_for_when_the_command_arrives_and_holds_up_its_user_alone() {
    let mut at = At::new();
    at.line("ADD,jo,5.00");
    at.line("BUY,jo,S,5.00");
    at.line("QUOTE,al,S");
    at.line("QUOTE,bo,T");
    assert_eq!(at.asked.len(), 2, "one for each stock, before its turn");
    at.answer(BrokerReply::Done);
    assert!(at.submitted.is_empty());
    at.quote(2, "T", 300);
    assert_eq!((at.submitted.len(), verb(&at.next())), (1, Verb::Quote));
    at.quote(1, "S", 400);
    let hits = at.submitted.iter().map(|(_, request)| request.quote.as_ref().unwrap().hit.is_some());
    assert_eq!(hits.collect::<Vec<_>>(), [true, true, false], "a hit is shown once");
    assert!(at.submitted[1..].iter().all(|(_, r)| r.quote.as_ref().unwrap().quote.price_cents == 400));
}

#[test]
fn a_command_goes_on_without_a_quote_when_the_server_does_not_answer() {
    let mut at = At::new();
    at.line("BUY,jo,S,5.00");
    at.tick(crate::QUOTE_LIMIT_MS);
    assert_eq!((verb(&at.next()), at.next().quote), (Verb::Buy, None));
    at.line("BUY,al,S,5.00");
    assert_eq!((at.submitted.len(), at.asked.len()), (2, 1), "it is not asked again at once");
}

#[test]
fn a_dump_of_everything_is_last_of_what_came_before_it() {
    let mut at = At::new();
    at.line("QUOTE,jo,S");
    at.line("ADD,al,1.00");
    at.line("DUMPLOG,./log");
    at.line("ADD,al,2.00");
    at.answer(BrokerReply::Done);
    assert_eq!(at.submitted.len(), 1, "al's second command");
    at.answer(BrokerReply::Done);
    assert!(at.submitted.is_empty());
    at.quote(1, "S", 100);
    at.answer(BrokerReply::Done);
    assert_eq!(verb(&at.next()), Verb::Dumplog);
    at.answer(BrokerReply::Done);
    assert_eq!(at.told, [1, 3, 0, 2]);
}

#[test]
fn a_hit_that_no_command_used_is_in_the_log_before_the_dump() {
    let mut at = At::new();
    at.line("SET_BUY_TRIGGER,jo,S,2.00");
    at.answer(BrokerReply::Armed { shares: 0 });
    at.tick(0);
    at.quote(1, "S", 900);
    at.line("DUMPLOG,./log");
    assert!(matches!(at.next().asked, Asked::Hit), "{:?}", at.next());
    assert_eq!(at.next().quote.unwrap().quote.price_cents, 900);
    at.answer(BrokerReply::Unchanged);
    assert_eq!(verb(&at.next()), Verb::Dumplog);
}

#[test]
fn a_quote_that_is_good_enough_fires_what_is_armed_and_stays_armed_until_it_has() {
    let mut at = At::new();
    at.line("SET_BUY_TRIGGER,jo,S,2.00");
    at.line("SET_SELL_TRIGGER,al,S,8.00");
    at.answer(BrokerReply::Armed { shares: 0 });
    at.answer(BrokerReply::Armed { shares: 3 });
    at.tick(0);
    assert_eq!(at.asked.len(), 1, "one for both");
    at.quote(1, "S", 500);
    assert!(at.submitted.is_empty());
    for (hit, price) in [(2, 200), (3, 199)] {
        at.tick(60_000);
        at.quote(hit, "S", price);
        if matches!(at.next().asked, Asked::Hit) {
            at.answer(BrokerReply::Unchanged); // of the quote before, which nobody used
        }
        let is_jo = |request: &BrokerRequest| matches!(&request.asked, Asked::Fire { way: TradeWay::Buy, user, .. } if user.as_str() == "jo");
        assert!(is_jo(&at.next()) && at.submitted.iter().filter(|(_, r)| is_jo(r)).count() == 1);
        let symbol = StockSymbol::new("S").unwrap();
        let fired = BrokerReply::Settled { symbol, shares: 1, cents: 199 };
        at.answer(if hit == 2 { BrokerReply::Unchanged } else { fired });
        at.submitted.clear();
    }
    at.tick(60_000);
    at.quote(4, "S", 100);
    let fires = at.submitted.iter().any(|(_, request)| matches!(request.asked, Asked::Fire { .. }));
    assert!(!fires, "it has fired");
}

#[test]
fn what_is_pending_lapses_after_its_minute_before_the_users_next_command() {
    let mut at = At::new();
    at.line("BUY,jo,S,5.00");
    at.quote(1, "S", 100);
    at.answer(BrokerReply::Held { shares: 5, price_cents: 100, until_ms: NOON + 60_000 });
    at.tick(60_000);
    assert!(at.submitted.is_empty(), "the last moment to commit");
    at.line("ADD,jo,1.00");
    at.tick(1);
    at.line("COMMIT_BUY,jo");
    at.answer(BrokerReply::Done);
    assert!(matches!(at.next().asked, Asked::Expire { way: TradeWay::Buy, .. }));
    at.answer(BrokerReply::Expired { count: 64 });
    assert!(matches!(at.next().asked, Asked::Expire { .. }), "there may be more");
    let numbers = (at.next().number, at.next().time_ms);
    at.answer(BrokerReply::Unchanged);
    assert_eq!(verb(&at.next()), Verb::CommitBuy);
    assert!(at.next().number > numbers.0 && at.next().time_ms >= numbers.1);
}

#[test]
fn a_command_of_wrong_form_asks_for_nothing() {
    let mut at = At::new();
    at.line("BUY,jo,S,0.00");
    assert_eq!((at.asked.len(), at.next().quote), (0, None));
    let refused = BrokerReply::Refused { refusal: Refusal::BadAmount };
    assert!(matches!(at.answer(refused).asked, Asked::Command { fault: Some(Refusal::BadAmount), .. }));
}
