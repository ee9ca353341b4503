//! What an entry of the log has to tell its user: what happened without his asking, or what he wants to see in his other windows too.

use pares_broker::{
    AuditEntry, AuditNote, AuditRecord, BrokerReply, Order, OrderHappened, OrderNote, OrderReply, OrderStage,
    StockSymbol, Verb, dollars,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::history::{done, order_of};
use crate::notices::Notice;
use crate::orders::{Side, state, why};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Happened {
    /// `buy` or `sell`.
    way: &'static str,
    symbol: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    shares: Option<u64>,
    /// Dollars.
    amount: String,
    time_ms: u64,
    /// Where in the history.
    place: u64,
}

/// What happened to an order on the exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct OrderNews {
    /// `placed`, `accepted`, `traded` in part, `filled`; `cancelled`, `expired`, `refused`: with what was left; `reduced`, `void`, `repaid`.
    what: &'static str,
    /// The order's number, as text; not of `repaid`, which is about none.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<String>,
    side: Side,
    symbol: String,
    /// How many shares are concerned; of cash that is `repaid` 0.
    shares: u64,
    /// Dollars: what they came to, or what was repaid, of `traded`, `filled`, `void` and `repaid`; else the limit of a share.
    amount: String,
    /// The exchange's word for why, if it gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    time_ms: u64,
    /// Where in the history.
    place: u64,
}

/// What an entry says that its user receives.
pub(crate) fn of(entry: &AuditEntry) -> Vec<Notice> {
    let record = &entry.record;
    let told = record.notes.iter().filter_map(|note| match note {
        AuditNote::Done { verb, symbol, cents, .. } => Some(unasked(entry, *verb, *symbol, *cents)),
        AuditNote::Order { note } => Some(Notice::Order(order_news(entry, note))),
        _ => None,
    });
    let mut notices: Vec<Notice> = told.collect();
    let verb = record.command.as_ref().map(|command| command.verb);
    if let (Some(Verb::CommitBuy | Verb::CommitSell), BrokerReply::Settled { symbol, shares, cents }) =
        (verb, &record.reply)
    {
        let is_buy = verb == Some(Verb::CommitBuy);
        notices.push(Notice::Settled(happened(entry, is_buy, *symbol, Some(*shares), *cents)));
    }
    notices
}

/// A trigger that fired, or something that lapsed.
fn unasked(entry: &AuditEntry, verb: Verb, symbol: StockSymbol, cents: u64) -> Notice {
    let is_buy = matches!(verb, Verb::SetBuyTrigger | Verb::Buy);
    match done(verb).0 {
        "fired" => Notice::Fired(happened(entry, is_buy, symbol, dealt(&entry.record), cents)),
        _ => Notice::Lapsed(happened(entry, is_buy, symbol, None, cents)),
    }
}

fn happened(
    entry: &AuditEntry,
    is_buy: bool,
    symbol: StockSymbol,
    shares: Option<u64>,
    cents: u64,
) -> Happened {
    Happened {
        way: if is_buy { "buy" } else { "sell" },
        symbol: symbol.to_string(),
        shares,
        amount: dollars(cents),
        time_ms: entry.record.time_ms,
        place: entry.place,
    }
}

/// How many shares changed hands.
fn dealt(record: &AuditRecord) -> Option<u64> {
    record.notes.iter().find_map(|note| match note {
        AuditNote::Deal { shares, .. } => Some(*shares),
        _ => None,
    })
}

fn order_news(entry: &AuditEntry, note: &OrderNote) -> OrderNews {
    let now = match &entry.record.reply {
        BrokerReply::Order { reply: OrderReply::Now { order } } => Some(order),
        _ => None,
    };
    let what = match note.happened {
        OrderHappened::Traded if now.is_some_and(|now| now.state == OrderStage::Filled) => "filled",
        OrderHappened::Released => released(now),
        other => other.word(),
    };
    let is_ended = note.happened == OrderHappened::Released;
    OrderNews {
        what,
        number: order_of(note).map(|order| order.to_string()),
        side: Side::of(note.way),
        symbol: note.symbol.to_string(),
        shares: note.shares,
        amount: dollars(note.cents),
        reason: now.filter(|_| is_ended).and_then(why),
        time_ms: entry.record.time_ms,
        place: entry.place,
    }
}

/// As what shares were released: without an order as it is now they were cancelled by the kill switch.
fn released(now: Option<&Order>) -> &'static str {
    now.map_or("cancelled", |now| if now.has_ended() { state(now.state) } else { "reduced" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_repaid_is_of_no_order() {
        let told = |happened, shares, cents| {
            let symbol = StockSymbol::new("ABC").expect("letters");
            let note =
                OrderNote { order: 7, way: pares_broker::TradeWay::Sell, symbol, shares, cents, happened };
            let notes = vec![AuditNote::Order { note }];
            let reply = BrokerReply::Unchanged;
            let record = AuditRecord { number: 7, time_ms: 1, command: None, reply, notes };
            let entry = AuditEntry { user: "jo".to_owned(), place: 3, record };
            serde_json::to_value(of(&entry)).expect("plain fields")[0].clone()
        };
        let repaid = told(OrderHappened::Repaid, 0, 1_000);
        assert_eq!(
            (&repaid["what"], &repaid["symbol"], &repaid["amount"]),
            (&"repaid".into(), &"ABC".into(), &"10.00".into())
        );
        assert!(repaid.get("number").is_none(), "{repaid}");
        assert_eq!(told(OrderHappened::Void, 1, 1_000)["number"], "7");
    }
}
