//! A gateway's replies as frames, and back.

use pares_types::{self as domain, Reply, RequestDigest};

use super::{Answer, Cancelled, Journalled, OrderNews, Rejected, Trade, TradeBusted, write};
use crate::WireError;
use crate::field::{Field, carries, coded};

/// [`Answer::flags`]: this repeats an earlier answer.
pub const ANSWER_REPEAT: u32 = 1;
/// [`Answer::flags`]: the bits from here on are what was asked.
const ANSWER_ASKED_SHIFT: u32 = 8;

/// Appends a reply to `out` as a frame.
pub fn write_reply(out: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::Journalled { client_order_id, request } => {
            write(out, &Journalled { client_order_id: client_order_id.raw(), request_id: request.raw() });
        }
        Reply::Answer(answer) => write(out, &Answer::from(answer)),
        Reply::Trade(trade) => write(out, &Trade::from(trade)),
        Reply::Cancelled(cancelled) => write(out, &Cancelled::from(cancelled)),
        Reply::News(news) => write(out, &OrderNews::from(news)),
        Reply::Busted(bust) => write(out, &TradeBusted::from(bust)),
        Reply::Rejected { client_order_id, reason } => {
            let (client_order_id, reason) = (client_order_id.raw(), *reason as u8);
            write(out, &Rejected { client_order_id, reason, reserved: [0; 7] });
        }
    }
}

carries! {
    Answer, domain::Answer, |frame, answer|
    same: client_order_id shard position instrument status reason executed remaining events number;
    renamed: request_id request, order_id order;
    frame: flags = (answer.asked.bits() << ANSWER_ASKED_SHIFT | if answer.repeat { ANSWER_REPEAT } else { 0 }).into();
    value: repeat = frame.flags.get() & ANSWER_REPEAT != 0, asked = RequestDigest::from_bits(frame.flags.get() >> ANSWER_ASKED_SHIFT);
}

carries! {
    Trade, domain::Trade, |frame, trade|
    same: client_order_id shard position instrument side role index price quantity remaining number;
    renamed: order_id order;
    frame: reserved = [0; 6];
    value: ;
}

carries! {
    Cancelled, domain::Cancelled, |frame, cancelled|
    same: client_order_id shard position instrument side price quantity cause number;
    renamed: order_id order;
    frame: ;
    value: ;
}

carries! {
    OrderNews, domain::OrderNews, |frame, news|
    same: client_order_id shard position instrument side change price remaining shown number;
    renamed: order_id order;
    frame: ;
    value: ;
}

carries! {
    TradeBusted, domain::TradeBusted, |frame, bust|
    same: client_order_id shard position traded_at index instrument price quantity number;
    renamed: order_id order;
    frame: ;
    value: ;
}

pub(super) fn journalled(frame: &Journalled) -> Result<Reply, WireError> {
    let request = Field::read(frame.request_id, "request_id")?;
    Ok(Reply::Journalled { client_order_id: Field::read(frame.client_order_id, "client_order_id")?, request })
}

pub(super) fn rejected(frame: &Rejected) -> Result<Reply, WireError> {
    let client_order_id = Field::read(frame.client_order_id, "client_order_id")?;
    Ok(Reply::Rejected { client_order_id, reason: coded(frame.reason)? })
}
