//! A broker's fronts as clients of the sites: the shipped ones, which die and begin anew; their users, and a quote server that is slow, silent and odd.
//!
//! ```text
//!   users --a few commands at a time--> front --requests, late, lost, repeated, at any site--> sites
//!                                        |  <--answers to questions: late, odd, or none-- the stand-in of the quote server
//! ```

use std::collections::{BTreeMap, VecDeque};

use pares_broker::{BrokerReply, HitName, QuoteBrought, StockSymbol, UserName, WorkloadLine};
use pares_front::{
    BrokerFront, FrontEffect, QuoteFault, StandIn, StandInSettings, StandInWords, ask_line, read_reply,
    reply_line,
};
use pares_link::ClientId;
use pares_site::protocol::{Ask, Code, Horizon};
use pares_wice::codec::Coded;
use pares_wice::{SiteId, TransactionId};

use super::brokerage;
use super::sites::{Event, Sites};
use super::{Broken, Verdict, bank};
use crate::random::Random;

/// A front's clock runs so much faster than the sites': minutes pass in a run.
const SPEED: u64 = 50;
const NOON_MS: u64 = 1_700_000_000_000;
const MINUTE_MS: u64 = 60_000;
/// A front has a turn so often, microseconds.
const TURN_US: u64 = 10_000;
/// A request that has no answer for so long is repeated at another site.
const PATIENCE_US: u64 = 400_000;
/// How long a front is down, microseconds.
const DOWN_US: (u64, u64) = (20_000, 400_000);
const FRONTS: usize = 3;
const USERS: usize = 6;
/// Commands of a user without a reply.
const GIVEN_MAX: usize = 4;
/// What stands for the first front where clients have their numbers.
const FIRST: usize = 0x8000;
/// Of a thousand turns of a front, in how many it dies, and a user gives a command.
const DEATHS_PERMILLE: u64 = 4;
const COMMANDS_PERMILLE: u64 = 250;
/// Of a thousand questions, how many have no good answer.
const BAD_PER_MILLE: u64 = 150;

/// A question to the quote server.
#[derive(Clone, Debug)]
pub(super) struct Question {
    hit: u64,
    symbol: StockSymbol,
    user: UserName,
    answer: Vec<u8>,
}

/// A request that has no answer.
#[derive(Debug)]
struct Open {
    bytes: Vec<u8>,
    asked_us: u64,
}

/// A front, up or down.
struct Place {
    /// None while it is down.
    front: Option<BrokerFront>,
    /// Counts its beginnings and ends.
    life: u64,
    /// No other has it, nor had it.
    number: u64,
    /// Its clock is ahead by so much.
    ahead_ms: u64,
    site: SiteId,
    seen: Horizon,
    open: BTreeMap<TransactionId, Open>,
    /// On which connection each was asked for.
    asked: BTreeMap<ClientId, TransactionId>,
    /// Commands that have arrived since it began.
    arrived: u64,
    /// Whose command was the nth to arrive.
    of: BTreeMap<u64, usize>,
}

/// Somebody who trades.
#[derive(Debug)]
struct Person {
    name: UserName,
    /// At which front.
    at: usize,
    /// Commands without a reply.
    given: VecDeque<u64>,
}

/// All fronts, users, and the quote server.
pub(super) struct Fronts {
    places: Vec<Place>,
    people: Vec<Person>,
    server: StandIn,
    /// Beginnings of all fronts.
    lives: u64,
    /// Since when no user waits for anything, after faults have ended.
    calm_since_us: Option<u64>,
    /// Whether fronts were told that no command comes any more.
    is_closed: bool,
}

impl Fronts {
    pub(super) fn new(seed: u64) -> Self {
        let settings = StandInSettings { seed, is_instant: false, bad_per_mille: BAD_PER_MILLE };
        let person = |number: usize| Person {
            name: UserName::new(&format!("user{number}")).expect("it is a name"),
            at: number % FRONTS,
            given: VecDeque::new(),
        };
        let place = |_| Place {
            front: None,
            life: 0,
            number: 0,
            ahead_ms: 0,
            site: SiteId::new(0, 0),
            seen: Horizon::default(),
            open: BTreeMap::new(),
            asked: BTreeMap::new(),
            arrived: 0,
            of: BTreeMap::new(),
        };
        Self {
            places: (0..FRONTS).map(place).collect(),
            people: (0..USERS).map(person).collect(),
            server: StandIn::new(settings),
            lives: 0,
            calm_since_us: None,
            is_closed: false,
        }
    }

    fn waits(&self) -> bool {
        self.people.iter().any(|person| !person.given.is_empty())
    }

    /// Whether everything has its answer, and a minute and more has passed since.
    pub(super) fn are_settled(&self, _now_us: u64) -> bool {
        let is_idle =
            |place: &Place| place.open.is_empty() && place.front.as_ref().is_some_and(BrokerFront::is_idle);
        self.is_closed && self.places.iter().all(is_idle)
    }

    pub(super) fn unsettled(&self) -> String {
        let mut text = String::new();
        for person in self.people.iter().filter(|person| !person.given.is_empty()) {
            text += &format!("\n  {person:?}");
        }
        for place in &self.places {
            text += &format!("\n  front {}: open {:?}", place.life, place.open.keys());
        }
        text
    }
}

/// A command line of anything, at a time.
fn line(name: &UserName, random: &mut Random) -> String {
    let symbol = ["A", "BC", "DEF"][random.index(3)];
    let (cents, more) = (random.between(1, 99_999), random.between(100, 99_999_999));
    let amount = |cents: u64| format!("{}.{:02}", cents / 100, cents % 100);
    match random.below(22) {
        0..=2 => format!("ADD,{name},{}", amount(more)),
        3 => format!("QUOTE,{name},{symbol}"),
        4..=6 => format!("BUY,{name},{symbol},{}", amount(more / 10)),
        7 | 8 => format!("COMMIT_BUY,{name}"),
        9 => format!("CANCEL_BUY,{name}"),
        10 | 11 => format!("SELL,{name},{symbol},{}", amount(cents)),
        12 => format!("COMMIT_SELL,{name}"),
        13 => format!("CANCEL_SELL,{name}"),
        14 | 15 => format!("SET_BUY_AMOUNT,{name},{symbol},{}", amount(more / 10)),
        16 | 17 => format!("SET_BUY_TRIGGER,{name},{symbol},{}", amount(cents)),
        18 => format!("SET_SELL_AMOUNT,{name},{symbol},{}", amount(cents)),
        19 => format!("SET_SELL_TRIGGER,{name},{symbol},{}", amount(cents)),
        20 => format!("CANCEL_SET_BUY,{name},{symbol}"),
        _ => format!("CANCEL_SET_SELL,{name},{symbol}"),
    }
}

impl Sites {
    fn fronts(&mut self) -> &mut Fronts {
        self.fronts.as_mut().expect("there are fronts")
    }

    /// The time by a front's clock.
    fn front_ms(&self, front: usize) -> u64 {
        let ahead_ms = self.fronts.as_ref().map_or(0, |fronts| fronts.places[front].ahead_ms);
        NOON_MS + ahead_ms + self.now_us() * SPEED / 1_000
    }

    pub(super) fn begin_fronts(&mut self) {
        for front in 0..self.fronts.as_ref().map_or(0, |fronts| fronts.places.len()) {
            self.begin_front(front);
        }
    }

    fn begin_front(&mut self, front: usize) {
        let (site, ahead_ms) = (self.list[self.random.index(self.list.len())], self.random.below(3_000));
        let fronts = self.fronts();
        fronts.lives += 1;
        let (first, place) = (fronts.lives, &mut fronts.places[front]);
        *place = Place {
            front: Some(BrokerFront::new(first << 16, first << 32)),
            life: place.life + 1,
            number: first,
            ahead_ms,
            site,
            seen: Horizon::default(),
            open: BTreeMap::new(),
            asked: BTreeMap::new(),
            arrived: 0,
            of: BTreeMap::new(),
        };
        let life = place.life;
        self.note(|| format!("front {front} begins"));
        self.schedule(TURN_US, Event::Front { front, life });
    }

    /// A front has a turn: it begins, dies, or goes on.
    pub(super) fn front_turn(&mut self, front: usize, life: u64) {
        if self.fronts().places[front].life != life {
            return;
        }
        if self.fronts().places[front].front.is_none() {
            return self.begin_front(front);
        }
        if !self.faults.over && self.random.chance(DEATHS_PERMILLE) {
            return self.front_dies(front);
        }
        self.schedule(TURN_US, Event::Front { front, life });
        let now_ms = self.front_ms(front);
        self.with_front(front, |place, effects| {
            if let Some(front) = &mut place.front {
                front.tick(now_ms, effects);
            }
        });
        for person in 0..USERS {
            self.person_turn(person, front);
        }
        self.repeat_what_is_late(front);
        self.close_if_calm();
    }

    fn front_dies(&mut self, front: usize) {
        self.note(|| format!("front {front} dies"));
        self.summary.faults += 1;
        let place = &mut self.fronts().places[front];
        place.front = None;
        place.life += 1;
        let life = place.life;
        let next = self.random.index(FRONTS);
        for person in self.fronts().people.iter_mut().filter(|person| person.at == front) {
            person.at = next;
            person.given.clear();
        }
        let after = self.random.between(DOWN_US.0, DOWN_US.1);
        self.schedule(after, Event::Front { front, life });
    }

    /// A user gives his next command, perhaps.
    fn person_turn(&mut self, person: usize, front: usize) {
        let state = &self.fronts().people[person];
        let may = state.at == front && state.given.len() < GIVEN_MAX;
        if !may || self.faults.over || !self.random.chance(COMMANDS_PERMILLE) {
            return;
        }
        let name = self.fronts().people[person].name.clone();
        let text = format!("[1] {}", line(&name, &mut self.random));
        let command = WorkloadLine::parse(text.as_bytes()).expect("it is a command");
        let now_ms = self.front_ms(front);
        self.note(|| format!("front {front} is given {text}"));
        let fronts = self.fronts();
        let arrival = fronts.places[front].arrived;
        fronts.people[person].given.push_back(arrival);
        fronts.places[front].arrived += 1;
        fronts.places[front].of.insert(arrival, person);
        self.with_front(front, |place, effects| {
            if let Some(front) = &mut place.front {
                front.arrives(command, now_ms, effects);
            }
        });
    }

    /// Does something with a front, and then what it wants done.
    fn with_front(&mut self, front: usize, does: impl FnOnce(&mut Place, &mut Vec<FrontEffect>)) {
        let mut effects = Vec::new();
        does(&mut self.fronts().places[front], &mut effects);
        for effect in effects {
            match effect {
                FrontEffect::Submit { id, request } => {
                    let bytes = brokerage::named(id, &request);
                    self.submit(front, id, bytes);
                }
                FrontEffect::Ask { hit, symbol, user } => self.ask_quote(front, hit, symbol, user),
                FrontEffect::Abandon { .. } => {}
                FrontEffect::Told { arrival, reply, command } => {
                    self.note(|| format!("front {front} tells {command:?}: {reply:?}"));
                    self.person_told(front, arrival);
                }
            }
        }
    }

    fn person_told(&mut self, front: usize, arrival: u64) {
        self.summary.committed += 1;
        let fronts = self.fronts();
        if let Some(person) = fronts.places[front].of.remove(&arrival)
            && fronts.people[person].at == front
        {
            fronts.people[person].given.retain(|given| *given != arrival);
        }
    }

    /// A request goes to the site that this front asks now.
    fn submit(&mut self, front: usize, id: TransactionId, bytes: Vec<u8>) {
        let asks = self.fronts().places[front].site;
        if self.random.chance(20) || !self.list.contains(&asks) {
            let site = self.list[self.random.index(self.list.len())];
            self.fronts().places[front].site = site;
        }
        let asked_us = self.now_us();
        let place = &mut self.fronts().places[front];
        let (site, ask) = (place.site, Ask::Execute(id, place.seen, bytes.clone()).to_bytes());
        place.open.insert(id, Open { bytes, asked_us });
        if self.nodes[&site].accepts() {
            let connection = self.ask_site(FIRST + front, site, ask);
            self.fronts().places[front].asked.insert(connection, id);
        }
    }

    fn repeat_what_is_late(&mut self, front: usize) {
        let now_us = self.now_us();
        let open = &self.fronts().places[front].open;
        let late = open.iter().filter(|(_, open)| now_us - open.asked_us >= PATIENCE_US);
        let late: Vec<_> = late.map(|(id, open)| (*id, open.bytes.clone())).collect();
        if !late.is_empty() {
            let site = self.list[self.random.index(self.list.len())];
            self.fronts().places[front].site = site;
        }
        for (id, bytes) in late {
            self.submit(front, id, bytes);
        }
    }

    /// A site answers a front.
    pub(super) fn front_told(
        &mut self,
        site: SiteId,
        connection: ClientId,
        of: (Code, Horizon),
        body: &[u8],
    ) -> Verdict {
        let front = (connection.0 & 0xffff) as usize - FIRST;
        let Some(id) = self.fronts().places[front].asked.remove(&connection) else { return Ok(()) };
        let (code, horizon) = of;
        match code {
            Code::Done => {
                let (number, reply) = read_told(body)
                    .ok_or_else(|| (Broken::Lost, format!("{site} answers a front {body:?}")))?;
                self.answer(site, number)?;
                let now_ms = self.front_ms(front);
                self.with_front(front, |place, effects| {
                    place.seen = place.seen.and(horizon);
                    if let (Some(_), Some(front)) = (place.open.remove(&id), &mut place.front) {
                        front.answered(id, reply, now_ms, effects);
                    }
                });
                Ok(())
            }
            Code::Refused => {
                let why = String::from_utf8_lossy(body).into_owned();
                Err((Broken::Lost, format!("{site} does not take a request of front {front}: {why}")))
            }
            _ => {
                // Nothing was done, or nobody knows: it is repeated, soon.
                let soon = self.now_us().saturating_sub(PATIENCE_US - self.random.between(5_000, 40_000));
                if let Some(open) = self.fronts().places[front].open.get_mut(&id) {
                    open.asked_us = soon;
                }
                Ok(())
            }
        }
    }

    /// Asks the quote server, which answers some time, or never.
    fn ask_quote(&mut self, front: usize, hit: u64, symbol: StockSymbol, user: UserName) {
        let now_ms = self.front_ms(front);
        let fronts = self.fronts();
        let life = fronts.places[front].life;
        let said = fronts.server.answer(ask_line(symbol, &user).trim_end().as_bytes(), now_ms);
        let key = format!("key{}", fronts.server.hits());
        let answer = match said.words {
            StandInWords::Quote(quote) => reply_line(&pares_broker::StockQuote { key, ..quote }).into_bytes(),
            StandInWords::Text(text) => text.into_bytes(),
            StandInWords::Silence => return,
        };
        let question = Question { hit, symbol, user, answer };
        let after = said.delay_ms * 1_000 / SPEED + self.random.between(50, 400);
        self.schedule(after, Event::Quoted { front, life, question });
    }

    /// It has answered.
    pub(super) fn quoted(&mut self, front: usize, life: u64, question: &Question) {
        if self.fronts().places[front].life != life {
            return;
        }
        let Question { hit, symbol, user, answer } = question;
        let quote = match answer.is_empty() {
            true => Err(QuoteFault::Closed),
            false => read_reply(answer, *symbol, user),
        };
        let now_ms = self.front_ms(front);
        let name = HitName { desk: self.fronts().places[front].number, count: *hit };
        let quote = quote.map(|quote| QuoteBrought { quote, hit: Some(name) });
        self.with_front(front, |place, effects| {
            if let Some(front) = &mut place.front {
                front.quote(*hit, quote, now_ms, effects);
            }
        });
    }

    /// When faults are over and nobody has waited for a minute and more, no command comes any more.
    fn close_if_calm(&mut self) {
        let (is_over, now_us) = (self.faults.over, self.now_us());
        let fronts = self.fronts();
        if !is_over || fronts.waits() || fronts.places.iter().any(|place| place.front.is_none()) {
            fronts.calm_since_us = None;
            return;
        }
        let since_us = *fronts.calm_since_us.get_or_insert(now_us);
        if now_us < since_us + 2 * MINUTE_MS * 1_000 / SPEED {
            return;
        }
        fronts.is_closed = true;
        for front in 0..FRONTS {
            let now_ms = self.front_ms(front);
            self.with_front(front, |place, effects| {
                if let Some(front) = &mut place.front {
                    front.close(now_ms, effects);
                }
            });
        }
    }
}

/// The number of an execution, and the broker's reply.
fn read_told(body: &[u8]) -> Option<(usize, BrokerReply)> {
    let blank = body.iter().position(|byte| *byte == b' ')?;
    Some((bank::number(body)?, BrokerReply::from_bytes(&body[blank + 1..]).ok()?))
}
