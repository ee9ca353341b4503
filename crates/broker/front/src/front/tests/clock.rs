//! A front whose clock is off, as the quote server's stamps say: what it still takes, and how it goes on.

use pares_broker::{CustomerLimits, CustomerOrderId, OrderAsked};

use super::*;

const HOUR_MS: u64 = 3_600_000;

/// After three stamps that are an hour old, or an hour ahead.
fn off(server_ms: impl Fn(u64) -> u64) -> At {
    let mut at = At::new();
    for hit in 1..=3 {
        at.tick(70_000);
        at.looks.clear();
        at.line("QUOTE,al,S");
        at.quote_of(hit, "S", 100, server_ms(at.now_ms));
    }
    assert!(at.front.clock_ahead_ms().unsigned_abs() > HOUR_MS - 10_000, "{}", at.front.clock_ahead_ms());
    at.submitted.clear();
    at
}

/// What goes on: a cancel, limits, the kill switch, of this customer.
fn urgent(user: &UserName) -> [OrderAsked; 3] {
    let (user, by) = (user.clone(), UserName::new("boss").unwrap());
    let of = CustomerOrderId { user: user.clone(), number: 7 };
    let limits = CustomerLimits::default();
    [
        OrderAsked::Cancel { of },
        OrderAsked::Limit { user: user.clone(), limits, by: by.clone() },
        OrderAsked::Block { user, is_blocked: true, by },
    ]
}

const ARRIVAL: CommandOrder = CommandOrder::Arrival { name: None };

#[test]
fn a_cancel_limits_and_the_kill_switch_are_taken_with_the_earlier_clock_though_the_clock_is_off() {
    let ahead = |now_ms| now_ms - HOUR_MS;
    let behind = |now_ms| now_ms + HOUR_MS;
    for (mut at, back_ms) in [(off(ahead), HOUR_MS - 6_000), (off(behind), 0)] {
        let user = UserName::new("jo").unwrap();
        assert_eq!(at.arrives("ADD,jo,1.00", ARRIVAL), Err(NotTaken::Clock));
        for asked in urgent(&user) {
            let asked = Asked::Order { asked };
            at.asks(Some(user.clone()), ARRIVAL, asked.clone()).unwrap();
            let request = at.answer(BrokerReply::Done);
            assert_eq!((request.asked, request.time_ms), (asked, at.now_ms - back_ms));
        }
        assert_eq!(at.told.len(), 3);
    }
}

#[test]
fn a_cancel_that_waits_behind_a_quote_is_handed_on_when_the_clock_turns_out_to_be_off() {
    let mut at = At::new();
    let user = UserName::new("jo").unwrap();
    for (hit, symbol) in [(1, "S"), (2, "T")] {
        at.line(&format!("QUOTE,al,{symbol}"));
        at.quote_of(hit, symbol, 100, at.now_ms - HOUR_MS);
    }
    at.line("BUY,jo,U,5.00");
    at.line("BUY,jo,V,5.00");
    let [cancel, ..] = urgent(&user).map(|asked| Asked::Order { asked });
    at.asks(Some(user), ARRIVAL, cancel.clone()).unwrap();
    at.submitted.clear();
    at.quote_of(3, "U", 100, at.now_ms - HOUR_MS);
    assert_eq!(at.clock_off, [3, 2], "the buys");
    let handed_on: Vec<_> = at.submitted.iter().map(|(_, request)| &request.asked).collect();
    assert!(handed_on.contains(&&cancel), "{handed_on:?}");
}
