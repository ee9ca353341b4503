//! All of it, one step at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pares_broker::{
    BrokerReply, CustomerLimits, CustomerOrderId, OrderAsked, OrderLife, OrderStage, OrderTerms, TradeWay,
};
use pares_random::Random;
use pares_router::{ListedStock, ROUTER_SILENT_MS, Router, RouterEffect};
use pares_types::{ClientOrderId, ClientRequest, InstrumentId, Reason, Reply};

use crate::accounts::{Accounts, STOCKS, USERS, stock, supervisor, user};
use crate::exchange::{Done, Exchange, SHARDS, shard_of};

/// Every other router's clock is so far ahead, and that of the last one is not.
const AHEAD_MS: u64 = 36_000_000;

/// What is done wrong, to see that it is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Nothing,
    /// Messages are applied whatever their number and the router's term.
    AppliesTwice,
    /// Another router gives an order another name.
    NamesAnew,
    /// A hold is released when one gateway has turned its order away.
    ReleasesAtOnce,
    /// Another program trades as the member.
    IsTwo,
}

/// A router's process: what it wants done lies in order.
struct Instance {
    router: Router,
    number: u64,
    is_connected: bool,
    questions: VecDeque<RouterEffect>,
    requests: VecDeque<ClientRequest>,
    replies: VecDeque<Reply>,
    /// The number of the next message that it receives, by shard.
    follows: BTreeMap<u32, u64>,
    /// How far its clock is ahead of all others': so far are the times of what it asks.
    ahead_ms: u64,
}

pub(crate) struct World {
    draw: Random,
    broken: Broken,
    now_ms: u64,
    accounts: Accounts,
    exchange: Exchange,
    instances: Vec<Instance>,
    /// What dead routers have asked and sent, and what is on its way still.
    late_questions: Vec<OrderAsked>,
    late_requests: Vec<ClientRequest>,
    /// Which instance sent a name first.
    senders: BTreeMap<u64, u64>,
    started: u64,
    deaths: u64,
    halted: Option<String>,
}

impl World {
    pub(crate) fn new(seed: u64, broken: Broken) -> Self {
        let mut world = Self {
            draw: Random::new(seed),
            broken,
            now_ms: 1_000_000,
            accounts: Accounts::new(),
            exchange: Exchange::default(),
            instances: Vec::new(),
            late_questions: Vec::new(),
            late_requests: Vec::new(),
            senders: BTreeMap::new(),
            started: 0,
            deaths: 0,
            halted: None,
        };
        world.start();
        world
    }

    fn start(&mut self) {
        self.started += 1;
        self.instances.push(Instance {
            router: Router::new(self.started, 1),
            number: self.started,
            is_connected: false,
            questions: VecDeque::new(),
            requests: VecDeque::new(),
            replies: VecDeque::new(),
            follows: BTreeMap::new(),
            ahead_ms: if self.started.is_multiple_of(2) { AHEAD_MS } else { 0 },
        });
    }

    /// Something happens.
    pub(crate) fn step(&mut self) -> Result<(), String> {
        let at = self.draw.below(self.instances.len() as u64) as usize;
        match self.draw.below(200) {
            0 => self.die(at),
            1 => self.disconnect(at),
            2 if self.instances.len() < 2 => self.start(),
            3 => self.now_ms += ROUTER_SILENT_MS,
            4..25 => self.customer(),
            25..40 => self.exchange.happen(&mut self.draw),
            40..44 => self.late(),
            44..60 => self.connect(at),
            60..90 => self.tick(at),
            90..130 => self.question(at),
            130..160 => self.request(at),
            160..165 => self.tell_again(at),
            _ => self.tell(at),
        }
        self.halted.take().map_or(Ok(()), Err)
    }

    fn tick(&mut self, at: usize) {
        self.now_ms += self.draw.below(30);
        self.instances[at].router.tick(self.now_ms);
        self.carry_out(at);
    }

    fn carry_out(&mut self, at: usize) {
        let instance = &mut self.instances[at];
        for effect in instance.router.take_effects() {
            match effect {
                RouterEffect::Send { request } if instance.is_connected => {
                    instance.requests.push_back(request)
                }
                RouterEffect::Send { .. } => {}
                RouterEffect::Resume { shard, next } => drop(instance.follows.insert(shard, next)),
                RouterEffect::Halt { refusal } => {
                    self.halted.get_or_insert(refusal.to_string());
                }
                question => instance.questions.push_back(question),
            }
        }
    }

    fn connect(&mut self, at: usize) {
        let instance = &mut self.instances[at];
        if instance.is_connected {
            return;
        }
        instance.is_connected = true;
        instance.follows.clear();
        // The last stock is not listed.
        let listed = (0..STOCKS.len() - 1).map(|index| {
            let instrument = InstrumentId(index as u32 + 1);
            (stock(index), ListedStock { instrument, shard: shard_of(instrument) })
        });
        instance.router.connected(listed.collect(), self.now_ms);
        self.carry_out(at);
    }

    /// What was on its way may arrive late, or never.
    fn disconnect(&mut self, at: usize) {
        let instance = &mut self.instances[at];
        instance.is_connected = false;
        instance.replies.clear();
        instance.follows.clear();
        instance.router.disconnected();
        let lost: Vec<ClientRequest> = instance.requests.drain(..).collect();
        for request in lost {
            if self.draw.below(2) == 0 {
                self.late_requests.push(request);
            }
        }
    }

    fn die(&mut self, at: usize) {
        self.disconnect(at);
        self.deaths += 1;
        let dead = self.instances.remove(at);
        for question in dead.questions {
            if let RouterEffect::Ask { asked, .. } = question {
                self.late_questions.push(asked);
            }
        }
        if self.instances.is_empty() {
            self.start();
        }
    }

    /// Something of the past arrives.
    fn late(&mut self) {
        if !self.late_questions.is_empty() {
            let at = self.draw.below(self.late_questions.len() as u64) as usize;
            let asked = self.late_questions.swap_remove(at);
            self.execute(asked, 0);
        }
        if !self.late_requests.is_empty() {
            let at = self.draw.below(self.late_requests.len() as u64) as usize;
            let request = self.late_requests.swap_remove(at);
            self.exchange.take(&request, &mut self.draw);
        }
    }

    fn execute(&mut self, mut asked: OrderAsked, ahead_ms: u64) -> BrokerReply {
        if self.broken == Broken::AppliesTwice
            && let OrderAsked::Settle { settlement } = &mut asked
            && let Some(term) = self.instances.iter().find_map(|instance| instance.router.term())
        {
            settlement.number = self.accounts.told(settlement.shard);
            settlement.term = term;
        }
        self.accounts.execute(asked, self.now_ms + ahead_ms)
    }

    fn question(&mut self, at: usize) {
        let Some(question) = self.instances[at].questions.pop_front() else { return };
        match question {
            RouterEffect::Ask { id, asked } => {
                let reply = self.execute(asked, self.instances[at].ahead_ms);
                self.instances[at].router.answered(id, reply, self.now_ms);
            }
            RouterEffect::Look { id, read } => {
                let bytes = self.accounts.read(read);
                self.instances[at].router.found(id, &bytes, self.now_ms).unwrap();
            }
            _ => {}
        }
        self.carry_out(at);
    }

    fn request(&mut self, at: usize) {
        let instance = &mut self.instances[at];
        let Some(mut request) = instance.requests.pop_front() else { return };
        if let ClientRequest::Enter { client_order_id, .. } = &mut request {
            let sender = *self.senders.entry(client_order_id.0).or_insert(instance.number);
            if self.broken == Broken::NamesAnew && sender != instance.number {
                *client_order_id = ClientOrderId(client_order_id.0 | 1 << 40);
            }
        }
        if let Some(reply) = self.exchange.take(&request, &mut self.draw) {
            if matches!(reply, Reply::Rejected { reason: Reason::TooOld, .. }) {
                // Said behind all that the stream had told.
                (0..SHARDS).for_each(|shard| while self.tell_next(at, shard) {});
            }
            self.instances[at].replies.push_back(reply);
        }
    }

    /// The next message that a router receives.
    fn tell(&mut self, at: usize) {
        if let Some(reply) = self.instances[at].replies.pop_front() {
            if self.broken == Broken::ReleasesAtOnce {
                self.release_at_once(at, &reply);
            }
            self.instances[at].router.told(&reply, self.now_ms);
            return self.carry_out(at);
        }
        let shard = self.draw.below(SHARDS.into()) as u32;
        if !self.tell_next(at, shard) && self.instances[at].follows.contains_key(&shard) {
            self.instances[at].router.resumed(shard);
        }
    }

    /// The next message of a shard, if there is one.
    fn tell_next(&mut self, at: usize, shard: u32) -> bool {
        let instance = &mut self.instances[at];
        let Some(next) = instance.follows.get_mut(&shard) else { return false };
        let Some(reply) = self.exchange.streams[shard as usize].get(*next as usize - 1) else { return false };
        *next += 1;
        instance.router.told(reply, self.now_ms);
        self.carry_out(at);
        true
    }

    fn release_at_once(&mut self, at: usize, reply: &Reply) {
        let Reply::Rejected { client_order_id, reason: Reason::PriceCollar } = reply else { return };
        let Some(term) = self.instances[at].router.term() else { return };
        let name = client_order_id.0;
        for index in 0..USERS {
            for (number, order) in self.accounts.orders(&user(index)) {
                if order.name == name {
                    let of = CustomerOrderId { user: user(index), number };
                    let asked = OrderAsked::TurnAway { term, of, name, reason: reason(reply) };
                    self.accounts.execute(asked, self.now_ms);
                }
            }
        }
    }

    /// A message comes a second time.
    fn tell_again(&mut self, at: usize) {
        let shard = self.draw.below(SHARDS.into()) as u32;
        let Some(next) = self.instances[at].follows.get(&shard).copied().filter(|next| *next > 1) else {
            return;
        };
        let number = self.draw.below(next - 1) as usize;
        let reply = self.exchange.streams[shard as usize][number];
        self.instances[at].router.told(&reply, self.now_ms);
        self.carry_out(at);
    }

    fn customer(&mut self) {
        let user = user(self.draw.below(USERS as u64) as usize);
        let asked = match self.draw.below(20) {
            0 => OrderAsked::Block { by: supervisor(), user, is_blocked: true },
            1 | 2 => OrderAsked::Block { by: supervisor(), user, is_blocked: false },
            3 => {
                let limits = CustomerLimits { open_max: 1 + self.draw.below(9), ..CustomerLimits::default() };
                OrderAsked::Limit { by: supervisor(), user, limits }
            }
            4..8 => {
                let open = self.accounts.customer(&user).open;
                let at = self.draw.below(open.len().max(1) as u64) as usize;
                let Some(number) = open.get(at).copied() else { return };
                OrderAsked::Cancel { of: CustomerOrderId { user, number } }
            }
            _ => OrderAsked::Place { user, terms: self.terms() },
        };
        self.accounts.execute(asked, self.now_ms);
    }

    fn terms(&mut self) -> OrderTerms {
        let way = if self.draw.below(2) == 0 { TradeWay::Buy } else { TradeWay::Sell };
        let life = if self.draw.below(4) == 0 { OrderLife::Immediate } else { OrderLife::Day };
        OrderTerms {
            symbol: stock(self.draw.below(STOCKS.len() as u64) as usize),
            way,
            shares: 1 + self.draw.below(200),
            limit_cents: 500 + self.draw.below(1_000),
            life,
        }
    }

    /// One router continues, and nothing fails any more, until all is done.
    pub(crate) fn heal(&mut self) -> Result<(), String> {
        if self.broken == Broken::IsTwo {
            self.exchange.trade_of_another(&mut self.draw);
        }
        while self.instances.len() > 1 {
            self.die(0);
        }
        self.started += self.started % 2;
        self.die(0);
        while !self.late_questions.is_empty() || !self.late_requests.is_empty() {
            self.late();
        }
        for round in 0..20_000_u64 {
            self.now_ms += 5;
            self.connect(0);
            self.tick(0);
            while !self.instances[0].questions.is_empty() {
                self.question(0);
            }
            while !self.instances[0].requests.is_empty() {
                self.request(0);
            }
            self.tell(0);
            if let Some(why) = self.halted.take() {
                return Err(why);
            }
            if round > 2_000 && round % 100 == 0 && self.is_done() {
                return Ok(());
            }
        }
        Err("it does not come to an end".into())
    }

    fn is_done(&self) -> bool {
        let streams = (0..SHARDS)
            .all(|shard| self.accounts.told(shard) == self.exchange.streams[shard as usize].len() as u64 + 1);
        let orders = (0..USERS).flat_map(|index| self.accounts.orders(&user(index)));
        let is_open = |order: &pares_broker::Order| order.state == OrderStage::Open && !order.is_unwanted;
        streams && { orders }.all(|(_, order)| order.has_ended() || is_open(&order))
    }

    /// Each order is there as the accounts say, and every cent and every share is accounted for. What has happened.
    pub(crate) fn check(&self) -> Result<BTreeMap<&'static str, u64>, String> {
        let [mut orders, mut trades, mut cancelled] = [0; 3];
        let mut known = BTreeSet::new();
        for index in 0..USERS {
            let latest_ms = self.accounts.summary(&user(index)).account.latest_ms;
            if latest_ms > self.now_ms {
                return Err(format!("u{index} was taken along by a router's clock"));
            }
            for (number, order) in self.accounts.orders(&user(index)) {
                let done = self.exchange.done.get(&order.name).copied().unwrap_or_default();
                let left = self.exchange.live.get(&order.name).map_or(0, |live| live.left);
                if order.left != left || done != (Done { shares: order.filled, value: order.value }) {
                    return Err(format!("order {number}: {order:?}, there {left} left and {done:?}"));
                }
                if order.name > 0 && !known.insert(order.name) {
                    return Err(format!("two orders have the name {}", order.name));
                }
                orders += 1;
                trades += u64::from(order.filled > 0);
                cancelled += u64::from(order.state == OrderStage::Cancelled);
            }
        }
        let figures = BTreeMap::from([
            ("orders", orders),
            ("trades", trades),
            ("cancelled", cancelled),
            ("deaths of routers", self.deaths),
            ("repeats", self.exchange.repeats),
            ("void trades", self.exchange.voids),
            ("names used up", self.exchange.plugs),
            ("names that were too old", self.exchange.never),
        ]);
        let others = self.exchange.live.keys().chain(self.exchange.done.keys());
        match { others }.find(|name| !known.contains(*name)) {
            Some(name) => Err(format!("nobody ordered {name}")),
            None => self.accounts.check_log().map(|()| figures),
        }
    }
}

fn reason(reply: &Reply) -> u8 {
    match reply {
        Reply::Rejected { reason, .. } => *reason as u8,
        _ => 0,
    }
}
