//! What the engine is told, and what the record says that it must be.

use std::collections::BTreeMap;

use pares_types::{CancelCause, Command, MemberId, OrderChange, Reason, Reply, ShardId, Status};

use super::{FixClient, Message, TOLD, broken};
use crate::Broken;
use crate::guest::Recorded;
use crate::record::Record;

/// What a report says that must be the same at every telling: the order, and of a trade the price, in units of the fourth decimal, the
/// shares, and what was left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    order: String,
    trade: Option<(i64, u64, u64)>,
}

impl FixClient {
    pub(super) fn on_told(&mut self, message: &Message) -> Result<(), Broken> {
        self.counts.reports += 1;
        let name = message.number(11);
        let id = message.get(17).unwrap_or_default();
        let key = match message.kind() {
            // A status.
            "8" if id == "0" => return Ok(()),
            "8" => id.to_owned(),
            kind => format!("{kind}:{name}"),
        };
        let is_at_once = key.starts_with('R');
        if is_at_once || key.ends_with("-A") || message.kind() != "8" {
            self.open.remove(&name);
        }
        if is_at_once {
            return Ok(());
        }
        let is_trade = key.split('-').count() == 4;
        let trade = || Some((units(message.get(31)?), message.number(32), message.number(151)));
        let order = if message.kind() == "8" { message.get(37).unwrap_or_default() } else { "" };
        let said = Said { order: order.to_owned(), trade: trade().filter(|_| is_trade) };
        let Some(before) = self.told.insert(key, said.clone()) else { return Ok(()) };
        self.counts.told_again += 1;
        if message.kind() == "8" && (before != said || !message.may_be_known()) {
            return broken(TOLD, format!("{} was told {before:?}, and then {message:?}", self.seat.member));
        }
        Ok(())
    }
}

/// A price in units of the fourth decimal.
fn units(text: &str) -> i64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{part:0<4}").parse().unwrap_or(i64::MIN)
}

/// What a shard's record tells a member that trades over one FIX session, by ExecID; without a value what may be told, and need not.
pub(super) fn expected(
    recorded: Recorded<'_>,
    shard: ShardId,
    member: MemberId,
) -> BTreeMap<String, Option<Said>> {
    let is_too_old =
        |record: &&Record| record.request.member == member && record.outcome.reason == Reason::TooOld;
    // Told to who asks, and not counted.
    let too_old = recorded.of(shard).filter(is_too_old);
    let mut all: BTreeMap<_, _> =
        too_old.map(|record| (format!("{shard}-{}-A", record.position), None)).collect();
    recorded.read(shard, |record, of, reply, number| {
        if of == member {
            all.extend(place(record, &reply, number));
        }
    });
    all
}

fn place(record: &Record, reply: &Reply, number: u64) -> Option<(String, Option<Said>)> {
    let (shard, position) = (record.shard(), record.position);
    let of = |order: pares_types::OrderId| Some(Said { order: order.to_string(), trade: None });
    let by_number = format!("{shard}-N{number}");
    let by_answer = format!("{shard}-{position}-A");
    Some(match reply {
        Reply::Trade(trade) => {
            let key = format!("{shard}-{position}-{}-{}", trade.index, trade.client_order_id);
            let trade_of = Some((trade.price.0, trade.quantity.0, trade.remaining.0));
            (key, Some(Said { order: trade.order.to_string(), trade: trade_of }))
        }
        Reply::Cancelled(one) if one.cause == CancelCause::Requested => (by_answer, of(one.order)),
        Reply::Cancelled(one) if one.cause == CancelCause::Reduced => (by_number, None),
        Reply::Cancelled(one) => (by_number, of(one.order)),
        Reply::News(news) if news.change == OrderChange::Refilled => return None,
        Reply::News(news) => (by_number, of(news.order)),
        Reply::Busted(busted) => (by_number, of(busted.order)),
        Reply::Answer(answer) => {
            let name = answer.client_order_id;
            match record.request.command {
                Command::Enter(_) => (by_answer, of(answer.order)),
                // Refused before its order was looked for: who did not hear the question takes it for an order's.
                Command::Cancel { .. } | Command::Amend(_) if answer.order.0 == answer.request => {
                    (by_answer, None)
                }
                Command::Cancel { .. } | Command::Amend(_) if answer.status == Status::Refused => {
                    (format!("9:{name}"), Some(Said::default()))
                }
                Command::Cancel { .. } | Command::Amend(_) => (by_answer, of(answer.order)),
                Command::MassCancel { .. } if !answer.is_part() => {
                    (format!("r:{name}"), Some(Said::default()))
                }
                _ => return None,
            }
        }
        Reply::Journalled { .. } | Reply::Rejected { .. } => return None,
    })
}
