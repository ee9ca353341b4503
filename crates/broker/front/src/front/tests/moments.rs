//! What happens without a command, and when a front looks for it.

use super::*;

#[test]
fn good_quote_fires_armed_triggers_once_per_sighting() {
    let mut at = At::new();
    at.line("SET_BUY_TRIGGER,jo,S,2.00");
    at.line("SET_SELL_TRIGGER,al,S,8.00");
    at.answer(BrokerReply::Armed { shares: 0 });
    at.answer(BrokerReply::Armed { shares: 3 });
    at.tick(0);
    assert_eq!(at.asked.len(), 1, "one for both");
    at.quote(1, "S", 500);
    assert!(at.submitted.is_empty());
    at.tick(60_000);
    at.quote(2, "S", 200);
    assert!(matches!(at.answer(BrokerReply::Unchanged).asked, Asked::Hit), "of the quote before");
    let is_jos = |request: &BrokerRequest| matches!(&request.asked, Asked::Fire { way: TradeWay::Buy, user, .. } if user.as_str() == "jo");
    assert!(is_jos(&at.next()) && at.submitted.len() == 1);
    at.answer(BrokerReply::Unchanged);
    at.tick(60_000);
    at.quote(3, "S", 199);
    assert!(at.submitted.is_empty(), "somebody else has fired it");
    at.tick(crate::LOOK_PATIENCE_MS);
    at.looks.drain(..at.looks.len() - 1);
    at.look_shows(&[("jo", TradeWay::Buy, 200)], &[]);
    assert!(is_jos(&at.next()), "nobody has");
    at.tick(2_000);
    at.look_shows(&[("jo", TradeWay::Buy, 200)], &[]);
    assert_eq!(at.submitted.len(), 1, "it is asked for");
    let symbol = StockSymbol::new("S").unwrap();
    at.answer(BrokerReply::Settled { symbol, shares: 1, cents: 199 });
    at.tick(60_000);
    at.quote(4, "S", 100);
    let fires = at.submitted.iter().any(|(_, request)| matches!(request.asked, Asked::Fire { .. }));
    assert!(!fires, "it has fired");
}

#[test]
fn pending_commands_expire_after_a_minute_and_again() {
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
    assert!(matches!(at.next().asked, Asked::Lapse { way: TradeWay::Buy, .. }));
    at.answer(BrokerReply::Lapsed { count: 64 });
    assert_eq!(verb(&at.next()), Verb::CommitBuy, "it waits for none of this");
    at.answer(BrokerReply::Refused { refusal: Refusal::NothingPending });
    assert!(matches!(at.next().asked, Asked::Lapse { .. }), "there may be more");
    at.answer(BrokerReply::Lapsed { count: 1 });
    assert!(at.submitted.is_empty() && at.front.is_idle());
}

#[test]
fn foreign_triggers_wait_for_look_one_second_later() {
    let mut at = At::new();
    let (armed, placed) = ([("jo", TradeWay::Buy, 200)], [("al", TradeWay::Sell, NOON - 59_000)]);
    at.tick(0);
    at.look_shows(&armed, &placed);
    at.tick(0);
    assert_eq!(at.asked.len(), 1, "it is watched");
    at.tick(1_001);
    at.quote(1, "S", 150);
    at.tick(999);
    at.look_shows(&armed, &placed);
    assert!(at.submitted.is_empty(), "others may be about it");
    at.tick(2_000);
    at.look_shows(&armed, &placed);
    let [fire, expire] = [0, 1].map(|which| at.submitted[which].1.asked.clone());
    assert!(matches!(fire, Asked::Fire { way: TradeWay::Buy, .. }), "{fire:?}");
    assert!(matches!(expire, Asked::Lapse { way: TradeWay::Sell, .. }), "{expire:?}");
    at.answer(BrokerReply::Unchanged);
    at.answer(BrokerReply::Lapsed { count: 1 });
    // It is fired elsewhere: two looks do not show it any more.
    for _ in 0..2 {
        at.tick(2_000);
        at.look_shows(&[], &[]);
    }
    at.tick(60_000);
    assert_eq!(at.asked.len(), 1, "nobody watches it");
}

#[test]
fn front_keeps_foreign_stocks_and_a_million_own_triggers() {
    let mut at = At::new();
    at.tick(0);
    let symbol = |of: u64| [b'A' + (of % 26) as u8, b'A' + (of / 26 % 26) as u8];
    let symbol = |of: u64| StockSymbol::new(str::from_utf8(&symbol(of)).unwrap()).unwrap();
    let trigger = |page: u64, of: u64| ArmedTrigger {
        symbol: symbol(page),
        way: TradeWay::Buy,
        user: UserName::new(&format!("u{page}x{of}")).unwrap(),
        price_cents: 100,
    };
    for page in 0..1_100 {
        let triggers = (0..1_000).map(|of| trigger(page, of)).collect();
        let next = (page < 1_099).then(|| pares_wice::Key::new(page.to_be_bytes()));
        let read = at.look(Some(&ArmedPage { triggers, next }.to_bytes()));
        assert!(matches!(read, BrokerRead::Armed { .. }) && at.looks.len() == 1, "one page at a time");
    }
    assert_eq!(at.front.ahead.kept(), (676, 0), "of 1,100,000 triggers");
    at.front.ahead.own_max = 2;
    for user in ["a", "b", "c"] {
        at.line(&format!("SET_BUY_TRIGGER,{user},S,2.00"));
        at.answer(BrokerReply::Armed { shares: 0 });
    }
    assert_eq!(at.front.ahead.kept(), (677, 2), "the third is left to looks");
}

#[test]
fn failed_look_restarts_and_old_look_is_ignored() {
    let mut at = At::new();
    at.tick(0);
    at.line("SET_BUY_TRIGGER,jo,S,2.00");
    at.answer(BrokerReply::Armed { shares: 0 });
    at.look_shows(&[], &[]);
    at.tick(2_000);
    assert_eq!(at.asked.len(), 1, "armed while it was looked for: watched all the same");
    at.tick(crate::LOOK_PATIENCE_MS - 1);
    assert_eq!(at.looks.len(), 1, "it may still come");
    at.tick(1);
    assert_eq!(at.looks.len(), 2, "anew");
    at.look_shows_late();
    assert_eq!((at.looks.len(), at.look(None)), (1, BrokerRead::Armed { from: None }));
    at.tick(1_999);
    assert_eq!(at.looks, []);
    at.tick(1);
    at.look_shows(&[("jo", TradeWay::Buy, 200)], &[]);
    let question = at.asked.last().unwrap().0;
    at.quote(question, "S", 150);
    assert!(matches!(at.next().asked, Asked::Fire { .. }), "its own, at once");
}

#[test]
fn a_look_whose_pages_take_three_seconds_each_comes_to_its_end() {
    let mut at = At::new();
    at.tick(0);
    let symbol = StockSymbol::new("S").unwrap();
    let armed = |from: Option<u8>, next: Option<u8>| {
        let user = UserName::new(&format!("u{}", from.unwrap_or_default())).unwrap();
        let next = next.map(|next| pares_wice::Key::new([next]));
        let trigger = ArmedTrigger { symbol, way: TradeWay::Buy, user, price_cents: 200 };
        ArmedPage { triggers: vec![trigger], next }.to_bytes()
    };
    let user = UserName::new("al").unwrap();
    let stack = PendingExpiry { user, way: TradeWay::Sell, placed_ms: NOON - 90_000 };
    let lapsing = LapsingPage { stacks: vec![stack], next: None }.to_bytes();
    for page in [armed(None, Some(1)), armed(Some(1), Some(2)), armed(Some(2), None), lapsing] {
        at.tick(2_000);
        at.tick(1_000);
        assert_eq!(at.looks.len(), 1, "it does not begin anew");
        at.look(Some(&page));
    }
    assert!(matches!(at.next().asked, Asked::Lapse { way: TradeWay::Sell, .. }));
    at.tick(2_000);
    assert_eq!(at.look(None), BrokerRead::Armed { from: None }, "the next look");
}

#[test]
fn front_with_wrong_clock_idles_until_a_right_stamp() {
    let mut at = At::new();
    at.line("BUY,jo,S,5.00");
    at.quote(1, "S", 100);
    at.answer(BrokerReply::Held { shares: 5, price_cents: 100, until_ms: NOON + 60_000 });
    for hit in 2..5 {
        at.tick(70_000);
        at.line("QUOTE,al,S");
        at.line("ADD,al,1.00");
        at.quote_of(hit, "S", 100, at.now_ms - 3_600_000);
    }
    assert!(at.front.clock_ahead_ms() > 3_600_000 - 10_000, "{}", at.front.clock_ahead_ms());
    let is_command = |(_, request): &&(_, BrokerRequest)| matches!(request.asked, Asked::Command { .. });
    assert_eq!(at.submitted.iter().filter(is_command).count(), 4, "those behind the third stamp are not");
    assert_eq!((at.clock_off.as_slice(), at.front.open()), (&[6, 5][..], 4), "they are told so");
    at.submitted.clear();
    let arrives = |at: &mut At| at.arrives("ADD,bo,1.00", CommandOrder::Arrival { name: None });
    at.tick(70_000);
    at.look_shows(&[("cy", TradeWay::Buy, 200)], &[("cy", TradeWay::Sell, NOON - 90_000)]);
    let asked = at.asked.len();
    assert_eq!([arrives(&mut at), arrives(&mut at)], [Err(NotTaken::Clock); 2]);
    assert!(at.asked.len() <= asked + 1, "it asks for a stamp, and not for each command");
    let happens = at.submitted.iter().any(|(_, request)| !matches!(request.asked, Asked::Hit));
    assert!(!happens, "{:?}", at.submitted);
    let question = at.asked.last().unwrap().0;
    at.quote(question, "S", 100);
    assert_eq!(at.front.clock_ahead_ms(), 0);
    assert!(arrives(&mut at).is_ok());
}
