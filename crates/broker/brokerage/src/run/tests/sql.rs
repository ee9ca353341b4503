//! What SQL sees of a database that a run has left, and what the run's log says: the same, to the cent.

use std::collections::BTreeMap;

use pares_broker::{AuditReport, ReplayedAccount, UserName};
use postgres::{Client, NoTls};

use crate::dump;
use crate::run::Running;

/// Whether sums, shares, pending orders and elements are those of the log.
pub(super) fn is_as_the_log_says(url: &str, running: &mut Running, report: &AuditReport) {
    let site = running.floor.address().unwrap().into();
    let users: Vec<UserName> = running.floor.users.iter().cloned().collect();
    let summaries = std::thread::spawn(move || dump::summaries(vec![site], users));
    let summaries = running.wait_for(summaries).unwrap().unwrap();
    let client = &mut Client::connect(url, NoTls).unwrap();
    let sum = |of: &dyn Fn(&ReplayedAccount) -> i128| report.accounts.values().map(of).sum::<i128>();
    let (cash, held) = (sum(&|account| account.cash_cents), sum(&ReplayedAccount::held_cents));
    let shares = sum(&|account| account.shares.values().map(|shares| i128::from(*shares)).sum());
    let buys: usize = summaries.values().map(|summary| summary.buys.len()).sum();
    let sells: usize = summaries.values().map(|summary| summary.sells.len()).sum();
    let is_armed = |armed: Option<_>| usize::from(armed.is_some());
    let armed = summaries.values().map(|summary| {
        let buys = summary.buy_triggers.iter().map(|(_, trigger)| is_armed(trigger.armed));
        buys.chain(summary.sell_triggers.iter().map(|(_, trigger)| is_armed(trigger.armed))).sum::<usize>()
    });
    let count = |kind: &str| i128::from(report.count(kind));
    for (what, expected) in [("sum(cash) FROM broker_accounts", cash), ("sum(amount) FROM held", held)] {
        assert_eq!(number(client, what, 100), expected, "{what}");
    }
    for (what, expected) in [
        ("count(*) FROM broker_accounts", summaries.len() as i128),
        ("sum(shares) FROM broker_holdings", shares),
        ("count(*) FROM broker_pending WHERE way = 'buy'", buys as i128),
        ("sum(pending_buys) FROM broker_accounts", buys as i128),
        ("count(*) FROM broker_pending WHERE way = 'sell'", sells as i128),
        ("count(price) FROM broker_triggers", armed.sum::<usize>() as i128),
        ("count(command) FROM broker_log", count("userCommand")),
        ("count(refusal) FROM broker_log WHERE command IS NOT NULL", count("errorEvent")),
    ] {
        assert_eq!(number(client, what, 1), expected, "{what}");
    }
    notes_are_those_of_the_log(client, report, cash);
    keys_are_those_of_the_log(client, report);
    nothing_is_written(client);
}

/// The one number that a query gives, times `scale`.
fn number(client: &mut Client, what: &str, scale: i128) -> i128 {
    let held = "SELECT amount FROM broker_pending WHERE way = 'buy' UNION ALL SELECT amount FROM broker_triggers WHERE way = 'buy'";
    let text = format!(
        "WITH held AS ({held}) SELECT coalesce(({scale} * found)::int8, 0) FROM (SELECT {what}) all_of(found)"
    );
    client.query_one(&text, &[]).unwrap_or_else(|error| panic!("{what}: {error:?}")).get::<_, i64>(0).into()
}

/// Notes of each kind are as many as there are elements; and all cash is what came, less what went.
fn notes_are_those_of_the_log(client: &mut Client, report: &AuditReport, cash: i128) {
    let notes = "SELECT note, count(*), (100 * sum(amount))::int8 FROM broker_log_notes GROUP BY note";
    let found: BTreeMap<String, (i64, i64)> =
        client.query(notes, &[]).unwrap().iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect();
    let kinds = [
        ("hit", "quoteServer"),
        ("moved", "accountTransaction"),
        ("done", "systemEvent"),
        ("deal", "debugEvent"),
    ];
    for (note, element) in kinds {
        let counted = found.get(note).map_or(0, |(count, _)| *count);
        assert_eq!(counted as u64, report.count(element), "{note}");
    }
    assert_eq!(found.get("moved").map_or(0, |(_, cents)| i128::from(*cents)), cash);
}

/// Quotes letter by letter: who made a key can check it from SQL too.
fn keys_are_those_of_the_log(client: &mut Client, report: &AuditReport) {
    let hits = "SELECT symbol, (amount * 100)::int8, quoted_for, key FROM broker_log_notes WHERE note = 'hit' ORDER BY key COLLATE \"C\"";
    let rows = client.query(hits, &[]).unwrap();
    let found: Vec<(String, i64, String, String)> =
        rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect();
    let quotes = report.quotes.iter().map(|quote| {
        let cents = i64::try_from(quote.price_cents).unwrap();
        (quote.symbol.to_string(), cents, quote.user.clone(), quote.key.clone())
    });
    let mut expected: Vec<_> = quotes.collect();
    expected.sort_by(|one, other| one.3.cmp(&other.3));
    assert_eq!(found, expected);
}

fn nothing_is_written(client: &mut Client) {
    for view in ["accounts", "holdings", "pending", "triggers", "log", "log_notes"] {
        let refused = client.batch_execute(&format!("DELETE FROM broker_{view}"));
        assert!(refused.is_err(), "broker_{view} can be written");
    }
}
