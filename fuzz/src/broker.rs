//! The broker: lines of workloads and of the quote server, requests, replies and reads, items, and its log as XML.
//!
//! An item that cannot be what its name says is an error, whatever it holds: a disk that rots is nobody's reason to bring a site down.

use std::collections::BTreeMap;

use pares_broker::{
    Asked, AuditPage, AuditReplay, BrokerRead, BrokerReply, BrokerRequest, CommandName, LogDigest,
    QuoteBrought, StockQuote, StockSymbol, TradeWay, UserName, WorkloadLine, answer, audit_page, execute,
    number_in_session, tell_log,
};
use pares_front::{StandIn, StandInSettings, StandInWords, read_reply, reply_line};
use pares_wice::codec::Coded;
use pares_wice::{Key, Value};

const NOON_MS: u64 = 1_680_000_000_000;

/// Commands of one user that leave an item of each kind, and are refused for this and that.
const COMMANDS: [&str; 14] = [
    "ADD,jo,5000.00",
    "QUOTE,jo,ABC",
    "BUY,jo,ABC,500.00",
    "COMMIT_BUY,jo",
    "BUY,jo,S,300.5",
    "SELL,jo,ABC,50.00",
    "SET_BUY_AMOUNT,jo,S,700.00",
    "SET_BUY_TRIGGER,jo,S,1.00",
    "SET_SELL_AMOUNT,jo,ABC,40.00",
    "SET_SELL_TRIGGER,jo,ABC,19.99",
    "DISPLAY_SUMMARY,jo",
    "CANCEL_SET_SELL,jo,S",
    "DUMPLOG,jo,./testLOG",
    "DUMPLOG,testLOG",
];

fn user() -> UserName {
    UserName::new("jo").expect("a name")
}

fn symbol(letters: &str) -> StockSymbol {
    StockSymbol::new(letters).expect("letters")
}

fn quote(symbol: StockSymbol) -> StockQuote {
    StockQuote { price_cents: 1_000, symbol, user: "jo".into(), server_ms: NOON_MS, key: "kEy+/=".into() }
}

/// Reads a line of a workload. What is right about it is read the same when it is written again.
pub fn line(bytes: &[u8]) {
    let Ok(line) = WorkloadLine::parse(bytes) else { return };
    let command = &line.command;
    let again = Asked::Command { command: command.clone(), fault: line.fault };
    assert_eq!(Asked::from_bytes(&again.to_bytes()), Ok(again), "a command is sent as it was read");
    if line.fault.is_none() {
        assert_eq!(command.check(), Ok(()), "a command without a fault has the fields of its verb");
        assert_eq!(WorkloadLine::parse(written(&line).as_bytes()), Ok(line), "as written");
    }
}

fn written(line: &WorkloadLine) -> String {
    let command = &line.command;
    let mut text = format!("[{}] {}", line.number, command.verb.name());
    let amount = command.cents.map(|cents| format!("{}.{:02}", cents / 100, cents % 100));
    let fields = [command.user.as_ref().map(ToString::to_string), command.symbol.map(|s| s.to_string())];
    for field in fields.into_iter().chain([amount, command.file.clone()]).flatten() {
        text += &format!(",{field}");
    }
    text
}

/// Lines of all commands.
#[must_use]
pub fn line_seeds() -> Vec<Vec<u8>> {
    let numbered = (1..).zip(COMMANDS).map(|(number, command)| format!("[{number}] {command} \n"));
    numbered.map(String::into_bytes).collect()
}

/// Reads a message of each kind: what is one is written as it was read.
pub fn messages(bytes: &[u8]) {
    same::<BrokerRequest>(bytes);
    same::<BrokerReply>(bytes);
    same::<BrokerRead>(bytes);
    same::<AuditPage>(bytes);
    let _ = answer_of(bytes, &Items::default());
}

fn same<T: Coded>(bytes: &[u8]) {
    if let Ok(read) = T::from_bytes(bytes) {
        assert_eq!(read.to_bytes(), bytes, "as read");
    }
}

fn answer_of(bytes: &[u8], items: &Items) -> Option<Vec<u8>> {
    answer(&BrokerRead::from_bytes(bytes).ok()?, items).ok()
}

/// Requests, reads, and what was answered.
#[must_use]
pub fn message_seeds() -> Vec<Vec<u8>> {
    let (items, replies) = ran();
    let requests = requests().into_iter().map(|request| request.to_bytes());
    let replies = replies.into_iter().map(|reply| reply.to_bytes());
    let reads = reads().into_iter().map(|read| read.to_bytes());
    let pages = reads.clone().filter_map(|read| answer_of(&read, &items));
    requests.chain(replies).chain(reads.clone()).chain(pages).collect()
}

fn requests() -> Vec<BrokerRequest> {
    let (way, user) = (TradeWay::Sell, user());
    let commands = COMMANDS.iter().map(|command| {
        let line = WorkloadLine::parse(format!("[1] {command}").as_bytes()).expect("a command");
        let brought = line.command.symbol.map(|symbol| QuoteBrought { quote: quote(symbol), hit: None });
        (Asked::Command { command: line.command, fault: line.fault }, brought)
    });
    let sold = Some(QuoteBrought { quote: quote(symbol("ABC")), hit: None });
    let moments = [
        (Asked::Fire { way, user: user.clone(), symbol: symbol("ABC") }, sold.clone()),
        (Asked::Fire { way: TradeWay::Buy, user: user.clone(), symbol: symbol("S") }, None),
        (Asked::Lapse { way, user }, None),
        (Asked::Hit, sold),
        (Asked::BeginFront, None),
        (Asked::KeepHead { user: None, digest: LogDigest([7; 32]), elements: 2 }, None),
    ];
    let numbered = (1..).zip(commands.chain(moments));
    let request = |(count, (asked, quote))| BrokerRequest {
        number: number_in_session(7, count),
        after: 0,
        name: None,
        time_ms: NOON_MS,
        quote,
        asked,
    };
    numbered.map(request).collect()
}

fn reads() -> [BrokerRead; 9] {
    let (from, user) = (None, user());
    [
        BrokerRead::Summary { user: user.clone() },
        BrokerRead::Log { user: Some(user.clone()), from: from.clone() },
        BrokerRead::Log { user: None, from: from.clone() },
        BrokerRead::Armed { from: from.clone() },
        BrokerRead::Lapsing { from },
        BrokerRead::Newest { user: user.clone(), before: None },
        BrokerRead::Named { user, name: CommandName::new("k").expect("a name") },
        BrokerRead::Head { digest: LogDigest([7; 32]) },
        BrokerRead::LatestHead { user: None },
    ]
}

type Items = BTreeMap<Key, Value>;

/// All commands and a head, without what fires and lapses: the items then, and the replies.
fn ran() -> (Items, Vec<BrokerReply>) {
    let mut items = Items::default();
    let commands = requests()
        .into_iter()
        .filter(|request| matches!(request.asked, Asked::Command { .. } | Asked::KeepHead { .. }));
    let replies = commands.map(|request| execute(&request, &mut items).expect("items are whole")).collect();
    (items, replies)
}

/// Executes and reads everything on items one of which is not as it was: the first byte says which, the others are its value now.
pub fn items(bytes: &[u8]) {
    let Some((which, value)) = bytes.split_first() else { return };
    let (mut items, _) = ran();
    let which = usize::from(*which) % items.len();
    let key = items.keys().nth(which).cloned().expect("so many there are");
    items.insert(key, Value::new(value));
    for read in reads() {
        let _ = answer(&read, &items);
    }
    for mut request in requests() {
        // Behind all that were executed.
        request.number += number_in_session(1, 0);
        let _ = execute(&request, &mut items);
    }
}

/// Each item as it is.
#[must_use]
pub fn item_seeds() -> Vec<Vec<u8>> {
    let (items, _) = ran();
    (0..=u8::MAX).zip(items.values()).map(|(which, value)| [&[which], value.as_bytes()].concat()).collect()
}

/// Reads a log, line by line, and replays it.
pub fn log(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    let mut replay = AuditReplay::default();
    if text.lines().all(|line| replay.line(line).is_ok())
        && let Ok(report) = replay.finish()
    {
        assert!(report.accounts.values().all(pares_broker::ReplayedAccount::is_conserved));
    }
}

/// The log of all commands, whole and the half of it.
#[must_use]
pub fn log_seeds() -> Vec<Vec<u8>> {
    let (items, _) = ran();
    let mut text = String::new();
    let page = |from: Option<Key>| audit_page(&items, None, from.as_ref());
    tell_log(page, |part| {
        text.push_str(part);
        Ok(())
    })
    .expect("items are whole");
    let half = text.as_bytes()[..text.len() / 2].to_vec();
    vec![text.into_bytes(), half]
}

/// Reads an answer of the quote server, and the same bytes as a question to the stand-in for it.
pub fn quotes(bytes: &[u8]) {
    if let Ok(quote) = read_reply(bytes, symbol("ABC"), &user()) {
        assert!(quote.price_cents > 0);
        assert_eq!(
            read_reply(reply_line(&quote).as_bytes(), symbol("ABC"), &user()),
            Ok(quote),
            "as written"
        );
    }
    let mut server = StandIn::new(StandInSettings::default());
    if let StandInWords::Quote(quote) = server.answer(bytes, NOON_MS).words {
        assert!(!quote.user.contains(','), "a question's user is one field");
    }
}

/// A quote, what else such a server says, and questions.
#[must_use]
pub fn quote_seeds() -> Vec<Vec<u8>> {
    let answer = reply_line(&quote(symbol("ABC")));
    [&answer, "ABC,jo\n", "0.00,NA,NA,1,NA\n"].map(|line| line.as_bytes().to_vec()).into()
}
