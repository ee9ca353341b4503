//! Fronts, a desk, clients and the accounts, and the messages between them: late, lost, twice, out of order; fronts and desks die, and others take their place.

use std::collections::BTreeMap;

use pares_broker::{
    Asked, BrokerRead, BrokerReply, BrokerRequest, HitName, QuoteBrought, StockQuote, StockSymbol, UserName,
};
use pares_front::{Arrival, BrokerFront, FrontEffect, QuoteFault};
use pares_random::Random;
use pares_wice::TransactionId;

use crate::accounts::{Accounts, Broken};
use crate::clients::Client;

const NOON_MS: u64 = 1_680_000_000_000;
/// After so long nothing is lost any more and nobody dies, ms.
const TROUBLE_MS: u64 = 15_000;
/// A request without an answer is repeated.
const REPEAT_MS: u64 = 1_000;
/// A site remembers so many names of a client.
const NAMES_REMEMBERED: u64 = 64;

/// A front, and which one in its place it is.
pub(crate) struct FrontAt {
    pub(crate) front: BrokerFront,
    life: u64,
    open: BTreeMap<TransactionId, BrokerRequest>,
    latest: BTreeMap<u64, u64>,
    arrivals: BTreeMap<u64, (usize, usize)>,
    tick_at: u64,
}

enum Event {
    Request(TransactionId, BrokerRequest),
    Reply(TransactionId, BrokerReply),
    Repeat(TransactionId),
    Want(u64, StockSymbol, UserName),
    Quote(u64, Result<QuoteBrought, QuoteFault>),
    Hit(QuoteBrought),
    Look(u64, BrokerRead),
    Tick(u64),
    Client(usize),
    Kill,
    KillDesk,
}

/// The desk of all fronts: it keeps a hit until it is noted.
#[derive(Default)]
struct Desk {
    number: u64,
    count: u64,
    kept: BTreeMap<StockSymbol, StockQuote>,
    unnoted: BTreeMap<HitName, (QuoteBrought, (usize, u64))>,
}

/// See the [module](self).
pub(crate) struct World {
    draw: Random,
    pub(crate) now_ms: u64,
    /// By time and order; whom of the fronts it concerns, and in which life.
    events: BTreeMap<(u64, u64), (usize, u64, Event)>,
    order: u64,
    pub(crate) accounts: Accounts,
    pub(crate) fronts: Vec<FrontAt>,
    desk: Desk,
    pub(crate) clients: Vec<Client>,
    thought: u64,
    /// Hits that fronts said to be noted, and those of a living desk.
    pub(crate) noted: Vec<HitName>,
    pub(crate) fault: Option<String>,
    quiet_from_ms: u64,
    pub(crate) moments: Moments,
}

/// What fronts asked for without a command: what was done, and what there was nothing to do for. In a calm world nothing is repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moments {
    pub(crate) fired: u64,
    pub(crate) fired_in_vain: u64,
    pub(crate) released: u64,
    pub(crate) released_in_vain: u64,
}

impl World {
    pub(crate) fn new(seed: u64, broken: Option<Broken>) -> Self {
        let mut draw = Random::new(seed);
        let fronts = 2 + draw.below(2) as usize;
        let names = [("jo", true), ("jo", true), ("al", true), ("jo", false), ("al", false)];
        let mut world = Self::with_fronts(draw, &names, broken, fronts, TROUBLE_MS);
        world.after(2_000, 0, Event::Kill);
        world.after(4_000, 0, Event::KillDesk);
        world
    }

    /// In which nothing goes wrong, and every user is one client, who stays at his front.
    pub(crate) fn calm(seed: u64, fronts: usize) -> Self {
        let names = [("jo", true), ("al", true), ("bo", true), ("cy", true), ("di", true), ("ed", true)];
        Self::with_fronts(Random::new(seed), &names, None, fronts, 0)
    }

    fn with_fronts(
        draw: Random,
        names: &[(&str, bool)],
        broken: Option<Broken>,
        fronts: usize,
        trouble_ms: u64,
    ) -> Self {
        let clients = names.iter().map(|(user, in_session)| Client::of(user, *in_session, 22)).collect();
        let mut world = Self {
            draw,
            now_ms: NOON_MS,
            events: BTreeMap::new(),
            order: 0,
            accounts: Accounts::with(broken),
            fronts: Vec::new(),
            desk: Desk::default(),
            clients,
            thought: 0,
            noted: Vec::new(),
            fault: None,
            quiet_from_ms: NOON_MS + trouble_ms,
            moments: Moments::default(),
        };
        for at in 0..fronts {
            world.fronts.push(FrontAt::born(at, 0));
            world.after(1, at, Event::Tick(0));
        }
        (0..world.clients.len()).for_each(|client| world.after(5, 0, Event::Client(client)));
        world
    }

    fn is_quiet(&self) -> bool {
        self.now_ms >= self.quiet_from_ms
    }

    /// Whether something goes wrong that does in one of so many cases.
    fn one_in(&mut self, count: u64) -> bool {
        self.draw.below(count) == 0 && !self.is_quiet()
    }

    fn after(&mut self, ms: u64, front: usize, event: Event) {
        let life = self.fronts.get(front).map_or(0, |front| front.life);
        self.order += 1;
        self.events.insert((self.now_ms + ms, self.order), (front, life, event));
    }

    /// A message on its way to or from a front: perhaps never, perhaps late.
    fn travels(&mut self, front: usize, event: Event) {
        if self.one_in(12) {
            return;
        }
        let ms = if self.one_in(40) { self.draw.below(3_000) } else { 1 + self.draw.below(25) };
        self.after(ms, front, event);
    }

    fn behind(&mut self) -> u64 {
        if self.is_quiet() || self.draw.below(3) > 0 { 0 } else { self.draw.below(4) }
    }

    /// Runs until `end_ms`.
    pub(crate) fn run_until(&mut self, end_ms: u64) {
        while self.fault.is_none()
            && let Some(((at_ms, _), (front, life, event))) = self.events.pop_first()
        {
            self.now_ms = at_ms.max(self.now_ms);
            if self.now_ms > end_ms {
                self.events.insert((at_ms, 0), (front, life, event));
                return;
            }
            self.happens(front, life, event);
        }
    }

    fn happens(&mut self, front: usize, life: u64, event: Event) {
        let is_there = self.fronts[front].life == life;
        match event {
            Event::Client(client) => self.client(client),
            Event::Kill => self.kill(),
            Event::KillDesk => self.kill_desk(),
            Event::Request(id, request) => self.executed(front, life, id, &request),
            Event::Want(hit, symbol, user) => self.wanted(front, life, hit, symbol, &user),
            _ if !is_there => {}
            Event::Tick(at_ms) if at_ms == self.fronts[front].tick_at => {
                self.tell(front, |front, now_ms| front.tick(now_ms));
            }
            Event::Tick(_) => {}
            Event::Reply(id, reply) => {
                self.fronts[front].open.remove(&id);
                self.tell(front, |front, now_ms| front.answered(id, reply, now_ms));
            }
            Event::Repeat(id) => self.repeat(front, id),
            Event::Quote(hit, answer) => {
                self.tell(front, |front, now_ms| front.quote(hit, answer, now_ms));
            }
            Event::Hit(brought) => {
                self.tell(front, |front, now_ms| front.take_hit(brought, now_ms));
            }
            Event::Look(number, read) => {
                let answer = if self.one_in(10) { None } else { Some(self.behind()) };
                let answer = answer.map(|behind| self.accounts.read(&read, behind));
                self.tell(front, |front, now_ms| {
                    front.looked(number, answer.as_deref(), now_ms);
                });
            }
        }
    }

    /// A request has come to a site.
    fn executed(&mut self, front: usize, life: u64, id: TransactionId, request: &BrokerRequest) {
        let behind = self.behind();
        let reply = match self.accounts.begin_front(request) {
            Some(reply) => reply,
            None => self.accounts.execute(id, request, behind),
        };
        self.count(&request.asked, &reply);
        if self.fronts[front].life == life {
            self.travels(front, Event::Reply(id, reply));
        }
    }

    fn count(&mut self, asked: &Asked, reply: &BrokerReply) {
        let moments = &mut self.moments;
        match (asked, reply) {
            (Asked::Fire { .. }, BrokerReply::Settled { .. }) => moments.fired += 1,
            (Asked::Fire { .. }, BrokerReply::Unchanged) => moments.fired_in_vain += 1,
            (Asked::Lapse { .. }, BrokerReply::Lapsed { .. }) => moments.released += 1,
            (Asked::Lapse { .. }, BrokerReply::Unchanged) => moments.released_in_vain += 1,
            _ => {}
        }
    }

    /// Every front is another one now, which has armed and placed nothing.
    pub(crate) fn replace_all(&mut self) {
        for at in 0..self.fronts.len() {
            self.fronts[at] = FrontAt::born(at, self.fronts[at].life + 1);
            self.after(1 + at as u64, at, Event::Tick(0));
        }
    }

    fn repeat(&mut self, front: usize, id: TransactionId) {
        let at = &self.fronts[front];
        let Some(request) = at.open.get(&id).cloned() else { return };
        if at.latest[&id.client] - id.sequence >= NAMES_REMEMBERED {
            self.fault = Some(format!("{id:?} is repeated when sites have forgotten it"));
        }
        self.travels(front, Event::Request(id, request));
        self.after(REPEAT_MS, front, Event::Repeat(id));
    }

    /// Tells a front something, and does what it wants.
    fn tell(&mut self, at: usize, what: impl FnOnce(&mut BrokerFront, u64)) {
        what(&mut self.fronts[at].front, self.now_ms);
        for effect in self.fronts[at].front.take_effects() {
            self.carry_out(at, effect);
        }
        if let Some(due_ms) = self.fronts[at].front.next_deadline() {
            let due_ms = due_ms.max(self.now_ms + 1);
            self.fronts[at].tick_at = due_ms;
            self.after(due_ms - self.now_ms, at, Event::Tick(due_ms));
        }
    }

    fn carry_out(&mut self, at: usize, effect: FrontEffect) {
        match effect {
            FrontEffect::Ask { hit, symbol, user } => self.travels(at, Event::Want(hit, symbol, user)),
            FrontEffect::Abandon { .. } => {}
            FrontEffect::Submit { id, request } => {
                self.fronts[at].open.insert(id, request.clone());
                self.fronts[at].latest.insert(id.client, id.sequence);
                if self.one_in(10) {
                    self.travels(at, Event::Request(id, request.clone()));
                }
                self.travels(at, Event::Request(id, request));
                self.after(REPEAT_MS, at, Event::Repeat(id));
            }
            FrontEffect::Look { .. } if self.accounts.broken == Some(Broken::Looks) => {}
            FrontEffect::Look { number, read } => {
                // Who reads says in any case what came of it.
                let ms = if self.one_in(40) { self.draw.below(8_000) } else { 1 + self.draw.below(25) };
                self.after(ms, at, Event::Look(number, read));
            }
            FrontEffect::Noted { hit } => {
                self.noted.push(hit);
                self.desk.unnoted.remove(&hit);
            }
            FrontEffect::Told { arrival, number, reply, .. } => self.told(at, arrival, number, reply),
        }
    }

    /// A front wants a quote of the desk. The server answers at once, or not at all.
    fn wanted(&mut self, at: usize, life: u64, hit: u64, symbol: StockSymbol, user: &UserName) {
        if self.fronts[at].life != life {
            return;
        }
        let now_ms = self.now_ms;
        let kept =
            self.desk.kept.get(&symbol).filter(|kept| now_ms + 3_000 < kept.server_ms + 60_000).cloned();
        let answer = match kept {
            Some(quote) => Ok(QuoteBrought { quote, hit: None }),
            None if self.one_in(10) => Err(QuoteFault::Closed),
            None => {
                self.desk.count += 1;
                let name = HitName { desk: self.desk.number, count: self.desk.count };
                let (key, user) = (format!("{}-{}", name.desk, name.count), user.as_str().to_owned());
                let quote = StockQuote {
                    price_cents: 50 + self.draw.below(350),
                    symbol,
                    user,
                    server_ms: now_ms,
                    key,
                };
                self.desk.kept.insert(symbol, quote.clone());
                let brought = QuoteBrought { quote, hit: Some(name) };
                self.desk.unnoted.insert(name, (brought.clone(), (at, life)));
                Ok(brought)
            }
        };
        let ms = if self.one_in(20) { 7_000 } else { 10 + self.draw.below(300) };
        self.after(ms, at, Event::Quote(hit, answer));
    }

    /// A front dies, and another begins in its place; its hits are given to one that lives.
    fn kill(&mut self) {
        if self.is_quiet() {
            return;
        }
        let at = self.draw.below(self.fronts.len() as u64) as usize;
        let dead = (at, self.fronts[at].life);
        self.fronts[at] = FrontAt::born(at, dead.1 + 1);
        let begins = 1 + self.draw.below(200);
        self.after(begins, at, Event::Tick(0));
        let to = self.draw.below(self.fronts.len() as u64) as usize;
        let heir = (to, self.fronts[to].life);
        let left = self.desk.unnoted.values_mut().filter(|(_, with)| *with == dead);
        let hits: Vec<_> = left.map(|(brought, with)| (*with = heir, brought.clone()).1).collect();
        hits.into_iter().for_each(|brought| self.after(20, to, Event::Hit(brought)));
        let next = 700 + self.draw.below(2_500);
        self.after(next, 0, Event::Kill);
    }

    /// A desk dies, and with it the knowledge of hits that are not noted; another begins.
    fn kill_desk(&mut self) {
        if self.is_quiet() {
            return;
        }
        self.desk = Desk { number: self.desk.number + 1, ..Desk::default() };
        let next = 3_000 + self.draw.below(6_000);
        self.after(next, 0, Event::KillDesk);
    }

    /// A client looks around: it connects again, repeats what has no answer, thinks of another command.
    fn client(&mut self, at: usize) {
        let front = self.draw.below(self.fronts.len() as u64) as usize;
        self.thought += 1;
        let client = &mut self.clients[at];
        if client.begin(|| self.fronts[front].front.open_session()) {
            client.think(self.thought, &mut self.draw);
            let lives: Vec<u64> = self.fronts.iter().map(|front| front.life).collect();
            for (index, to) in client.what_goes(front, &lives) {
                self.send(at, index, to);
            }
        }
        let ms = if self.one_in(80) { 61_000 } else { 10 + self.draw.below(400) };
        self.after(ms, 0, Event::Client(at));
    }

    fn send(&mut self, client: usize, index: usize, to: usize) {
        let user = Some(self.clients[client].user.clone());
        let given = &self.clients[client].given[index];
        let arrival =
            Arrival { sender: client as u64, user, order: given.order.clone(), asked: given.asked.clone() };
        let mut arrived = None;
        self.tell(to, |front, now_ms| arrived = front.arrives(arrival, now_ms).ok());
        match arrived {
            Some(arrived) => drop(self.fronts[to].arrivals.insert(arrived, (client, index))),
            None => self.fault = Some("a front does not take a command".into()),
        }
    }

    fn told(&mut self, at: usize, arrival: u64, number: u64, reply: Option<BrokerReply>) {
        // What is reported while it arrives is reported by the next life of its client.
        let Some((client, index)) = self.fronts[at].arrivals.remove(&arrival) else { return };
        let is_cut = self.one_in(20);
        let (client, life) = (&mut self.clients[client], self.fronts[at].life);
        if let Err(fault) = client.told(index, (at, life), is_cut, number, reply) {
            self.fault = Some(fault);
        }
    }
}

impl FrontAt {
    fn born(at: usize, life: u64) -> Self {
        Self {
            front: BrokerFront::new((1 << 60) + (at as u64 * 1_000) + life),
            life,
            open: BTreeMap::new(),
            latest: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            tick_at: 0,
        }
    }
}

impl World {
    /// Fronts have all hits noted that they were given.
    pub(crate) fn settle(&mut self) {
        for at in 0..self.fronts.len() {
            self.tell(at, |front, now_ms| front.settle_hits(now_ms));
        }
    }

    /// Whether a quote has come that fronts may not have acted on yet.
    pub(crate) fn has_young_quote(&self) -> bool {
        self.desk.kept.values().any(|quote| self.now_ms < quote.server_ms + 5_000)
    }

    /// Hits that a desk waits for: the log does not have them yet.
    pub(crate) fn awaited(&self) -> usize {
        self.desk.unnoted.len()
    }
}
