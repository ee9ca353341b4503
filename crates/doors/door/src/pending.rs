//! What a member has asked for and was not answered yet.

use std::collections::{BTreeMap, VecDeque};

use pares_types::{
    ClientOrderId, ClientRequest, InstrumentId, ListRequest, OrderKey, OrderStatus, ShardId, Side,
};

use crate::orders::Known;
use crate::securities_told::Security;
use crate::trades_told::TradeReport;
use crate::types::{Name, Question, Terms};

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) what: What,
    pub(crate) request: ClientRequest,
    /// It may be a duplicate, and its sender does not ask: if it was answered before, the sender has the answer.
    pub(crate) is_duplicate: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// As it is asked for.
    Enter(Known),
    Change(Change),
    Mass(Mass),
}

/// A replacement or a cancel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// The order's first name, as far as it is known.
    pub(crate) entry: ClientOrderId,
    /// The name that the member gave it.
    pub(crate) original: ClientOrderId,
    /// What it is to be; `None`: cancelled.
    pub(crate) terms: Option<Terms>,
}

impl Change {
    /// CxlRejResponseTo (434).
    pub(crate) fn responds_to(self) -> u8 {
        if self.terms.is_none() { b'1' } else { b'2' }
    }
}

/// A cancel of all orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mass {
    /// MassCancelRequestType.
    pub(crate) asked: u8,
    pub(crate) instrument: Option<InstrumentId>,
    pub(crate) side: Option<Side>,
}

/// A question that a list of the gateway's answers.
#[derive(Debug)]
pub(crate) struct ListAsked {
    pub(crate) id: Vec<u8>,
    pub(crate) request: ListRequest,
    pub(crate) found: Found,
}

/// What is known of a list so far.
#[derive(Debug)]
pub(crate) enum Found {
    /// The last order, which waits until it is known whether it is the last.
    Orders(Option<OrderStatus>),
    /// Instruments: the first message says how many there are.
    Securities(Vec<Security>),
    /// Whether the instrument of that symbol was met.
    Security(Vec<u8>, bool),
}

/// A question for the status of one order.
#[derive(Debug)]
pub(crate) struct StatusAsked {
    pub(crate) name: Name,
    pub(crate) question: Question,
}

/// Questions that wait. Answers need not come in their order, and one that is looked for long may have thousands behind it: they are found by what they ask for.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    by_key: BTreeMap<OrderKey, VecDeque<(u64, StatusAsked)>>,
    count: usize,
    /// How many there have been.
    number: u64,
}

impl Questions {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn put(&mut self, key: OrderKey, asked: StatusAsked) {
        (self.count, self.number) = (self.count + 1, self.number + 1);
        self.by_key.entry(key).or_default().push_back((self.number, asked));
    }

    /// Takes the oldest of those that ask for either.
    pub(crate) fn take(&mut self, key: OrderKey, other: Option<OrderKey>) -> Option<StatusAsked> {
        let oldest =
            |key: &OrderKey| self.by_key.get(key).and_then(VecDeque::front).map(|(number, _)| *number);
        let key =
            [Some(key), other].into_iter().flatten().min_by_key(|key| oldest(key).unwrap_or(u64::MAX))?;
        let waiting = self.by_key.get_mut(&key)?;
        let (_, asked) = waiting.pop_front()?;
        if waiting.is_empty() {
            self.by_key.remove(&key);
        }
        self.count -= 1;
        Some(asked)
    }
}

/// What a session has asked of its trades; one question at a time.
#[derive(Debug, Default)]
pub(crate) struct Trades {
    pub(crate) asked: Option<TradesAsked>,
}

#[derive(Debug)]
pub(crate) struct TradesAsked {
    /// TradeRequestID.
    pub(crate) id: Vec<u8>,
    /// Those that come, too.
    pub(crate) lasts: bool,
    /// Shards of which those that were are not told yet, and how far each is where that is under way.
    pub(crate) untold: BTreeMap<ShardId, Option<Place>>,
    /// The last trade, which waits until it is known whether it is the last.
    pub(crate) last: Option<Box<TradeReport>>,
}

/// How far the earlier trades have been reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// From which number on they were asked for.
    pub(crate) from: u64,
    pub(crate) next: u64,
}

impl TradesAsked {
    /// Whether that number of a shard is reported as a trade, if it is one.
    pub(crate) fn wants(&mut self, (shard, number): (ShardId, u64), is_new: bool) -> bool {
        match self.untold.get_mut(&shard) {
            // It comes again, as one of those that were.
            Some(None) => false,
            // What happened before the gateway heard of the question lies ahead, and comes again too.
            Some(Some(place)) => {
                let is_next = number == place.next;
                place.next += u64::from(is_next);
                is_next
            }
            None => is_new && self.lasts,
        }
    }
}

#[cfg(test)]
mod tests {
    use pares_types::{ClientOrderId, GatewayId, OrderId, RequestId};

    use super::*;

    #[test]
    fn answer_matches_oldest_question_of_its_order() {
        let by_name = |name| OrderKey::Name(ClientOrderId(name));
        let by_id = OrderKey::Id(OrderId(RequestId::new(GatewayId(1), 9)));
        let mut questions = Questions::default();
        let keys = (1..=1_000).map(by_name).chain([by_id, by_name(7), by_name(7)]);
        for (number, key) in (0..).zip(keys) {
            let name = Name::Of(ClientOrderId(number));
            questions.put(key, StatusAsked { name, question: Question::default() });
        }
        let mut take = |key, other| questions.take(key, other).map(|asked| asked.name);
        let named = |number| Some(Name::Of(ClientOrderId(number)));
        // A question by id is answered under the order's name, too.
        let all = [(); 4].map(|()| take(by_name(7), Some(by_id)));
        assert_eq!(all, [named(6), named(1_000), named(1_001), named(1_002)]);
        assert_eq!(take(by_name(7), Some(by_id)), None);
        assert_eq!((questions.len(), questions.by_key.len()), (999, 999));
    }
}
