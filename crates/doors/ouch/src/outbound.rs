//! Messages of the stream as messages of OUCH, each as one.
//!
//! The bytes depend on the one message and on whose session it is, and on nothing else: a gateway that makes the message
//! again years later makes the same bytes. So what the stream does not say, such as the side of an order that is taken, is blank.

use pares_types::{
    Answer, CancelCause, Cancelled, ClientOrderId, InstrumentId, OrderChange, OrderId, OrderNews, Position,
    Quantity, Reason, Reply, Role, ShardId, Status, Trade, TradeBusted,
};

use crate::codes;
use crate::fields::Writer;
use crate::names::OuchNames;
use crate::orders::tag;

const BLANK: u8 = b' ';
const VISIBLE: u8 = b'Y';
/// Bits of a match number below the position.
const INDEX_BITS: u32 = 16;

/// Where in which stream a message is, if it is in one.
pub(crate) fn place(reply: &Reply) -> Option<(ShardId, u64)> {
    let place = match reply {
        Reply::Answer(answer) => (answer.shard, answer.number),
        Reply::Trade(trade) => (trade.shard, trade.number),
        Reply::Cancelled(cancelled) => (cancelled.shard, cancelled.number),
        Reply::News(news) => (news.shard, news.number),
        Reply::Busted(bust) => (bust.shard, bust.number),
        Reply::Journalled { .. } | Reply::Rejected { .. } => return None,
    };
    Some(place).filter(|(_, number)| *number > 0)
}

/// The message that says it, if it is in a stream.
pub(crate) fn message(names: &OuchNames, reply: &Reply) -> Option<Writer> {
    Some(match reply {
        Reply::Answer(answer) => of_answer(names, answer),
        Reply::Trade(trade) => of_trade(names, trade),
        Reply::Cancelled(cancelled) => of_cancelled(names, cancelled),
        Reply::News(news) => of_news(names, news),
        Reply::Busted(bust) => of_busted(names, bust),
        Reply::Journalled { .. } | Reply::Rejected { .. } => return None,
    })
}

/// Shares as four bytes have them; the whole number stands in the appendage.
fn shares(quantity: Quantity) -> u32 {
    u32::try_from(quantity.0).unwrap_or(u32::MAX)
}

fn match_number(position: Position, index: u16) -> u64 {
    position.0 << INDEX_BITS | u64::from(index)
}

impl Writer {
    /// An instrument by its number, as O takes it too; symbols may change hands.
    fn symbol(&mut self, instrument: InstrumentId) -> &mut Self {
        let mut field = [b' '; 8];
        if let Some(digits) =
            instrument.0.checked_ilog10().map(|log| log as usize + 1).filter(|digits| *digits < 8)
        {
            field[0] = b'#';
            let mut left = instrument.0;
            for place in field[1..=digits].iter_mut().rev() {
                *place = b"0123456789"[(left % 10) as usize];
                left /= 10;
            }
        }
        self.bytes(&field)
    }

    /// What every message says of its place, its order and its name.
    fn place(&mut self, name: ClientOrderId, position: Position, instrument: InstrumentId) -> &mut Self {
        self.tag(tag::NAME, &name.0.to_be_bytes());
        self.tag(tag::POSITION, &position.0.to_be_bytes());
        self.tag(tag::INSTRUMENT, &instrument.0.to_be_bytes())
    }

    fn order(&mut self, order: OrderId) -> &mut Self {
        self.tag(tag::ORDER, &order.0.to_bits().to_be_bytes())
    }

    fn code(&mut self, code: u8) -> &mut Self {
        self.tag(tag::CODE, &[code])
    }

    fn answered(mut self, answer: &Answer) -> Self {
        self.place(answer.client_order_id, answer.position, answer.instrument);
        self.order(answer.order).code(answer.reason as u8);
        self.tag(tag::SHARES, &answer.executed.0.to_be_bytes());
        self.tag(tag::REMAINING, &answer.remaining.0.to_be_bytes());
        self
    }
}

fn of_answer(names: &OuchNames, answer: &Answer) -> Writer {
    let name = answer.client_order_id;
    let number = names.user_ref_num(name);
    let is_entry = answer.order.0 == answer.request;
    let is_cancel = answer.status == Status::Cancelled && answer.reason == Reason::Requested;
    let mut writer = match answer.status {
        Status::Refused if names.is_change(name) => Writer::begin(b'I'),
        Status::Refused => Writer::begin(b'J'),
        Status::MassCancelled => Writer::begin(b'X'),
        Status::Accepted => Writer::begin(b'S'),
        _ if is_entry => Writer::begin(b'A'),
        _ if is_cancel && number == 0 => Writer::begin(b'S'),
        _ if names.is_change(name) => Writer::begin(b'M'),
        _ => Writer::begin(b'U'),
    };
    match writer.kind() {
        b'I' => _ = writer.u32(number),
        b'J' => _ = writer.u32(number).bytes(&codes::reject(answer.reason).to_be_bytes()).blank::<14>(),
        b'X' => _ = writer.u32(number).blank::<4>().symbol(answer.instrument),
        // It ends there: the standard gives it no appendage.
        b'S' => {
            writer.byte(b'A');
            return writer;
        }
        b'M' => _ = writer.u32(number).byte(BLANK).u32(total(answer)),
        b'A' => taken(writer.u32(number), answer),
        _ => taken(writer.u32(0).u32(number), answer),
    }
    writer.answered(answer)
}

fn total(answer: &Answer) -> u32 {
    shares(Quantity(answer.executed.0.saturating_add(answer.remaining.0)))
}

/// What A and U say behind the UserRefNum.
fn taken(writer: &mut Writer, answer: &Answer) {
    let lives = matches!(answer.status, Status::Resting | Status::Held);
    writer.byte(BLANK).u32(total(answer)).symbol(answer.instrument).u64(0);
    writer.byte(BLANK).byte(VISIBLE).u64(answer.order.0.to_bits());
    writer.byte(BLANK).byte(BLANK).byte(BLANK).byte(if lives { b'L' } else { b'D' }).blank::<14>();
}

fn of_trade(names: &OuchNames, trade: &Trade) -> Writer {
    let liquidity = if trade.role == Role::Resting { b'A' } else { b'R' };
    let mut writer = Writer::begin(b'E');
    writer.u32(names.user_ref_num(trade.client_order_id)).u32(shares(trade.quantity));
    writer.u64(trade.price.0.cast_unsigned()).byte(liquidity);
    writer.u64(match_number(trade.position, trade.index));
    writer.place(trade.client_order_id, trade.position, trade.instrument).order(trade.order);
    writer.code(trade.side as u8);
    writer.tag(tag::SHARES, &trade.quantity.0.to_be_bytes());
    writer.tag(tag::REMAINING, &trade.remaining.0.to_be_bytes());
    writer
}

fn of_cancelled(names: &OuchNames, cancelled: &Cancelled) -> Writer {
    let (reason, shares) = (codes::cancel(cancelled.cause), shares(cancelled.quantity));
    let is_self_trade = cancelled.cause == CancelCause::SelfTrade;
    let mut writer = Writer::begin(if is_self_trade { b'D' } else { b'C' });
    writer.u32(names.user_ref_num(cancelled.client_order_id)).u32(shares).byte(reason);
    if is_self_trade {
        writer.u32(shares).u64(cancelled.price.0.cast_unsigned()).byte(BLANK).byte(BLANK);
    }
    writer.place(cancelled.client_order_id, cancelled.position, cancelled.instrument);
    writer.order(cancelled.order).code(cancelled.cause as u8);
    writer.tag(tag::SHARES, &cancelled.quantity.0.to_be_bytes());
    writer
}

fn of_news(names: &OuchNames, news: &OrderNews) -> Writer {
    let number = names.user_ref_num(news.client_order_id);
    let restated = match news.change {
        OrderChange::Refilled => Some(b'R'),
        OrderChange::Triggered => Some(b'T'),
        OrderChange::Withdrawn => Some(b'W'),
        OrderChange::Rested | OrderChange::Repriced | OrderChange::Released => None,
    };
    let price = news.price.0.cast_unsigned();
    let mut writer = Writer::begin(if restated.is_some() { b'R' } else { b'T' });
    match restated {
        Some(reason) => _ = writer.u32(number).byte(reason),
        None => _ = writer.u32(number).u64(price).byte(VISIBLE).u64(news.order.0.to_bits()),
    }
    writer.tag(tag::DISPLAY_QUANTITY, &shares(news.shown).to_be_bytes());
    writer.tag(tag::DISPLAY_PRICE, &price.to_be_bytes());
    writer.place(news.client_order_id, news.position, news.instrument).order(news.order);
    writer.code(news.change as u8);
    writer.tag(tag::REMAINING, &news.remaining.0.to_be_bytes());
    writer
}

fn of_busted(names: &OuchNames, bust: &TradeBusted) -> Writer {
    let mut writer = Writer::begin(b'B');
    writer.u32(names.user_ref_num(bust.client_order_id)).u64(match_number(bust.traded_at, bust.index));
    writer.byte(b'S').blank::<14>();
    writer.place(bust.client_order_id, bust.position, bust.instrument).order(bust.order);
    writer
}
