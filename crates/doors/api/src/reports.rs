//! The messages of a member's stream, as they are told.

use pares_resources::decimal::price_text;
use pares_resources::order_terms::{change_word, role_word, side_word};
use pares_types::{Cancelled, OrderNews, Reply, Trade, TradeBusted};
use serde::Serialize;
use utoipa::ToSchema;

use crate::forms::{OrderOf, Outcome, order_of};

/// One of the member's orders traded.
#[derive(Serialize, ToSchema)]
pub(crate) struct Fill {
    #[serde(flatten)]
    of: OrderOf,
    /// The place in its total order.
    position: String,
    /// Which event of that place, from 0.
    index: u16,
    /// `buy` or `sell`.
    side: &'static str,
    /// `resting` or `incoming`.
    role: &'static str,
    /// The price.
    price: String,
    /// Shares traded.
    quantity: String,
    /// Shares of the order left after it.
    remaining: String,
    /// Its place in the member's stream of the shard.
    number: String,
}

impl From<&Trade> for Fill {
    fn from(trade: &Trade) -> Self {
        Self {
            of: order_of!(trade),
            position: trade.position.to_string(),
            index: trade.index,
            side: side_word(trade.side),
            role: role_word(trade.role),
            price: price_text(trade.price),
            quantity: trade.quantity.to_string(),
            remaining: trade.remaining.to_string(),
            number: trade.number.to_string(),
        }
    }
}

/// Shares of one of the member's orders were cancelled.
#[derive(Serialize, ToSchema)]
pub(crate) struct CancelledShown {
    #[serde(flatten)]
    of: OrderOf,
    position: String,
    side: &'static str,
    price: String,
    quantity: String,
    cause: &'static str,
    number: String,
}

impl From<&Cancelled> for CancelledShown {
    fn from(cancelled: &Cancelled) -> Self {
        Self {
            of: order_of!(cancelled),
            position: cancelled.position.to_string(),
            side: side_word(cancelled.side),
            price: price_text(cancelled.price),
            quantity: cancelled.quantity.to_string(),
            cause: cancelled.cause.word(),
            number: cancelled.number.to_string(),
        }
    }
}

/// One of the member's orders did something that nobody asked for just now.
#[derive(Serialize, ToSchema)]
pub(crate) struct News {
    #[serde(flatten)]
    of: OrderOf,
    position: String,
    side: &'static str,
    change: &'static str,
    price: String,
    remaining: String,
    shown: String,
    number: String,
}

impl From<&OrderNews> for News {
    fn from(news: &OrderNews) -> Self {
        Self {
            of: order_of!(news),
            position: news.position.to_string(),
            side: side_word(news.side),
            change: change_word(news.change),
            price: price_text(news.price),
            remaining: news.remaining.to_string(),
            shown: news.shown.to_string(),
            number: news.number.to_string(),
        }
    }
}

/// A trade of one of the member's orders was declared void.
#[derive(Serialize, ToSchema)]
pub(crate) struct Bust {
    #[serde(flatten)]
    of: OrderOf,
    /// Where it was declared void.
    position: String,
    /// Where the trade was.
    traded_at: String,
    /// Which event of that place it was.
    index: u16,
    /// Its price.
    price: String,
    /// Shares traded.
    quantity: String,
    /// Its place in the member's stream of the shard.
    number: String,
}

impl From<&TradeBusted> for Bust {
    fn from(bust: &TradeBusted) -> Self {
        Self {
            of: order_of!(bust),
            position: bust.position.to_string(),
            traded_at: bust.traded_at.to_string(),
            index: bust.index,
            price: price_text(bust.price),
            quantity: bust.quantity.to_string(),
            number: bust.number.to_string(),
        }
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
