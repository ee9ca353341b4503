//! A gateway's replies as frames, and back.

use pares_types::{self as domain, ClientOrderId, InstrumentId, Position, Price, Quantity, Reply, ShardId};

use super::{Answer, Cancelled, Journalled, OrderNews, Rejected, Trade, TradeBusted, write};
use crate::WireError;
use crate::code::{cause, change, order_id, reason, request_id, role, side, status};

/// [`Answer::flags`]: this repeats an earlier answer.
pub const ANSWER_REPEAT: u32 = 1;

/// Appends a reply to `out` as a frame.
pub fn write_reply(out: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::Journalled { client_order_id, request } => {
            let (client_order_id, request_id) = (client_order_id.0.into(), request.to_bits().into());
            write(out, &Journalled { client_order_id, request_id });
        }
        Reply::Answer(answer) => write(out, &Answer::from(answer)),
        Reply::Trade(trade) => write(out, &Trade::from(trade)),
        Reply::Cancelled(cancelled) => write(out, &Cancelled::from(cancelled)),
        Reply::News(news) => write(out, &OrderNews::from(news)),
        Reply::Busted(bust) => write(out, &TradeBusted::from(bust)),
        Reply::Rejected { client_order_id, reason } => {
            let (client_order_id, reason) = (client_order_id.0.into(), *reason as u8);
            write(out, &Rejected { client_order_id, reason, reserved: [0; 7] });
        }
    }
}

impl From<&domain::Answer> for Answer {
    fn from(answer: &domain::Answer) -> Self {
        Self {
            client_order_id: answer.client_order_id.0.into(),
            request_id: answer.request.to_bits().into(),
            order_id: answer.order.0.to_bits().into(),
            position: answer.position.0.into(),
            executed: answer.executed.0.into(),
            remaining: answer.remaining.0.into(),
            instrument: answer.instrument.0.into(),
            shard: answer.shard.0.into(),
            status: answer.status as u8,
            reason: answer.reason as u8,
            flags: if answer.repeat { ANSWER_REPEAT } else { 0 }.into(),
            events: answer.events.into(),
            number: answer.number.into(),
        }
    }
}

impl From<&domain::Trade> for Trade {
    fn from(trade: &domain::Trade) -> Self {
        Self {
            client_order_id: trade.client_order_id.0.into(),
            order_id: trade.order.0.to_bits().into(),
            position: trade.position.0.into(),
            price: trade.price.0.into(),
            quantity: trade.quantity.0.into(),
            remaining: trade.remaining.0.into(),
            instrument: trade.instrument.0.into(),
            shard: trade.shard.0.into(),
            side: trade.side as u8,
            role: trade.role as u8,
            index: trade.index.into(),
            reserved: [0; 6],
            number: trade.number.into(),
        }
    }
}

impl From<&domain::Cancelled> for Cancelled {
    fn from(cancelled: &domain::Cancelled) -> Self {
        Self {
            client_order_id: cancelled.client_order_id.0.into(),
            order_id: cancelled.order.0.to_bits().into(),
            position: cancelled.position.0.into(),
            quantity: cancelled.quantity.0.into(),
            instrument: cancelled.instrument.0.into(),
            shard: cancelled.shard.0.into(),
            cause: cancelled.cause as u8,
            side: cancelled.side as u8,
            number: cancelled.number.into(),
            price: cancelled.price.0.into(),
        }
    }
}

impl From<&domain::OrderNews> for OrderNews {
    fn from(news: &domain::OrderNews) -> Self {
        Self {
            client_order_id: news.client_order_id.0.into(),
            order_id: news.order.0.to_bits().into(),
            position: news.position.0.into(),
            price: news.price.0.into(),
            remaining: news.remaining.0.into(),
            shown: news.shown.0.into(),
            instrument: news.instrument.0.into(),
            shard: news.shard.0.into(),
            side: news.side as u8,
            change: news.change as u8,
            number: news.number.into(),
        }
    }
}

impl From<&domain::TradeBusted> for TradeBusted {
    fn from(bust: &domain::TradeBusted) -> Self {
        Self {
            client_order_id: bust.client_order_id.0.into(),
            order_id: bust.order.0.to_bits().into(),
            position: bust.position.0.into(),
            traded_at: bust.traded_at.0.into(),
            price: bust.price.0.into(),
            quantity: bust.quantity.0.into(),
            instrument: bust.instrument.0.into(),
            shard: bust.shard.0.into(),
            index: bust.index.into(),
            number: bust.number.into(),
        }
    }
}

pub(super) fn journalled(frame: &Journalled) -> Result<Reply, WireError> {
    Ok(Reply::Journalled {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        request: request_id(frame.request_id.get(), "request_id")?,
    })
}

pub(super) fn rejected(frame: &Rejected) -> Result<Reply, WireError> {
    Ok(Reply::Rejected {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        reason: reason(frame.reason)?,
    })
}

pub(super) fn answer(frame: &Answer) -> Result<domain::Answer, WireError> {
    Ok(domain::Answer {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        request: request_id(frame.request_id.get(), "request_id")?,
        order: order_id(frame.order_id.get(), "order_id")?,
        shard: ShardId(frame.shard.get()),
        position: Position(frame.position.get()),
        instrument: InstrumentId(frame.instrument.get()),
        status: status(frame.status)?,
        reason: reason(frame.reason)?,
        executed: Quantity(frame.executed.get()),
        remaining: Quantity(frame.remaining.get()),
        events: frame.events.get(),
        repeat: frame.flags.get() & ANSWER_REPEAT != 0,
        number: frame.number.get(),
    })
}

pub(super) fn trade(frame: &Trade) -> Result<domain::Trade, WireError> {
    Ok(domain::Trade {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        order: order_id(frame.order_id.get(), "order_id")?,
        shard: ShardId(frame.shard.get()),
        position: Position(frame.position.get()),
        instrument: InstrumentId(frame.instrument.get()),
        side: side(frame.side)?,
        role: role(frame.role)?,
        index: frame.index.get(),
        price: Price(frame.price.get()),
        quantity: Quantity(frame.quantity.get()),
        remaining: Quantity(frame.remaining.get()),
        number: frame.number.get(),
    })
}

pub(super) fn cancelled(frame: &Cancelled) -> Result<domain::Cancelled, WireError> {
    Ok(domain::Cancelled {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        order: order_id(frame.order_id.get(), "order_id")?,
        shard: ShardId(frame.shard.get()),
        position: Position(frame.position.get()),
        instrument: InstrumentId(frame.instrument.get()),
        side: side(frame.side)?,
        price: Price(frame.price.get()),
        quantity: Quantity(frame.quantity.get()),
        cause: cause(frame.cause)?,
        number: frame.number.get(),
    })
}

pub(super) fn news(frame: &OrderNews) -> Result<domain::OrderNews, WireError> {
    Ok(domain::OrderNews {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        order: order_id(frame.order_id.get(), "order_id")?,
        shard: ShardId(frame.shard.get()),
        position: Position(frame.position.get()),
        instrument: InstrumentId(frame.instrument.get()),
        side: side(frame.side)?,
        change: change(frame.change)?,
        price: Price(frame.price.get()),
        remaining: Quantity(frame.remaining.get()),
        shown: Quantity(frame.shown.get()),
        number: frame.number.get(),
    })
}

pub(super) fn busted(frame: &TradeBusted) -> Result<domain::TradeBusted, WireError> {
    Ok(domain::TradeBusted {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        order: order_id(frame.order_id.get(), "order_id")?,
        shard: ShardId(frame.shard.get()),
        position: Position(frame.position.get()),
        traded_at: Position(frame.traded_at.get()),
        index: frame.index.get(),
        instrument: InstrumentId(frame.instrument.get()),
        price: Price(frame.price.get()),
        quantity: Quantity(frame.quantity.get()),
        number: frame.number.get(),
    })
}
