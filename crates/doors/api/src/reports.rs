//! The messages of a member's stream, as clients receive them.

use pares_resources::decimal::price_text;
use pares_resources::order_terms::{change_word, role_word, side_word};
use pares_types::{Cancelled, OrderNews, Reply, Trade, TradeBusted};
use serde::Serialize;
use utoipa::ToSchema;

use crate::forms::{OrderOf, Outcome, order_of, told_of};

told_of! {
    /// One of the member's orders traded.
    Fill(trade: &Trade) {
        #[serde(flatten)]
        of: OrderOf = order_of!(trade),
        /// The place in its total order.
        position: String = trade.position.to_string(),
        /// Which event of that place, from 0.
        index: u16 = trade.index,
        /// `buy` or `sell`.
        side: &'static str = side_word(trade.side),
        /// `resting` or `incoming`.
        role: &'static str = role_word(trade.role),
        /// The price.
        price: String = price_text(trade.price),
        /// Shares traded.
        quantity: String = trade.quantity.to_string(),
        /// Shares of the order left after it.
        remaining: String = trade.remaining.to_string(),
        /// Its place in the member's stream of the shard.
        number: String = trade.number.to_string(),
    }
}

told_of! {
    /// Shares of one of the member's orders were cancelled.
    CancelledShown(cancelled: &Cancelled) {
        #[serde(flatten)]
        of: OrderOf = order_of!(cancelled),
        position: String = cancelled.position.to_string(),
        side: &'static str = side_word(cancelled.side),
        price: String = price_text(cancelled.price),
        quantity: String = cancelled.quantity.to_string(),
        cause: &'static str = cancelled.cause.word(),
        number: String = cancelled.number.to_string(),
    }
}

told_of! {
    /// One of the member's orders did something that nobody asked for just now.
    News(news: &OrderNews) {
        #[serde(flatten)]
        of: OrderOf = order_of!(news),
        position: String = news.position.to_string(),
        side: &'static str = side_word(news.side),
        change: &'static str = change_word(news.change),
        price: String = price_text(news.price),
        remaining: String = news.remaining.to_string(),
        shown: String = news.shown.to_string(),
        number: String = news.number.to_string(),
    }
}

told_of! {
    /// A trade of one of the member's orders was declared void.
    Bust(bust: &TradeBusted) {
        #[serde(flatten)]
        of: OrderOf = order_of!(bust),
        /// Where it was declared void.
        position: String = bust.position.to_string(),
        /// Where the trade was.
        traded_at: String = bust.traded_at.to_string(),
        /// Which event of that place it was.
        index: u16 = bust.index,
        /// Its price.
        price: String = price_text(bust.price),
        /// Shares traded.
        quantity: String = bust.quantity.to_string(),
        /// Its place in the member's stream of the shard.
        number: String = bust.number.to_string(),
    }
}

/// A message of the stream.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Report {
    Answer(Outcome),
    Trade(Fill),
    Cancelled(CancelledShown),
    News(News),
    Busted(Bust),
}

/// What a reply is in the stream; none if it is not of it.
pub(crate) fn report(reply: &Reply) -> Option<Report> {
    Some(match reply {
        Reply::Answer(answer) => Report::Answer(answer.into()),
        Reply::Trade(trade) => Report::Trade(trade.into()),
        Reply::Cancelled(cancelled) => Report::Cancelled(cancelled.into()),
        Reply::News(news) => Report::News(news.into()),
        Reply::Busted(bust) => Report::Busted(bust.into()),
        Reply::Journalled { .. } | Reply::Rejected { .. } => return None,
    })
}
