//! A workload through a site with a real log and a real store, each user's commands in order, all users at once; and what its log says afterwards.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use pares_accounts::Accounts;
use pares_broker::{
    Asked, AuditPage, AuditReplay, AuditReport, BrokerRead, BrokerReply, BrokerRequest, HitName,
    QuoteBrought, StockQuote, StockSymbol, TradeWay, UserName, WorkloadLine, dollars, tell_log,
};
use pares_random::Random;
use pares_site::config::{Place, Promise, SiteLimits};
use pares_site::protocol::Code;
use pares_site::{Client, Process, SitesConfig};
use pares_wice::codec::Coded as _;
use pares_wice::{Isolation, SiteId, TransactionId};

const USERS: u64 = 8;
const COMMANDS: u64 = 2_000;
const NOON_MS: u64 = 1_680_000_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

fn open(dir: &std::path::Path) -> Process<Accounts> {
    let any = "127.0.0.1:0".parse().unwrap();
    let config = SitesConfig {
        identity: SitesConfig::draw_identity(),
        plain: false,
        witness: None,
        store: None,
        system: "broker".into(),
        durability: Promise::Os,
        isolation: Isolation::Snapshot,
        certifier: 0,
        begins: 0,
        tls: None,
        limits: SiteLimits::default(),
        sites: vec![Place::new(0, 0, any, any)],
    };
    config.make_directories(dir).unwrap();
    let mut site = Process::open(&config, SiteId::new(0, 0), dir, Accounts).unwrap();
    while site.apart().is_some() {
        site.turn(Duration::from_millis(10)).unwrap();
    }
    site
}

/// A workload of all kinds of commands: the same each time.
fn requests() -> BTreeMap<u64, VecDeque<BrokerRequest>> {
    let mut random = Random::new(1);
    let mut draw = |below: u64| random.below(below);
    let mut of_user: BTreeMap<u64, VecDeque<BrokerRequest>> = BTreeMap::new();
    for number in 1..=COMMANDS {
        let user = draw(USERS);
        let command = command(user, &mut draw);
        let line = WorkloadLine::parse(format!("[{number}] {command}").as_bytes()).unwrap();
        let quote = line.command.symbol.map(|symbol| {
            let (price_cents, user, key) = (1_000 + draw(20_000), format!("u{user}"), "key".to_owned());
            let quote = StockQuote { price_cents, symbol, user, server_ms: NOON_MS, key };
            QuoteBrought { quote, hit: Some(HitName { desk: 1, count: number }) }
        });
        let asked = Asked::Command { command: line.command, fault: line.fault };
        let request = BrokerRequest { number, after: 0, name: None, time_ms: NOON_MS, quote, asked };
        of_user.entry(user).or_default().push_back(request);
    }
    of_user
}

/// A command of a user's.
fn command(user: u64, draw: &mut impl FnMut(u64) -> u64) -> String {
    let (symbol, amount) = (["A", "BC", "DEF"][draw(3) as usize], dollars(draw(90_000)));
    match draw(12) {
        0 | 1 => format!("ADD,u{user},9{amount}"),
        2 | 3 => format!("BUY,u{user},{symbol},{amount}"),
        4 => format!("COMMIT_BUY,u{user}"),
        5 => format!("CANCEL_BUY,u{user}"),
        6 => format!("SELL,u{user},{symbol},{amount}"),
        7 => format!("COMMIT_SELL,u{user}"),
        8 => format!("SET_BUY_AMOUNT,u{user},{symbol},{amount}"),
        9 => format!("SET_BUY_TRIGGER,u{user},{symbol},{amount}"),
        10 => format!("SET_SELL_AMOUNT,u{user},{symbol},{amount}"),
        _ => format!("SET_SELL_TRIGGER,u{user},{symbol},{amount}"),
    }
}

/// Runs all; how many were refused.
fn run(site: &mut Process<Accounts>, mut of_user: BTreeMap<u64, VecDeque<BrokerRequest>>) -> u64 {
    let (mut refused, mut answered) = (0, 0);
    let mut sequences = BTreeMap::new();
    let mut next = |site: &mut Process<Accounts>, user: u64| {
        let Some(request) = of_user.get_mut(&user).and_then(VecDeque::pop_front) else { return };
        let sequence: &mut u64 = sequences.entry(user).or_default();
        site.submit(TransactionId { client: user + 1, sequence: *sequence }, request.to_bytes());
        *sequence += 1;
    };
    (0..USERS).for_each(|user| next(site, user));
    while answered < COMMANDS {
        site.turn(Duration::from_millis(1)).unwrap();
        for told in site.answered().collect::<Vec<_>>() {
            assert_eq!(told.answer.code, Code::Done, "{}", told.answer.body.escape_ascii());
            let reply = BrokerReply::from_bytes(&told.answer.body).unwrap();
            refused += u64::from(matches!(reply, BrokerReply::Refused { .. }));
            answered += 1;
            next(site, told.id.client - 1);
        }
    }
    refused
}

/// Reads the log by a client, while the site continues, and replays it.
fn replayed(site: &mut Process<Accounts>) -> AuditReport {
    let address = site.clients_address().unwrap().unwrap();
    let reader = std::thread::spawn(move || {
        let mut client = Client::new(99, 0, vec![address]);
        let mut replay = AuditReplay::default();
        let page = |from| {
            let read = BrokerRead::Log { user: None, from };
            Ok(AuditPage::from_bytes(&client.read_latest(&read.to_bytes(), PATIENCE).unwrap()).unwrap())
        };
        tell_log(page, |text| replay.text(text)).unwrap();
        replay.finish().unwrap()
    });
    while !reader.is_finished() {
        site.turn(Duration::from_millis(1)).unwrap();
    }
    reader.join().unwrap()
}

#[test]
fn what_users_do_at_a_site_adds_up_by_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut site = open(dir.path());
    let refused = run(&mut site, requests());
    let report = replayed(&mut site);
    assert_eq!(report.count("userCommand"), COMMANDS);
    assert_eq!(report.count("errorEvent"), refused);
    assert!((1..COMMANDS).contains(&refused), "{refused} refused");
    assert_eq!(report.accounts.len() as u64, USERS);
    for kind in ["accountTransaction", "debugEvent", "systemEvent", "quoteServer"] {
        assert!(report.count(kind) > 0, "no {kind}");
    }
}

/// Has all of them executed at once, each by a client of its own; the replies in their order.
fn at_once(site: &mut Process<Accounts>, first_client: u64, requests: &[BrokerRequest]) -> Vec<BrokerReply> {
    let ids = (first_client..).map(|client| TransactionId { client, sequence: 1 });
    for (id, request) in ids.zip(requests) {
        // Twice: as a front does that has no answer.
        site.submit(id, request.to_bytes());
        site.submit(id, request.to_bytes());
    }
    let mut replies = BTreeMap::new();
    while replies.len() < requests.len() {
        site.turn(Duration::from_millis(1)).unwrap();
        for told in site.answered().collect::<Vec<_>>() {
            assert_eq!(told.answer.code, Code::Done, "{}", told.answer.body.escape_ascii());
            replies.insert(told.id.client, BrokerReply::from_bytes(&told.answer.body).unwrap());
        }
    }
    replies.into_values().collect()
}

#[test]
fn what_many_fronts_ask_for_at_once_is_done_once_at_a_site() {
    let dir = tempfile::tempdir().unwrap();
    let mut site = open(dir.path());
    let user = UserName::new("jo").unwrap();
    let symbol = StockSymbol::new("S").unwrap();
    let quote = |price_cents, server_ms| {
        let (user, key) = ("jo".to_owned(), "key".to_owned());
        let quote = StockQuote { price_cents, symbol, user, server_ms, key };
        Some(QuoteBrought { quote, hit: None })
    };
    let lines = ["ADD,jo,100.00", "BUY,jo,S,10.00", "SET_BUY_AMOUNT,jo,S,20.00", "SET_BUY_TRIGGER,jo,S,4.00"];
    for (number, line) in (1..).zip(lines) {
        let line = WorkloadLine::parse(format!("[{number}] {line}").as_bytes()).unwrap();
        let asked = Asked::Command { command: line.command, fault: line.fault };
        let quote = quote(500, NOON_MS);
        at_once(
            &mut site,
            number,
            &[BrokerRequest { number, after: 0, name: None, time_ms: NOON_MS, quote, asked }],
        );
    }
    let late_ms = NOON_MS + 60_001;
    let ask = |number: u64| {
        let (way, user) = (TradeWay::Buy, user.clone());
        let fires = number.is_multiple_of(2);
        let asked = if fires { Asked::Fire { way, user, symbol } } else { Asked::Lapse { way, user } };
        BrokerRequest { number, after: 0, name: None, time_ms: late_ms, quote: quote(400, late_ms), asked }
    };
    let replies = at_once(&mut site, 100, &(100..140).map(ask).collect::<Vec<_>>());
    let count = |reply: &BrokerReply| replies.iter().filter(|other| *other == reply).count();
    let fired = BrokerReply::Settled { symbol, shares: 5, cents: 2_000 };
    assert_eq!((count(&fired), count(&BrokerReply::Lapsed { count: 1 })), (1, 1), "{replies:?}");
    assert_eq!(count(&BrokerReply::Unchanged), 38, "{replies:?}");
    let report = replayed(&mut site);
    assert_eq!((report.count("userCommand"), report.count("systemEvent")), (4, 2));
    assert_eq!(report.accounts["jo"].cash_cents, 8_000);
    assert_eq!(report.accounts["jo"].shares["S"], 5);
}
