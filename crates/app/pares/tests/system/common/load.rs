//! Traders who trade while harm is done.

use std::time::{Duration, Instant};

use pares_node::SystemConfig;
use pares_types::Reason;

use super::exchange::Exchange;
use super::record;
use super::trader::Trader;
use super::{PATIENCE, record::Records};

/// Requests each trader keeps open.
const IN_FLIGHT: usize = 20;

/// `count` traders, spread over the gateways.
pub(crate) fn traders(exchange: &Exchange, count: u32) -> Vec<Trader> {
    let addresses = exchange.addresses();
    let instruments = u32::try_from(exchange.config().instruments.len()).unwrap();
    (1..=count).map(|member| Trader::new(member, &addresses, member as usize, instruments)).collect()
}

/// A new system, and four traders who have traded that much.
pub(crate) fn busy(config: &SystemConfig, requests: u64) -> (Exchange, Vec<Trader>) {
    let mut exchange = Exchange::start(config);
    let mut traders = traders(&exchange, 4);
    trade(&mut exchange, &mut traders, requests);
    (exchange, traders)
}

/// Requests answered so far, of all traders.
pub(crate) fn answered(traders: &[Trader]) -> u64 {
    traders.iter().map(|trader| trader.answers.len() as u64).sum()
}

/// Lets the traders trade until `more` more requests are answered.
pub(crate) fn trade(exchange: &mut Exchange, traders: &mut [Trader], more: u64) {
    let until = answered(traders) + more;
    work(exchange, traders, IN_FLIGHT, |traders| answered(traders) >= until);
}

/// Lets the traders trade for that long, answered or not.
pub(crate) fn trade_for(exchange: &mut Exchange, traders: &mut [Trader], time: Duration) {
    let begun = Instant::now();
    work(exchange, traders, IN_FLIGHT, |_| begun.elapsed() >= time);
}

/// Lets the traders trade and checks that nothing is answered any more. What was answered before may still be on its way.
pub(crate) fn nothing_is_answered(exchange: &mut Exchange, traders: &mut [Trader], why: &str) {
    let began = answered(traders);
    let mut quiet = |traders: &mut [Trader], time| {
        let before = answered(traders);
        trade_for(exchange, traders, time);
        answered(traders) == before
    };
    // One window may be one in which the machine stood still.
    let mut in_a_row = 0;
    let is_quiet = (0..40).any(|_| {
        in_a_row = if quiet(traders, Duration::from_millis(500)) { in_a_row + 1 } else { 0 };
        in_a_row == 3
    });
    assert!(is_quiet, "{why}");
    assert!(quiet(traders, Duration::from_secs(1)), "{why}");
    assert!(answered(traders) - began <= (traders.len() * IN_FLIGHT) as u64, "{why}");
}

/// Submits nothing more and waits until everything is answered.
pub(crate) fn finish(exchange: &mut Exchange, traders: &mut [Trader]) {
    work(exchange, traders, 0, |traders| traders.iter().all(|trader| trader.open().is_empty()));
}

fn work(exchange: &mut Exchange, traders: &mut [Trader], in_flight: usize, done: impl Fn(&[Trader]) -> bool) {
    let begun = Instant::now();
    while !done(traders) {
        let updates: usize = traders.iter_mut().map(|trader| trader.pump(in_flight)).sum();
        exchange.tick();
        if updates == 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
        assert!(begun.elapsed() < PATIENCE, "stuck: {}", describe(exchange, traders));
    }
}

fn describe(exchange: &Exchange, traders: &[Trader]) -> String {
    let trader = |trader: &Trader| {
        let (member, answers, open) = (trader.member, trader.answers.len(), trader.open());
        format!("member {member}: {answers} answers, {} open, first {:?}\n", open.len(), open.iter().next())
    };
    traders.iter().map(trader).collect::<String>() + &exchange.complaints()
}

/// Finishes and checks that everything was answered exactly once: the promise.
pub(crate) fn finish_and_check(exchange: &mut Exchange, traders: &mut [Trader]) -> Records {
    finish(exchange, traders);
    exchange.wait_until_up();
    let records = record::agreed(exchange);
    record::check_matching(exchange.config(), &records);
    for trader in traders.iter() {
        record::check_trader(&records, trader);
        // A name of the last few may be a cancel's, or an order's that was itself rejected; or the order had ended before the
        // checkpoints from which its gateway started. Only a test that has a patience configured sees it end.
        let expected = [Reason::UnknownClientOrderId, Reason::UnknownOrder, Reason::NotRecorded];
        let unexpected = trader.rejected.iter().find(|(_, why)| !expected.contains(why));
        assert_eq!(unexpected, None, "member {}", trader.member);
    }
    records
}
