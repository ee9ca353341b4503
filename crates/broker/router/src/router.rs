//! The router: claims, names what waits, sends what is named, and has applied what the exchange reports.

use std::collections::{BTreeMap, VecDeque};

use pares_broker::{
    BrokerReply, CustomerOrderId, ORDERS_PAGE_MAX, Order, OrderAsked, OrderRead, OrderReply, OrderStage,
    OrderTerms, Refusal, StockSymbol,
};
use pares_types::{ClientOrderId, ClientRequest, Reason};

use crate::exchange::{self, ListedStock, Told};

/// Between two looks for what waits or is to be cancelled, ms.
const LOOK_EVERY_MS: u64 = 10;
/// Between two claims, ms: less than half of [`ROUTER_SILENT_MS`].
pub(crate) const CLAIM_EVERY_MS: u64 = 1_000;
/// After so long without a claim of another router its seat is taken, ms.
pub const ROUTER_SILENT_MS: u64 = 3_000;
/// What is not answered for so long is sent again, ms.
pub(crate) const REPEAT_AFTER_MS: u64 = 3_000;
/// What was turned away for now is sent again after so long, ms.
pub(crate) const PAUSE_MS: u64 = 200;
/// No order of a shard is named while so many of it are without an answer.
const UNANSWERED_MAX: usize = 256;
/// Most orders named by one transaction.
const NAMED_AT_ONCE: usize = 64;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouterEffect {
    /// Have the accounts execute this, once, and tell [`Router::answered`]. What is asked earlier is executed earlier.
    Ask {
        /// Which question.
        id: u64,
        /// What.
        asked: OrderAsked,
    },
    /// Read this, not older than what was answered before, and tell [`Router::found`].
    Look {
        /// Which question.
        id: u64,
        /// What.
        read: OrderRead,
    },
    /// Send this to the exchange, behind what was sent before.
    Send {
        /// The request.
        request: ClientRequest,
    },
    /// Follow the stream of a shard.
    Resume {
        /// The shard.
        shard: u32,
        /// The number of the first message that is wanted.
        next: u64,
    },
    /// The accounts and the exchange do not agree: nothing more is done, since it might be wrong.
    Halt {
        /// What the accounts say; [`Refusal::OtherOrder`] also if they know of no order of that name.
        refusal: Refusal,
    },
}

/// A question without an answer.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    Claim,
    Seat,
    Told,
    Open,
    Waiting,
    Unwanted,
    Owner { shard: u32 },
    Name { terms: BTreeMap<CustomerOrderId, OrderTerms> },
    TurnAway { name: u64 },
    Settle { shard: u32, name: u64 },
    Pass { shard: u32, count: usize },
}

/// An order that has a name and has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Routed {
    pub(crate) of: CustomerOrderId,
    pub(crate) terms: OrderTerms,
    /// The exchange has said that it has it.
    pub(crate) is_answered: bool,
    /// A gateway has turned it away for good: its name is to be used up.
    pub(crate) is_plugged: bool,
    /// When it is sent, if it is not answered before.
    pub(crate) due_ms: u64,
    /// When a cancel may be sent again.
    pub(crate) cancel_due_ms: u64,
}

/// A shard's stream.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// The number of the message to come.
    pub(crate) next: u64,
    /// What has come and is not applied.
    pub(crate) queue: VecDeque<Told>,
    /// A question about the first of them is under way.
    pub(crate) is_asked: bool,
    /// All that was missed has been told.
    pub(crate) is_live: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Claiming,
    Recovering,
    Working,
    Halted,
}

/// See the [crate](crate).
#[derive(Debug)]
pub struct Router {
    pub(crate) number: u64,
    /// As which member it signs on.
    pub(crate) member: u32,
    pub(crate) stage: Stage,
    pub(crate) term: u64,
    pub(crate) orders: BTreeMap<u64, Routed>,
    pub(crate) streams: BTreeMap<u32, Stream>,
    pub(crate) listed: BTreeMap<StockSymbol, ListedStock>,
    pub(crate) is_connected: bool,
    pub(crate) questions: BTreeMap<u64, Question>,
    questions_so_far: u64,
    cancels: u64,
    pub(crate) claim_due_ms: u64,
    /// So many claims of another were counted, and since when.
    pub(crate) seen: Option<(u64, u64)>,
    look_due_ms: u64,
    pub(crate) now_ms: u64,
    pub(crate) effects: Vec<RouterEffect>,
}

impl Router {
    /// A router of that number, which no other has; it signs on as that member.
    #[must_use]
    pub fn new(number: u64, member: u32) -> Self {
        Self {
            number,
            member,
            stage: Stage::Claiming,
            term: 0,
            orders: BTreeMap::new(),
            streams: BTreeMap::new(),
            listed: BTreeMap::new(),
            is_connected: false,
            questions: BTreeMap::new(),
            questions_so_far: 0,
            cancels: 0,
            claim_due_ms: 0,
            seen: None,
            look_due_ms: 0,
            now_ms: 0,
            effects: Vec::new(),
        }
    }

    /// What is to be done, in this order: all of it since this was taken last.
    pub fn take_effects(&mut self) -> Vec<RouterEffect> {
        core::mem::take(&mut self.effects)
    }

    /// Its term, if it is the active router.
    #[must_use]
    pub fn term(&self) -> Option<u64> {
        (self.stage == Stage::Working).then_some(self.term)
    }

    /// Orders that are named and have not ended, as far as it knows.
    #[must_use]
    pub fn open(&self) -> usize {
        self.orders.len()
    }

    /// Whether all that it knows of is done: nothing is asked, sent or told that has no answer.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let is_applied = self.streams.values().all(|stream| stream.queue.is_empty());
        self.stage == Stage::Working && is_applied && self.orders.values().all(|order| order.is_answered)
    }

    /// Time has passed: `now_ms` is a monotonic clock's, and is compared with no other's.
    pub fn tick(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        if self.stage == Stage::Halted {
            return;
        }
        self.claim_or_look();
        if self.stage == Stage::Working && self.is_connected {
            self.send_due();
            if now_ms >= self.look_due_ms {
                self.look();
            }
        }
    }

    fn look(&mut self) {
        self.look_due_ms = self.now_ms + LOOK_EVERY_MS;
        let is_naming = |question: &Question| matches!(question, Question::Waiting | Question::Name { .. });
        if !self.questions.values().any(is_naming) {
            self.read(OrderRead::Waiting { after: None }, Question::Waiting);
        }
        if !self.questions.values().any(|question| matches!(question, Question::Unwanted)) {
            self.read(OrderRead::Unwanted { from: 0 }, Question::Unwanted);
        }
    }

    /// How many more orders of each shard may be named now.
    fn room(&self) -> BTreeMap<u32, usize> {
        let shards = self.listed.values().map(|listing| listing.shard);
        let mut room: BTreeMap<u32, usize> = shards.map(|shard| (shard, UNANSWERED_MAX)).collect();
        for routed in self.orders.values().filter(|routed| !routed.is_answered) {
            let listing = self.listed.get(&routed.terms.symbol);
            if let Some(left) = listing.and_then(|listing| room.get_mut(&listing.shard)) {
                *left = left.saturating_sub(1);
            }
        }
        room
    }

    pub(crate) fn ask(&mut self, asked: OrderAsked, question: Question) {
        let id = self.question(question);
        self.effects.push(RouterEffect::Ask { id, asked });
    }

    pub(crate) fn read(&mut self, read: OrderRead, question: Question) {
        let id = self.question(question);
        self.effects.push(RouterEffect::Look { id, read });
    }

    fn question(&mut self, question: Question) -> u64 {
        self.questions_so_far += 1;
        self.questions.insert(self.questions_so_far, question);
        self.questions_so_far
    }

    /// The accounts have executed a question.
    pub fn answered(&mut self, id: u64, reply: BrokerReply, now_ms: u64) {
        self.now_ms = now_ms;
        let Some(question) = self.questions.remove(&id) else { return };
        match reply {
            BrokerReply::Refused { refusal: Refusal::NotRouter | Refusal::RouterAlive } => self.lose(),
            BrokerReply::Refused { refusal } => self.halt(refusal),
            BrokerReply::Order { reply } => self.reply(question, reply),
            // Applied before, or by the router before: done.
            BrokerReply::Unchanged => self.done(question, None),
            // The stream has a gap: what is missing is asked for again.
            _ => self.lose(),
        }
    }

    /// Nothing is done from now on: what it waits for is forgotten.
    pub(crate) fn halt(&mut self, refusal: Refusal) {
        self.stage = Stage::Halted;
        self.questions.clear();
        self.effects.push(RouterEffect::Halt { refusal });
    }

    fn reply(&mut self, question: Question, reply: OrderReply) {
        match (question, reply) {
            (Question::Claim, OrderReply::Claimed { term }) => {
                if self.stage == Stage::Claiming || term != self.term {
                    self.recover(term);
                }
            }
            (Question::Name { terms }, OrderReply::Named { names }) => {
                for (of, name) in names {
                    if let Some(terms) = terms.get(&of) {
                        self.keep(of, name, *terms, false);
                    }
                }
                self.send_due();
            }
            (question, OrderReply::Now { order }) => self.done(question, Some(order)),
            (question, _) => self.done(question, None),
        }
    }

    fn done(&mut self, question: Question, order: Option<Order>) {
        match question {
            Question::Settle { shard, name } => {
                self.applied(shard, 1);
                self.note(name, order);
                self.apply(shard);
            }
            Question::Pass { shard, count } => {
                self.applied(shard, count);
                self.apply(shard);
            }
            Question::TurnAway { name } => self.note(name, order),
            _ => {}
        }
    }

    fn note(&mut self, name: u64, order: Option<Order>) {
        let Some(order) = order else { return };
        if order.has_ended() {
            self.orders.remove(&name);
        } else if let Some(routed) = self.orders.get_mut(&name) {
            routed.is_answered = order.state == OrderStage::Open;
        }
    }

    pub(crate) fn keep(&mut self, of: CustomerOrderId, name: u64, terms: OrderTerms, is_answered: bool) {
        let routed = Routed { of, terms, is_answered, is_plugged: false, due_ms: 0, cancel_due_ms: 0 };
        self.orders.insert(name, routed);
    }

    /// Another router is active. Nothing of what this one knew holds any more.
    pub(crate) fn lose(&mut self) {
        self.stage = Stage::Claiming;
        self.orders.clear();
        self.streams.clear();
        self.questions.clear();
        (self.claim_due_ms, self.seen) = (self.now_ms + CLAIM_EVERY_MS / 2, None);
    }

    /// Sends what is not answered and due.
    pub(crate) fn send_due(&mut self) {
        if !self.is_connected {
            return;
        }
        let now_ms = self.now_ms;
        for (name, routed) in &mut self.orders {
            if routed.is_answered || routed.due_ms > now_ms {
                continue;
            }
            let Some(listing) = self.listed.get(&routed.terms.symbol) else { continue };
            routed.due_ms = now_ms + REPEAT_AFTER_MS;
            let make = if routed.is_plugged { exchange::plug } else { exchange::enter };
            self.effects.push(RouterEffect::Send { request: make(*name, &routed.terms, listing.instrument) });
        }
    }

    /// Names what waits and whose shard has room. If all of a page has to wait, the next page is looked at.
    pub(crate) fn take_waiting(&mut self, found: Vec<(CustomerOrderId, Order)>) {
        let next = found.last().filter(|_| found.len() == ORDERS_PAGE_MAX).map(|(of, _)| of.clone());
        let had = self.effects.len();
        let terms = self.pick(found);
        if !terms.is_empty() {
            let orders = terms.keys().cloned().collect();
            self.ask(OrderAsked::Name { term: self.term, orders }, Question::Name { terms });
        } else if self.effects.len() == had && next.is_some() {
            self.read(OrderRead::Waiting { after: next }, Question::Waiting);
        }
    }

    /// Those that are named now. What the exchange does not list is turned away.
    fn pick(&mut self, found: Vec<(CustomerOrderId, Order)>) -> BTreeMap<CustomerOrderId, OrderTerms> {
        let (mut terms, mut room) = (BTreeMap::new(), self.room());
        for (of, order) in found {
            let Some(listing) = self.listed.get(&order.terms.symbol) else {
                let reason = Reason::UnknownInstrument as u8;
                let asked = OrderAsked::TurnAway { term: self.term, of, name: 0, reason };
                self.ask(asked, Question::TurnAway { name: 0 });
                continue;
            };
            let left = room.entry(listing.shard).or_default();
            if *left > 0 && terms.len() < NAMED_AT_ONCE {
                *left -= 1;
                terms.insert(of, order.terms);
            }
        }
        terms
    }

    /// Sends the cancels that are wished.
    pub(crate) fn cancel(&mut self, names: &[u64]) {
        if !self.is_connected {
            return;
        }
        self.send_due();
        if let Some(last) = names.last().filter(|_| names.len() == ORDERS_PAGE_MAX) {
            self.read(OrderRead::Unwanted { from: last + 1 }, Question::Unwanted);
        }
        for name in names {
            let Some(routed) = self.orders.get_mut(name) else { continue };
            if routed.cancel_due_ms > self.now_ms || routed.is_plugged {
                continue;
            }
            routed.cancel_due_ms = self.now_ms + CLAIM_EVERY_MS;
            self.cancels += 1;
            let client_order_id = exchange::cancel_name(self.term, self.cancels);
            let request = ClientRequest::Cancel { client_order_id, target: ClientOrderId(*name) };
            self.effects.push(RouterEffect::Send { request });
        }
    }
}
