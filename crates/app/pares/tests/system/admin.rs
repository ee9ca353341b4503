//! The exchange runs its market by `pares admin`.

use pares_client::{Client, Role, Update};
use pares_types::{CancelCause, InstrumentId, Quantity, Reason, Side, Status};
use serde_json::Value;

use crate::common::exchange::{Exchange, small};
use crate::common::{PATIENCE, limit, record};

/// Runs `pares admin`. Whether it succeeded, and its JSON.
fn admin(exchange: &Exchange, arguments: &str) -> (bool, Value) {
    let ran = exchange.pares(&format!("admin {arguments} --json"));
    (ran.is_ok(), ran.json())
}

/// The next update that `wanted` takes.
fn told<T>(client: &mut Client, mut wanted: impl FnMut(Update) -> Option<T>) -> T {
    let mut found = None;
    while found.is_none() {
        assert!(client.wait(PATIENCE).unwrap(), "an update comes");
        client.poll(|update| found = found.take().or_else(|| wanted(update))).unwrap();
    }
    found.unwrap()
}

#[test]
fn an_auction_by_hand_and_a_trade_declared_void() {
    let mut exchange = Exchange::start(&small(1));
    let (mut seller, mut buyer) = (exchange.client(0, 7), exchange.client(0, 8));
    assert!(admin(&exchange, "phase ALFA opening-call").0);
    seller.submit_and_wait(&limit(1, 1, Side::Sell, 5, 2_238_200)).unwrap();
    let rests = buyer.submit_and_wait(&limit(1, 1, Side::Buy, 5, 2_239_000)).unwrap();
    assert_eq!(rests.status, Status::Resting, "nothing matches in a call");

    let (ok, answer) = admin(&exchange, "phase ALFA continuous");
    assert_eq!((ok, &answer["status"]), (true, &"accepted".into()));
    let trade = |update| if let Update::Trade(trade) = update { Some(trade) } else { None };
    let (sold, bought) = (told(&mut seller, trade), told(&mut buyer, trade));
    assert_eq!((sold.role, bought.role, sold.price), (Role::Resting, Role::Incoming, bought.price));

    let history = exchange.pares("history trades --json").json();
    let row = &history["trades"][0];
    assert_eq!((&row["aggressor"], &row["position"]), (&"none".into(), &answer["position"]));
    let bust = format!("bust ALFA {}.{}", row["position"], row["number"]);
    assert_eq!(admin(&exchange, &bust).1["status"], "accepted");
    for client in [&mut seller, &mut buyer] {
        let bust = told(client, |update| if let Update::Busted(bust) = update { Some(bust) } else { None });
        assert_eq!((bust.traded_at, bust.index), (sold.position, sold.index), "the trade it was told of");
        assert_eq!((u64::from(bust.index), bust.quantity), (row["number"].as_u64().unwrap(), Quantity(5)));
    }
    let (ok, answer) = admin(&exchange, &bust);
    assert_eq!((ok, &answer["reason"]), (false, &"already_busted".into()));
    let records = record::agreed(&mut exchange);
    assert_eq!(records.values().map(Vec::len).sum::<usize>(), 6 + times(&records));
}

/// Records in which a gateway told the time.
fn times(records: &record::Records) -> usize {
    let all = records.values().flatten();
    all.filter(|recorded| matches!(recorded.request.command, pares_types::Command::Time { .. })).count()
}

#[test]
fn a_member_is_blocked_in_an_instrument_that_was_added() {
    let exchange = Exchange::start(&small(2));
    assert!(admin(&exchange, "add 99 ZULU").0);
    assert!(admin(&exchange, "rule 99 price-range 1 500").0);
    assert!(admin(&exchange, "phase 99 continuous").0);
    let mut member = exchange.client(1, 7);
    let rests = member.submit_and_wait(&limit(1, 99, Side::Buy, 5, 20_000)).unwrap();
    assert_eq!((rests.status, rests.reason), (Status::Resting, Reason::None));
    let refused = member.submit_and_wait(&limit(2, 99, Side::Buy, 5, 5_010_000)).unwrap();
    assert_eq!(refused.reason, Reason::PriceOutOfRange);

    let (ok, answer) = admin(&exchange, "block 7");
    assert_eq!((ok, &answer["executed"]), (true, &1.into()));
    let cancelled = |update| if let Update::Cancelled(one) = update { Some(one) } else { None };
    let cancelled = told(&mut member, cancelled);
    assert_eq!((cancelled.cause, cancelled.instrument), (CancelCause::Blocked, InstrumentId(99)));
    let refused = member.submit_and_wait(&limit(3, 99, Side::Buy, 5, 20_000)).unwrap();
    assert_eq!(refused.reason, Reason::Blocked);
    assert!(admin(&exchange, "unblock 7").0);
    let rests = member.submit_and_wait(&limit(4, 99, Side::Buy, 5, 20_000)).unwrap();
    assert_eq!(rests.status, Status::Resting);
    let (ok, answer) = admin(&exchange, "remove 99");
    assert_eq!((ok, &answer["reason"]), (false, &"not_closeable".into()));
}
