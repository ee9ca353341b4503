//! What the record's stream tells a session, as messages of the page.

use pares_types::{
    Answer, CancelCause, Cancelled, ClientOrderId, InstrumentId, OrderChange, OrderId, OrderNews, Position,
    Quantity, Reason, Reply, Role, Status, Trade, TradeBusted,
};

use super::packets::Message;

/// Tags of an appendage, with their values.
type Tags = Vec<(u8, u64)>;

/// Series of a session by which it names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Series {
    pub(super) orders: u16,
    pub(super) changes: u16,
}

impl Series {
    /// Of a session, whose orders may die with it.
    pub(super) fn of(session: u16, is_guarded: bool) -> Self {
        Self { orders: session + if is_guarded { 32_768 } else { 0 }, changes: session + 16_384 }
    }

    /// The UserRefNum of a name, 0 if it is none of the session's.
    pub(super) fn number(self, name: ClientOrderId) -> u64 {
        let is_own = name.0 >> 48 == u64::from(self.orders) && name.number() <= u64::from(u32::MAX);
        if is_own { name.number() } else { 0 }
    }

    fn is_change(self, name: ClientOrderId) -> bool {
        name.0 >> 48 == u64::from(self.changes)
    }
}

/// The message that says it.
pub(super) fn message(series: Series, reply: &Reply) -> Option<Message> {
    Some(match reply {
        Reply::Answer(answer) => of_answer(series, answer),
        Reply::Trade(trade) => of_trade(series, trade),
        Reply::Cancelled(cancelled) => of_cancelled(series, cancelled),
        Reply::News(news) => of_news(series, news),
        Reply::Busted(busted) => of_busted(series, busted),
        Reply::Journalled { .. } | Reply::Rejected { .. } => return None,
    })
}

fn shares(quantity: Quantity) -> u64 {
    quantity.0.min(u64::from(u32::MAX))
}

/// The appendage: the request's name, its position, its instrument and order, and more.
fn tags(name: ClientOrderId, position: Position, about: (InstrumentId, OrderId), more: &[(u8, u64)]) -> Tags {
    let (instrument, order) = about;
    let of_all = [(210, name.0), (211, position.0), (212, instrument.0.into()), (216, order.0.to_bits())];
    [&of_all, more].concat()
}

/// `#` and the number, filled up with spaces; none of all instruments.
fn symbol(instrument: InstrumentId) -> u64 {
    let text = if instrument.0 == 0 { String::new() } else { format!("#{}", instrument.0) };
    format!("{text:<8}").bytes().fold(0, |symbol, byte| symbol << 8 | u64::from(byte))
}

fn of_answer(series: Series, answer: &Answer) -> Message {
    let name = answer.client_order_id;
    let (number, is_change) = (series.number(name), series.is_change(name));
    let total = shares(Quantity(answer.executed.0.saturating_add(answer.remaining.0)));
    let is_entry = answer.order.0 == answer.request;
    let ends_it = answer.status == Status::Cancelled && answer.reason == Reason::Requested;
    let kind = match answer.status {
        Status::Refused if is_change => 'I',
        Status::Refused => 'J',
        Status::MassCancelled => 'X',
        Status::Accepted => return Message::new('S', &[("event", b'A'.into())], &[]),
        _ if is_entry => 'A',
        _ if ends_it && number == 0 => return Message::new('S', &[("event", b'A'.into())], &[]),
        _ if is_change => 'M',
        _ => 'U',
    };
    let lives = matches!(answer.status, Status::Resting | Status::Held);
    let taken = [
        ("number", number),
        ("quantity", total),
        ("symbol", symbol(answer.instrument)),
        ("display", b'Y'.into()),
        ("order", answer.order.0.to_bits()),
        ("state", if lives { b'L' } else { b'D' }.into()),
    ];
    let mut said = vec![("number", number)];
    match kind {
        'A' | 'U' => said = taken.to_vec(),
        'M' => said.push(("quantity", total)),
        'J' => said.push(("reason", reject(answer.reason))),
        'X' => said.push(("symbol", symbol(answer.instrument))),
        _ => {}
    }
    let more = [(213, answer.reason as u64), (214, answer.executed.0), (215, answer.remaining.0)];
    let tags = tags(name, answer.position, (answer.instrument, answer.order), &more);
    Message::new(kind, &said, &tags)
}

/// The table of the page.
fn reject(reason: Reason) -> u64 {
    match reason.word() {
        "invalid_display" => 4,
        "halted" | "quarantined" | "not_in_this_phase" | "day_over" => 7,
        "no_right" | "not_permitted" | "blocked" => 12,
        "invalid_minimum" => 13,
        "too_many_pegs" => 17,
        "zero_quantity" | "off_lot" => 19,
        "unknown_order" => 21,
        "unknown_instrument" => 23,
        "off_tick" | "price_out_of_range" => 29,
        "quantity_too_large" => 30,
        "value_too_large" => 31,
        "price_collar" => 38,
        "value_limit" => 48,
        "quantity_limit" => 49,
        _ => 15,
    }
}

fn of_trade(series: Series, trade: &Trade) -> Message {
    let liquidity = if trade.role == Role::Resting { b'A' } else { b'R' };
    let said = [
        ("number", series.number(trade.client_order_id)),
        ("quantity", shares(trade.quantity)),
        ("price", trade.price.0 as u64),
        ("liquidity", liquidity.into()),
        ("match", trade.position.0 * 65_536 + u64::from(trade.index)),
    ];
    let more = [(213, trade.side as u64), (214, trade.quantity.0), (215, trade.remaining.0)];
    let tags = tags(trade.client_order_id, trade.position, (trade.instrument, trade.order), &more);
    Message::new('E', &said, &tags)
}

fn of_cancelled(series: Series, cancelled: &Cancelled) -> Message {
    let reason = match cancelled.cause.word() {
        "requested" | "mass_cancel" | "reduced" => b'U',
        "remainder" | "fill_or_kill" | "minimum" => b'I',
        "self_trade" => b'Q',
        "price_band" => b'K',
        "expired" => b'T',
        "day_end" | "call_over" => b'E',
        "blocked" | "removed" => b'S',
        _ => b'Z',
    };
    let quantity = shares(cancelled.quantity);
    let mut said = vec![
        ("number", series.number(cancelled.client_order_id)),
        ("quantity", quantity),
        ("reason", reason.into()),
    ];
    let is_self_trade = cancelled.cause == CancelCause::SelfTrade;
    if is_self_trade {
        said.extend([("prevented", quantity), ("price", cancelled.price.0 as u64)]);
    }
    let more = [(213, cancelled.cause as u64), (214, cancelled.quantity.0)];
    let about = (cancelled.instrument, cancelled.order);
    let tags = tags(cancelled.client_order_id, cancelled.position, about, &more);
    Message::new(if is_self_trade { 'D' } else { 'C' }, &said, &tags)
}

fn of_news(series: Series, news: &OrderNews) -> Message {
    let (number, price) = (series.number(news.client_order_id), news.price.0 as u64);
    let restated = match news.change {
        OrderChange::Refilled => Some(b'R'),
        OrderChange::Triggered => Some(b'T'),
        OrderChange::Withdrawn => Some(b'W'),
        OrderChange::Rested | OrderChange::Repriced | OrderChange::Released => None,
    };
    let more = [(22, shares(news.shown)), (23, price), (213, news.change as u64), (215, news.remaining.0)];
    let tags = tags(news.client_order_id, news.position, (news.instrument, news.order), &more);
    match restated {
        Some(reason) => Message::new('R', &[("number", number), ("reason", reason.into())], &tags),
        None => {
            let order = news.order.0.to_bits();
            let said = [("number", number), ("price", price), ("display", b'Y'.into()), ("order", order)];
            Message::new('T', &said, &tags)
        }
    }
}

fn of_busted(series: Series, busted: &TradeBusted) -> Message {
    let said = [
        ("number", series.number(busted.client_order_id)),
        ("match", busted.traded_at.0 * 65_536 + u64::from(busted.index)),
        ("reason", b'S'.into()),
    ];
    let tags = tags(busted.client_order_id, busted.position, (busted.instrument, busted.order), &[]);
    Message::new('B', &said, &tags)
}
