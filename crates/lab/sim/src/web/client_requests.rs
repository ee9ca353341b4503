//! What clients ask, and ask again while it is not answered.

use pares_resources::Question;
use pares_types::{
    ClientOrderId, ClientRequest, InstrumentId, NewOrder, NewTerms, OrderKey, Price, Quantity, ShardId, Side,
};

use super::{Open, RETRY_NS, Waiting, WebClient};

/// Requests left unanswered before more is asked.
const OPEN_MAX: usize = 16;
/// The price around which orders come in, in ten-thousandths.
const MIDDLE: i64 = 500_000;

impl WebClient {
    /// Does what is due: asks again, asks something new.
    pub(super) fn go_on(&mut self, now_ns: u64, is_calm: bool) {
        self.ask_again(now_ns);
        if !is_calm {
            self.ask_something_new(now_ns);
        }
    }

    /// What is not answered, and streams that are not told.
    fn ask_again(&mut self, now_ns: u64) {
        let due = self.open.iter().filter(|(_, open)| open.retry_at_ns <= now_ns);
        for name in due.map(|(name, _)| *name).collect::<Vec<_>>() {
            let open = self.open.get_mut(&name).expect("found above");
            open.retry_at_ns = now_ns + RETRY_NS;
            let request = open.request;
            self.counts.asked_again += 1;
            self.ask(request);
        }
        for question in std::mem::take(&mut self.questions) {
            self.ask_question(question);
        }
        for follower in 0..self.followers.len() {
            self.followers[follower].due(now_ns).into_iter().for_each(|shard| self.follow(follower, shard));
        }
    }

    fn ask_something_new(&mut self, now_ns: u64) {
        if self.left > 0 && self.open.len() < OPEN_MAX {
            self.left -= 1;
            self.names += 1;
            let request = self.request();
            self.asked.entry(self.names).or_default().push(request);
            self.open.insert(self.names, Open { request, retry_at_ns: now_ns + RETRY_NS });
            self.ask(request);
        }
        if self.random.chance(200) {
            self.question();
        }
        if self.random.chance(100) {
            self.ask_what_was_done();
        }
        if self.random.chance(50) {
            self.follow_anew();
        }
    }

    /// A follower begins again: with the oldest there is, or ahead of what comes next.
    fn follow_anew(&mut self) {
        let [one, other] = &mut self.followers;
        let shards = one.shards();
        let shard = shards[self.random.index(shards.len())];
        let ahead = one.next(shard) + self.random.between(1, 8);
        other.jump(shard, if self.random.chance(500) { 1 } else { ahead });
        self.follow(1, shard);
    }

    /// Asks again what was answered: the answer is the same. Under some names something else was asked too.
    fn ask_what_was_done(&mut self) {
        let name = self.names.saturating_sub(self.random.below(8));
        let done = self.asked.get(&name).filter(|_| self.answered.contains_key(&name));
        if let Some(&[request]) = done.map(Vec::as_slice) {
            self.ask(request);
        }
    }

    /// Asks the server. If it has no room, the client tries again later.
    fn ask(&mut self, request: ClientRequest) {
        self.waiters += 1;
        if self.line.ask(request, self.waiters).is_ok() {
            self.waiting.insert(self.waiters, Waiting::Request(request.client_order_id().0));
        }
    }

    fn question(&mut self) {
        let name = ClientOrderId(self.random.between(1, self.names + 1));
        let question = match self.random.below(8) {
            0 => Question::Instruments,
            1 => Question::Limits,
            2 => Question::Orders(None),
            3 => Question::Orders(Some(self.instrument())),
            _ => Question::Order(OrderKey::Name(name)),
        };
        self.ask_question(question);
    }

    /// Asks the server. If it has no room, the client tries again later.
    fn ask_question(&mut self, question: Question) {
        self.waiters += 1;
        if self.line.question(question, self.waiters).is_ok() {
            self.waiting.insert(self.waiters, Waiting::Question(question));
        } else {
            self.questions.push(question);
        }
    }

    fn instrument(&mut self) -> InstrumentId {
        InstrumentId(1 + self.random.below(u64::from(self.instruments)) as u32)
    }

    fn request(&mut self) -> ClientRequest {
        let client_order_id = ClientOrderId(self.names);
        let target = ClientOrderId(self.names.saturating_sub(self.random.between(1, 8)).max(1));
        match self.random.below(100) {
            0..=14 if self.names > 2 => ClientRequest::Cancel { client_order_id, target },
            15..=26 if self.names > 2 => {
                let terms = NewTerms::new(self.price(), self.quantity());
                ClientRequest::Amend { client_order_id, target, terms }
            }
            27..=28 => {
                let instrument = if self.random.chance(500) { InstrumentId(0) } else { self.instrument() };
                ClientRequest::MassCancel { client_order_id, instrument, side: None }
            }
            _ => self.order(client_order_id),
        }
    }

    fn order(&mut self, client_order_id: ClientOrderId) -> ClientRequest {
        let side = if self.random.chance(500) { Side::Buy } else { Side::Sell };
        let order = NewOrder::limit(side, self.price(), self.quantity());
        ClientRequest::Enter { client_order_id, instrument: self.instrument(), order }
    }

    fn price(&mut self) -> Price {
        Price(MIDDLE + self.random.below(12) as i64 * 100 - 600)
    }

    fn quantity(&mut self) -> Quantity {
        Quantity(self.random.between(1, 20))
    }

    /// What no client should do: ask the same many times at once, ask for something else under the same name, follow from numbers that are none, from the start again and again.
    pub(super) fn ask_wrongly(&mut self) {
        let shard = self.followers[0].shards()[0];
        match self.random.below(5) {
            0 => {
                let open = self.open.values().next().map(|open| open.request);
                open.into_iter().for_each(|request| (0..12).for_each(|_| self.ask(request)));
            }
            1 if self.names > 0 => {
                let name = self.random.between(1, self.names);
                let request = self.order(ClientOrderId(name));
                self.asked.entry(name).or_default().push(request);
                self.ask_besides(request);
            }
            2 => self.line.follow(shard, 1 << 40),
            3 => (0..5).for_each(|_| self.line.follow(shard, 1)),
            _ => self.line.follow(ShardId(shard.0 + 1_000), 0),
        }
    }

    /// Asks for a client that does not listen to the answer.
    fn ask_besides(&mut self, request: ClientRequest) {
        self.waiters += 1;
        let _ = self.line.ask(request, self.waiters);
    }
}
