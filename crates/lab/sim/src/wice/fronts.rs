//! A broker's fronts as clients of the sites: the shipped ones, which die and begin again; and their users.
//!
//! ```text
//!   users --a few commands at a time--> front --requests, late, lost, repeated, at any site--> sites
//!                                        |  <--connections that break--> desks (`desks`)
//! ```

use std::collections::BTreeMap;

use pares_broker::{BrokerRead, BrokerReply};
use pares_front::{BrokerFront, DeskCalls, FrontEffect, FrontNumber};
use pares_link::ClientId;
use pares_site::protocol::{Ask, Code, Horizon};
use pares_wice::codec::Coded;
use pares_wice::{SiteId, TransactionId};

use super::clients::READ;
use super::desks::{DESKS, Desks};
use super::people::{Person, people};
use super::sites::{Event, Sites};
use super::{Broken, Defect, Verdict, bank, brokerage};

/// A front's clock runs so much faster than the sites': minutes pass in a run.
pub(super) const SPEED: u64 = 50;
pub(super) const NOON_MS: u64 = 1_700_000_000_000;
const MINUTE_MS: u64 = 60_000;
/// A front has a turn so often, microseconds.
pub(super) const TURN_US: u64 = 10_000;
/// A request that has no answer for so long is repeated at another site.
const PATIENCE_US: u64 = 400_000;
/// How long a front or a desk is down, microseconds.
pub(super) const DOWN_US: (u64, u64) = (20_000, 400_000);
pub(super) const FRONTS: usize = 3;
/// Fronts are clients of sites from this number on until they have theirs.
const BEGINNERS: u64 = 1 << 60;
/// What stands for the first front where clients have their numbers.
const FIRST: usize = 0x8000;
/// Of a thousand turns of a front, in how many it dies.
const DEATHS_PERMILLE: u64 = 4;
/// A request that has no answer.
#[derive(Debug)]
struct Open {
    bytes: Vec<u8>,
    asked_us: u64,
}

/// A front, up or down.
#[derive(Default)]
pub(super) struct Place {
    /// None while it is down.
    pub(super) front: Option<BrokerFront>,
    /// Counts its beginnings and ends.
    pub(super) life: u64,
    /// Its clock is ahead by so much.
    ahead_ms: u64,
    /// Whom it asks; none before the first.
    site: Option<SiteId>,
    seen: Horizon,
    open: BTreeMap<TransactionId, Open>,
    /// On which connection each was asked for.
    asked: BTreeMap<ClientId, TransactionId>,
    /// What it reads, and on which connection: the number, and when it was asked for.
    reads: BTreeMap<ClientId, (u64, u64)>,
    /// Its end of the connections to desks, and which they are.
    pub(super) calls: DeskCalls,
    pub(super) lines: BTreeMap<usize, FrontNumber>,
    /// Whose command was the nth to arrive, and its number.
    pub(super) of: BTreeMap<u64, (usize, u64)>,
}

pub(super) struct Fronts {
    pub(super) places: Vec<Place>,
    pub(super) people: Vec<Person>,
    pub(super) desks: Desks,
    /// Beginnings of all fronts.
    lives: u64,
    /// Since when no user waits for anything, after faults have ended.
    calm_since_us: Option<u64>,
    /// Whether fronts know that no command comes any more.
    is_closed: bool,
}

impl Fronts {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            places: (0..FRONTS).map(|_| Place::default()).collect(),
            people: people(),
            desks: Desks::new(seed),
            lives: 0,
            calm_since_us: None,
            is_closed: false,
        }
    }

    fn waits(&self) -> bool {
        self.people.iter().any(Person::waits)
    }

    /// Whether everything has its answer, and a minute and more has passed since.
    pub(super) fn are_settled(&self) -> bool {
        let is_idle =
            |place: &Place| place.open.is_empty() && place.front.as_ref().is_some_and(BrokerFront::is_idle);
        self.is_closed && self.places.iter().all(is_idle) && self.desks.are_settled()
    }

    pub(super) fn unsettled(&self) -> String {
        let mut text = String::new();
        for person in self.people.iter().filter(|person| person.waits()) {
            text += &format!("\n  {person:?}");
        }
        for place in &self.places {
            text += &format!("\n  front {}: open {:?}", place.life, place.open.keys());
            let busy = place.front.as_ref().filter(|front| !front.is_idle());
            text += &busy.map_or_else(String::new, |front| format!(", busy: {front:?}"));
        }
        text + &self.desks.unsettled()
    }
}

impl Sites {
    pub(super) fn fronts(&mut self) -> &mut Fronts {
        self.fronts.as_mut().expect("there are fronts")
    }

    pub(super) fn front_of(&mut self, front: usize) -> Option<&mut BrokerFront> {
        self.fronts().places[front].front.as_mut()
    }

    pub(super) fn front_ms(&self, front: usize) -> u64 {
        let ahead_ms = self.fronts.as_ref().map_or(0, |fronts| fronts.places[front].ahead_ms);
        NOON_MS + ahead_ms + self.now_us() * SPEED / 1_000
    }

    pub(super) fn begin_fronts(&mut self) {
        for front in 0..self.fronts.as_ref().map_or(0, |fronts| fronts.places.len()) {
            self.begin_front(front);
        }
        self.begin_desks();
    }

    fn begin_front(&mut self, front: usize) {
        let ahead_ms = self.random.below(3_000);
        let fronts = self.fronts();
        fronts.lives += 1;
        let (client, place) = (BEGINNERS + fronts.lives, &mut fronts.places[front]);
        let (began, life) = (Some(BrokerFront::new(client)), place.life + 1);
        let calls = DeskCalls::new(0..DESKS as u64);
        *place = Place { front: began, life, ahead_ms, calls, ..Place::default() };
        self.note(|| format!("front {front} begins"));
        self.schedule(TURN_US, Event::Front { front, life });
    }

    /// A front has a turn: it begins, dies, or continues.
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
        let (now_ms, is_closed) = (self.front_ms(front), self.fronts().is_closed);
        self.with_front(front, |place| {
            if let Some(front) = &mut place.front {
                front.tick(now_ms);
                if is_closed {
                    front.settle_hits(now_ms);
                }
            }
        });
        self.dial_desks(front);
        for person in 0..self.fronts().people.len() {
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
        let (life, lines) = (place.life, std::mem::take(&mut place.lines));
        lines.into_values().for_each(|line| self.cut_line(line));
        let after = self.random.between(DOWN_US.0, DOWN_US.1);
        self.schedule(after, Event::Front { front, life });
    }

    /// Does something with a front, and then what it wants done.
    pub(super) fn with_front(&mut self, front: usize, does: impl FnOnce(&mut Place)) {
        let place = &mut self.fronts().places[front];
        does(place);
        let effects = place.front.as_mut().map(BrokerFront::take_effects).unwrap_or_default();
        self.carry_out_of_front(front, effects);
    }

    // Apart, since what desks say leads back here: a closure within a closure would have no end.
    fn carry_out_of_front(&mut self, front: usize, effects: Vec<FrontEffect>) {
        for effect in effects {
            match effect {
                FrontEffect::Submit { id, mut request } => {
                    if self.plan.defect == Some(Defect::ForgetsOrder) {
                        request.after = 0;
                    }
                    let bytes = brokerage::named(id, &request);
                    self.submit(front, id, bytes);
                }
                FrontEffect::Ask { hit, symbol, user } => {
                    self.call_desks(front, |calls| calls.ask(hit, symbol, user));
                }
                FrontEffect::Look { number, read } => self.look_up(front, number, &read),
                FrontEffect::Abandon { hit } => self.fronts().places[front].calls.abandon(hit),
                FrontEffect::Noted { hit } => self.call_desks(front, |calls| calls.noted(hit)),
                FrontEffect::Told { arrival, reply, number, .. } => {
                    self.note(|| format!("front {front} tells {number:#x}: {reply:?}"));
                    if let Some((person, number)) = self.fronts().places[front].of.remove(&arrival) {
                        self.person_told(person, number, reply);
                    }
                }
            }
        }
    }

    /// The site that this front asks now: mostly the same.
    fn asks(&mut self, front: usize) -> SiteId {
        let before = self.fronts().places[front].site.filter(|site| self.list.contains(site));
        let site = match before {
            Some(site) if !self.random.chance(20) => site,
            _ => self.list[self.random.index(self.list.len())],
        };
        self.fronts().places[front].site = Some(site);
        site
    }

    fn submit(&mut self, front: usize, id: TransactionId, bytes: Vec<u8>) {
        let (site, asked_us) = (self.asks(front), self.now_us());
        let place = &mut self.fronts().places[front];
        let ask = Ask::Execute(id, place.seen, bytes.clone()).to_bytes();
        place.open.insert(id, Open { bytes, asked_us });
        if self.nodes[&site].accepts() {
            let connection = self.ask_site(FIRST + front, site, ask);
            self.fronts().places[front].asked.insert(connection, id);
        }
    }

    /// A front reads, and begins again by itself if there is no answer.
    fn look_up(&mut self, front: usize, number: u64, read: &BrokerRead) {
        let site = self.asks(front);
        let ask = Ask::Read(READ, self.fronts().places[front].seen, read.to_bytes()).to_bytes();
        if self.nodes[&site].accepts() {
            let connection = self.ask_site(FIRST + front, site, ask);
            let asked = (number, self.now_us());
            self.fronts().places[front].reads.insert(connection, asked);
        } else {
            self.looked_up(front, number, None);
        }
    }

    /// A read that a site has not answered is given up.
    fn give_up_late_reads(&mut self, front: usize) {
        let now_us = self.now_us();
        let reads = &mut self.fronts().places[front].reads;
        let late = reads.extract_if(.., |_, (_, asked_us)| now_us - *asked_us >= PATIENCE_US);
        for (_, (number, _)) in late.collect::<Vec<_>>() {
            self.looked_up(front, number, None);
        }
    }

    fn repeat_what_is_late(&mut self, front: usize) {
        self.give_up_late_reads(front);
        let now_us = self.now_us();
        let open = &self.fronts().places[front].open;
        let late = open.iter().filter(|(_, open)| now_us - open.asked_us >= PATIENCE_US);
        let late: Vec<_> = late.map(|(id, open)| (*id, open.bytes.clone())).collect();
        if !late.is_empty() {
            self.fronts().places[front].site = None;
        }
        for (id, bytes) in late {
            self.submit(front, id, bytes);
        }
    }

    pub(super) fn front_told(
        &mut self,
        site: SiteId,
        connection: ClientId,
        of: (Code, Horizon),
        body: &[u8],
    ) -> Verdict {
        let front = (connection.0 & 0xffff) as usize - FIRST;
        let (code, horizon) = of;
        if let Some((number, _)) = self.fronts().places[front].reads.remove(&connection) {
            self.looked_up(front, number, (code == Code::Done).then_some((body, horizon)));
            return Ok(());
        }
        let Some(id) = self.fronts().places[front].asked.remove(&connection) else { return Ok(()) };
        match code {
            Code::Done => {
                let (number, reply) = read_told(body)
                    .ok_or_else(|| (Broken::Lost, format!("{site} answers a front {body:?}")))?;
                self.answer(site, number)?;
                let now_ms = self.front_ms(front);
                self.with_front(front, |place| {
                    place.seen = place.seen.and(horizon);
                    if let (Some(_), Some(front)) = (place.open.remove(&id), &mut place.front) {
                        front.answered(id, reply, now_ms);
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

    fn looked_up(&mut self, front: usize, number: u64, found: Option<(&[u8], Horizon)>) {
        let now_ms = self.front_ms(front);
        self.with_front(front, |place| {
            if let Some((_, horizon)) = found {
                place.seen = place.seen.and(horizon);
            }
            if let Some(front) = &mut place.front {
                front.looked(number, found.map(|(body, _)| body), now_ms);
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
            self.with_front(front, |place| {
                if let Some(front) = &mut place.front {
                    front.close(now_ms);
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
