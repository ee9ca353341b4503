//! The log as XML: by the course's schema, by golden text, and with money missing.

use std::collections::BTreeMap;

use crate::support::{Both, NOON_MS, attempt, is_valid, replay, request_of, workload};
use pares_broker::{
    Asked, BrokerRead, BrokerReply, BrokerRequest, LogDigest, LogHead, UserName, WorkloadLine, answer,
};
use pares_wice::codec::Coded as _;

fn run(lines: &[&str]) -> Both {
    let (mut both, mut asked) = (Both::default(), BTreeMap::new());
    for line in lines {
        both.run(&request_of(WorkloadLine::parse(line.as_bytes()).unwrap(), &mut asked));
    }
    both
}

fn some_trade() -> String {
    let lines = "[1] ADD,jo,9000.00\n[2] BUY,jo,S,2000.00\n[3] COMMIT_BUY,jo\n[4] SELL,jo,S,600.00\n\
                 [5] COMMIT_SELL,jo\n[6] SET_BUY_AMOUNT,jo,T,1000.00\n[7] SET_BUY_TRIGGER,jo,T,501.00\n[8] CANCEL_SELL,jo";
    run(&lines.lines().collect::<Vec<_>>()).xml()
}

#[test]
fn elements_are_written_as_the_sample_shows_them() {
    let both = run(&["[1] ADD,jo,100.00", "[2] BUY,jo,S,1.00", "[3] COMMIT_BUY,j&o"]);
    let text = both.xml();
    let begin = "<?xml version=\"1.0\"?>\n<log>\n\t<userCommand>\n\t\t<timestamp>1680000000000</timestamp>\n\t\t<server>broker</server>\n\t\t\
                 <transactionNum>1</transactionNum>\n\t\t<command>ADD</command>\n\t\t<username>jo</username>\n\t\t<funds>100.00</funds>\n\t</userCommand>\n\t\
                 <accountTransaction>\n\t\t<timestamp>1680000000000</timestamp>\n\t\t<server>broker</server>\n\t\t<transactionNum>1</transactionNum>\n\t\t\
                 <action>add</action>\n\t\t<username>jo</username>\n\t\t<funds>100.00</funds>\n\t</accountTransaction>\n";
    assert!(text.starts_with(begin), "{text}");
    assert!(text.contains("<cryptokey>&lt;k&amp;y&gt;=</cryptokey>"), "{text}");
    assert!(text.contains("<username>j&amp;o</username>"), "{text}");
    let end =
        "\t\t<errorMessage>the user has no account: add cash first</errorMessage>\n\t</errorEvent>\n</log>\n";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn a_log_in_which_something_was_changed_does_not_add_up() {
    let log = some_trade();
    let report = replay(&log).unwrap();
    assert_eq!(report.count("userCommand"), 8);
    assert_eq!(report.quotes.iter().map(|quote| quote.symbol.to_string()).collect::<Vec<_>>(), ["S", "T"]);
    assert!(report.quotes.iter().all(|quote| quote.key == "<k&y>=" && quote.server_ms == NOON_MS));
    let elements: Vec<&str> = log.split_inclusive("\t</").collect();
    assert!(elements.len() > 15, "{log}");
    for kind in ["accountTransaction", "debugEvent", "userCommand", "systemEvent", "errorEvent"] {
        let from = log.find(&format!("\t<{kind}>")).unwrap();
        let close = format!("\t</{kind}>\n");
        let to = from + log[from..].find(&close).unwrap() + close.len();
        let without = format!("{}{}", &log[..from], &log[to..]);
        assert!(replay(&without).is_err(), "without its first {kind}: {without}");
        let twice = format!("{}{}", &log[..to], &log[from..]);
        assert!(
            replay(&twice).is_err() || kind == "debugEvent" || kind == "errorEvent",
            "twice {kind}: {twice}"
        );
    }
    let changes = [
        ("9000.00", "9000.01"),
        ("</log>\n", ""),
        ("<log>\n", "<?xml more?>\n<log>\n"), // a second declaration, whose text has no head
        ("?>\n", "?> more?>\n"),
        ("<action>add<", "<action>remove<"),
        ("<funds>501.00<", "<funds>0.01<"), // it fires above the price that armed it
        ("<funds>2000.00<", "<funds>9000.01<"), // a buy for more than there is
        ("<funds>2000.00<", "<funds>2600.00<"), // a buy that would be of more shares
        ("<funds>600.00<", "<funds>90000.00<"), // a sell, too
    ];
    for (was, becomes) in changes {
        assert!(log.contains(was), "{was}");
        let changed = log.replacen(was, becomes, 1);
        assert!(replay(&changed).is_err(), "{was} changed to {becomes}");
    }
}

#[test]
fn commands_of_two_users_may_have_one_number() {
    let both = run(&["[1] ADD,jo,1.00", "[1] ADD,ann,2.00"]);
    assert_eq!(replay(&both.xml()).unwrap().count("userCommand"), 2);
}

#[test]
fn a_log_is_valid_by_the_schema() {
    let log = some_trade();
    let Some(is_whole_valid) = is_valid(&log, NOON_MS) else { return };
    assert!(is_whole_valid, "{log}");
    let late = log.replace(&NOON_MS.to_string(), "1900000000000");
    assert_eq!(is_valid(&late, NOON_MS), Some(false), "the schema has limits for times");
}

#[test]
fn the_log_of_a_workload_is_valid_by_the_schema() {
    let Some(file) = workload("10User_testWorkLoad") else { return };
    let text = String::from_utf8(file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_ne!(is_valid(&run(&lines).xml(), NOON_MS), Some(false));
}

/// Has a head kept at that moment.
fn keep(both: &mut Both, user: Option<&UserName>, digest: u8, elements: u64, time_ms: u64) -> LogHead {
    let head = LogHead { user: user.cloned(), digest: LogDigest([digest; 32]), elements, time_ms };
    let asked = Asked::KeepHead { user: head.user.clone(), digest: head.digest, elements };
    let request = BrokerRequest { number: 0, after: 0, name: None, time_ms, quote: None, asked };
    let (reply, writes) = attempt(&both.shelves, &request).unwrap();
    assert_eq!(reply, BrokerReply::Done);
    both.shelves.extend(writes.into_iter().map(|(key, value)| (key, value.unwrap())));
    head
}

#[test]
fn kept_head_is_found_by_its_digest_and_as_the_latest() {
    let (mut both, jo) = (run(&["[1] ADD,jo,1.00"]), UserName::new("jo").unwrap());
    let log = both.xml();
    let first = keep(&mut both, None, 1, 2, 1_000);
    let own = keep(&mut both, Some(&jo), 2, 2, 2_000);
    let second = keep(&mut both, None, u8::MAX, 4, 3_000);
    let read = |read: BrokerRead| {
        let read = BrokerRead::from_bytes(&read.to_bytes()).unwrap();
        Option::<LogHead>::from_bytes(&answer(&read, &both.shelves).unwrap()).unwrap()
    };
    for head in [&first, &own, &second] {
        assert_eq!(read(BrokerRead::Head { digest: head.digest }).as_ref(), Some(head));
    }
    assert_eq!(read(BrokerRead::LatestHead { user: None }), Some(second.clone()));
    assert_eq!(read(BrokerRead::LatestHead { user: Some(jo) }), Some(own));
    assert_eq!(read(BrokerRead::Head { digest: LogDigest([3; 32]) }), None);
    assert_eq!(read(BrokerRead::LatestHead { user: UserName::new("al") }), None);
    let again = keep(&mut both, None, u8::MAX, 4, 4_000);
    let read = |read| Option::<LogHead>::from_bytes(&answer(&read, &both.shelves).unwrap()).unwrap();
    assert_eq!(
        read(BrokerRead::Head { digest: second.digest }),
        Some(second),
        "it is as it was first written"
    );
    assert_eq!(read(BrokerRead::LatestHead { user: None }), Some(again));
    assert_eq!(both.xml(), log, "no head is an entry");
    both.check();
}

#[test]
fn users_whose_logs_hash_alike_have_heads_of_their_own() {
    let (mut both, jo) = (Both::default(), UserName::new("jo").unwrap());
    let all = keep(&mut both, None, 1, 2, 1_000);
    let before = both.shelves.clone();
    keep(&mut both, Some(&jo), 1, 2, 2_000);
    assert!(
        before.iter().all(|(key, value)| both.shelves.get(key) == Some(value)),
        "nothing was overwritten"
    );
    let read = BrokerRead::Head { digest: all.digest };
    let found = Option::<LogHead>::from_bytes(&answer(&read, &both.shelves).unwrap()).unwrap();
    assert_eq!(found, Some(all), "that of everything, which is more");
}
