//! What the log and the accounts say in the end.

use std::collections::{BTreeMap, BTreeSet};

use pares_broker::{
    AccountSummary, ArmedPage, Asked, AuditEntry, AuditPage, AuditReplay, AuditReport, BrokerRead, LOG_BEGIN,
    LOG_END, LapsingPage, StockSymbol, TradeWay, UserName, session_of,
};
use pares_front::CommandOrder;
use pares_wice::codec::Coded as _;

use crate::clients::Given;
use crate::world::World;

/// Checks all of it.
pub(crate) fn check(world: &mut World) -> Result<(), String> {
    if let Some(fault) = world.fault.take() {
        return Err(fault);
    }
    let log = whole_log(world);
    for client in &world.clients {
        for given in &client.given {
            is_done_once(&log, client.user.as_str(), given)?;
        }
    }
    is_in_order(&log)?;
    let report = replayed(&log)?;
    hits_are_noted_once(world, &report)?;
    is_as_told(world, &report)?;
    nothing_is_left(world)
}

fn whole_log(world: &World) -> Vec<AuditEntry> {
    let (mut log, mut from) = (Vec::new(), None);
    loop {
        let read = BrokerRead::Log { user: None, from };
        let page = AuditPage::from_bytes(&world.accounts.read(&read, 0)).unwrap();
        log.extend(page.entries);
        from = page.next;
        if from.is_none() {
            return log;
        }
    }
}

/// A command with a reply has one entry, with that reply.
fn is_done_once(log: &[AuditEntry], user: &str, given: &Given) -> Result<(), String> {
    let Some((number, reply)) = &given.told else { return Err(format!("{given:?} has no reply")) };
    let (Asked::Command { command, .. } | Asked::Settle { command, .. }) = &given.asked else {
        return Err("no command".into());
    };
    let is_it = |entry: &&AuditEntry| match given.order {
        CommandOrder::Session { .. } => entry.record.number == *number && entry.record.command.is_some(),
        CommandOrder::Arrival { .. } => {
            entry.record.command.as_ref().is_some_and(|it| it.cents == command.cents)
        }
    };
    let found: Vec<_> = log.iter().filter(|entry| entry.user == user).filter(is_it).collect();
    match found.as_slice() {
        [entry] if entry.record.reply == *reply && entry.record.command.as_ref() == Some(command) => Ok(()),
        [entry] => Err(format!("{given:?} is in the log as {entry:?}")),
        more => Err(format!("{given:?} is in the log {} times", more.len())),
    }
}

/// Each user's commands lie in the order of their session.
fn is_in_order(log: &[AuditEntry]) -> Result<(), String> {
    let mut latest: BTreeMap<(&str, u64), u64> = BTreeMap::new();
    for entry in log.iter().filter(|entry| entry.record.command.is_some()) {
        let number = entry.record.number;
        let before = latest.insert((&entry.user, session_of(number)), number);
        if before.is_some_and(|before| before >= number) {
            return Err(format!("out of order: {before:?} before {entry:?}"));
        }
    }
    Ok(())
}

fn replayed(log: &[AuditEntry]) -> Result<AuditReport, String> {
    let mut text = LOG_BEGIN.to_owned();
    log.iter().for_each(|entry| entry.xml(&mut text));
    let mut replay = AuditReplay::default();
    let wrong = |fault: pares_broker::AuditFault| format!("the log does not add up: {fault}");
    replay.text(&(text + LOG_END)).map_err(wrong)?;
    replay.finish().map_err(wrong)
}

/// Every hit of a desk that lives, and every hit that a front said to be noted, is in the log, and none twice.
fn hits_are_noted_once(world: &World, report: &AuditReport) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    if let Some(twice) = report.quotes.iter().find(|quote| !seen.insert(quote.key.as_str())) {
        return Err(format!("the hit {} is in the log twice", twice.key));
    }
    let is_there = |key: String| seen.contains(key.as_str());
    if let Some(lost) = world.noted.iter().find(|hit| !is_there(format!("{}-{}", hit.desk, hit.count))) {
        return Err(format!("the hit {lost:?} is said to be noted, and is not"));
    }
    match world.awaited() {
        0 => Ok(()),
        count => Err(format!("{count} hits are not noted")),
    }
}

fn is_as_told(world: &World, report: &AuditReport) -> Result<(), String> {
    for (user, told) in &report.accounts {
        let read = BrokerRead::Summary { user: UserName::new(user).unwrap() };
        let found = Option::<AccountSummary>::from_bytes(&world.accounts.read(&read, 0)).unwrap();
        let found = found.unwrap_or_default();
        let holds: u64 = found.buys.iter().map(|pending| pending.cents).sum();
        let reserves: u64 = found.buy_triggers.iter().map(|(_, trigger)| trigger.reserve_cents).sum();
        let shares: BTreeMap<String, u64> =
            found.shares.iter().map(|(symbol, shares)| (symbol.to_string(), *shares)).collect();
        let is_it = told.cash_cents == i128::from(found.account.cash_cents)
            && told.held_cents() == i128::from(holds + reserves)
            && told.shares == shares;
        if !is_it {
            return Err(format!("{user} has {found:?}, and by the log {told:?}"));
        }
    }
    Ok(())
}

/// What was pending has lapsed, and no trigger is armed whose price was reached by the quote that every front has.
fn nothing_is_left(world: &World) -> Result<(), String> {
    let pending = world.accounts.read(&BrokerRead::Lapsing { from: None }, 0);
    let pending = LapsingPage::from_bytes(&pending).unwrap().stacks;
    if !pending.is_empty() {
        return Err(format!("{pending:?} are left pending"));
    }
    let armed = ArmedPage::from_bytes(&world.accounts.read(&BrokerRead::Armed { from: None }, 0)).unwrap();
    for trigger in armed.triggers {
        let price = price(world, trigger.symbol);
        let is_good = match trigger.way {
            TradeWay::Buy => price.is_some_and(|price| price <= trigger.price_cents),
            TradeWay::Sell => price.is_some_and(|price| price >= trigger.price_cents),
        };
        if is_good || price.is_none() {
            return Err(format!("{trigger:?} is left armed at {price:?}"));
        }
    }
    Ok(())
}

/// The price of a stock at the fronts, if it has been there for a while.
fn price(world: &World, symbol: StockSymbol) -> Option<u64> {
    world.fronts.iter().find_map(|at| at.front.desk().price(symbol, world.now_ms))
}
