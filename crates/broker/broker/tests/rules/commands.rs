//! The rules against the oracle: on every workload at hand, and on commands nobody would send.

use std::collections::BTreeMap;

use crate::support::{Both, NOON_MS, attempt, hit, request_of, workload};
use pares_broker::{
    Asked, BrokerRead, BrokerReply, BrokerRequest, CommandName, HitName, QuoteBrought, StockSymbol, TradeWay,
    UserCommand, UserName, Verb, WorkloadLine, number_in_session,
};
use proptest::prelude::*;

/// Runs a workload on both sides; gives how many commands were done and refused.
fn run(file: &[u8]) -> (Both, [u64; 2]) {
    let (mut both, mut asked, mut count) = (Both::default(), BTreeMap::new(), [0, 0]);
    for (number, line) in (1..).zip(file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())) {
        let line = WorkloadLine::parse(line).unwrap();
        assert_eq!(line.number, number);
        let reply = both.run(&request_of(line, &mut asked));
        count[usize::from(matches!(reply, BrokerReply::Refused { .. }))] += 1;
    }
    (both, count)
}

#[test]
fn workloads_are_served_as_the_oracle_serves_them() {
    for (name, expected) in [
        ("1userWorkLoad", [37, 63]),
        ("2userWorkLoad", [6491, 3509]),
        ("10User_testWorkLoad", [5015, 4985]),
        ("45User_testWorkLoad", [4822, 5178]),
        ("100User_testWorkLoad", [57_162, 42_838]),
    ] {
        let Some(file) = workload(name) else { continue };
        let (both, count) = run(&file);
        println!("{name}: {count:?}");
        both.check();
        let report = both.replay();
        assert_eq!(report.count("userCommand"), count.iter().sum::<u64>(), "{name}");
        assert_eq!(report.count("errorEvent"), count[1], "{name}");
        assert_eq!(count, expected, "{name}: done, refused");
    }
}

fn symbol() -> impl Strategy<Value = StockSymbol> {
    prop::sample::select(vec!["A", "BC", "DEF"]).prop_map(|text| StockSymbol::new(text).unwrap())
}

fn user() -> impl Strategy<Value = UserName> {
    prop::sample::select(vec!["jo", "JO", "a&b<c>"]).prop_map(|text| UserName::new(text).unwrap())
}

fn way() -> impl Strategy<Value = TradeWay> {
    prop::sample::select(vec![TradeWay::Buy, TradeWay::Sell])
}

/// A command that its form does not refuse, mostly.
fn command() -> impl Strategy<Value = UserCommand> {
    let verb = prop::sample::select(Verb::ALL.to_vec());
    let cents = prop_oneof![9 => 1..2_000_u64, 3 => 1..100_000_u64, 1 => Just(0)];
    (verb, user(), symbol(), cents, 0..40_u8).prop_map(|(verb, user, symbol, cents, odd)| {
        let has_symbol = !matches!(
            verb,
            Verb::Add
                | Verb::CommitBuy
                | Verb::CancelBuy
                | Verb::CommitSell
                | Verb::CancelSell
                | Verb::Dumplog
                | Verb::DisplaySummary
        );
        let has_cents = matches!(
            verb,
            Verb::Add
                | Verb::Buy
                | Verb::Sell
                | Verb::SetBuyAmount
                | Verb::SetBuyTrigger
                | Verb::SetSellAmount
                | Verb::SetSellTrigger
        );
        UserCommand {
            verb,
            user: (odd != 1).then_some(user),
            symbol: (has_symbol != (odd == 2)).then_some(symbol),
            cents: (has_cents != (odd == 3)).then_some(if verb == Verb::Add { cents * 20 } else { cents }),
            file: (verb == Verb::Dumplog).then(|| "log.xml".to_owned()),
        }
    })
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        12 => command().prop_map(|command| Asked::Command { command, fault: None }),
        3 => (command(), 1..=3_u64, 1..40_u64).prop_map(|(command, session, count)| {
            Asked::Settle { command, number: number_in_session(session, count) }
        }),
        2 => (way(), user(), symbol()).prop_map(|(way, user, symbol)| Asked::Fire { way, user, symbol }),
        2 => (way(), user()).prop_map(|(way, user)| Asked::Lapse { way, user }),
        1 => Just(Asked::Hit),
    ]
}

/// Price, age in ms, and which question brought it, if it is one that the log may not have.
type Brought = Option<(u64, u64, Option<u64>)>;

/// How a request comes.
#[derive(Clone, Debug)]
enum Coming {
    /// Behind the user's one before in this session, or without an order.
    InSession(u64, bool),
    /// Its turn has come, but it is held up: what follows it is early.
    HeldUp(u64),
    /// What was held up comes.
    Late,
    /// One that came before comes again.
    Again(prop::sample::Index),
}

fn coming() -> impl Strategy<Value = Coming> {
    let session = || prop_oneof![6 => 1..3_u64, 2 => 3..14_u64];
    prop_oneof![
        12 => (session(), prop::bool::weighted(0.9)).prop_map(|(session, ordered)| Coming::InSession(session, ordered)),
        1 => session().prop_map(Coming::HeldUp),
        2 => Just(Coming::Late),
        3 => any::<prop::sample::Index>().prop_map(Coming::Again),
    ]
}

fn name() -> impl Strategy<Value = Option<CommandName>> {
    prop::option::weighted(0.15, (0..6_u8).prop_map(|n| CommandName::new(&format!("name-{n}")).unwrap()))
}

/// What is asked, how much later than before, the quote that comes with it, the name, and how it comes.
type Step = (Asked, u64, Brought, Option<CommandName>, Coming);

fn step() -> impl Strategy<Value = Step> {
    let later = prop_oneof![6 => Just(0_u64), 6 => 1..20_000_u64, 1 => Just(60_000), 1 => Just(60_001)];
    let hit = prop::option::of(0..60_u64);
    let quote = (prop_oneof![8 => 50..400_u64, 1 => 1..9_u64, 1 => Just(0)], 0..70_000_u64, hit);
    (asked(), later, prop::option::weighted(0.9, quote), name(), coming())
}

/// Gives requests their numbers, and sends them on all sorts of ways.
#[derive(Default)]
struct Senders {
    count: u64,
    latest: BTreeMap<(Option<UserName>, u64), u64>,
    held_up: Vec<BrokerRequest>,
    sent: Vec<BrokerRequest>,
}

impl Senders {
    fn number(&mut self, request: &mut BrokerRequest, session: u64) {
        self.count += 1;
        request.number = number_in_session(session, self.count);
        if let Asked::Command { command, .. } | Asked::Settle { command, .. } = &request.asked {
            let latest =
                self.latest.entry((command.user.clone(), session)).or_insert(number_in_session(session, 0));
            request.after = core::mem::replace(latest, request.number);
        }
    }

    fn next(&mut self, mut request: BrokerRequest, coming: &Coming) -> Option<BrokerRequest> {
        let next = match coming {
            Coming::InSession(session, is_ordered) => {
                self.number(&mut request, *session);
                request.after *= u64::from(*is_ordered);
                request
            }
            Coming::HeldUp(session) => {
                self.number(&mut request, *session);
                self.held_up.push(request);
                return None;
            }
            Coming::Late if self.held_up.is_empty() => return None,
            Coming::Late => self.held_up.remove(0),
            Coming::Again(_) if self.sent.is_empty() => return None,
            Coming::Again(index) => {
                BrokerRequest { time_ms: request.time_ms, ..index.get(&self.sent).clone() }
            }
        };
        self.sent.push(next.clone());
        Some(next)
    }
}

fn symbol_of(asked: &Asked) -> StockSymbol {
    let named = match asked {
        Asked::Command { command, .. } | Asked::Settle { command, .. } => command.symbol,
        Asked::Fire { symbol, .. } => Some(*symbol),
        _ => None,
    };
    named.unwrap_or(StockSymbol::new("A").unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_commands_have_the_effects_that_the_oracle_expects(steps in prop::collection::vec(step(), 1..150)) {
        let (mut both, mut now, mut senders) = (Both::default(), NOON_MS, Senders::default());
        for (asked, later, quote, name, coming) in steps {
            now += later;
            let quote = quote.map(|(price, age, count)| {
                let brought = hit(symbol_of(&asked), price, now - age.saturating_sub(9_000));
                QuoteBrought { hit: count.map(|count| HitName { desk: 1, count }), ..brought }
            });
            let request = BrokerRequest { number: 0, after: 0, name, time_ms: now, quote, asked };
            if let Some(request) = senders.next(request, &coming) {
                both.run(&request);
            }
        }
        both.check();
        both.replay();
    }

    #[test]
    fn no_line_and_no_request_is_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), text in "\\[[0-9]{1,3}\\] [A-Z_]{3,9}(,[a-zA-Z0-9.-]{0,9}){0,4}") {
        use pares_wice::codec::Coded as _;
        let _ = WorkloadLine::parse(&bytes);
        let _ = WorkloadLine::parse(text.as_bytes());
        let _ = BrokerRequest::from_bytes(&bytes);
        let _ = BrokerReply::from_bytes(&bytes);
        let _ = BrokerRead::from_bytes(&bytes);
    }
}

#[test]
fn two_users_never_write_the_same_item() {
    let Some(file) = workload("45User_testWorkLoad") else { return };
    let (mut both, mut owners, mut asked) = (Both::default(), BTreeMap::new(), BTreeMap::new());
    for line in file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line = WorkloadLine::parse(line).unwrap();
        let user = line.command.user.clone();
        let request = request_of(line, &mut asked);
        for (key, _) in attempt(&both.shelves, &request).unwrap().1 {
            assert_eq!(*owners.entry(key).or_insert_with(|| user.clone()), user);
        }
        both.run(&request);
    }
}

fn asks(line: &str) -> Asked {
    let line = WorkloadLine::parse(format!("[1] {line}").as_bytes()).unwrap();
    Asked::Command { command: line.command, fault: line.fault }
}

/// Of two requests on one state both would have an effect, and they write a common item, so that one of them commits; on what that leaves, the other has none.
#[test]
fn what_two_fronts_ask_for_at_once_is_done_once() {
    let (jo, stock) = (UserName::new("jo").unwrap(), StockSymbol::new("S").unwrap());
    let fire = |way| Asked::Fire { way, user: jo.clone(), symbol: stock };
    let lapse = |way| Asked::Lapse { way, user: jo.clone() };
    let (buy, sell) = (TradeWay::Buy, TradeWay::Sell);
    let cases = [
        (fire(buy), fire(buy), 0, 80),
        (fire(sell), fire(sell), 0, 300),
        (fire(buy), asks("CANCEL_SET_BUY,jo,S"), 0, 80),
        (lapse(buy), lapse(buy), 60_001, 100),
        (lapse(sell), lapse(sell), 60_001, 100),
        (asks("COMMIT_BUY,jo"), asks("CANCEL_BUY,jo"), 60_000, 100),
        (asks("COMMIT_SELL,jo"), asks("CANCEL_SELL,jo"), 60_000, 100),
    ];
    for (one, other, later, price) in cases {
        let mut both = Both::default();
        let lines = "ADD,jo,100.00 BUY,jo,S,20.00 COMMIT_BUY,jo SET_BUY_AMOUNT,jo,S,30.00 SET_BUY_TRIGGER,jo,S,0.90 \
                     SET_SELL_AMOUNT,jo,S,9.00 SET_SELL_TRIGGER,jo,S,3.00 BUY,jo,S,5.00 SELL,jo,S,5.00";
        let request = |number, asked: &Asked, time_ms, price| {
            let quote = Some(hit(stock, price, time_ms));
            BrokerRequest { number, after: 0, name: None, time_ms, quote, asked: asked.clone() }
        };
        for (number, line) in (1..).zip(lines.split(' ')) {
            let reply = both.run(&request(number, &asks(line), NOON_MS, 100));
            assert!(!matches!(reply, BrokerReply::Refused { .. }), "{line}: {reply:?}");
        }
        let [first, second] =
            [(90, &one), (91, &other)].map(|(number, asked)| request(number, asked, NOON_MS + later, price));
        let [a, b] = [&first, &second].map(|request| attempt(&both.shelves, request).unwrap());
        for reply in [&a.0, &b.0] {
            let is_idle = matches!(reply, BrokerReply::Refused { .. } | BrokerReply::Unchanged);
            assert!(!is_idle, "{one:?}: {reply:?}");
        }
        assert!(a.1.keys().any(|key| b.1.contains_key(key)), "{one:?} {other:?}");
        both.run(&first);
        let late = both.run(&second);
        assert!(matches!(late, BrokerReply::Refused { .. } | BrokerReply::Unchanged), "{other:?}: {late:?}");
        both.check();
        both.replay();
    }
}
