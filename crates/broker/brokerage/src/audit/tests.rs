//! Logs that were changed after they were written.

use std::time::Duration;

use pares_broker::{
    Asked, BrokerRequest, LOG_BEGIN, LOG_END, UserName, WorkloadLine, cents_of, dollars, number_in_session,
};
use pares_site::config::Promise;
use pares_wice::codec::Coded as _;

use super::*;
use crate::dump;
use crate::own_site::OwnSite;
use crate::quote_server::Behaviour;
use crate::readers::READER;
use crate::run::{Args as RunArgs, measure};
use crate::unnumbered;

const PATIENCE: Duration = Duration::from_secs(30);

fn quote(symbol: &str, key: &str) -> String {
    format!(
        "<quoteServer>\n<timestamp>1680000000000</timestamp>\n<server>q</server>\n<transactionNum>1</transactionNum>\n\
         <price>5.00</price>\n<stockSymbol>{symbol}</stockSymbol>\n<username>jo</username>\n\
         <quoteServerTime>1680000000000</quoteServerTime>\n<cryptokey>{key}</cryptokey>\n</quoteServer>\n"
    )
}

#[test]
fn a_log_in_which_a_quote_stands_twice_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let replayed = |quotes: &[String]| {
        std::fs::write(file.path(), format!("{LOG_BEGIN}{}{LOG_END}", quotes.concat())).unwrap();
        replay(file.path())
    };
    let (first, other) = (quote("S", "k1"), quote("S", "k2"));
    // A server that gives two quotes one key was asked twice.
    let once = [first.clone(), other.clone(), quote("T", "k1")];
    assert_eq!(replayed(&once).unwrap().report.quotes.len(), 3);
    let refused = replayed(&[first.clone(), other, first]).err().unwrap().to_string();
    assert!(refused.ends_with("contains the quote of S with the key k1 twice"), "{refused}");
    // However long a line is, and whatever a terminal would do at it, little of it is said.
    let long = format!("\u{1b}{}", "k".repeat(1 << 20));
    let price = quote("S", "k").replace("5.00", &long);
    for (quotes, why) in [
        (vec![quote("S", &long), quote("S", &long)], "twice"),
        (vec![long.clone()], "is not expected here"),
        (vec![quote(&long, "k")], "is no stock"),
        (vec![price], "is no sum of money"),
    ] {
        let refused = replayed(&quotes).err().unwrap().to_string();
        assert!(refused.len() < 1_000 && !refused.contains('\u{1b}'), "{} bytes", refused.len());
        assert!(refused.ends_with(why), "{refused}");
    }
}

/// A workload of two users, whose amounts no other element has.
const DAY: &str = "[1] ADD,jo,8000.00\n[2] ADD,al,70.00\n[3] ADD,jo,9.00\n[4] BUY,jo,S,6001.00\n[5] CANCEL_BUY,jo\n[6] DUMPLOG,./testLOG\n";

/// Runs the workload in `dir`: where its log is, and the head that the run says.
fn some_day(dir: &Path) -> (PathBuf, LogDigest) {
    let file = dir.join("day");
    std::fs::write(&file, DAY).unwrap();
    let behaviour = Behaviour { seed: 7, instant: true, bad_per_mille: 0 };
    let logs = dir.join("logs");
    let figures = measure(&RunArgs { logs: Some(logs.clone()), ..RunArgs::of(file, Promise::Os, behaviour) });
    (logs.join("testLOG"), digest(&figures.unwrap().log_head).unwrap())
}

/// An element that is about this sum.
fn element<'a>(log: &'a str, kind: &str, funds: &str) -> &'a str {
    let close = format!("</{kind}>\n");
    let mut all =
        log.split_inclusive(&close).map(|part| &part[part.rfind(&format!("\t<{kind}>")).unwrap()..]);
    all.find(|element| element.contains(funds)).unwrap()
}

/// An element, or several of one command, under another number.
fn renumbered(elements: &str) -> String {
    let (_, rest) = elements.split_once("<transactionNum>").unwrap();
    let number = rest.split_once('<').unwrap().0;
    let other = number.parse::<u64>().unwrap() + 1_000_000;
    elements.replace(&format!(">{number}<"), &format!(">{other}<"))
}

/// The log with another price of the only buy, and as much removed and returned as that costs.
fn with_cheaper_buy(log: &str) -> String {
    let deal = element(log, "debugEvent", " at ").split_once("<debugMessage>").unwrap().1;
    let (shares, price) = deal.split_once('<').unwrap().0.split_once(" at ").unwrap();
    let cost = dollars(shares.parse::<u64>().unwrap() * cents_of(price).unwrap());
    assert!(log.matches(&format!(">{cost}<")).count() >= 2, "removed and returned: {log}");
    let bought = log.replace(&format!(">{shares} at {price}<"), ">2 at 2000.34<");
    bought.replace(&format!(">{cost}<"), ">4000.68<")
}

/// Logs that add up, and of which each says something else than `log`.
fn forged(log: &str) -> Vec<(&'static str, String)> {
    let deposit =
        |funds| [element(log, "userCommand", funds), element(log, "accountTransaction", funds)].concat();
    let (nine, own) = (deposit(">9.00<"), deposit(">70.00<"));
    assert!(log.contains(&nine) && log.contains(&own), "{log}");
    vec![
        ("an ADD changed in both elements", log.replace(">9.00<", ">900.00<")),
        ("a deposit forged", log.replacen(&nine, &[&nine[..], &renumbered(&nine)].concat(), 1)),
        ("a deposit dropped", log.replacen(&nine, "", 1)),
        ("a deposit moved to another user", log.replace(&own, &renumbered(&own).replace(">al<", ">jo<"))),
        ("a cheaper buy", with_cheaper_buy(log)),
        ("a log cut and closed again", format!("{}{LOG_END}", &log[..log.find(&nine).unwrap()])),
        ("an empty log", format!("{LOG_BEGIN}{LOG_END}")),
        ("a user's name", log.replace(">al<", ">ed<")),
        ("a moment", log.replacen("<timestamp>1", "<timestamp>0", 1)),
    ]
}

#[test]
fn forged_log_adds_up_and_has_another_head() {
    let dir = tempfile::tempdir().unwrap();
    let (file, head) = some_day(dir.path());
    let verified = |file: &Path, head| run(&Args { head, ..Args::of(file) });
    verified(&file, Some(head)).unwrap();
    for (what, text) in forged(&std::fs::read_to_string(&file).unwrap()) {
        let changed = dir.path().join("changed");
        std::fs::write(&changed, text).unwrap();
        verified(&changed, None).unwrap_or_else(|fault| panic!("{what} adds up: {fault}"));
        let refused = verified(&changed, Some(head)).expect_err(what).to_string();
        assert!(refused.contains("the file was changed, or is another log"), "{what}: {refused}");
    }
}

#[test]
fn elements_behind_a_known_head_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (file, head) = some_day(dir.path());
    let text = std::fs::read_to_string(&file).unwrap();
    let more = renumbered(element(&text, "userCommand", ">9.00<")).replace("ADD", "DISPLAY_SUMMARY");
    std::fs::write(&file, text.replace(LOG_END, &[&more, LOG_END].concat())).unwrap();
    let refused = run(&Args { head: Some(head), ..Args::of(&file) }).unwrap_err().to_string();
    assert!(refused.ends_with("elements have this head: 1 behind them are not proven"), "{refused}");
}

#[test]
fn json_names_the_log_and_the_head_of_the_latest() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{LOG_BEGIN}{LOG_END}")).unwrap();
    let log = replay(file.path()).unwrap();
    let json = |proof| serde_json::to_value(Verified::of(&log, &proof)).unwrap();
    let head = |digest, time_ms| LogHead { user: UserName::new("jo"), digest, elements: 0, time_ms };
    let latest = LogDigest([7; 32]);
    let by_sites = json(Proof::Sites(head(log.chain.head(), 5), Some(head(latest, 9))));
    assert_eq!(by_sites["proof"], "sites");
    assert_eq!(by_sites["log_user"], "jo");
    assert_eq!(by_sites["written_ms"], 5);
    assert_eq!(by_sites["latest_head"], to_hex(&latest.0));
    for key in ["log_user", "written_ms", "latest_head"] {
        assert!(json(Proof::Head)[key].is_null(), "{key}");
    }
}

#[test]
fn sites_keep_the_head_of_each_log_that_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let site = OwnSite::open(dir.path(), Promise::Os, None).unwrap();
    let mut client = Client::new(9, 0, vec![site.address()]);
    let mut add = |line: &[u8], number| {
        let WorkloadLine { command, fault, .. } = WorkloadLine::parse(line).unwrap();
        let asked = Asked::Command { command, fault };
        let request = BrokerRequest { number: number_in_session(1, number), ..unnumbered(asked) };
        client.execute(&request.to_bytes(), PATIENCE).unwrap();
    };
    let mut name = dump::unused_name();
    let mut write = |user: Option<&str>, file: &str| {
        let (path, user) = (dir.path().join(file), user.and_then(UserName::new));
        dump::write(vec![site.address().into()], name, user, &path, |_| ()).unwrap();
        name.sequence += 1;
        path
    };
    let proven = |file: &Path| {
        let log = replay(file).unwrap();
        log.proven_by(&mut Client::new(READER, 0, vec![site.address()])).map(|proof| proof.verdict())
    };
    let empty = write(None, "empty");
    add(b"[1] ADD,jo,8000.00", 1);
    add(b"[1] ADD,al,70.00", 1);
    let (all, own) = (write(None, "all"), write(Some("jo"), "own"));
    let of = |file: &Path, words: &str| {
        let verdict = proven(file).unwrap();
        assert!(verdict.contains(words), "{verdict}");
        verdict
    };
    assert!(!of(&all, "the log of everything, 4 elements").contains("a later one"));
    of(&own, "the log of jo, 2 elements");
    of(&empty, "the log of everything, 0 elements");
    of(&empty, "a later one is the log of everything, 4 elements");
    let again = write(None, "again");
    for file in [&all, &again] {
        assert!(!of(file, "the log of everything, 4 elements").contains("a later one"), "they are the same");
    }
    let text = std::fs::read_to_string(&all).unwrap();
    std::fs::write(&all, text.replace("8000.00", "9000.00")).unwrap();
    let refused = proven(&all).unwrap_err().to_string();
    assert!(refused.contains("no log with its head"), "{refused}");
}
