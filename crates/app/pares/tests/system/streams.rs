//! A member's stream: all that it was told, under the same numbers on every gateway, whatever dies.

use std::collections::BTreeMap;

use pares_client::{Client, Options, Update};
use pares_types::{MemberId, Reason, ShardId, Side, Status};

use crate::common::exchange::{Exchange, gateway, small};
use crate::common::{PATIENCE, eventually, limit, load, record};

/// A member's stream, by shard and number.
type Told = BTreeMap<(ShardId, u64), Update>;

/// The shard and number of an update, if it is of the stream.
fn place(update: &Update) -> Option<(ShardId, u64)> {
    let place = match update {
        Update::Answer(answer) => (answer.shard, answer.number),
        Update::Trade(trade) => (trade.shard, trade.number),
        Update::Cancelled(cancelled) => (cancelled.shard, cancelled.number),
        Update::News(news) => (news.shard, news.number),
        Update::Busted(bust) => (bust.shard, bust.number),
        _ => return None,
    };
    (place.1 > 0).then_some(place)
}

/// Takes in what comes until `count` shards are live: each number follows the one before.
fn read_until_live(client: &mut Client, told: &mut Told, count: usize) {
    let mut live = 0;
    while live < count {
        client.flush().unwrap();
        assert!(client.wait(PATIENCE).unwrap(), "{live} of {count} shards are live");
        let take = |update| match update {
            Update::Resumed { shard, next } => {
                live += 1;
                assert_eq!(next_of(told, shard), next, "shard {shard}");
            }
            update => take_in(told, update),
        };
        client.poll(take).unwrap();
    }
}

/// The number that the member lacks of a shard.
fn next_of(told: &Told, shard: ShardId) -> u64 {
    told.range((shard, 0)..=(shard, u64::MAX)).next_back().map_or(1, |((_, number), _)| number + 1)
}

fn take_in(told: &mut Told, update: Update) {
    if let Some((shard, number)) = place(&update) {
        assert_eq!(next_of(told, shard), number, "shard {shard}: {update:?}");
        told.insert((shard, number), update);
    }
}

/// The member's stream as a gateway tells it to a new session.
fn stream(exchange: &Exchange, gateway: u16, member: u32) -> Told {
    let mut client = exchange.client(gateway, member);
    client.resume(None, 1).unwrap();
    let mut told = Told::new();
    read_until_live(&mut client, &mut told, exchange.config().shards().unwrap().len());
    told
}

#[test]
fn every_gateway_tells_the_same_numbers_after_restarts_too() {
    const MEMBERS: u32 = 4;
    let mut exchange = Exchange::start(&small(2));
    let mut traders = load::traders(&exchange, MEMBERS);
    load::trade(&mut exchange, &mut traders, 2_000);
    load::finish(&mut exchange, &mut traders);
    let records = record::agreed(&mut exchange);
    let all = |exchange: &Exchange| -> Vec<Told> {
        let of = |member| [0, 1].map(|gateway| stream(exchange, gateway, member));
        (1..=MEMBERS)
            .map(of)
            .map(|[one, other]| {
                assert_eq!(one, other);
                one
            })
            .collect()
    };
    let before = all(&exchange);
    let answers = before.iter().flat_map(Told::values).filter(|update| matches!(update, Update::Answer(_)));
    let asked = records
        .values()
        .flatten()
        .filter(|one| one.request.member.0 > 0 && one.outcome.reason != Reason::DuplicateRequest);
    assert_eq!(answers.count(), asked.count(), "every answer has a number");
    let trades: usize = traders.iter().map(|trader| trader.trades.len()).sum();
    let told = before.iter().flat_map(Told::values).filter(|update| matches!(update, Update::Trade(_)));
    assert!(trades > 100 && told.count() >= trades);
    exchange.kill(gateway(0));
    eventually("the gateway is dead", || !exchange.supervisor().tick().is_empty());
    exchange.wait_until_up();
    assert!(all(&exchange) == before, "after a gateway's death");
    exchange.stop();
    exchange.start_again();
    assert!(all(&exchange) == before, "after a start of everything");
}

#[test]
fn returning_member_gets_missed_then_live_without_gap() {
    let mut exchange = Exchange::start(&small(2));
    let (mut seller, mut buyer) = (exchange.client(0, 7), exchange.client(0, 8));
    for name in 1..=300 {
        let answer = seller.submit_and_wait(&limit(name, 1, Side::Sell, 2, 1_000_000)).unwrap();
        assert_eq!((answer.status, answer.number), (Status::Resting, name));
    }
    drop(seller);
    let mut away = None;
    let mut told = (1..=300).map(|number| ((ShardId(0), number), Update::Pong { token: 0 })).collect();
    // What happens while it is told what it missed comes behind that.
    for name in 1..=600 {
        if name == 300 {
            let options = Options { resumes: true, ..Options::default() };
            let connected = Client::connect_with(exchange.addresses()[1], MemberId(7), options).unwrap();
            let client = away.insert(connected);
            client.resume(Some(ShardId(0)), 301).unwrap();
            client.flush().unwrap();
        }
        buyer.submit_and_wait(&limit(name, 1, Side::Buy, 1, 1_000_000)).unwrap();
    }
    let mut away = away.unwrap();
    read_until_live(&mut away, &mut told, 1);
    while next_of(&told, ShardId(0)) < 901 {
        assert!(away.wait(PATIENCE).unwrap());
        away.poll(|update| take_in(&mut told, update)).unwrap();
    }
    record::agreed(&mut exchange);
}

#[test]
fn a_shard_that_is_not_there_and_a_number_that_is_not_used_yet() {
    let exchange = Exchange::start(&small(1));
    let mut client = exchange.client(0, 7);
    client.resume(Some(ShardId(9)), 1).unwrap();
    client.resume(Some(ShardId(0)), 3).unwrap();
    client.flush().unwrap();
    let mut told = Vec::new();
    for name in 1..=3 {
        client.send(&limit(name, 1, Side::Sell, 1, 1_000_000)).unwrap();
    }
    while told.len() < 3 {
        client.flush().unwrap();
        assert!(client.wait(PATIENCE).unwrap(), "{told:?}");
        client.poll(|update| told.push(update)).unwrap();
    }
    assert!(matches!(told[0], Update::NotResumed { shard: ShardId(9), .. }), "{told:?}");
    let live = told.iter().position(|update| matches!(update, Update::Resumed { next: 3.., .. }));
    let third = told.iter().position(|update| place(update) == Some((ShardId(0), 3)));
    assert!(live.is_some() && third.is_some(), "{told:?}");
    assert_eq!(
        told.iter().filter_map(place).collect::<Vec<_>>(),
        [(ShardId(0), 3)],
        "what it has is not told"
    );
}
