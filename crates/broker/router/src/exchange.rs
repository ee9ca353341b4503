//! The exchange's side: names, requests, and what its messages mean to an order.

use pares_broker::{OrderEvent, OrderLife, OrderTerms, TradeWay};
use pares_types::{
    Answer, ClientOrderId, ClientRequest, InstrumentId, NewOrder, Price, Quantity, Reason, Reply, Side,
    Status, TimeInForce,
};

/// The series of orders' names; they are counted by the transactions that give them.
const ORDER_SERIES: u64 = 1;
/// The series of cancels' names.
const CANCEL_SERIES: u64 = 2;
const SERIES_BIT: u32 = 48;
/// A term has so many names of cancels, two to the power of this.
const CANCELS_OF_TERM: u32 = 28;

/// A stock as the exchange lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedStock {
    /// Its number there.
    pub instrument: InstrumentId,
    /// Its shard.
    pub shard: u32,
}

pub(crate) fn is_order(name: u64) -> bool {
    name >> SERIES_BIT == ORDER_SERIES
}

/// The name of a router's cancel: rising with terms, and in each with the count.
pub(crate) fn cancel_name(term: u64, count: u64) -> ClientOrderId {
    let number = ((term << CANCELS_OF_TERM) + count) & ((1 << SERIES_BIT) - 1);
    ClientOrderId(CANCEL_SERIES << SERIES_BIT | number)
}

/// The order as the exchange is asked for it: the same whenever it is repeated.
pub(crate) fn enter(name: u64, terms: &OrderTerms, instrument: InstrumentId) -> ClientRequest {
    let side = if terms.way == TradeWay::Buy { Side::Buy } else { Side::Sell };
    let price = Price(i64::try_from(terms.limit_cents * 100).unwrap_or(i64::MAX));
    let life = if terms.life == OrderLife::Day { TimeInForce::Day } else { TimeInForce::Ioc };
    let order = NewOrder { time_in_force: life, ..NewOrder::limit(side, price, Quantity(terms.shares)) };
    ClientRequest::Enter { client_order_id: ClientOrderId(name), instrument, order }
}

/// An order of no shares under the same name: which of the two the shard meets first decides whether the order ever was.
pub(crate) fn plug(name: u64, terms: &OrderTerms, instrument: InstrumentId) -> ClientRequest {
    enter(name, &OrderTerms { shares: 0, ..*terms }, instrument)
}

/// Whether a gateway that gives this reason takes the same request later.
pub(crate) fn is_for_now(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Overloaded
            | Reason::StorageUnavailable
            | Reason::NotRecorded
            | Reason::Throttled
            | Reason::NotSignedOn
            | Reason::OrdersLimit
    )
}

/// A message of the member's stream of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) shard: u32,
    pub(crate) number: u64,
    pub(crate) name: u64,
    /// None: it has no effect on an order.
    pub(crate) event: Option<OrderEvent>,
}

/// What a message is to the stream; none if it has no number.
pub(crate) fn told(reply: &Reply) -> Option<Told> {
    let (shard, number, name, event) = match reply {
        Reply::Answer(answer) => (answer.shard, answer.number, answer.client_order_id, answered(answer)),
        Reply::Trade(trade) => {
            let event = OrderEvent::Traded { price: units(trade.price), shares: trade.quantity.0 };
            (trade.shard, trade.number, trade.client_order_id, Some(event))
        }
        Reply::Cancelled(cancelled) => {
            let event = OrderEvent::Cancelled { cause: cancelled.cause as u8, shares: cancelled.quantity.0 };
            (cancelled.shard, cancelled.number, cancelled.client_order_id, Some(event))
        }
        Reply::Busted(bust) => {
            let event = OrderEvent::Void { price: units(bust.price), shares: bust.quantity.0 };
            (bust.shard, bust.number, bust.client_order_id, Some(event))
        }
        Reply::News(news) => (news.shard, news.number, news.client_order_id, None),
        Reply::Journalled { .. } | Reply::Rejected { .. } => return None,
    };
    let event = event.filter(|_| is_order(name.0));
    (number > 0).then_some(Told { shard: shard.0.into(), number, name: name.0, event })
}

fn answered(answer: &Answer) -> Option<OrderEvent> {
    match answer.status {
        Status::Refused => Some(OrderEvent::Refused { reason: answer.reason as u8 }),
        _ => Some(OrderEvent::Accepted),
    }
}

/// Prices of stocks are not below zero; one that is means nothing to the accounts, who refuse it.
fn units(price: Price) -> u64 {
    u64::try_from(price.0).unwrap_or(u64::MAX)
}
