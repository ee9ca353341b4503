//! A member's stream: all that it received, under the same numbers on every gateway, whatever dies.

use std::collections::BTreeMap;

use pares_client::{Client, Update};
use pares_types::{Reason, ShardId};

use crate::common::exchange::{Exchange, gateway, small};
use crate::common::{PATIENCE, eventually, load, record};

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
