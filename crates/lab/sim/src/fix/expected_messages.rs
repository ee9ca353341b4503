//! What the engine receives, and what the record says that it must be.

use std::collections::BTreeMap;

use pares_types::{CancelCause, Command, MemberId, OrderChange, Reason, Reply, ShardId, Status};

use super::{FixClient, Message, TOLD};
use crate::guest::Recorded;
use crate::record::Record;
use crate::{Verdict, must};

/// What a report says that must be the same at every telling: the order, and of a trade the price, in units of the fourth decimal, the
/// shares, and what was left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    order: String,
    trade: Option<(i64, u64, u64)>,
}

impl Said {
    pub(super) fn is_trade(&self) -> bool {
        self.trade.is_some()
    }
}

impl FixClient {
    pub(super) fn on_told(&mut self, message: &Message) -> Verdict {
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
            return self.on_refused_at_once(name, key, message);
        }
        // A copy has asked for none of them.
        if message.kind() != "8" && !self.is_copy() {
            self.hold_unmarked(name, &key, message)?;
        }
        self.check_party(message)?;
        let is_trade = key.split('-').count() == 4;
        let trade = || Some((units(message.get(31)?), message.number(32), message.number(151)));
        let order = if message.kind() == "8" { message.get(37).unwrap_or_default() } else { "" };
        let said = Said { order: order.to_owned(), trade: trade().filter(|_| is_trade) };
        if said.is_trade() {
            self.trades.note_reported(&key);
        }
        let Some(before) = self.told.insert(key, said.clone()) else { return Ok(()) };
        self.counts.told_again += 1;
        must(message.kind() != "8" || (before == said && message.may_be_known()), TOLD, || {
            format!("{} was told {before:?}, and then {message:?}", self.member)
        })
    }
}

impl FixClient {
    /// Nothing is recorded: it says so, once, and each time that something was sent is refused once at most.
    fn on_refused_at_once(&mut self, name: u64, id: String, message: &Message) -> Verdict {
        *self.refused.entry(name).or_default() += 1;
        let is_refusal = message.get(150) == Some("8") && message.get(39) == Some("8");
        let was_told = self.told.insert(id, Said::default()).is_some();
        must(is_refusal && message.get(58).is_some() && (!was_told || message.may_be_known()), TOLD, || {
            format!("{} is refused at once: {message:?}", self.member)
        })
    }

    /// A copy's reports say whose order it is.
    fn check_party(&mut self, message: &Message) -> Verdict {
        if !self.is_copy() || message.kind() != "8" {
            return Ok(());
        }
        self.counts.copied += 1;
        let party = message.get(448).or(message.get(76)).unwrap_or_default();
        must(party == self.told_of.to_string(), TOLD, || {
            format!("{} copies {}, and is told {message:?}", self.member, self.told_of)
        })
    }

    /// Without an ExecID: a report that does not say that it may be known answers something that was sent, each sending once.
    fn hold_unmarked(&mut self, name: u64, key: &str, message: &Message) -> Verdict {
        if message.may_be_known() || self.is_excused {
            return Ok(());
        }
        let unmarked = self.unmarked.entry(key.to_owned()).or_default();
        *unmarked += 1;
        let said = self.said.get(&name).copied().unwrap_or_default();
        must(*unmarked <= said, TOLD, || {
            format!("{} sent {name} {said} times, and is told {message:?}", self.member)
        })
    }
}

/// A price in units of the fourth decimal.
pub(super) fn units(text: &str) -> i64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{part:0<4}").parse().unwrap_or(i64::MIN)
}

/// What a shard's record tells a member that trades over one FIX session, by ExecID: its number in the member's stream, and what is said; nothing is said of
/// what may be told, and need not.
pub(super) fn expected(
    recorded: Recorded<'_>,
    shard: ShardId,
    member: MemberId,
) -> BTreeMap<String, (u64, Option<Said>)> {
    let is_too_old =
        |record: &&Record| record.request.member == member && record.outcome.reason == Reason::TooOld;
    // Told to who asks, and not counted.
    let too_old = recorded.of(shard).filter(is_too_old);
    let mut all: BTreeMap<_, _> =
        too_old.map(|record| (format!("{shard}-{}-A", record.position), (0, None))).collect();
    recorded.read(shard, |record, of, reply, number| {
        if of == member {
            all.extend(place(record, &reply, number).map(|(key, said)| (key, (number, said))));
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
                // Likewise.
                Command::MassCancel { .. } if answer.status == Status::Refused => (by_answer, None),
                Command::MassCancel { .. } if !answer.is_part() => {
                    (format!("r:{name}"), Some(Said::default()))
                }
                _ => return None,
            }
        }
        Reply::Journalled { .. } | Reply::Rejected { .. } => return None,
    })
}
