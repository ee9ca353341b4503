//! What the engine asks of its trades (AD), and what it receives of them (AQ, AE).
//!
//! A question ends with its connection, wherever it was by then, and its trades come among reports of the same. So each telling is checked against the
//! record by itself: of each shard it has the first trades that there are, in the record's order and without a gap. One that came to its end has all
//! that came as reports before it began, and while it lasts, all that come.

use std::collections::{BTreeMap, BTreeSet};

use pares_types::{MemberId, Reply, ShardId};

use super::expected_messages::units;
use super::{FixClient, Message, TOLD, broken};
use crate::guest::Recorded;
use crate::scenario::MS;
use crate::{Verdict, must};

/// Before a question that is not told to the end is asked again.
const RETRY_NS: u64 = 20 * MS;

/// A trade, or that one is void.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Traded {
    /// Its ExecID.
    id: String,
    /// That of the trade that is void.
    void: Option<String>,
    order: String,
    /// In units of the fourth decimal.
    price: i64,
    quantity: u64,
}

/// What the exchange tells of a question on one connection.
#[derive(Debug)]
struct Telling {
    name: String,
    lasts: bool,
    told: Vec<Traded>,
    /// ExecIDs of trades that came as reports: before it began, and while it lasts.
    reported: BTreeSet<String>,
    is_whole: bool,
}

#[derive(Debug)]
struct Question {
    lasts: bool,
    /// That it should end was asked too.
    is_ended: bool,
    /// How often it was sent, its end included, and is not answered.
    unanswered: u64,
}

/// All that was asked of trades, and told.
#[derive(Debug, Default)]
pub(super) struct Trades {
    is_asked_for: bool,
    questions: BTreeMap<String, Question>,
    now: Option<Telling>,
    before: Vec<Telling>,
    /// When to ask, if no telling came to its end since.
    ask_at_ns: Option<u64>,
}

impl Trades {
    pub(super) fn new(is_asked_for: bool) -> Self {
        Self { is_asked_for, ..Self::default() }
    }

    /// One last question, or the one that lasts, is to be told to the end.
    pub(super) fn calm_down(&mut self) {
        self.ask_at_ns = self.is_asked_for.then_some(0);
    }

    pub(super) fn waits_for_nothing(&self) -> bool {
        self.ask_at_ns.is_none() || self.now.as_ref().is_some_and(|now| now.is_whole)
    }

    /// The connection is gone. Says whether that cut a telling short.
    pub(super) fn forget_connection(&mut self) -> bool {
        let is_cut = self.now.as_ref().is_some_and(|now| !now.is_whole);
        self.before.extend(self.now.take());
        is_cut
    }

    /// A question, or that it should end, was sent once more.
    pub(super) fn note_said(&mut self, fields: &str) {
        let name = fields.split('|').find_map(|field| field.strip_prefix("568="));
        let question = name.and_then(|name| self.questions.get_mut(name));
        question.into_iter().for_each(|question| question.unanswered += 1);
    }

    pub(super) fn note_reported(&mut self, id: &str) {
        if let Some(now) = self.now.as_mut().filter(|now| now.lasts) {
            now.reported.insert(id.to_owned());
        }
    }

    /// Each telling is as the record has it.
    pub(super) fn check(&self, recorded: Recorded<'_>, member: MemberId) -> Verdict {
        let all = recorded.shards().map(|shard| (shard, traded(recorded, shard, member)));
        let all: Vec<_> = all.collect();
        self.before.iter().chain(&self.now).try_for_each(|telling| telling.check(&all))
    }
}

impl Telling {
    fn check(&self, all: &[(ShardId, Vec<Traded>)]) -> Verdict {
        let of_shard = |id: &str, shard: &ShardId| id.split('-').next() == Some(&shard.to_string());
        for (shard, recorded) in all {
            let told = self.told.iter().filter(|one| of_shard(&one.id, shard));
            let other = told.enumerate().find(|(at, one)| recorded.get(*at) != Some(one));
            if let Some((at, one)) = other {
                let what = format!("{} is told {one:?}; the record: {:?}", self.name, recorded.get(at));
                return broken(TOLD, what);
            }
        }
        let ids: BTreeSet<_> = self.told.iter().map(|one| &one.id).collect();
        match self.reported.iter().find(|id| !ids.contains(id)) {
            Some(id) if self.is_whole => broken(TOLD, format!("{} is not told the trade {id}", self.name)),
            _ => Ok(()),
        }
    }
}

/// The trades of a member in a shard's record, and those of them that are void, in its order.
fn traded(recorded: Recorded<'_>, shard: ShardId, member: MemberId) -> Vec<Traded> {
    let mut all = Vec::new();
    recorded.read(shard, |record, of, reply, number| {
        let id = |position, index, name| format!("{shard}-{position}-{index}-{name}");
        all.extend(Some(reply).filter(|_| of == member).and_then(|reply| match reply {
            Reply::Trade(trade) => Some(Traded {
                id: id(record.position, trade.index, trade.client_order_id),
                void: None,
                order: trade.order.to_string(),
                price: trade.price.0,
                quantity: trade.quantity.0,
            }),
            Reply::Busted(bust) => Some(Traded {
                id: format!("{shard}-N{number}"),
                void: Some(id(bust.traded_at, bust.index, bust.client_order_id)),
                order: bust.order.to_string(),
                price: bust.price.0,
                quantity: bust.quantity.0,
            }),
            _ => None,
        }));
    });
    all
}

impl FixClient {
    /// Asks for its trades, with a new question or because no answer came; or that a question should end.
    pub(super) fn ask_for_trades(&mut self, now_ns: u64, is_calm: bool, out: &mut Vec<u8>) {
        if !self.trades.is_asked_for {
            return;
        }
        let open = self.trades.now.as_ref().map(|now| now.name.clone());
        let is_due = self.trades.ask_at_ns.is_some_and(|at_ns| at_ns <= now_ns);
        match open {
            Some(name) if !is_calm && self.random.chance(20) => self.end_trades(now_ns, &name, out),
            // Refused where one is open.
            None if is_due => self.begin_trades(now_ns, out),
            _ if !is_calm && self.random.chance(20) => self.begin_trades(now_ns, out),
            _ => {}
        }
    }

    fn begin_trades(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        let name = format!("T{}", self.trades.questions.len());
        let (lasts, how) = [(false, ""), (false, "263=0|"), (true, "263=1|")][self.random.index(3)];
        self.trades.questions.insert(name.clone(), Question { lasts, is_ended: false, unanswered: 0 });
        self.trades.ask_at_ns = Some(now_ns + RETRY_NS);
        self.say(now_ns, "AD", &format!("568={name}|569=0|{how}"), out);
    }

    fn end_trades(&mut self, now_ns: u64, name: &str, out: &mut Vec<u8>) {
        self.trades.questions.get_mut(name).expect("it is told").is_ended = true;
        self.say(now_ns, "AD", &format!("568={name}|569=0|263=2|"), out);
    }

    pub(super) fn on_trades_answer(&mut self, message: &Message) -> Verdict {
        let name = message.get(568).unwrap_or_default();
        let is_none = message.get(748) == Some("0");
        let unasked = || broken(TOLD, format!("{}: {message:?}", self.comp_id));
        let Some(question) = self.trades.questions.get_mut(name) else { return unasked() };
        if !is_none && question.unanswered == 0 {
            return unasked();
        }
        question.unanswered -= u64::from(!is_none);
        let (lasts, is_ended) = (question.lasts, question.is_ended);
        let is_open = self.trades.now.is_some();
        let is_it = self.trades.now.as_ref().is_some_and(|now| now.name == name);
        match (message.number(749), message.number(750)) {
            (0, 0) if !is_open => self.begin_telling(name, lasts),
            (0, 1) if is_it && is_none => return self.on_told_to_the_end(),
            (0, 1) if is_it && is_ended => self.trades.before.extend(self.trades.now.take()),
            (99, 2) if is_open || is_ended => {}
            _ => return broken(TOLD, format!("{} is at {:?}: {message:?}", self.comp_id, self.trades.now)),
        }
        Ok(())
    }

    fn begin_telling(&mut self, name: &str, lasts: bool) {
        let reported = self.told.iter().filter(|(_, said)| said.is_trade()).map(|(id, _)| id.clone());
        let (name, reported) = (name.to_owned(), reported.collect());
        self.trades.now = Some(Telling { name, lasts, told: Vec::new(), reported, is_whole: false });
    }

    /// A trade, told to who has asked.
    pub(super) fn on_trade(&mut self, message: &Message) -> Verdict {
        let text = |tag| message.get(tag).unwrap_or_default().to_owned();
        let (id, void) = (text(571), message.get(572).map(str::to_owned));
        let is_right = text(17) == id
            && text(448) == self.told_of.to_string()
            && void.as_ref().unwrap_or(&id).ends_with(&format!("-{}", text(11)))
            && (text(487) == "1") == void.is_some();
        let now =
            self.trades.now.as_mut().filter(|now| now.name == text(568) && (now.lasts || !now.is_whole));
        let Some(now) = now.filter(|_| is_right) else {
            return broken(TOLD, format!("{} is told a trade: {message:?}", self.comp_id));
        };
        self.counts.trades += 1;
        let (price, quantity) = (units(&text(31)), message.number(32));
        now.told.push(Traded { id, void, order: text(37), price, quantity });
        if message.get(912) == Some("Y") { self.on_told_to_the_end() } else { Ok(()) }
    }

    /// All past trades have come.
    fn on_told_to_the_end(&mut self) -> Verdict {
        let now = self.trades.now.as_mut().expect("it is told");
        must(!now.is_whole, TOLD, || format!("{} is told the end twice: {now:?}", self.comp_id))?;
        now.is_whole = true;
        self.counts.trades_whole += 1;
        self.trades.ask_at_ns = None;
        let ended = self.trades.now.take_if(|now| !now.lasts);
        self.trades.before.extend(ended);
        Ok(())
    }
}
